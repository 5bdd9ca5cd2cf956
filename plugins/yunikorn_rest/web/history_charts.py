"""Charts of the history of a queue, a user, a node or a partition, from the series of a history database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from yunikorn.quantities import ordered
from yunikorn_history.history_filter import HistoryFilter
from yunikorn_history.history_tables import LEVELS
from yunikorn_history.page_queries import Bucket, PageQueries, Place
from yunikorn_history.queries import HistoryQueries
from yunikorn_rest.web.chart_board import Charted, ChartSection, ConfigMark
from yunikorn_rest.web.time_charts import (
    WIDTH,
    TimeChart,
    TimeLine,
    amount_scale,
    charts_of,
    count_scale,
    wait_scale,
)
from yunikorn_rest.web.time_windows import DAY, HOUR, MINUTE, TimeWindow

TimeSpan = tuple[int, int]
"""Begin and end (ms)."""
TYPES = 3
"""Largest number of resource types with charts."""
LIMITS = (
    ("guarantee", "guarantee", "guaranteed"),
    ("quota", "quota", "max"),
    ("capacity", "quota", "capacity"),
)
"""Names, styles and keys of what a use is compared with."""
PERIODS = {15 * MINUTE: "quarter of an hour", HOUR: "hour", 6 * HOUR: "6 hours", DAY: "day", 7 * DAY: "week"}
"""Lengths of rows in words."""
BUCKETS = 1_500
"""Largest number of buckets that are read."""
CHANGES = 500
"""Largest number of changes of the configuration that charts show."""
MARKS = 8
"""Largest number of changes of the configuration that are listed below the charts."""


class SeriesSteps:
    """Series of an object in the steps of a window."""

    def __init__(
        self, window: TimeWindow, own: Sequence[Bucket], length: int, runs: Iterable[TimeSpan]
    ) -> None:
        """Collect buckets of a length; `runs` are the times in which a bucket without a row was empty."""
        self.window = window
        self._steps: list[list[Mapping[str, Any]]] = [[] for _ in range(window.steps)]
        for time, data in own:
            self._steps[window.index(time)].append(data)
        observed = {time for time, _ in own}
        for begin, end in runs:
            first = max(begin // length * length, window.begin)
            observed.update(range(first, min(end, window.end), length))
        self._counts = Counter(map(window.index, observed))

    def types(self) -> list[str]:
        """Return the resource types that have an amount in the window."""
        found = {
            name
            for step in self._steps
            for data in step
            for key in ("used", "pending", "guaranteed", "max", "capacity")
            for name, value in (data.get(key) or {}).items()
            if value
        }
        return ordered(found)

    def means(self, key: str, name: str = "") -> list[float | None]:
        """Return the mean number or amount in each step; a bucket without a row counts as 0."""
        return [
            sum(_value(data, key, name) or 0 for data in step) / self._counts[index]
            if self._counts[index]
            else None
            for index, step in enumerate(self._steps)
        ]

    def latest(self, key: str, name: str) -> list[float | None]:
        """Return the latest amount up to each step; None before the first one, and where there is none."""
        found: list[float | None] = []
        value: float | None = None
        for index, step in enumerate(self._steps):
            for data in step:
                value = _value(data, key, name)
            found.append(value if self._counts[index] else None)
        return found

    def counts(self, key: str, first: int, last: int) -> float | None:
        """Return the sum of a number in some steps; None if nothing was observed."""
        if not any(self._counts[index] for index in range(first, last)):
            return None
        return sum(data.get(key) or 0 for step in self._steps[first:last] for data in step)

    def wait(self, part: float, first: int, last: int) -> float | None:
        """Return the quantile of the waits (ms) that ended in some steps; None without any."""
        waits: Counter[float] = Counter()
        for step in self._steps[first:last]:
            for data in step:
                for bound, count in (data.get("waits") or {}).items():
                    waits[float(bound)] += count
        return quantile(waits, part)

    def unknown(self) -> list[tuple[float, float]]:
        """Return positions and widths, up to `WIDTH`, of the times between others that were not observed."""
        width = WIDTH / self.window.steps
        return [
            (round((before + 1) * width, 1), round((after - before - 1) * width, 1))
            for before, after in pairwise(sorted(self._counts))
            if after > before + 1
        ]


def _value(data: Mapping[str, Any], key: str, name: str) -> float | None:
    """Return a number, or an amount by its name; None if there is none."""
    found = data.get(key)
    return (found or {}).get(name) if name else found


def quantile(waits: Mapping[float, int], part: float) -> float | None:
    """Return a quantile of waits in buckets, by upper bound (ms); None without any."""
    wanted, passed = part * sum(waits.values()), 0
    for bound in sorted(waits):
        passed += waits[bound]
        if passed >= wanted and passed:
            return bound
    return None


# -- charts ----------------------------------------------------------------------------------------------


def _charts(steps: SeriesSteps, kind: Charted) -> list[TimeChart]:
    window, found = steps.window, list[TimeChart]()
    for name in steps.types()[:TYPES]:
        scale = partial(amount_scale, name)
        limits = (TimeLine(label, style, steps.latest(key, name), False) for label, style, key in LIMITS)
        lines = [
            TimeLine("used", "used", steps.means("used", name)),
            *(line for line in limits if any(line.values)),
        ]
        found += charts_of(f"{name} used", window, lines, scale)
        lines = [TimeLine("waiting", "waiting", steps.means("pending", name))]
        found += charts_of(f"{name} waiting", window, lines, scale)
    if kind != "node":
        styles = (("running", "used"), ("waiting", "waiting"))
        lines = [TimeLine(key, style, steps.means(key), False) for key, style in styles]
        found += charts_of("Applications", window, lines, count_scale)
        lines = [_waits(steps, "median", "used", 0.5), _waits(steps, "p95", "high", 0.95)]
        found += charts_of("Waits of the tasks that started", window, lines, wait_scale)
        found += charts_of("Preempted tasks", window, [_preempted(steps)], count_scale)
    return found


def _waits(steps: SeriesSteps, label: str, style: str, part: float) -> TimeLine:
    total = partial(steps.wait, part)
    return TimeLine(label, style, [total(step, step + 1) for step in range(steps.window.steps)], False, total)


def _preempted(steps: SeriesSteps) -> TimeLine:
    """Return the line of preempted tasks, whose steps are as long as the rows of its table."""
    window, total = steps.window, partial(steps.counts, "preempted")
    values: list[float | None] = [None] * window.steps
    for begin, end in window.rows():
        first, last = window.index(begin), window.index(end)
        values[first:last] = [total(first, last)] * (last - first)
    return TimeLine(f"in each {PERIODS[max(window.span.row, window.step)]}", "full", values, True, total)


# -- reading ---------------------------------------------------------------------------------------------


def _level(kept: Mapping[int, TimeSpan | None], window: TimeWindow) -> int:
    """Return the finest level with few enough buckets, unless coarser ones reach back further."""
    for level, length in LEVELS.items():
        fine = kept[level]
        begin = window.end if fine is None else max(fine[0], window.begin)
        coarser = [
            (one[0], LEVELS[other]) for other, one in kept.items() if one is not None and other > level
        ]
        is_longest = all(begin < max(first, window.begin) + step for first, step in coarser)
        if fine is not None and is_longest and window.end - begin <= BUCKETS * length:
            return level
    return max(LEVELS)


def section_of(
    queries: HistoryQueries, kind: Charted, name: str, wanted: TimeWindow, place: Place | None
) -> ChartSection:
    """Read the series of an object, in one partition or in all, and draw them.

    The series are coarser than wanted where the fine ones are no longer kept.
    """
    pages = PageQueries(queries)
    kept = {level: pages.kept(level) for level in LEVELS}
    level = _level(kept, wanted)
    window = wanted.in_steps(LEVELS[level])
    first, last = kept[level] or (window.end, window.end)
    end = last + LEVELS[level]
    within = HistoryFilter(since=window.begin, until=window.end, limit=CHANGES)
    runs = queries.runs(within).records
    steps = SeriesSteps(
        window,
        pages.buckets(kind, name, level, window.begin, window.end, place),
        LEVELS[level],
        [(max(one.started, first), min(one.ended or end, end)) for one in runs],
    )
    changes = queries.configs(within).records[::-1]
    unlisted = max(0, len(changes) - MARKS)
    marks = [
        ConfigMark(max(0, index - unlisted), one, round(WIDTH * window.share(one.time), 1))
        for index, one in enumerate(changes, 1)
    ]
    return ChartSection(
        window=window,
        charts=_charts(steps, kind),
        marks=marks,
        listed=marks[unlisted:],
        unknown=steps.unknown(),
    )
