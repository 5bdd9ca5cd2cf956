"""How something ran over simulated time, in a bounded number of equal intervals.

A timeline starts with intervals of one second. When it would need more than its limit, neighbours are
merged and the width doubles, for all series at once. A series keeps the integral of its value over each
interval, in whole numbers, so nothing is lost by merging: the mean over any interval is exact, however long
the trace is. Memory depends on the limit, not on the trace.
"""

from __future__ import annotations

from yunikorn.clock import SECOND

LIMIT = 512
"""At most so many intervals; a finished timeline of more than that many seconds has over half of them."""


class Timeline:
    """The intervals that all series of one run share."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.start: int | None = None
        """Where the first interval begins (ns); None as long as nothing has begun."""
        self.width = SECOND
        self._limit = limit
        self._series: dict[Series, None] = {}

    def begin(self, moment: int) -> None:
        """Intervals are counted from the first `moment` that is told; what is before it does not count."""
        if self.start is None:
            self.start = moment

    def series(self, value: int = 0) -> Series:
        """A new series with this value from the beginning on."""
        made = Series(self, value)
        self._series[made] = None
        return made

    def forget(self, series: Series) -> None:
        """This one is not needed any more."""
        self._series.pop(series, None)

    def reach(self, moment: int) -> None:
        """Have room for all time before `moment`."""
        if self.start is None:
            return
        while moment - self.start > self._limit * self.width:
            self.width *= 2
            for series in self._series:
                series.fold()

    def lengths(self, end: int) -> list[int]:
        """How long each interval up to `end` is (ns): all as wide, the last one perhaps shorter."""
        if self.start is None:
            return []
        whole, rest = divmod(max(end - self.start, 0), self.width)
        return [self.width] * whole + [rest] * (rest > 0)


class Series:
    """A value that changes at moments, and its integral over each interval."""

    __slots__ = ("_since", "_sums", "_timeline", "value")

    def __init__(self, timeline: Timeline, value: int) -> None:
        self.value = value
        self._timeline = timeline
        self._since = 0
        self._sums: list[int] = []

    def set(self, moment: int, value: int) -> None:
        """From `moment` (ns) on it has this value."""
        if value != self.value:
            self.wind(moment)
            self.value = value

    def wind(self, moment: int) -> None:
        """Enter what it was until `moment`."""
        timeline = self._timeline
        if timeline.start is None or moment <= timeline.start:
            return
        since, self._since = max(self._since, timeline.start), moment
        if not self.value or moment <= since:
            return
        timeline.reach(moment)
        start, width, sums = timeline.start, timeline.width, self._sums
        first, last = (since - start) // width, (moment - start - 1) // width
        if len(sums) <= last:
            sums.extend([0] * (last + 1 - len(sums)))
        if first == last:
            sums[last] += self.value * (moment - since)
            return
        sums[first] += self.value * (start + (first + 1) * width - since)
        for index in range(first + 1, last):
            sums[index] += self.value * width
        sums[last] += self.value * (moment - start - last * width)

    def fold(self) -> None:
        """Merge each two neighbours; the timeline calls it."""
        sums = self._sums
        if len(sums) % 2:
            sums.append(0)
        self._sums = [sums[index] + sums[index + 1] for index in range(0, len(sums), 2)]

    def absorb(self, other: Series, moment: int) -> None:
        """Be the sum of both: at `moment`, before it and after it; the other is not to be used again."""
        self.wind(moment)
        other.wind(moment)
        longer, shorter = self._sums, other._sums
        if len(longer) < len(shorter):
            longer, shorter = list(shorter), longer
        for index, amount in enumerate(shorter):
            longer[index] += amount
        self._sums = longer
        self.value += other.value
        self._timeline.forget(other)

    def total(self) -> int:
        """Its integral over all time that was entered: value times nanoseconds."""
        return sum(self._sums)

    def sums(self, count: int) -> list[int]:
        """Its integral over each of the first `count` intervals."""
        return (self._sums + [0] * count)[:count]

    def means(self, lengths: list[int]) -> list[float]:
        """Its mean over each interval, given how long they are."""
        return [amount / length for amount, length in zip(self.sums(len(lengths)), lengths, strict=True)]
