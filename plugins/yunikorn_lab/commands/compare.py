"""`yunikorn compare`: run one workload under several configurations or settings, side by side.

Exit status: 0 when all variants were run, 2 when the call, a configuration or the input cannot be used (then
nothing was run), 128 and the number of the signal after Ctrl-C (130), SIGTERM (143) and SIGHUP (129), with
the table of the finished runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from click.core import ParameterSource

from yunikorn.errors import UsageError, printable
from yunikorn.framework.registry import Registry
from yunikorn_commands.allowed_plugins import load_registry
from yunikorn_commands.config_input import read_config
from yunikorn_commands.input_source import InputChecks
from yunikorn_commands.output import echo, notes, remark, results
from yunikorn_commands.path_types import INPUT, OUT_FOLDER, force_folder
from yunikorn_commands.plugin_files import trusting
from yunikorn_commands.signals import ending_early, status_of
from yunikorn_lab.commands.call_provenance import RunInputs
from yunikorn_lab.commands.repeated_runs import RunRepeater
from yunikorn_lab.commands.run_conditions import cluster_notes, read_targets, slo_option
from yunikorn_lab.commands.run_options import (
    check_out,
    claimed,
    executor_for,
    jobs_option,
    preempted_option,
    progress_of_runs,
    taken_over,
    until_option,
    working,
)
from yunikorn_lab.commands.seeds_option import draws, seeds_option
from yunikorn_lab.commands.workload import WorkloadSource, remark_lines, workload_options
from yunikorn_lab.reporting.comparison import compare
from yunikorn_lab.reporting.comparison_files import comparison_folder, outdated_runs, write_comparison
from yunikorn_lab.reporting.comparison_result import Comparison
from yunikorn_lab.reporting.comparison_texts import (
    ON_TERMINAL,
    difference_lines,
    few_curve_tables,
    judge_comparison,
    unfinished_runs,
    whole_table,
)
from yunikorn_lab.reporting.finished_folders import Explainer, compare_folders, skipped_seeds
from yunikorn_lab.reporting.runs import NothingFinished, Source
from yunikorn_lab.reporting.variants import (
    VariantPlan,
    VariantSetting,
    check_configs,
    make_plans,
    parse_settings,
)
from yunikorn_lab.simulation.out_folder import OutFolder
from yunikorn_lab.simulation.workload import Workload

_OF_FINISHED = {
    "folders",
    "out",
    "force",
    "no_plots",
    "as_json",
    "workload",
    "nodes",
    "no_reasons",
    "all_figures",
    "jobs",
    "load_plugins",
}
"""Parameters that apply to finished runs."""
_STOPPING = "interrupted: comparing the runs that have ended (Ctrl-C again ends without a table)"


@click.command("compare")
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--config",
    "configs",
    multiple=True,
    type=INPUT,
    help="A queues.yaml to schedule under; may be given several times.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="PATH=VALUE[,VALUE...]",
    help="Set a value at a path, as printed by `validate`; may be given several times.",
)
@workload_options
@seeds_option
@slo_option
@click.option("--out", type=OUT_FOLDER, help="Folder for table, page, plots and runs.")
@force_folder
@click.option("--no-plots", is_flag=True, help="Leave plots and compare.html out of --out.")
@click.option("--no-reasons", is_flag=True, help="Do not repeat runs for the reasons of first differences.")
@click.option("--all-figures", is_flag=True, help="Also print figures that are equal under all variants.")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
@until_option("End at this simulated time, such as 36h")
@preempted_option
@jobs_option
def command(
    folders: tuple[Path, ...],
    configs: tuple[Path, ...],
    settings: tuple[str, ...],
    source: WorkloadSource,
    seeds: list[int],
    targets: tuple[str, ...],
    out: Path | None,
    force: bool,
    no_plots: bool,
    no_reasons: bool,
    all_figures: bool,
    as_json: bool,
    until: int | None,
    preempted: str,
    jobs: int | None,
) -> int:
    """Run one workload under several configurations or settings, and show the differences.

    Every combination of --config and the values of each --set is a variant; the others are compared with the
    first one. With one configuration and one value, the unchanged configuration is the first variant.

    FOLDERS are finished runs of `simulate --out` or of the variants of `compare --out`. Only the beginnings
    of runs are repeated, for the reasons of first differences, and only --out, --force, --no-plots,
    --no-reasons, --all-figures, --json, --jobs and --load-plugins apply; --workload and --nodes name files
    that have moved since.
    """
    check_out(out, no_plots=no_plots, force=force)
    if folders:
        repeat = RunRepeater(source, lambda runs: executor_for(jobs, runs))
        explain = None if no_reasons else repeat
        found = _compare_finished(folders, explain, out, force=force, pictures=not no_plots)
        _show(found, as_json=as_json, all_figures=all_figures)
        return 0
    _require(configs, source)
    workloads = draws(source, seeds)
    registry = load_registry()
    plans, workload = _read(configs, settings, workloads[0].source, registry)
    wait_targets = read_targets(targets, [(one.config, trusting(registry, one.home)) for one in plans])
    inputs = RunInputs(source, workload, click.get_current_context())
    for line in itertools.chain(remark_lines(workload), _notes_on_cluster(plans, workload, registry)):
        echo(line, err=True)
    executor = executor_for(jobs, len(plans) * len(workloads))
    with (
        ending_early(_STOPPING, executor.stop) as signals,
        claimed(comparison_folder, out, force=force) as folder,
    ):
        try:
            with working(executor, out), progress_of_runs() as on_progress:
                found = compare(
                    plans,
                    workloads,
                    executor,
                    until=until,
                    preempted=preempted,
                    targets=wait_targets,
                    folder=out,
                    force=force,
                    on_progress=on_progress,
                    is_stopped=lambda: bool(signals.number),
                    with_reasons=not no_reasons,
                    place=lambda plan: inputs.places(plan.home / plan.file),
                    provenance=lambda plan: inputs.provenance(
                        plan.home / plan.file,
                        plan.config,
                        trusting(registry, plan.home),
                        list(map(str, plan.settings)),
                    ),
                )
        except NothingFinished as error:
            notes([str(error)])
            return status_of(signals)
        remarks = _write(folder, found, plans, pictures=not no_plots)
    notes(remarks)
    _show(found, as_json=as_json, all_figures=all_figures)
    return status_of(signals) if found.unfinished else 0


def _require(configs: tuple[Path, ...], source: WorkloadSource) -> None:
    """Raise `click.MissingParameter` without a configuration or a workload."""
    context = click.get_current_context()
    missing = {"configs": not configs, "workload": source.workload is None}
    for parameter in context.command.params:
        if missing.get(parameter.name or ""):
            raise click.MissingParameter(ctx=context, param=parameter)


def _compare_finished(
    paths: tuple[Path, ...],
    explain: Explainer | None,
    out: Path | None,
    *,
    force: bool,
    pictures: bool,
) -> Comparison:
    """Compare finished runs and write the files; raises `UsageError` for options that do not apply."""
    context = click.get_current_context()
    given = [
        max(parameter.opts, key=len)
        for parameter in context.command.params
        if parameter.name not in _OF_FINISHED
        and context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
    ]
    if given:
        raise UsageError(f"{', '.join(given)}: does not apply to finished runs, which keep their options")
    if len(paths) == 1:
        raise UsageError(f"{paths[0]}: is one folder; name another one to compare it with")
    with progress_of_runs("repeating runs up to their first different decisions"):
        found = compare_folders(paths, explain)
    remarks = skipped_seeds(paths, found)
    warnings = [
        f"{name} has another workload or other nodes than {found.variants[0].name}"
        for name, differences in found.differences
        if any(one.is_workload for one in differences)
    ]
    reasons = [
        f"no reason for the first different decision of {one.variant}: {one.reason_unknown}"
        for one in found.divergence_reports
        if one.reason_unknown
    ]
    with claimed(comparison_folder, out, force=force) as folder:
        left_out = write_comparison(folder, found, pictures=pictures) if folder else ""
    notes(remarks)
    for warning in warnings:
        remark(warning, "warning")
    notes(filter(None, [*reasons, left_out]))
    return found


def _write(
    folder: OutFolder | None, found: Comparison, plans: Sequence[VariantPlan], *, pictures: bool
) -> list[str]:
    """Write the files of a comparison, also of an incomplete one; returns remarks."""
    remarks = []
    if found.taken_over:
        remarks.append(taken_over(found.taken_over))
    if found.unfinished:
        again = f"; the same call continues in {folder.path}" if folder else "; with --out they would be kept"
        remarks.append(f"{unfinished_runs(found)}, and the results have only the others{again}")
    if folder is None:
        return remarks
    left_out = write_comparison(folder, found, pictures=pictures)
    outdated = [] if found.unfinished else outdated_runs(folder.path, plans)
    return [*remarks, *outdated, *filter(None, [left_out])]


def _notes_on_cluster(plans: Sequence[VariantPlan], workload: Workload, registry: Registry) -> Iterator[str]:
    """Yield what the configurations of the variants demand and the nodes do not have."""
    configs = [
        (plan.name if plan.settings else plan.file, plan.config, trusting(registry, plan.home))
        for plan in plans
    ]
    yield from cluster_notes(configs, workload)


def _read(
    configs: tuple[Path, ...], settings: tuple[str, ...], source: Source, registry: Registry
) -> tuple[list[VariantPlan], Workload]:
    """Return the variants and the workload; raises the problems of all parts of the input."""
    input_checks = InputChecks()
    texts: list[tuple[Path, str]] = []
    for path in configs:
        with input_checks.part():
            texts.append((path, read_config(path, registry)))
    chosen: list[list[VariantSetting]] = []
    with input_checks.part():
        chosen = parse_settings(settings)
    plans: list[VariantPlan] = []
    with input_checks.part():
        if input_checks:
            check_configs(texts, registry)
        else:
            plans = make_plans(texts, chosen, registry)
    workload = None
    with input_checks.part():
        workload = source.read()
    input_checks.check()
    assert workload is not None
    return plans, workload


for _option in command.params:
    if _option.name == "workload":
        _option.required = False  # finished folders have their workload


def _show(found: Comparison, *, as_json: bool, all_figures: bool) -> None:
    if as_json:
        echo(found.to_json(), nl=False)
        return
    from yunikorn_lab.reporting.terminal_output import print_tables, print_verdict, report_console

    console = report_console(None if results().isatty() else 160, results())
    for line in difference_lines(found):
        console.print(printable(line), soft_wrap=True, markup=False, highlight=False)
    print_verdict(judge_comparison(found), console)
    print_tables([*whole_table(found, all_figures=all_figures), *few_curve_tables(found)], console)
    if len(found.curves) > ON_TERMINAL:
        console.print(f"{len(found.curves)} curves of settings are in the files of --out", soft_wrap=True)
    for divergence_report in found.divergence_reports:
        console.print(divergence_report.sentence, soft_wrap=True)
