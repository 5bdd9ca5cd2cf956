"""Command line of the benchmarks."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import click

from benchmarks.cases import CASES, LONG, OWN, Case, find
from benchmarks.failure import BenchmarkFailure
from benchmarks.growth import PROMISED, STEPS, Step, grow, table
from benchmarks.growth_plot import draw
from benchmarks.machine import python_build
from benchmarks.measurement import Measurement, table_head, table_line
from benchmarks.new_process import run_in_new_process
from yunikorn.errors import YunikornError
from yunikorn_commands.build import kind_of_build
from yunikorn_commands.command_group import settle_collector

COUNT = click.IntRange(min=1)
PROFILE_LINES = 40


def _workload_options(command: Callable[..., None]) -> Callable[..., None]:
    for decorate in (
        click.option(
            "--config",
            type=click.Path(exists=True, dir_okay=False, resolve_path=True),
            help="Take all keys but the queues from this queues.yaml.",
        ),
        click.option("--plugins", is_flag=True, default=None, help="Load installed plugins as well."),
        click.option("--metrics", is_flag=True, default=None, help="Count and measure for metrics."),
        click.option("--stats", is_flag=True, default=None, help="Count the calls of plugins."),
        click.option("--samples", type=COUNT, help="Latencies that a case measures."),
        click.option("--queue-sort", help="Sort policy of the parent queues."),
        click.option("--node-sort", help="Node sort policy of the partition."),
        click.option("--app-sort", help="Application sort policy of the leaf queues."),
        click.option("--sizes", type=COUNT, help="Different sizes of asks."),
        click.option("--applications", type=COUNT, help="Applications, dealt to the queues."),
        click.option("--queues", type=COUNT, help="Leaf queues."),
        click.option("--tasks", type=COUNT, help="Tasks, dealt to the applications."),
        click.option("--nodes", type=COUNT, help="Nodes."),
    ):
        command = decorate(command)
    return command


@click.command()
@click.option("--case", "names", multiple=True, metavar="NAME", help="Run this one only; repeatable.")
@click.option("--list", "listing", is_flag=True, help="List the cases and end.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line instead of the table.")
@click.option("--growth", type=click.Choice([*STEPS, "all"]), help="Cost per decision while this one grows.")
@click.option("--plot", type=click.Path(path_type=Path), help="Draw what --growth found into this PNG file.")
@click.option("--limit", type=float, help="Give a case up after so many seconds.")
@click.option("--repeat", type=COUNT, default=1, help="Run each so often and keep the best.")
@click.option("--here", is_flag=True, help="In this process, instead of a fresh one for each case.")
@click.option("--profile", is_flag=True, help="Run here, and print where the time goes.")
@_workload_options
def main(
    names: tuple[str, ...],
    listing: bool,
    as_json: bool,
    growth: str | None,
    plot: Path | None,
    limit: float | None,
    repeat: int,
    here: bool,
    profile: bool,
    **changes: Any,
) -> None:
    """Measure how fast the scheduler decides.

    Without options all cases but the long ones run, each in a fresh process, and a table is printed,
    below the name and optimisation of this Python. Options such as --nodes replace what the named
    cases have; without --case they make a scheduling benchmark of their own: --nodes 1000
    --tasks 20000 --sizes 5.
    """
    options = {name: value for name, value in changes.items() if value is not None}
    try:
        if listing:
            for case in (*CASES, *LONG):
                click.echo(case.title)
        elif growth:
            _run_growth(PROMISED if growth == "all" else (growth,), options, limit, repeat, plot)
        else:
            cases = _chosen(names, own=bool(options))

            def run(case: Case) -> Measurement:
                if here or profile:
                    return _run_here(case, options, profile=profile)
                return run_in_new_process(case, options, limit)

            _run_all(cases, run, repeat, as_json=as_json)
    except (BenchmarkFailure, YunikornError) as error:
        raise click.ClickException(str(error)) from error


def _run_growth(
    axes: tuple[str, ...], options: dict[str, Any], limit: float | None, repeat: int, plot: Path | None
) -> None:
    steps: list[Step] = []

    def noted() -> Iterator[Step]:
        for step in grow(axes, options, limit, repeat):
            steps.append(step)
            yield step

    click.echo(f"{python_build()}\n")
    for line in table(noted()):
        click.echo(line)
    if plot is not None:
        draw(steps, plot, f"{python_build()}, {kind_of_build()}")


def _chosen(names: tuple[str, ...], *, own: bool) -> list[Case]:
    if not names:
        return [OWN] if own else list(CASES)
    chosen: list[Case] = []
    for name in names:
        found = find(name)
        if not found:
            known = ", ".join(dict.fromkeys(case.name for case in (*CASES, *LONG, OWN)))
            raise click.BadParameter(f"no case is called '{name}'; known: {known}", param_hint="--case")
        chosen += found
    return chosen


def _run_all(cases: list[Case], run: Callable[[Case], Measurement], repeat: int, *, as_json: bool) -> None:
    """Run the cases one after the other; report and count failures without stopping."""
    if not as_json:
        click.echo(f"{python_build()}\n")
        for line in table_head():
            click.echo(line)
    failures = 0
    for case in cases:
        try:
            found = max((run(case) for _ in range(repeat)), key=lambda one: one.goodness(case.counts))
        except BenchmarkFailure as failure:
            failures += 1
            click.echo(f"{case.title} failed: {failure}", err=True)
            continue
        click.echo(found.to_json() if as_json else table_line(found.cells()))
    if failures:
        raise BenchmarkFailure(f"{failures} of {len(cases)} cases failed")


def _run_here(case: Case, options: dict[str, Any], *, profile: bool) -> Measurement:
    case = attrs.evolve(case, workload=attrs.evolve(case.workload, **options))
    settle_collector()
    if not profile:
        return case.run()
    profiler = cProfile.Profile()
    found = profiler.runcall(case.run)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(PROFILE_LINES)
    return found
