"""Time series over a bounded number of equal intervals, of amounts by resource type and of counts.

A timeline starts with intervals of one second. When the number of intervals exceeds the limit, neighbours are
merged and the width doubles, for all series at once. A series keeps the integral of its value over each
interval as a whole number. Merging loses no precision: the mean over any interval is exact for traces of any
length. Memory depends on the limit, not on the length of the trace.

Nodes share a bounded number of rows, in the order of their registration. A small cluster has one row per
node. When the number of rows exceeds the limit, neighbouring rows are merged, so that all rows have the same
number of nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from yunikorn.clock import SECOND

LIMIT = 2048
"""Maximum number of intervals; a timeline longer than this number of seconds uses more than half of them."""


class Timeline:
    """Intervals shared by all series of a run."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.start: int | None = None
        """Start of the first interval (ns); None until `begin` is called."""
        self.width = SECOND
        self._limit = limit
        self._series: dict[Series, None] = {}

    def begin(self, moment: int) -> None:
        """Set the start of the first interval, unless already set; earlier values are not counted."""
        if self.start is None:
            self.start = moment

    def series(self) -> Series:
        """Create a series."""
        made = Series(self)
        self._series[made] = None
        return made

    def forget(self, series: Series) -> None:
        """Remove a series."""
        self._series.pop(series, None)

    def reach(self, moment: int) -> None:
        """Widen the intervals until they cover the time before `moment`."""
        if self.start is None:
            return
        while moment - self.start > self._limit * self.width:
            self.width *= 2
            for series in self._series:
                series.fold()

    def lengths(self, end: int) -> list[int]:
        """Return the lengths (ns) of the intervals up to `end`; all are equal but perhaps the last."""
        if self.start is None:
            return []
        whole, rest = divmod(max(end - self.start, 0), self.width)
        return [self.width] * whole + [rest] * (rest > 0)


class Series:
    """Values by name that change over time, such as amounts by resource type, and their integrals.

    Names share the times of changes, because the amounts of all types mostly change together.
    """

    __slots__ = ("_count", "_end", "_since", "_sums", "_timeline", "values")

    def __init__(self, timeline: Timeline) -> None:
        self.values: dict[str, int] = {}
        """Present values; names that are missing have the value 0."""
        self._timeline = timeline
        self._since = 0
        self._sums: dict[str, list[int]] = {}
        """Integrals over each interval, by name; all lists have the length `_count`."""
        self._count = 0
        self._end = 0
        """End of the last interval of `_sums` (ns); 0 after a change of the intervals."""

    def record(self, moment: int, values: Mapping[str, int]) -> None:
        """Set all values from `moment` (ns) on; names missing from `values` become 0."""
        if values == self.values:
            return
        if moment > self._since:
            self.wind(moment)
        self.values = dict(values)
        if not self._sums.keys() >= values.keys():
            self._name(values)

    def grow(self, moment: int, amounts: Mapping[str, int], sign: int) -> None:
        """Increase values (`sign` 1), or reduce them (-1), from `moment` on."""
        if moment > self._since:
            self.wind(moment)
        values = self.values
        for name, amount in amounts.items():
            values[name] = values.get(name, 0) + sign * amount
        if not self._sums.keys() >= amounts.keys():
            self._name(amounts)

    def _name(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._sums:
                self._sums[name] = [0] * self._count

    def wind(self, moment: int) -> None:
        """Add the integrals up to `moment` (ns)."""
        if moment > self._end:
            self._extend(moment)
            return
        # Most changes fall into the interval of the change before.
        since, sums = self._since, self._sums
        if moment > since:
            span, self._since = moment - since, moment
            for name, value in self.values.items():
                sums[name][-1] += value * span

    def _extend(self, moment: int) -> None:
        """Add the integrals up to a `moment` that may be in a later interval than those before."""
        timeline = self._timeline
        if timeline.start is None or moment <= timeline.start:
            return
        since, self._since = max(self._since, timeline.start), moment
        if moment <= since or not any(self.values.values()):
            return
        timeline.reach(moment)
        start, width = timeline.start, timeline.width
        first, last = (since - start) // width, (moment - start - 1) // width
        if self._count <= last:
            for sums in self._sums.values():
                sums.extend([0] * (last + 1 - self._count))
            self._count = last + 1
        self._end = start + self._count * width
        for name, value in self.values.items():
            if value:
                _integrate(self._sums[name], value, since - start, moment - start, width, first, last)

    def fold(self) -> None:
        """Merge each pair of neighbouring intervals; called by the timeline."""
        odd = self._count % 2
        for name, sums in self._sums.items():
            if odd:
                sums.append(0)
            self._sums[name] = [sums[index] + sums[index + 1] for index in range(0, len(sums), 2)]
        self._count = (self._count + odd) // 2
        self._end = 0

    def absorb(self, other: Series, moment: int) -> None:
        """Add `other` to this series for all times; `other` must not be used afterwards."""
        self.wind(moment)
        other.wind(moment)
        self._name(other._sums)
        self._count = max(self._count, other._count)
        for name, sums in self._sums.items():
            sums.extend([0] * (self._count - len(sums)))
            for index, amount in enumerate(other._sums.get(name, ())):
                sums[index] += amount
        for name, value in other.values.items():
            self.values[name] = self.values.get(name, 0) + value
        self._end = 0
        self._timeline.forget(other)

    @property
    def names(self) -> list[str]:
        """Names that have had a value, in alphabetical order."""
        return sorted(self._sums)

    def total(self, name: str) -> int:
        """Return the integral of a value over all recorded time: value times nanoseconds."""
        return sum(self._sums.get(name, ()))

    def sums(self, name: str, count: int) -> list[int]:
        """Return the integral of a value over each of the first `count` intervals."""
        return (self._sums.get(name, []) + [0] * count)[:count]

    def means(self, lengths: list[int]) -> dict[str, list[float]]:
        """Return the means over each interval, given the lengths of the intervals (ns), by name."""
        return {name: self.means_of(name, lengths) for name in self.names}

    def means_of(self, name: str, lengths: list[int]) -> list[float]:
        """Return the mean of one value over each interval."""
        return [
            amount / length for amount, length in zip(self.sums(name, len(lengths)), lengths, strict=True)
        ]


def _integrate(
    sums: list[int], value: int, since: int, until: int, width: int, first: int, last: int
) -> None:
    """Add the integral of a constant value to the intervals from `first` to `last`."""
    if first == last:
        sums[last] += value * (until - since)
        return
    sums[first] += value * ((first + 1) * width - since)
    for index in range(first + 1, last):
        sums[index] += value * width
    sums[last] += value * (until - last * width)


ROWS = 64
"""Maximum number of rows of nodes."""


class NodeRows:
    """Usage of all nodes over time."""

    def __init__(self, timeline: Timeline, limit: int = ROWS) -> None:
        self.per_row = 1
        """Number of nodes per row; the last row may have fewer."""
        self.nodes = 0
        self._timeline = timeline
        self._limit = limit
        self._rows: list[tuple[Series, Series]] = []
        """Capacity and usage of each row."""
        self.names: list[str] = []
        """Name of the first node of each row."""

    def join(self, name: str, moment: int) -> int:
        """Add a node; returns its number."""
        number = self.nodes
        self.nodes += 1
        while number // self.per_row >= self._limit:
            self._merge(moment)
        if number // self.per_row == len(self._rows):
            self._rows.append((self._timeline.series(), self._timeline.series()))
            self.names.append(name)
        return number

    def _merge(self, moment: int) -> None:
        self.per_row *= 2
        for upper, lower in zip(self._rows[::2], self._rows[1::2], strict=False):
            for series, other in zip(upper, lower, strict=True):
                series.absorb(other, moment)
        self._rows = self._rows[::2]
        self.names = self.names[::2]

    def capacity(self, number: int, amount: Mapping[str, int], sign: int, moment: int) -> None:
        """Increase a node's capacity by `amount` (`sign` 1), or reduce it (-1)."""
        self._rows[number // self.per_row][0].grow(moment, amount, sign)

    def use(self, number: int, amount: Mapping[str, int], sign: int, moment: int) -> None:
        """Increase a node's usage by `amount` (`sign` 1), or reduce it (-1)."""
        self._rows[number // self.per_row][1].grow(moment, amount, sign)

    def close(self, moment: int) -> None:
        """Complete all series at the end of the simulation."""
        for row in self._rows:
            for series in row:
                series.wind(moment)

    def shares(self, count: int) -> dict[str, list[list[float | None]]]:
        """Return the used part of the capacity in each of `count` intervals, by resource type and row.

        Values are None for a row without capacity of the type. Call `close` before.
        """
        names = sorted({name for capacity, _ in self._rows for name in capacity.names})
        return {
            name: [
                [
                    part / whole if whole else None
                    for part, whole in zip(used.sums(name, count), capacity.sums(name, count), strict=True)
                ]
                for capacity, used in self._rows
            ]
            for name in names
        }
