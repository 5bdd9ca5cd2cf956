"""Options of commands that run simulations, their executors, and their progress on a terminal.

The options select the end of a run, what happens to preempted tasks, the folder of results, and Gantt charts.
The progress shows simulated time, applications, decisions per second and the time left.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor
from contextlib import AbstractContextManager
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from yunikorn.clock import SECOND, Clock, SystemClock
from yunikorn.errors import UsageError
from yunikorn.text import number_of
from yunikorn_commands.option_groups import Decorator, option, option_class
from yunikorn_commands.output import has_colours
from yunikorn_history.time_words import parse_time as parse_past_time
from yunikorn_history.time_words import time_in_zone
from yunikorn_lab.reporting.gantt import KINDS, GanttRequest
from yunikorn_lab.reporting.workers import HereAndNow, WorkerPool
from yunikorn_lab.simulation.engine import Progress
from yunikorn_lab.simulation.scenario_values import parse_time
from yunikorn_lab.simulation.workload import PREEMPTED, RESTART, Workload

if TYPE_CHECKING:
    from rich.console import Console

    from yunikorn_lab.simulation.out_folder import OutFolder


Claim = Callable[..., AbstractContextManager["OutFolder"]]
"""Function that claims a folder of results; its context has the folder."""


class PastTime(int):
    """Time of the past (ms since 1970)."""

    def __str__(self) -> str:
        return time_in_zone(self, UTC)


def parse_moment(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    """Parse a time such as `36h` as the callback of an option; returns nanoseconds."""
    try:
        return None if value is None else parse_time(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def parse_date(_: click.Context, __: click.Parameter, value: str | None) -> PastTime | None:
    """Parse a time of the past such as `2026-03-01` as the callback of an option."""
    try:
        return None if value is None else PastTime(parse_past_time(value, SystemClock().now()))
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _parse_end(ctx: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """Parse a simulated time, or one of the past, which has a dash, a colon or begins with a letter."""
    if value is None or not re.match(r"[a-z]|\d+[-:]\d", value.strip(), re.IGNORECASE):
        return parse_moment(ctx, parameter, value)
    try:
        return parse_date(ctx, parameter, value)
    except click.BadParameter as error:
        if value.strip()[0].isdigit():
            raise
        expected = "expected seconds or a duration such as 90, 30s, 1h30m or 1d, or a date of a history"
        raise click.BadParameter(f"{expected}, such as 2026-11-01 or yesterday, got {value!r}") from error


def until_option(text: str) -> Decorator:
    """Return the option `--until`, with its help; it may be a `PastTime`, the end of a history."""
    text = f"{text}, or at this date of a history, such as 2026-11-01."
    return click.option("--until", metavar="TIME", callback=_parse_end, help=text)


preempted_option = click.option(
    "--preempted",
    type=click.Choice(PREEMPTED),
    default=RESTART,
    show_default=True,
    help="Default for applications that do not say what happens to their preempted tasks.",
)


def check_out(out: Path | None, what: str = "files", **given: bool) -> None:
    """Raise `UsageError` for the first option that is given although it applies to `--out` only."""
    for name in (name for name, is_given in given.items() if is_given and out is None):
        raise UsageError(f"--{name.replace('_', '-')} applies to the {what} of --out: give --out")


def taken_over(count: int) -> str:
    """Return the note about finished runs that were not repeated."""
    was = "was" if count == 1 else "were"
    return f"{number_of(count, 'finished run')} with the same input {was} taken over"


@contextlib.contextmanager
def claimed(claim: Claim, out: Path | None, *, force: bool) -> Iterator[OutFolder | None]:
    """Yield the claimed and prepared folder of the results; None without one."""
    if out is None:
        yield None
        return
    with claim(out, force=force) as folder:
        folder.prepare()
        yield folder


@attrs.frozen
class GanttOptions:
    """The options as they are given."""

    gantt: str | None = option(
        type=click.Choice(KINDS),
        help="Also write gantt.csv and gantt.png to --out: tasks by node, or runs and waits of applications.",
    )
    start: int | None = option(
        "--from", metavar="TIME", callback=parse_moment, help="Begin of the chart of --gantt."
    )
    stop: int | None = option(
        "--to", metavar="TIME", callback=parse_moment, help="End of the chart of --gantt."
    )
    names: tuple[str, ...] = option(
        "--gantt-row",
        default=(),
        metavar="NAME",
        multiple=True,
        help="Node or application id to show in the chart of --gantt, or a pattern such as 'gpu-*'; may be"
        " given several times.",
    )

    def request(self, workload: Workload, *, out: Path | None, until: int | None) -> GanttRequest | None:
        """Return the selected chart, or None; raises `UsageError` for options that do not apply."""
        start, stop = self.start or 0, self.stop
        if self.gantt is None:
            given = {"--from": self.start, "--to": stop, "--gantt-row": self.names or None}
            for option in [name for name, value in given.items() if value is not None]:
                raise UsageError(f"{option} selects a part of the chart of --gantt: give --gantt")
            return None
        if out is None:
            raise UsageError("--gantt writes files to --out: give --out")
        if stop is not None and stop <= start:
            raise UsageError(f"--to has to be later than {'--from' if start else 0}")
        if until is not None and start >= until:
            raise UsageError("--from has to be earlier than --until, where the run ends")
        request = GanttRequest(self.gantt, start, stop, self.names)
        request.check(workload)
        return request


gantt_options = option_class(GanttOptions, "chart")
"""Options of a chart, for which a command receives one argument `chart`."""


jobs_option = click.option(
    "--jobs",
    type=click.IntRange(1, 1024),
    help="Number of parallel runs; the number of cores by default.",
)


def executor_for(jobs: int | None, runs: int) -> WorkerPool | HereAndNow:
    """Return an executor of `runs` runs, at most `jobs` or the number of cores at a time."""
    wanted = min(jobs or _cores(), runs)
    return HereAndNow() if wanted == 1 else WorkerPool(wanted)


@contextlib.contextmanager
def working(executor: Executor, out: Path | None) -> Iterator[None]:
    """End the workers with the context, at once after an error; a killed worker is an error of the call."""
    try:
        with executor:
            yield
    except BrokenExecutor as error:
        what_to_do = "if memory was short, use --jobs 1"
        if out is not None:
            what_to_do += f"; the same call takes over the finished runs in {out}"
        raise UsageError(f"a worker process was killed during a run: {what_to_do}") from error


def _cores() -> int:
    """Return the number of cores that this process may use, or of all cores where that is not available."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextlib.contextmanager
def progress_of_runs(what: str = "playing") -> Iterator[Callable[[int, int], None] | None]:
    """Yield a function that shows the number of finished runs, or None if standard error is no terminal."""
    if not (sys.stderr.isatty() and has_colours(sys.stderr)):
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status(what) as status:
        yield lambda done, all_: status.update(f"{done} of {all_} runs are done")


Watch = Callable[[Progress], bool]

SELDOM = 64
"""Number of steps per update of the bar: an update takes as long as a small step."""

DAY = 86_400 * SECOND
MINUTE = 60 * SECOND


class RateMeter:
    """Meter of the decisions per second of `clock` since its creation."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._started = clock.now()

    def line(self, progress: Progress) -> str:
        """Return simulated time and rate, such as `day 3, 04:05  12,345 decisions/s`."""
        days, rest = divmod(progress.moment, DAY)
        hours, minutes = divmod(rest // MINUTE, 60)
        elapsed = max(self._clock.now() - self._started, 1)
        rate = progress.decisions * SECOND // elapsed
        return f"day {days}, {hours:02}:{minutes:02}  {rate:,} decisions/s"


@contextlib.contextmanager
def progress_bar(console: Console | None, clock: Clock, *, held: bool = False) -> Iterator[Watch]:
    """Yield a watcher that shows a progress bar on a terminal, or nothing if `console` is None.

    The bar counts applications that have ended, or applications that have arrived if tasks are `held` and do
    not end.
    """
    if console is None:
        yield lambda progress: True
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("applications, remaining"),
        TimeRemainingColumn(),
    )
    meter, steps = RateMeter(clock), 0
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("simulating", total=None)

        def watch(progress: Progress) -> bool:
            nonlocal steps
            if steps % SELDOM == 0:
                done = progress.submitted if held else progress.ended
                bar.update(
                    task, completed=done, total=progress.applications, description=meter.line(progress)
                )
            steps += 1
            return True

        yield watch
