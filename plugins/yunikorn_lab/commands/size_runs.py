"""Runs of `yunikorn size`: one workload on clusters of several sizes, once for each seed."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import attrs

from yunikorn.clock import SystemClock
from yunikorn.errors import printable
from yunikorn.text import number_of
from yunikorn_commands.config_input import folder_of
from yunikorn_commands.interrupts import Interrupts
from yunikorn_commands.output import echo
from yunikorn_commands.plugin_files import CodePermission
from yunikorn_lab.commands.executors import progress_of_runs
from yunikorn_lab.commands.progress import progress_bar
from yunikorn_lab.commands.seeds_option import source_of
from yunikorn_lab.commands.simulate import stderr_console
from yunikorn_lab.reporting.cluster_search import SearchInterrupted, Trial, run_folder
from yunikorn_lab.reporting.comparison import Drawn
from yunikorn_lab.reporting.provenance import Provenance
from yunikorn_lab.reporting.report_assertions import Assertion, AssertionResult, judge
from yunikorn_lab.reporting.runs import Order, Played, RunFailed, Source, finished, play, play_all
from yunikorn_lab.reporting.saved_run import InputPlaces
from yunikorn_lab.reporting.workers import HereAndNow, WorkerPool
from yunikorn_lab.simulation.adjustments import Adjustments
from yunikorn_lab.simulation.engine import Progress
from yunikorn_lab.simulation.workload import Workload

NODES_FRACTION = "--nodes-fraction"
_OF_SEARCH = {"--target", "--from", "--to", "--neighbours"}
"""Options that decide which sizes are tested, but not the result of a size."""


@attrs.frozen
class SizedWorkload:
    """A workload of this process with another number of nodes."""

    workload: Workload = attrs.field(repr=False)
    fraction: Fraction

    def read(self) -> Workload:
        """Return the workload with its nodes."""
        return Adjustments(nodes_fraction=self.fraction).apply(self.workload)


@attrs.define(eq=False)
class SizeRuns:
    """Simulations of one workload on clusters of several sizes."""

    text: str
    """Text of the configuration."""
    config: Path
    draws: Sequence[Drawn]
    workload: Workload
    """The first of the draws, as it was read."""
    targets: Sequence[Assertion]
    queues: set[tuple[str, str]]
    until: int | None
    preempted: str
    executor: WorkerPool | HereAndNow
    signals: Interrupts
    provenance: Provenance
    places: InputPlaces
    out: Path | None = None
    force: bool = False
    taken_over: int = 0
    """Number of runs of an earlier call that were not repeated."""
    _whole: int = attrs.field(init=False)
    """Number of nodes without `--nodes-fraction`."""

    def __attrs_post_init__(self) -> None:
        self._whole = len(self.workload.nodes)
        first = source_of(self.draws[0])
        if first.nodes_fraction != 1:
            self._whole = len(attrs.evolve(first, nodes_fraction=Fraction(1)).read().nodes)

    def measure(self, nodes: int) -> Trial:
        """Test one size; raises `SearchInterrupted` after a signal, and `RunFailed`."""
        orders = [self._order(nodes, drawn) for drawn in self.draws]
        known = [finished(order) for order in orders]
        missing = [order for order, run in zip(orders, known, strict=True) if run is None]
        self.taken_over += len(orders) - len(missing)
        made = iter(self._play(nodes, missing))
        played = [next(made) if run is None else run for run in known]
        by_run = [self._judge(run) for run in played]
        by_seed = {
            drawn.seed: verdicts
            for drawn, verdicts in zip(self.draws, by_run, strict=True)
            if drawn.seed is not None
        }
        trial = Trial.of_seeds(nodes, by_seed) if by_seed else Trial(nodes, by_run[0])
        said = ", ".join(f"{one.assertion.text}: {shown(trial, at)}" for at, one in enumerate(trial.verdicts))
        echo(
            printable(f"{number_of(nodes, 'node')}: {'met' if trial.is_met else 'not met'} ({said})"),
            err=True,
        )
        return trial

    def _judge(self, run: Played) -> tuple[AssertionResult, ...]:
        if run.result is None:
            raise SearchInterrupted
        return tuple(judge(each, run.result, self.queues) for each in self.targets)

    def _play(self, nodes: int, orders: list[Order]) -> list[Played]:
        if isinstance(self.executor, HereAndNow):
            return [self._play_here(order) for order in orders]
        with progress_of_runs(f"testing {number_of(nodes, 'node')}") as on_progress:
            return play_all(orders, self.executor, on_progress, lambda: bool(self.signals.number))

    def _play_here(self, order: Order) -> Played:
        with progress_bar(stderr_console(), SystemClock(), held=source_of(self.draws[0]).hold) as bar:

            def watch(progress: Progress) -> bool:
                return bar(progress) and not self.signals.number

            run = play(order, watch)
        if run.is_interrupted:
            raise SearchInterrupted
        if run.error:
            raise RunFailed(f"{run.name}: {run.error}")
        return run

    def _order(self, nodes: int, drawn: Drawn) -> Order:
        fraction = Fraction(nodes, self._whole)
        given = source_of(drawn)
        source: Source = attrs.evolve(given, nodes_fraction=fraction)
        if len(self.draws) == 1 and given.nodes_fraction == 1 and given.racks is None:
            source = SizedWorkload(self.workload, fraction)  # so that it is read once
        options = {name: text for name, text in self.provenance.options.items() if name not in _OF_SEARCH}
        folder = None if self.out is None else run_folder(self.out, nodes, drawn.seed)
        seed = self.provenance.seed if drawn.seed is None else drawn.seed
        return Order(
            number_of(nodes, "node"),
            self.text,
            source,
            drawn.seed,
            self.until,
            self.preempted,
            folder,
            code=CodePermission.of_operator(folder_of(self.config)),
            provenance=attrs.evolve(
                self.provenance, options={**options, NODES_FRACTION: str(fraction)}, seed=seed
            ),
            force=self.force,
            places=self.places,
        )


def shown(trial: Trial, target: int) -> str:
    """Return the value of a target as text, the worst one of several seeds."""
    verdict = trial.verdicts[target]
    value = verdict.assertion.spell(verdict.value)
    if len(trial.by_seed) > 1:
        value += f", met by {trial.seeds_met(target)} of {len(trial.by_seed)} seeds"
    return f"{value}, {verdict.reason}" if verdict.reason else value
