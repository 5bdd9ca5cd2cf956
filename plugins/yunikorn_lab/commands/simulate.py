"""`yunikorn simulate`: run a workload on a virtual clock, and report the results.

Exit status: 0 when the simulation reached its end (or `--until`), 1 when a condition of `--fail-on` or
`--assert` is not met, 2 when the call, the configuration or the input cannot be used, 128 and the number of
the signal after Ctrl-C (130), SIGTERM (143) and SIGHUP (129). All but 2 write the report so far.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from yunikorn.clock import SECOND, Clock, SystemClock
from yunikorn.errors import ConfigError, UsageError
from yunikorn.framework.registry import Registry
from yunikorn.text import number_of
from yunikorn_commands.allowed_plugins import load_registry
from yunikorn_commands.config_input import folder_of, read_config
from yunikorn_commands.input_files import name_of
from yunikorn_commands.input_source import InputChecks, InputError
from yunikorn_commands.output import echo, has_colours, notes, remark, results
from yunikorn_commands.path_types import INPUT, OUT_FOLDER, force_folder
from yunikorn_commands.plugin_files import trusting
from yunikorn_commands.signals import ending_early, status_of
from yunikorn_lab.commands.call_provenance import RunInputs
from yunikorn_lab.commands.run_conditions import (
    RunConditions,
    cluster_notes,
    condition_options,
    read_targets,
    slo_option,
)
from yunikorn_lab.commands.run_options import (
    GanttOptions,
    check_out,
    gantt_options,
    preempted_option,
    progress_bar,
    until_option,
)
from yunikorn_lab.commands.snapshot_option import SnapshotRun, assume_runtime_option, snapshot_option
from yunikorn_lab.commands.workload import WorkloadSource, remark_lines, workload_options
from yunikorn_lab.reporting.full_report import FullReport, study
from yunikorn_lab.reporting.result_files import ResultFiles
from yunikorn_lab.reporting.variants import check_configs
from yunikorn_lab.simulation.engine import Progress
from yunikorn_lab.simulation.explain_requests import parse_questions
from yunikorn_lab.simulation.report import Report
from yunikorn_lab.simulation.survey import survey
from yunikorn_lab.simulation.workload import Workload, describe_reload

if TYPE_CHECKING:
    from rich.console import Console

REPORTING = (
    "interrupted: reporting what happened so far (Ctrl-C again ends without a report; once more if a plugin "
    "suppresses that)"
)
"""Message after the first signal."""


@click.command("simulate")
@click.option("--config", type=INPUT, help="The queues.yaml to schedule under.")
@snapshot_option("begin with it, go on under --config if given, and let --workload arrive from then on")
@assume_runtime_option
@workload_options
@click.option("--out", type=OUT_FOLDER, help="Folder for the report and all decisions.")
@force_folder
@click.option("--tasks", is_flag=True, help="Also write tasks.csv to --out, with a row for each task.")
@click.option("--no-plots", is_flag=True, help="Leave plots and report.html out of --out.")
@gantt_options
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@condition_options
@slo_option
@until_option("End at this simulated time, such as 36h")
@click.option(
    "--explain",
    "questions",
    multiple=True,
    metavar="APP[@TIME]",
    help="Explain why an application is pending at a time, or at the end; may be given several times.",
)
@preempted_option
def command(
    config: Path | None,
    snapshot: Path | None,
    assume_runtime: int | None,
    source: WorkloadSource,
    out: Path | None,
    force: bool,
    tasks: bool,
    no_plots: bool,
    chart: GanttOptions,
    as_json: bool,
    fail_on: tuple[str, ...],
    asserted: tuple[str, ...],
    targets: tuple[str, ...],
    until: int | None,
    questions: tuple[str, ...],
    preempted: str,
) -> int:
    """Run a workload on a virtual clock and report what was scheduled.

    The templates of --swf-queue, --swf-user and --swf-group may contain {queue}, {user}, {group},
    {application} and {partition}: the columns of the job. Those of --openb-queue and --openb-user may contain
    {qos}, {phase} and {kind} (cpu, share, gpu or gpus), those of --batsim-queue and --batsim-user {profile},
    {queue} and {user}, and those of --slurm-queue, --slurm-user and --slurm-group {user}, {account},
    {partition}, {qos}, {group}, {cluster} and {wckey}.

    With --snapshot, time 0 is the moment of the snapshot, and nodes of the workload are not used.
    """
    check_out(out, tasks=tasks, no_plots=no_plots, force=force)
    given = _read_call(config, snapshot, assume_runtime, source)
    text, plan, registry, begun = given.text, given.plan, given.registry, given.begun
    gantt = chart.request(plan, out=out, until=until)
    asked = parse_questions(questions, plan, until, begun.known if begun else ())
    wait_targets = read_targets(targets, [(text, registry)])
    conditions = RunConditions.parse(fail_on, asserted, text, registry)
    for line in [*remark_lines(plan), *cluster_notes([(name_of(given.config), text, registry)], plan)]:
        echo(line, err=True)
    inputs = RunInputs(source, plan, click.get_current_context())
    provenance = inputs.provenance(given.config, text, registry)
    clock = SystemClock()
    with contextlib.ExitStack() as stack:
        files = None
        if out is not None:
            places = inputs.places(given.config)
            made = ResultFiles(
                out, tasks=tasks, pictures=not no_plots, gantt=gantt, force=force, places=places
            )
            files = stack.enter_context(made)
        bar = progress_bar(stderr_console(), clock, held=source.hold)
        signals = stack.enter_context(ending_early(REPORTING))
        watch = _all_of(lambda progress: not signals.number, stack.enter_context(bar))
        started = clock.now()
        try:
            result = study(
                text,
                plan,
                registry,
                until=until,
                recorder=files,
                rows=files,
                watch=watch,
                preempted=preempted,
                questions=asked,
                targets=wait_targets,
                continuing=begun.run if begun else None,
            )
        except ConfigError as error:
            raise InputError(name_of(given.config), error.problems) from error
        result = attrs.evolve(result, provenance=provenance)
        report = result.report
        rate = _rate(report, clock, started)
        left_out = files.write(result) if files else ""
    known = len(plan.remarks) + len(survey(plan).remarks)
    unknown = begun.run_times.remark() if begun else ""
    _print_notes(report, known, [*filter(None, [left_out, unknown]), *(files.gantt_notes if files else ())])
    _show(result, as_json, rate)
    unmet = conditions.report(result)
    return status_of(signals) if report.outcome == "interrupted" else unmet


@attrs.frozen
class _Call:
    """Input of one call."""

    config: Path
    """Its configuration; the snapshot if that goes on under its own."""
    registry: Registry
    text: str
    plan: Workload
    begun: SnapshotRun | None = None


def _read_call(
    config: Path | None, snapshot: Path | None, assumed: int | None, source: WorkloadSource
) -> _Call:
    """Read what a call simulates; raises the problems of all parts."""
    _require(snapshot, assumed)
    registry = load_registry()
    if config is not None:
        registry = trusting(registry, folder_of(config))
    text, plan = _read_given(config, source, registry)
    if snapshot is None:
        assert plan is not None
        assert config is not None
        return _Call(config, registry, text, plan)
    begun = SnapshotRun.of(snapshot, registry, plan, None if config is None else (config, text), assumed)
    return _Call(config or snapshot, registry, begun.text, begun.plan, begun)


def read_simulation(config: Path, source: WorkloadSource, registry: Registry) -> tuple[str, Workload]:
    """Return configuration and workload; raises the problems of both if either cannot be read."""
    text, plan = _read_given(config, source, registry)
    assert plan is not None
    return text, plan


def _read_given(
    config: Path | None, source: WorkloadSource, registry: Registry
) -> tuple[str, Workload | None]:
    """Return configuration and workload, if given; raises the problems of both if either cannot be read."""
    input_checks, text, plan = InputChecks(), "", None
    if config is not None:
        with input_checks.part():
            text = read_config(config, registry)
    if source.workload is not None:
        with input_checks.part():
            plan = source.read()
    if text and config is not None:
        with input_checks.part():
            check_configs([(config, text)], registry)
    input_checks.check()
    return text, plan


def _require(snapshot: Path | None, assumed: int | None) -> None:
    """Raise `click.UsageError` for a call without a beginning, or with options that do not apply to it."""
    context = click.get_current_context()
    if snapshot is not None:
        return
    if assumed is not None:
        raise UsageError("--assume-runtime applies to a snapshot: give --snapshot")
    for parameter in context.command.params:
        if parameter.name in ("config", "workload") and context.params.get(parameter.name) is None:
            raise click.MissingParameter(ctx=context, param=parameter)


def _rate(report: Report, clock: Clock, started: int) -> str:
    elapsed = max(clock.now() - started, 1) / SECOND
    return f"{report.decisions / elapsed:,.0f} decisions per second ({elapsed:.2f} s on the wall clock)"


def _print_notes(report: Report, known: int, more: list[str]) -> None:
    """Print what a run has found, without the first remarks, which were printed before it."""
    remarks = report.remarks[known:]
    notes([*remarks, *report.node_troubles, *map(describe_reload, report.reloads), *more])
    if (whole := _rejected_whole(report)) is not None:
        remark(whole, "warning")


def _rejected_whole(report: Report) -> str | None:
    """Return the reason why every application was rejected; None if one was accepted, or there is none."""
    counts = report.applications
    if not counts.submitted or counts.rejected < counts.submitted:
        return None
    reasons = [reason.reason for reason in report.rejections]
    others = f" (and {number_of(len(reasons) - 1, 'more reason')})" if len(reasons) > 1 else ""
    all_of_them = (
        "the application was" if counts.submitted == 1 else f"all {counts.submitted} applications were"
    )
    return f"{all_of_them} rejected: {reasons[0]}{others}"


def _show(result: FullReport, as_json: bool, rate: str) -> None:
    if as_json:
        echo(result.to_json(), nl=False)
        echo(rate, err=True)
        return
    from yunikorn_lab.reporting.terminal_output import print_report, report_console

    # Output to a pipe or a file is not squeezed to the width of a terminal.
    console = report_console(None if results().isatty() else 140, results())
    print_report(result, console, rate)


def _all_of(*watchers: Callable[[Progress], bool]) -> Callable[[Progress], bool]:
    def watch(progress: Progress) -> bool:
        return all([watcher(progress) for watcher in watchers])

    return watch


def stderr_console() -> Console | None:
    """Return a console on standard error, or None if it is no terminal, or wants no escapes."""
    if not (sys.stderr.isatty() and has_colours(sys.stderr)):
        return None
    from rich.console import Console

    return Console(stderr=True)


for _option in command.params:
    if _option.name == "workload":
        _option.required = False  # a snapshot has work of its own
