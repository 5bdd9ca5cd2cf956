"""Progress of a simulation on a terminal: simulated time, applications, decisions per second, time left."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from yunikorn.clock import SECOND, Clock
from yunikorn_lab.simulation.engine import Progress

if TYPE_CHECKING:
    from rich.console import Console

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
