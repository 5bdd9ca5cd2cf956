"""Axes of times: durations as in tables, and dates (UTC) where the input has them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from matplotlib.axes import Axes
from matplotlib.axis import Axis

from yunikorn_lab.reporting.run_history import RunHistory
from yunikorn_lab.reporting.tables import duration

MINUTE, HOUR, DAY = 60, 3_600, 86_400
MOST = 8
"""Maximum number of steps between ticks on an axis of the full width."""
MOST_DATES = 7
"""The same for dates, which are wider."""
_STEPS = (
    *(1, 2, 5, 10, 15, 30),
    *(MINUTE * number for number in (1, 2, 5, 10, 15, 30)),
    *(HOUR * number for number in (1, 2, 3, 6, 12)),
    *(DAY * number for number in (1, 2, 7, 14)),
)
"""Distances of ticks (s)."""
_MONTHS = (1, 2, 3, 6, 12)
MONDAY = 4 * DAY
"""Unix time of the first Monday; weeks begin on Mondays."""
FIRST, LAST = 0, 32_503_680_000
"""Unix times between which dates can be shown: the years 1970 to 2999."""


def short_duration(seconds: float) -> str:
    """Return a duration as in tables, without parts that are 0 at its end: `6h`, `1d 12h` or `2m 30s`."""
    text = duration(seconds) if seconds >= 1 else f"{seconds:g}s"
    for part in (" 0s", " 0m", " 0h"):
        text = text.removesuffix(part)
    return text


def duration_ticks(low: float, high: float, most: int = MOST) -> list[float]:
    """Return the ticks of a linear axis of durations (s), at most `most` steps apart."""
    step = next(step for step in _all_steps() if (high - low) / step <= most)
    return [number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _all_steps() -> Iterator[float]:
    """Yield the possible distances of ticks (s), in ascending order."""
    yield from (part * 10.0**power for power in range(-6, 0) for part in (1, 2, 5))
    yield from _STEPS
    yield from (part * 10.0**power * DAY for power in itertools.count(1) for part in (2, 5, 10))


def wide_ticks(largest: float) -> list[float]:
    """Return the ticks of a logarithmic axis of durations (s), from one second up."""
    marks = [1, 10, 60, 600, 3_600, 6 * 3_600, 86_400, 7 * 86_400, 30 * 86_400, 365 * 86_400]
    return [mark for mark in marks if mark <= max(largest, 1) * 1.5]


def label_durations(axis: Axis, low: float, high: float, most: int = MOST) -> None:
    """Set the ticks of a linear axis of durations (s)."""
    ticks = duration_ticks(low, high, most)
    axis.set_ticks(ticks, [short_duration(tick) for tick in ticks])


def date_ticks(low: float, high: float, origin: float, most: int = MOST_DATES) -> list[tuple[float, str]]:
    """Return the ticks of an axis from `low` to `high` seconds after the Unix time `origin`, with texts.

    A time of the day has its date below at the first tick, and where the date changes.
    """
    found = []
    before = ""
    step = _step(high - low, most)
    for moment in _moments(low + origin, high + origin, step, most):
        at = datetime.fromtimestamp(moment, UTC)
        date = f"{at:%Y-%m-%d}"
        text = date
        if step is not None and step < DAY:
            text = f"{at:%H:%M}" if step >= MINUTE else f"{at:%H:%M:%S}"
            text, before = text if date == before else f"{text}\n{date}", date
        found.append((moment - origin, text))
    return found


def _step(span: float, most: int) -> int | None:
    return next((step for step in _STEPS if span / step <= most), None)


def _moments(low: float, high: float, step: int | None, most: int) -> list[int]:
    """Return the multiples of a step between two Unix times, or beginnings of months without a step."""
    if step is not None:
        offset = MONDAY if step % (7 * DAY) == 0 else 0
        first = math.ceil((low - offset) / step)
        return [number * step + offset for number in range(first, math.floor((high - offset) / step) + 1)]
    begin, end = (datetime.fromtimestamp(moment, UTC) for moment in (low, high))
    months = (end.year - begin.year) * 12 + end.month - begin.month
    apart = next((number for number in _MONTHS if months <= number * most), 12 * -(-months // (12 * most)))
    found = []
    for number in range(0, months + 1):
        year, month = divmod(begin.year * 12 + begin.month - 1 + number, 12)
        if (year * 12 + month) % apart == 0:
            found.append(int(datetime(year, month + 1, 1, tzinfo=UTC).timestamp()))
    return [moment for moment in found if low <= moment <= high]


def shared_origin(histories: Sequence[RunHistory]) -> float | None:
    """Return the origin of runs that all have the same one, else None."""
    origins = {history.origin for history in histories}
    return origins.pop() if len(origins) == 1 else None


def label_times(axes: Axes, start: float, end: float, origin: float | None, *, columns: int = 1) -> str:
    """Scale and tick an axis of simulated time (s), and return its label.

    It shows dates if the Unix time `origin` of 0 is known.
    """
    axes.set_xlim(start, end)
    if origin is None or not FIRST <= origin + start <= origin + end <= LAST:
        label_durations(axes.xaxis, start, end, MOST // columns)
        return "simulated time"
    ticks = date_ticks(start, end, origin, MOST_DATES // columns)
    axes.set_xticks([at for at, _ in ticks], [text for _, text in ticks])
    return "date (UTC)"
