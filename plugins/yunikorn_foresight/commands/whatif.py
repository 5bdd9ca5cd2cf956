"""`yunikorn whatif`: what a change would do to a cluster, before it is made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from yunikorn.errors import UsageError, printable
from yunikorn_commands.allowed_plugins import load_registry
from yunikorn_commands.extras import importing_extra
from yunikorn_commands.input_files import hold
from yunikorn_commands.input_source import InputChecks
from yunikorn_commands.output import echo, notes, remark, results
from yunikorn_commands.path_types import INPUT
from yunikorn_lab.commands.run_options import parse_moment
from yunikorn_lab.commands.snapshot_option import assume_runtime_option, restored_from
from yunikorn_lab.commands.workload import WORKLOAD, WorkloadSource
from yunikorn_lab.simulation.workload import FOREVER
from yunikorn_rest.commands.fetched_snapshot import snapshot_file
from yunikorn_rest.commands.server_options import reading_options

with importing_extra("foresight", "for what-ifs"):
    from yunikorn_foresight.whatif import WhatIf
    from yunikorn_foresight.whatif_changes import ReadChanges, WrittenChanges, read_changes

if TYPE_CHECKING:
    from yunikorn_foresight.whatif_result import WhatIfResult


@click.command("whatif", short_help="Show what a change would do to a cluster.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="PATH=VALUE",
    help="Set a value at a path of the configuration, as for `compare`.",
)
@click.option("--config", type=INPUT, help="Another queues.yaml.")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="QUEUE=NAME",
    help="Another policy for the order of the applications of a queue.",
)
@click.option(
    "--add-nodes",
    multiple=True,
    metavar="N:NODE|FILE",
    help="Add copies of a node, such as 10:node-1, or the nodes of a file.",
)
@click.option("--drain", multiple=True, metavar="NODE", help="Keep new tasks off a node.")
@click.option(
    "--submit", type=WORKLOAD, help="Submit the applications of a workload, at their times from now on."
)
@click.option(
    "--for",
    "horizon",
    metavar="TIME",
    default="24h",
    show_default=True,
    callback=parse_moment,
    help="Look ahead for this time.",
)
@assume_runtime_option
@reading_options
def command(
    snapshot: Path | None,
    settings: tuple[str, ...],
    config: Path | None,
    policies: tuple[str, ...],
    add_nodes: tuple[str, ...],
    drain: tuple[str, ...],
    submit: Any,
    horizon: int,
    assume_runtime: int | None,
    as_json: bool,
    **connection: Any,
) -> int:
    """Show what a change would do to a running scheduler, or to that of a snapshot.

    The scheduler goes on twice in a simulation, unchanged and with all changes that are given, with the same
    run times of tasks. The answer says whose tasks start earlier, later, elsewhere or not at all, and names
    the first decision that differs. The options may be combined, and those with PATH, QUEUE, N and NODE given
    several times. The role admin is needed for --server.

    Exit status: 0 when the answer was printed, 1 when the core refuses a change in it, 2 when the call, the
    snapshot or a change cannot be used.
    """
    if not (settings or config or policies or add_nodes or drain or submit):
        raise UsageError("say what changes: --set, --config, --policy, --add-nodes, --drain or --submit")
    if horizon <= 0:
        raise UsageError("--for: expected a time above 0, such as 24h")
    registry, checks, workload = load_registry(), InputChecks(), None
    with checks.part(), snapshot_file({**connection, "snapshot": snapshot}) as path:
        scheduler = restored_from(path, registry)
    if submit is not None:
        with checks.part():
            workload = WorkloadSource(workload=hold(submit)).read()
    checks.check()
    written = WrittenChanges(
        config=config,
        settings=settings,
        policies=policies,
        add_nodes=add_nodes,
        drain=drain,
        submit=workload,
    )
    read: ReadChanges = read_changes(scheduler, written, registry)
    assumed = FOREVER if assume_runtime is None else assume_runtime
    asked = WhatIf(scheduler, read.first, written.texts(), read.arrivals, horizon, assumed)
    answer = asked.answer()
    _show(answer, as_json=as_json)
    return 1 if answer.refusals else 0


def _show(answer: WhatIfResult, *, as_json: bool) -> None:
    notes(answer.remarks)
    for refusal in answer.refusals:
        remark(refusal, "warning")
    if as_json:
        echo(answer.to_json(), nl=False)
        return
    from yunikorn_lab.reporting.terminal_output import print_tables, print_verdict, report_console

    console = report_console(None if results().isatty() else 160, results())
    print_verdict([*answer.sentences()], console)
    print_tables(answer.tables(), console)
    console.print(printable(answer.first.sentence), soft_wrap=True)
