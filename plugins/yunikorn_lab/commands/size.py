"""`yunikorn size`: find the smallest cluster on which a workload meets targets.

Exit status: 0 when a size meets the targets, 1 when no tested size does, 2 when the call, the configuration
or the input cannot be used, 128 and the number of the signal after Ctrl-C (130), SIGTERM (143) and SIGHUP
(129). The table of the sizes tested so far is printed, and written to `--out`, in every case but 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from yunikorn.errors import UsageError
from yunikorn_commands.allowed_plugins import load_registry
from yunikorn_commands.config_input import folder_of
from yunikorn_commands.input_files import name_of
from yunikorn_commands.output import echo, notes, results
from yunikorn_commands.path_types import INPUT, OUT_FOLDER, force_folder
from yunikorn_commands.plugin_files import trusting
from yunikorn_commands.signals import ending_early, status_of
from yunikorn_lab.commands.call_provenance import RunInputs
from yunikorn_lab.commands.cluster_notes import cluster_notes
from yunikorn_lab.commands.configured_queues import configured_queues
from yunikorn_lab.commands.executors import executor_for, jobs_option, working
from yunikorn_lab.commands.run_options import check_out, claimed, preempted_option, taken_over, until_option
from yunikorn_lab.commands.seeds_option import draws, seeds_option, source_of
from yunikorn_lab.commands.simulate import read_simulation
from yunikorn_lab.commands.size_runs import SizeRuns, shown
from yunikorn_lab.commands.workload import WorkloadSource, workload_options
from yunikorn_lab.reporting.cluster_search import (
    SizeResult,
    SizeSearch,
    describe,
    search,
    size_folder,
    untested_sizes,
    write_size,
)
from yunikorn_lab.reporting.report_assertions import check_queues, parse_assertions
from yunikorn_lab.reporting.tables import Table
from yunikorn_lab.simulation.machines import MAX_NODES

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
