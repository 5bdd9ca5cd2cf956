"""Arrivals that a replay expects: those of the past come again, from another point on in each replay.

Where several days are known, they come at the same time of day.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs

from yunikorn.clock import SECOND
from yunikorn_foresight.drawn_run_times import even_share
from yunikorn_lab.simulation.rng import streams
from yunikorn_lab.simulation.workload import WorkloadApplication

DAY = 24 * 3600 * SECOND
LONGEST_PAST = 14 * DAY
"""Time (ns) from which arrivals come again."""
FEWEST = 5
"""Number of past arrivals below which none come again."""


@attrs.frozen
class PastArrivals:
    """Applications that have arrived before a moment."""

    applications: Sequence[WorkloadApplication]
    """Applications with negative times, the latest last. A run time of `FOREVER` stands for that of the
    application with this id that still runs or waits."""

    def again(self, seed: int, replay: int, replays: int, horizon: int) -> RepeatedArrivals:
        """Return arrivals up to the horizon (ns) in one of so many replays, which are numbered from 0."""
        past = [one for one in self.applications if one.submit >= -LONGEST_PAST]
        span = -past[0].submit if len(past) >= FEWEST else 0
        if span <= 0:
            return RepeatedArrivals((), 1, 0, horizon)
        share = even_share(streams(seed)("arrivals"), replay, replays)
        return RepeatedArrivals(past, span, _offset(span, share), horizon)


@attrs.frozen
class RepeatedArrivals(Sequence[WorkloadApplication]):
    """Arrivals since `offset` before now, and then all again and again, made when they are due."""

    past: Sequence[WorkloadApplication]
    span: int
    """Time (ns) after which they come again."""
    offset: int
    horizon: int
    finished: Callable[[WorkloadApplication], WorkloadApplication] | None = None
    """Function that completes an application when it arrives."""

    def __len__(self) -> int:
        """Return about how many there are."""
        return len(self.past) * (self.horizon // self.span + 1)

    def __getitem__(self, number: Any) -> Any:
        """Return an arrival by its number."""
        return next(itertools.islice(self, number, None))

    def __iter__(self) -> Iterator[WorkloadApplication]:
        """Yield the arrivals in order."""
        shift, number = self.offset, 0
        while self.past and shift <= self.horizon + self.span:
            for one in self.past:
                moment = one.submit + shift
                if moment > self.horizon:
                    return
                if moment > 0:
                    number += 1
                    made = attrs.evolve(one, id=f"{one.id}~{number}", submit=moment, after=())
                    yield made if self.finished is None else self.finished(made)
            shift += self.span


def first_id(again: WorkloadApplication) -> str:
    """Return the id of the application that comes again as this one."""
    return again.id.rpartition("~")[0]


def _offset(span: int, share: float) -> int:
    days = span // DAY
    return (1 + int(share * days)) * DAY if days >= 2 else round((0.1 + 0.9 * share) * span)
