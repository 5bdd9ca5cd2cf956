"""`yunikorn size`: find the smallest cluster on which a workload meets targets.

Exit status: 0 when a size meets the targets, 1 when no tested size does, 2 when the call, the configuration
or the input cannot be used, 128 and the number of the signal after Ctrl-C (130), SIGTERM (143) and SIGHUP
(129). The table of the sizes tested so far is printed, and written to `--out`, in every case but 2.

Runs of `yunikorn size`: one workload on clusters of several sizes, once for each seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import attrs
import click

from yunikorn.clock import SystemClock
from yunikorn.errors import UsageError, printable
from yunikorn.text import number_of
from yunikorn_commands.allowed_plugins import load_registry
from yunikorn_commands.config_input import folder_of
from yunikorn_commands.input_files import name_of
from yunikorn_commands.interrupts import Interrupts
from yunikorn_commands.output import echo, notes, results
from yunikorn_commands.path_types import INPUT, OUT_FOLDER, force_folder
from yunikorn_commands.plugin_files import CodePermission, trusting
from yunikorn_commands.signals import ending_early, status_of
from yunikorn_lab.commands.call_provenance import RunInputs
from yunikorn_lab.commands.run_conditions import cluster_notes, configured_queues
from yunikorn_lab.commands.run_options import (
    check_out,
    claimed,
    executor_for,
    jobs_option,
    preempted_option,
    progress_bar,
    progress_of_runs,
    taken_over,
    until_option,
    working,
)
from yunikorn_lab.commands.seeds_option import draws, seeds_option, source_of
from yunikorn_lab.commands.simulate import read_simulation, stderr_console
from yunikorn_lab.commands.workload import WorkloadSource, workload_options
from yunikorn_lab.reporting.cluster_search import (
    SearchInterrupted,
    SizeResult,
    SizeSearch,
    Trial,
    describe,
    run_folder,
    search,
    size_folder,
    untested_sizes,
    write_size,
)
from yunikorn_lab.reporting.comparison import Drawn
from yunikorn_lab.reporting.provenance import Provenance
from yunikorn_lab.reporting.report_assertions import (
    Assertion,
    AssertionResult,
    check_queues,
    judge,
    parse_assertions,
)
from yunikorn_lab.reporting.runs import Order, Played, RunFailed, Source, finished, play, play_all
from yunikorn_lab.reporting.saved_run import InputPlaces
from yunikorn_lab.reporting.tables import Table
from yunikorn_lab.reporting.workers import HereAndNow, WorkerPool
from yunikorn_lab.simulation.adjustments import Adjustments
from yunikorn_lab.simulation.engine import Progress
from yunikorn_lab.simulation.machines import MAX_NODES
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


NONE_MEETS = 1
TIMES = 8
"""Largest tested size by default, as a multiple of the nodes of the workload."""
REPORTING = "interrupted: reporting the sizes tested so far (Ctrl-C again ends without a report)"
"""Message after the first signal."""


@click.command("size")
@click.option("--config", required=True, type=INPUT, help="The queues.yaml to schedule under.")
@workload_options
@click.option(
    "--target",
    "targets",
    required=True,
    multiple=True,
    metavar="ASSERTION",
    help="Target such as 'root.web.wait.p95 < 60s'; may be given several times, then all must be met.",
)
@click.option(
    "--from", "lowest", type=click.IntRange(1, MAX_NODES), default=1, show_default=True, help="Smallest size."
)
@click.option(
    "--to",
    "highest",
    type=click.IntRange(1, MAX_NODES),
    help=f"Largest size in nodes. [default: {TIMES} times the workload's]",
)
@click.option(
    "--neighbours",
    type=click.IntRange(0, 100),
    default=2,
    show_default=True,
    help="Number of sizes to test on each side of the result, since more nodes are not always better.",
)
@until_option("End each run at this simulated time, such as 36h")
@preempted_option
@seeds_option
@jobs_option
@click.option("--out", type=OUT_FOLDER, help="Folder for the result and the report of each size.")
@force_folder
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(
    config: Path,
    source: WorkloadSource,
    targets: tuple[str, ...],
    lowest: int,
    highest: int | None,
    neighbours: int,
    until: int | None,
    preempted: str,
    seeds: list[int],
    jobs: int | None,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> int:
    """Find the smallest number of nodes at which a workload meets all targets.

    The workload runs on clusters of several sizes, with its kinds of nodes in the same proportions as with
    --nodes-fraction, first with all of its nodes. Targets have the notation of assertions: a figure of the
    run or of a queue, <, <=, >, >=, == or !=, and a value.
    """
    check_out(out, force=force)
    wanted = parse_assertions(targets, "--target")
    drawn = draws(source, seeds)
    source = source_of(drawn[0])
    registry = trusting(load_registry(), folder_of(config))
    text, plan = read_simulation(config, source, registry)
    queues = configured_queues(text, registry)
    if queues.are_all:
        check_queues(wanted, queues.known, "--target")
    top = highest or min(len(plan.nodes) * TIMES, MAX_NODES)
    if lowest > top:
        raise UsageError(f"--from {lowest} is larger than --to {top}")
    notes(plan.remarks)
    for note in cluster_notes([(name_of(config), text, registry)], plan):
        echo(note, err=True)
    inputs = RunInputs(source, plan, click.get_current_context())
    provenance = inputs.provenance(config, text, registry)
    executor = executor_for(jobs, len(drawn))
    with ending_early(REPORTING, executor.stop) as signals, claimed(size_folder, out, force=force) as folder:
        runs = SizeRuns(
            text=text,
            config=config,
            draws=drawn,
            workload=plan,
            targets=wanted,
            queues=queues.known,
            until=until,
            preempted=preempted,
            executor=executor,
            signals=signals,
            provenance=provenance,
            places=inputs.places(config),
            out=out,
            force=force,
        )
        with working(executor, out):
            found = search(runs.measure, len(plan.nodes), lowest, top, neighbours)
        result = SizeResult(found, wanted, len(plan.nodes), seeds, provenance)
        if folder is not None:
            write_size(folder, result)
    notes(_remarks(runs, found))
    if as_json:
        echo(result.to_json(), nl=False)
    else:
        _show(result, top)
    if found.outcome == "interrupted":
        return status_of(signals)
    return 0 if found.outcome == "found" else NONE_MEETS


def _remarks(runs: SizeRuns, found: SizeSearch) -> Iterator[str]:
    if runs.taken_over:
        yield taken_over(runs.taken_over)
    if found.outcome == "interrupted":
        where = f"the same call continues in {runs.out}" if runs.out else "with --out they would be kept"
        yield f"the result has the sizes that were tested; {where}"
    elif runs.out is not None:
        yield from untested_sizes(runs.out, found)


def _show(result: SizeResult, highest: int) -> None:
    from yunikorn_lab.reporting.terminal_output import print_tables, report_console

    found = result.search
    rows = [
        [
            str(trial.nodes),
            "met" if trial.is_met else "not met",
            *(shown(trial, target) for target in range(len(result.targets))),
        ]
        for trial in found.trials
    ]
    titles = ["nodes", "targets", *(target.text for target in result.targets)]
    sentences = [*describe(found, highest)]
    if len(result.seeds) > 1:
        sentences.append("A size meets a target if every seed does; the values are those of the worst seed.")
    table = Table("Sizes of the cluster", titles, rows, note=" ".join(sentences), min_width=5)
    print_tables([table], report_console(None if results().isatty() else 140, results()))
