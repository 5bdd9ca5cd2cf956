"""`yunikorn compare`: run one workload under several configurations or settings, side by side.

Exit status: 0 when all variants were run, 2 when the call, a configuration or the input cannot be used (then
nothing was run), 130 after Ctrl-C.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import attrs
import click

from yunikorn.cli.input_checks import InputChecks
from yunikorn.cli.installed import load_registry
from yunikorn.cli.output import echo, results
from yunikorn.cli.simulate import parse_until, read_config
from yunikorn.cli.workload import FILE, WorkloadSource, workload_options
from yunikorn.errors import UsageError, printable
from yunikorn.reporting.comparison import Comparison, Drawn, compare
from yunikorn.reporting.comparison_files import PAGE, PICTURES, outdated_runs, whole_table, write_comparison
from yunikorn.reporting.runs import HereAndNow, Source, begin_worker
from yunikorn.reporting.variants import Setting, VariantPlan, check_configs, make_plans, parse_settings
from yunikorn.simulation.out_folder import OutFolder
from yunikorn.simulation.workload import PREEMPTED, RESTART

MOST_SEEDS = 1_000
_SEEDS = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?\Z")


def _seeds(_: click.Context, __: click.Parameter, value: str | None) -> list[int]:
    """Parse seeds such as `1-5` or `3,8,9`."""
    found: dict[int, None] = {}
    for part in value.split(",") if value else ():
        match = _SEEDS.match(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if last < first or last - first >= MOST_SEEDS:
            raise click.BadParameter(f"expected whole numbers such as 1,2,7 or 1-{MOST_SEEDS}, got '{part}'")
        found.update(dict.fromkeys(range(first, last + 1)))
    return list(found)


@click.command("compare")
@click.option(
    "--config",
    "configs",
    required=True,
    multiple=True,
    type=FILE,
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
@click.option(
    "--seeds",
    metavar="N[,N...]",
    callback=_seeds,
    help="Generate the workload with each of these seeds, such as 1-10.",
)
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Folder for table, page, plots and runs."
)
@click.option("--no-plots", is_flag=True, help="Leave plots and compare.html out of --out.")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
@click.option(
    "--until", metavar="TIME", callback=parse_until, help="End at this simulated time, such as 36h."
)
@click.option(
    "--preempted",
    type=click.Choice(PREEMPTED),
    default=RESTART,
    show_default=True,
    help="Default for applications that do not say what happens to their preempted tasks.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 1024),
    help="Number of parallel runs; the number of cores by default.",
)
def command(
    configs: tuple[Path, ...],
    settings: tuple[str, ...],
    source: WorkloadSource,
    seeds: list[int],
    out: Path | None,
    no_plots: bool,
    as_json: bool,
    until: int | None,
    preempted: str,
    jobs: int | None,
) -> int:
    """Run one workload under several configurations or settings, and show the differences.

    Every combination of --config and the values of each --set is a variant; the others are compared with the
    first one. With one configuration and one value, the unchanged configuration is the first variant.
    """
    if out is None and no_plots:
        raise UsageError("--no-plots applies to the files of --out: give --out")
    workloads = [Drawn(attrs.evolve(source, seed=seed), seed) for seed in seeds] or [
        Drawn(source, source.seed)
    ]
    plans, remarks = _read(configs, settings, workloads[0].source)
    for remark in remarks:
        echo(f"note: {printable(remark)}", err=True)
    folder = OutFolder(out) if out else None
    if folder is not None:
        folder.prepare()
    with _workers(jobs, len(plans) * len(workloads)) as executor, _progress() as on_progress:
        found = compare(
            plans, workloads, executor, until=until, preempted=preempted, folder=out, on_progress=on_progress
        )
    if folder is not None:
        with folder:
            left_out = write_comparison(folder, found, pictures=not no_plots)
        folder.remove((PAGE, *PICTURES))
        for remark in outdated_runs(folder.path, plans):
            echo(f"note: {printable(remark)}", err=True)
        if left_out:
            echo(f"note: {left_out}", err=True)
    _show(found, as_json)
    return 0


def _read(
    configs: tuple[Path, ...], settings: tuple[str, ...], source: Source
) -> tuple[list[VariantPlan], list[str]]:
    """Return the variants, and remarks on the workload; raises the problems of all parts of the input."""
    input_checks, registry = InputChecks(), load_registry()
    texts: list[tuple[Path, str]] = []
    for path in configs:
        with input_checks.part():
            texts.append((path, read_config(path)))
    chosen: list[list[Setting]] = []
    with input_checks.part():
        chosen = parse_settings(settings)
    plans: list[VariantPlan] = []
    with input_checks.part():
        if input_checks:
            check_configs(texts, registry)
        else:
            plans = make_plans(texts, chosen, registry)
    remarks: list[str] = []
    with input_checks.part():
        remarks = list(source.read().remarks)
    input_checks.check()
    return plans, remarks


@contextlib.contextmanager
def _workers(jobs: int | None, runs: int) -> Iterator[Executor]:
    """Yield a process pool, which is terminated after an error; for one job, run in this process instead."""
    wanted = min(jobs or _cores(), runs)
    if wanted == 1:
        yield HereAndNow()
        return
    # Spawned processes behave the same on every system, and share no state of this process.
    executor = ProcessPoolExecutor(wanted, multiprocessing.get_context("spawn"), initializer=begin_worker)
    try:
        yield executor
    except BrokenProcessPool as error:
        what_to_do = "if memory was short, use --jobs 1"
        raise UsageError(f"a worker process was killed during a run: {what_to_do}") from error
    except BaseException:
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _cores() -> int:
    """Return the number of cores that this process may use, or of all cores where that is not available."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[int, int], None] | None]:
    """Yield a function that shows the number of finished runs, or None if standard error is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status("playing") as status:
        yield lambda done, all_: status.update(f"{done} of {all_} runs are done")


def _show(found: Comparison, as_json: bool) -> None:
    if as_json:
        echo(found.to_json(), nl=False)
        return
    from yunikorn.reporting.terminal import print_tables, report_console

    console = report_console(None if results().isatty() else 160, results())
    print_tables(whole_table(found), console)
    for divergence_report in found.divergence_reports:
        console.print(divergence_report.sentence, soft_wrap=True)
