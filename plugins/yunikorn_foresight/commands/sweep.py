"""`yunikorn sweep`: search the settings of a configuration for the best ones, over seeds and workloads.

Exit status: 0 when all runs were made, 2 when the call, the configuration or the input cannot be used, 128
and the number of the signal after Ctrl-C (130), SIGTERM (143) and SIGHUP (129), with the table of the points
whose runs are finished.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import attrs
import click

from yunikorn.config.load import load_config
from yunikorn.errors import UsageError
from yunikorn.resources import INT64_MAX
from yunikorn.text import number_of
from yunikorn_commands.allowed_plugins import load_registry
from yunikorn_commands.config_input import folder_of, read_config
from yunikorn_commands.input_source import InputChecks
from yunikorn_commands.output import echo, notes, results
from yunikorn_commands.path_types import INPUT, OUT_FOLDER, force_folder
from yunikorn_commands.plugin_files import trusting
from yunikorn_commands.signals import ending_early, status_of
from yunikorn_foresight.commands.sweep_orders import SweepInput, held
from yunikorn_foresight.dask_executor import DaskExecutor
from yunikorn_foresight.sweep_files import CSV, FORMATS, points_table, sweep_folder, write_sweep
from yunikorn_foresight.sweep_points import (
    GRID,
    HALVING,
    MOST_POINTS,
    RANDOM,
    SEARCHES,
    SweepPoint,
    make_points,
    parse_swept,
)
from yunikorn_foresight.sweep_result import Draw, Figures, Objective, SweepResult
from yunikorn_foresight.sweep_runs import JOURNAL, RunJournal, run_all
from yunikorn_foresight.sweep_search import search_points
from yunikorn_lab.commands.run_conditions import configured_queues, read_targets, slo_option
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
from yunikorn_lab.commands.seeds_option import draws, seeds_option, source_of
from yunikorn_lab.commands.workload import WORKLOAD, WorkloadSource, workload_options
from yunikorn_lab.reporting.report_assertions import check_queues, parse_figure
from yunikorn_lab.simulation.workload import Workload

_STOPPING = "interrupted: showing the points whose runs have ended (Ctrl-C again ends without a table)"
DEFAULT = "wait.mean"
"""Figure that is minimised without `--minimise` and `--maximise`."""


@click.command("sweep", short_help="Search settings for the best ones, over seeds and workloads.")
@click.option("--config", required=True, type=INPUT, help="The queues.yaml to change.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="PATH=VALUE[,VALUE...]",
    help="Values of a path, as for `compare`, or a range to draw from: LOW..HIGH or log(LOW..HIGH); may be "
    "given several times.",
)
@workload_options
@click.option(
    "--trace",
    "traces",
    multiple=True,
    type=WORKLOAD,
    help="A further workload, read with the same options; may be given several times.",
)
@seeds_option
@click.option(
    "--search",
    type=click.Choice(SEARCHES),
    default=GRID,
    show_default=True,
    help="All combinations of the values, drawn ones, or successive halving: the better third of the points "
    "gets three times as many seeds, again and again.",
)
@click.option(
    "--points",
    type=click.IntRange(1, MOST_POINTS),
    help=f"Number of points to draw; needed for {RANDOM}. Without it {HALVING} begins with all combinations.",
)
@click.option(
    "--point-seed",
    type=click.IntRange(0, INT64_MAX),
    default=1,
    show_default=True,
    help="Seed of the drawn points.",
)
@click.option(
    "--minimise",
    multiple=True,
    metavar="FIGURE",
    help=f"Figure of a run or queue to make small, as in --assert, such as root.web.wait.p95; may be given "
    f"several times. [default: {DEFAULT}]",
)
@click.option("--maximise", multiple=True, metavar="FIGURE", help="Figure to make large, such as use.vcore.")
@slo_option
@until_option("End each run at this simulated time, such as 36h")
@preempted_option
@jobs_option
@click.option("--dask", metavar="ADDRESS", help="Run on a Dask cluster, such as tcp://scheduler:8786.")
@click.option(
    "--out", type=OUT_FOLDER, help="Folder for runs, points and picture; the same call goes on there."
)
@click.option(
    "--rows",
    "form",
    type=click.Choice(FORMATS),
    default=CSV,
    show_default=True,
    help="Format of the files with runs and points in --out.",
)
@force_folder
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(
    config: Path,
    settings: tuple[str, ...],
    source: WorkloadSource,
    traces: tuple[Any, ...],
    seeds: list[int],
    search: str,
    points: int | None,
    point_seed: int,
    minimise: tuple[str, ...],
    maximise: tuple[str, ...],
    targets: tuple[str, ...],
    until: int | None,
    preempted: str,
    jobs: int | None,
    dask: str | None,
    out: Path | None,
    form: str,
    force: bool,
    as_json: bool,
) -> int:
    """Search settings of a configuration for the best ones, over seeds and workloads.

    Each point is the configuration with one value for each --set; the unchanged configuration is compared
    with them. All points run the same draws of the workload. The table has the best points by the first
    figure of --minimise or --maximise; with two figures --out has a picture of the Pareto front.
    """
    check_out(out, force=force)
    registry = trusting(load_registry(), folder_of(config))
    checks, text = InputChecks(), ""
    objectives: list[Objective] = []
    made: list[SweepPoint] = []
    with checks.part():
        _check_search(search, points, seeds, parallel=jobs is not None and dask is not None)
    with checks.part():
        objectives = _objectives(minimise, maximise)
    with checks.part():
        text = read_config(config, registry)
        load_config(text, registry)
        made = make_points(text, parse_swept(settings, search), search, points, point_seed, registry)
    sources, workloads = _read(source, traces, seeds, checks)
    checks.check()
    queues = configured_queues(text, registry)
    if queues.are_all:
        check_queues([one.figure for one in objectives], queues.known, "--minimise or --maximise")
    wanted = SweepInput(
        config=config,
        text=text,
        registry=registry,
        sources=sources,
        workloads=workloads,
        draws=[(number, seed) for seed, number in itertools.product(seeds or (None,), range(len(workloads)))],
        objectives=objectives,
        until=until,
        preempted=preempted,
        queues=frozenset(queues.known),
        targets=tuple(read_targets(targets, [(text, registry)]).items()),
    )
    return _run(wanted, made, search, seeds, jobs, dask, out, form, force=force, as_json=as_json)


def _check_search(search: str, points: int | None, seeds: Sequence[int], *, parallel: bool) -> None:
    """Raise `UsageError` with all options that do not belong together."""
    problems = []
    if search == GRID and points is not None:
        problems.append(f"--points: a grid has all combinations; draw some with --search {RANDOM}")
    if search == RANDOM and points is None:
        problems.append(f"--search {RANDOM}: give the number of points to draw with --points")
    if search == HALVING and len(seeds) < 3:
        problems.append(f"--search {HALVING}: needs at least three seeds, such as --seeds 1-9")
    if parallel:
        problems.append("--jobs: applies to this machine, and not to --dask")
    if problems:
        raise UsageError("\n".join(problems))


def _objectives(minimise: tuple[str, ...], maximise: tuple[str, ...]) -> list[Objective]:
    """Return what is made small, and then what is made large; raises `UsageError` with all problems."""
    checks, found = InputChecks(), []
    for option, texts in (("--minimise", minimise), ("--maximise", maximise)):
        for text in texts:
            with checks.part(f"{option} '{text}': "):
                found.append(Objective(parse_figure(text.strip()), option == "--maximise"))
    checks.check()
    names = [one.name for one in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"{', '.join(twice)}: is given twice in --minimise and --maximise")
    return found or [Objective(parse_figure(DEFAULT))]


def _read(
    source: WorkloadSource, traces: tuple[Any, ...], seeds: list[int], checks: InputChecks
) -> tuple[list[WorkloadSource], list[Workload]]:
    """Return the sources that could be read, with their first draws."""
    sources, workloads = [], []
    for one in (source, *traces):
        with checks.part():
            if one is not source:
                one = attrs.evolve(source, workload=held(one))
            first = source_of(draws(one, seeds)[0])
            workloads.append(first.read())
            sources.append(first)
    return sources, workloads


def _run(
    wanted: SweepInput,
    points: Sequence[SweepPoint],
    search: str,
    seeds: Sequence[int],
    jobs: int | None,
    dask: str | None,
    out: Path | None,
    form: str,
    *,
    force: bool,
    as_json: bool,
) -> int:
    provenances = wanted.provenances(click.get_current_context())
    most = len(points) * len(wanted.draws)
    executor = DaskExecutor(dask) if dask is not None else executor_for(jobs, most)
    unfinished = 0
    with ending_early(_STOPPING, executor.stop) as signals, claimed(sweep_folder, out, force=force) as folder:
        journal = RunJournal(None if folder is None else folder.path / JOURNAL)
        try:
            with working(executor, out), progress_of_runs("sweeping") as on_progress:
                sources: list[Any] = list(wanted.sources)
                if isinstance(executor, DaskExecutor):
                    sources = wanted.spread(executor)

                def evaluate(
                    some: Sequence[SweepPoint], drawn: Sequence[Draw]
                ) -> Mapping[tuple[int, Draw], Figures]:
                    nonlocal unfinished
                    orders = wanted.orders(some, drawn, provenances)
                    runs = run_all(
                        orders, sources, executor, journal, on_progress, lambda: bool(signals.number)
                    )
                    unfinished += len(orders) - len(runs)
                    return {(one.point, (one.workload, one.seed)): run.figures for one, run in runs.items()}

                found = search_points(search, points, wanted.draws, wanted.objectives, evaluate)
        finally:
            journal.close()
        result = SweepResult(
            search, wanted.objectives, wanted.names, seeds, found, provenances[0], unfinished
        )
        remarks = _remarks(result, journal, out)
        if folder is not None:
            picture, missing = _picture(result)
            remarks += missing
            write_sweep(folder, result, form, picture)
    notes(remarks)
    _show(result, as_json=as_json)
    return status_of(signals) if unfinished else 0


def _remarks(result: SweepResult, journal: RunJournal, out: Path | None) -> list[str]:
    found = []
    if journal.taken_over:
        found.append(taken_over(journal.taken_over))
    if result.unfinished:
        again = f"the same call continues in {out}" if out else "with --out they would be kept"
        found.append(f"{number_of(result.unfinished, 'run')} not finished; {again}")
    return found


def _picture(result: SweepResult) -> tuple[bytes | None, list[str]]:
    """Return the picture of the front of two objectives, or a hint why there is none."""
    if len(result.objectives) < 2:
        return None, []
    if find_spec("matplotlib") is None:
        return None, ["the picture needs matplotlib: install with pip install 'yunikorn[plots]'"]
    from yunikorn_foresight.plot_front import front_picture

    return front_picture(result), []


def _show(result: SweepResult, *, as_json: bool) -> None:
    if as_json:
        echo(result.to_json(), nl=False)
        return
    from yunikorn_lab.reporting.terminal_output import print_tables, report_console

    print_tables([points_table(result)], report_console(None if results().isatty() else 160, results()))
