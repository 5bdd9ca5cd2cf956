"""`yunikorn size`: find the smallest cluster on which a workload meets targets.

Exit status: 0 when a size meets the targets, 1 when no tested size does, 2 when the call, the configuration
or the input cannot be used, 128 and the number of the signal after Ctrl-C (130), SIGTERM (143) and SIGHUP
(129). The table of the sizes tested so far is printed in every case but 2.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from yunikorn.cli.cluster_notes import cluster_notes
from yunikorn.cli.config_input import folder_of, name_of
from yunikorn.cli.configured_queues import configured_queues
from yunikorn.cli.input_path import INPUT
from yunikorn.cli.installed import load_registry
from yunikorn.cli.output import echo, results
from yunikorn.cli.progress import progress_bar
from yunikorn.cli.signals import ending_early, status_of
from yunikorn.cli.simulate import read_simulation, stderr_console
from yunikorn.cli.times import parse_moment
from yunikorn.cli.workload import WorkloadSource, workload_options
from yunikorn.clock import SystemClock
from yunikorn.containment import Interrupts
from yunikorn.errors import ConfigError, UsageError, printable
from yunikorn.framework.registry import Registry
from yunikorn.reporting.assertions import Assertion, Verdict, check_queues, judge, parse_assertions
from yunikorn.reporting.cluster_search import Interrupted, SizeSearch, Trial, describe, search
from yunikorn.reporting.full_report import study
from yunikorn.reporting.tables import Table
from yunikorn.simulation.adjustments import Adjustments
from yunikorn.simulation.engine import Progress
from yunikorn.simulation.machines import MAX_NODES
from yunikorn.simulation.source import InputError
from yunikorn.simulation.workload import PREEMPTED, RESTART, Workload

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
@click.option(
    "--until", metavar="TIME", callback=parse_moment, help="End each run at this simulated time, such as 36h."
)
@click.option(
    "--preempted",
    type=click.Choice(PREEMPTED),
    default=RESTART,
    show_default=True,
    help="Default for applications that do not say what happens to their preempted tasks.",
)
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
    as_json: bool,
) -> int:
    """Find the smallest number of nodes at which a workload meets all targets.

    The workload runs on clusters of several sizes, with its kinds of nodes in the same proportions as with
    --nodes-fraction, first with all of its nodes. Targets have the notation of assertions: a figure of the
    run or of a queue, <, <=, >, >=, == or !=, and a value.
    """
    wanted = parse_assertions(targets, "--target")
    registry = load_registry().trusting(folder_of(config))
    text, plan = read_simulation(config, source, registry)
    queues = configured_queues(text, registry)
    if queues.are_all:
        check_queues(wanted, queues.known, "--target")
    top = highest or min(len(plan.nodes) * TIMES, MAX_NODES)
    if lowest > top:
        raise UsageError(f"--from {lowest} is larger than --to {top}")
    for remark in plan.remarks:
        echo(f"note: {printable(remark)}", err=True)
    for note in cluster_notes([(name_of(config), text, registry)], plan):
        echo(note, err=True)
    with ending_early(REPORTING) as signals:
        sizes = _Runs(
            text, config, plan, registry, wanted, queues.known, until, preempted, signals, source.hold
        )
        found = search(sizes.measure, len(plan.nodes), lowest, top, neighbours)
    if as_json:
        echo(json.dumps(_as_json(found, wanted, len(plan.nodes)), indent=2, ensure_ascii=False))
    else:
        _show(found, wanted, top)
    if found.outcome == "interrupted":
        return status_of(signals)
    return 0 if found.outcome == "found" else NONE_MEETS


class _Runs:
    """Simulations of one workload on clusters of several sizes."""

    def __init__(
        self,
        text: str,
        config: Path,
        plan: Workload,
        registry: Registry,
        targets: Sequence[Assertion],
        queues: set[tuple[str, str]],
        until: int | None,
        preempted: str,
        signals: Interrupts,
        held: bool,
    ) -> None:
        self._text = text
        self._config = config
        self._plan = plan
        self._registry = registry
        self._targets = targets
        self._until = until
        self._preempted = preempted
        self._signals = signals
        self._held = held
        self._queues = queues

    def measure(self, nodes: int) -> Trial:
        """Test one size; raises `Interrupted` after a signal."""
        fraction = Fraction(nodes, len(self._plan.nodes))
        workload = Adjustments(nodes_fraction=fraction).apply(self._plan)
        with progress_bar(stderr_console(), SystemClock(), held=self._held) as bar:

            def watch(progress: Progress) -> bool:
                return bar(progress) and not self._signals.number

            try:
                result = study(
                    self._text,
                    workload,
                    self._registry,
                    until=self._until,
                    watch=watch,
                    preempted=self._preempted,
                )
            except ConfigError as error:
                raise InputError(name_of(self._config), error.problems) from error
        if result.report.outcome == "interrupted":
            raise Interrupted
        trial = Trial(nodes, tuple(judge(each, result, self._queues) for each in self._targets))
        said = ", ".join(f"{each.assertion.text}: {_value(each)}" for each in trial.verdicts)
        echo(printable(f"{nodes} nodes: {'met' if trial.is_met else 'not met'} ({said})"), err=True)
        return trial


def _value(verdict: Verdict) -> str:
    value = verdict.assertion.spell(verdict.value)
    return f"{value}, {verdict.reason}" if verdict.reason else value


def _show(found: SizeSearch, targets: Sequence[Assertion], highest: int) -> None:
    from yunikorn.reporting.terminal import print_tables, report_console

    rows = [
        [str(trial.nodes), "met" if trial.is_met else "not met", *map(_value, trial.verdicts)]
        for trial in found.trials
    ]
    titles = ["nodes", "targets", *(target.text for target in targets)]
    table = Table("Sizes of the cluster", titles, rows, note=" ".join(describe(found, highest)), min_width=5)
    print_tables([table], report_console(None if results().isatty() else 140, results()))


def _as_json(found: SizeSearch, targets: Sequence[Assertion], nodes: int) -> dict[str, Any]:
    return {
        "targets": [target.text for target in targets],
        "nodes": nodes,
        "outcome": found.outcome,
        "smallest": found.smallest,
        "exceptions": found.exceptions,
        "sizes": [
            {
                "nodes": trial.nodes,
                "met": trial.is_met,
                "targets": [
                    {
                        "target": verdict.assertion.text,
                        "value": verdict.value,
                        "met": verdict.holds,
                        "reason": verdict.reason,
                    }
                    for verdict in trial.verdicts
                ],
            }
            for trial in found.trials
        ],
    }
