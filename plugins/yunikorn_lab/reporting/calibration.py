"""Calibration: simulated waits beside those that a trace recorded, for the same applications.

The wait of an application lasts from its submission to the start of its last task. The rank correlation is
Spearman's: the correlation of the ranks, in which equal waits have their mean rank. It is 1 if the simulation
orders the waits as the recording does, and about 0 if both orders have nothing in common.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from itertools import groupby

import attrs

from yunikorn_lab.reporting.group_counts import NAMES
from yunikorn_lab.reporting.observations import ApplicationRow
from yunikorn_lab.simulation.statistics import DIGITS, Sample, Summary, nearest_rank
from yunikorn_lab.simulation.workload import HOUR, HourlyLoad

PERCENTS = (10, 25, 50, 75, 90, 95, 99)
"""Percentiles that are shown side by side."""
FACTOR = 3
"""Ratio of the means, or of the medians, above which there is a warning."""
LEAST = 60.0
"""Waits below this number of seconds count as this number in a ratio: their differences do not matter."""
RELATED = 0.3
"""Rank correlation below which there is a warning."""
MOST_PARTS = 48
"""Number of rows of the load up to which they are hours, or days."""
MANY = 30
"""Number of applications from which on a low rank correlation is no chance."""


@attrs.frozen
class WaitQuantile:
    """A percentile of both distributions, by nearest rank, in seconds."""

    percent: int
    recorded: float
    simulated: float


@attrs.frozen
class CalibratedGroup:
    """Waits of the applications of one user or size class, in seconds."""

    name: str
    recorded: Summary
    simulated: Summary
    rank_correlation: float | None


@attrs.frozen
class CalibratedLoad:
    """Placements in some hours, and the mean use; amounts in base units (milli-vcores, bytes, counts)."""

    time: float
    """Begin, in seconds of simulated time."""
    hours: float
    recorded_placements: int
    simulated_placements: int
    recorded_use: dict[str, float]
    simulated_use: dict[str, float]


@attrs.frozen
class Calibration:
    """Simulated and recorded waits of the applications that have both."""

    recorded: Summary
    simulated: Summary
    without_start: int
    """Applications with a recorded wait that have not started all tasks in the simulation."""
    quantiles: list[WaitQuantile]
    rank_correlation: float | None
    """None if all waits of one kind are equal."""
    users: list[CalibratedGroup]
    sizes: list[CalibratedGroup]
    warning: str
    """Text if means or medians differ by more than `FACTOR`, or other applications wait; else empty."""
    queues: list[CalibratedGroup] = attrs.Factory(list)
    """Groups by the queue of the simulation."""
    load: list[CalibratedLoad] = attrs.Factory(list)
    """Parts of the recorded time, in order; empty if only waits were recorded."""
    misplaced: float | None = None
    """Part of the recorded placements that the simulation makes in another hour; None if not recorded."""


@attrs.frozen
class CalibrationCurves:
    """Points of both cumulative distributions, in ascending order."""

    recorded: list[float]
    simulated: list[float]


class CalibrationSample:
    """Pairs of waits during a simulation, in sixteen bytes each, and the load if it was recorded."""

    def __init__(self, load: HourlyLoad | None = None) -> None:
        """Begin without pairs; `load` was recorded."""
        self._load = load
        self.simulated = None if load is None else HourlyLoad(load.end)
        """Load of the simulation; None if none was recorded."""
        self._recorded, self._simulated = array("d"), array("d")
        self._users: dict[str, array[int]] = {}
        """Positions of the pairs by user."""
        self._queues: dict[str, array[int]] = {}
        self._sizes: dict[str, array[int]] = {}
        self._without_start = 0

    def add(self, row: ApplicationRow) -> None:
        """Add an application at its end, or at the end of the simulation."""
        if row.recorded_wait is None:
            return
        if row.whole_wait is None:
            self._without_start += 1
            return
        place = len(self._recorded)
        self._recorded.append(row.recorded_wait)
        self._simulated.append(row.whole_wait)
        self._users.setdefault(row.user, array("q")).append(place)
        self._queues.setdefault(row.queue, array("q")).append(place)
        self._sizes.setdefault(row.size, array("q")).append(place)

    def report(self) -> Calibration | None:
        """Return the figures; None without applications that have both waits."""
        if not self._recorded:
            return None
        whole = self._group("", range(len(self._recorded)))
        recorded, simulated = sorted(self._recorded), sorted(self._simulated)
        return Calibration(
            recorded=whole.recorded,
            simulated=whole.simulated,
            without_start=self._without_start,
            quantiles=[
                WaitQuantile(
                    percent,
                    round(nearest_rank(recorded, percent), DIGITS),
                    round(nearest_rank(simulated, percent), DIGITS),
                )
                for percent in PERCENTS
            ],
            rank_correlation=whole.rank_correlation,
            users=[self._group(name, places) for name, places in sorted(self._users.items())],
            sizes=[self._group(name, self._sizes[name]) for name in NAMES if name in self._sizes],
            warning=_warning(whole, nearest_rank(recorded, 90), nearest_rank(simulated, 90)),
            queues=[self._group(name, places) for name, places in sorted(self._queues.items())],
            load=self._loads(),
            misplaced=self._misplaced(),
        )

    def _loads(self) -> list[CalibratedLoad]:
        """Return the recorded and the simulated load, in hours, or in days or weeks if there are many."""
        if self._load is None or self.simulated is None:
            return []
        count = -(-self._load.end // HOUR)
        width = next((one for one in (1, 24) if count <= one * MOST_PARTS), 168)
        return [
            CalibratedLoad(
                *(hour * 3600.0, min((hour + width) * HOUR, self._load.end) / HOUR - hour),
                *(self._load.placed(hour, width), self.simulated.placed(hour, width)),
                *(self._load.use(hour, width), self.simulated.use(hour, width)),
            )
            for hour in range(0, count, width)
        ]

    def _misplaced(self) -> float | None:
        if self._load is None or self.simulated is None or not self._load.placements:
            return None
        moved = self._load.placements - self.simulated.placements
        return round(moved.total() / self._load.placements.total(), DIGITS)

    def _group(self, name: str, places: Iterable[int]) -> CalibratedGroup:
        chosen = list(places)
        recorded = [self._recorded[place] for place in chosen]
        simulated = [self._simulated[place] for place in chosen]
        one, other = Sample(recorded).summary(), Sample(simulated).summary()
        assert one is not None
        assert other is not None
        return CalibratedGroup(name, one, other, rank_correlation(recorded, simulated))

    def curves(self, points: int) -> CalibrationCurves | None:
        """Return at most `points` points of each distribution; None without applications with both waits."""
        if not self._recorded:
            return None
        return CalibrationCurves(Sample(self._recorded).curve(points), Sample(self._simulated).curve(points))


def _warning(group: CalibratedGroup, recorded_p90: float, simulated_p90: float) -> str:
    """Return a warning on waits that differ too much; none where no wait is worth it."""
    recorded, simulated = group.recorded, group.simulated
    pairs = [
        ("on average", recorded.mean, simulated.mean),
        ("in the median", recorded.median, simulated.median),
    ]
    found = [_difference(*pair) for pair in pairs]
    parts = (
        [f"the simulated waits are {' and '.join(filter(None, found))} than the recorded ones"]
        if any(found)
        else []
    )
    correlation = group.rank_correlation
    is_busy = min(recorded_p90, simulated_p90) >= LEAST
    if correlation is not None and correlation < RELATED and recorded.count >= MANY and is_busy:
        parts.append(
            f"other applications wait than in the recording (rank correlation {correlation:.2f}, at most 1)"
        )
    if not parts:
        return ""
    return (
        f"{', and '.join(parts)}: the simulated machine, its policies or the units of the trace differ from "
        "what was recorded (see docs/reports.md)"
    )


def _difference(where: str, recorded: float, simulated: float) -> str:
    ratio = max(simulated, LEAST) / max(recorded, LEAST)
    if 1 / FACTOR <= ratio <= FACTOR:
        return ""
    times, which = (ratio, "longer") if ratio > 1 else (1 / ratio, "shorter")
    return f"{times:.1f} times {which} {where}"


def rank_correlation(ones: Sequence[float], others: Sequence[float]) -> float | None:
    """Return Spearman's rank correlation of pairs; None if all numbers of one kind are equal."""
    # Twice the mean ranks are whole numbers, so all sums are exact.
    first, second = _double_ranks(ones), _double_ranks(others)
    middle = len(ones) + 1
    left = [rank - middle for rank in first]
    right = [rank - middle for rank in second]
    spread = sum(each * each for each in left) * sum(each * each for each in right)
    if not spread:
        return None
    return round(sum(one * other for one, other in zip(left, right, strict=True)) / math.sqrt(spread), DIGITS)


def _double_ranks(numbers: Sequence[float]) -> list[int]:
    ranks = [0] * len(numbers)
    before = 0
    for _, equal in groupby(sorted(range(len(numbers)), key=numbers.__getitem__), key=numbers.__getitem__):
        places = list(equal)
        for place in places:
            ranks[place] = 2 * before + len(places) + 1
        before += len(places)
    return ranks
