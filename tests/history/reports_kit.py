"""Calls of `yunikorn report` on a made history."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np

from tests.history.small_history import END, MadeTask
from yunikorn_history.history_tables import HOUR

ReportRun = Callable[..., dict[str, Any]]
"""Function that makes a report of a kind with options, and returns its JSON."""


def window_options(since: str | None, until: str | None) -> list[str]:
    """Return the options of a window."""
    return [*(["--since", since] if since else []), *(["--until", until] if until else [])]


def period_label(period: str, time: int) -> str:
    """Return the name of the period with a time."""
    at = datetime.fromtimestamp(time / 1000, UTC)
    if period == "week":
        year, week, _ = at.isocalendar()
        return f"{year}-W{week:02}"
    return at.strftime({"day": "%Y-%m-%d", "month": "%Y-%m", "": ""}[period])


def periods(period: str, since: int, until: int) -> Iterator[tuple[str, int, int]]:
    """Yield name, begin and end of the periods of a time."""
    begin = since
    for time in range(since // HOUR * HOUR + HOUR, until + HOUR, HOUR):
        if time >= until or period_label(period, time) != period_label(period, begin):
            yield period_label(period, begin), begin, min(time, until)
            begin = time


UNITS = {"vcore": 1000 * HOUR, "memory": 2**30 * HOUR, "nvidia.com/gpu": HOUR}
"""Amount times ms of an hour of one core, one GiB, one of another type."""


def hours_of(tasks: list[MadeTask], kind: str, period: str, since: int, until: int) -> dict[str, float]:
    """Return the hours of a resource type that tasks used, by period."""
    placed = np.array([task.placed for task in tasks], dtype=np.int64)
    ended = np.array([END if task.ended is None else task.ended for task in tasks], dtype=np.int64)
    amounts = np.array([task.size.get(kind, 0) for task in tasks], dtype=np.float64)
    return {
        name: float((np.maximum(np.minimum(ended, end) - np.maximum(placed, begin), 0) * amounts).sum())
        / UNITS[kind]
        for name, begin, end in periods(period, since, until)
    }
