"""Usage of nodes over time, in a bounded number of rows for clusters of any size.

Nodes are in the order of their registration. A small cluster has one row per node. When the number of rows
exceeds the limit, neighbouring rows are merged, so that all rows have the same number of nodes.
"""

from __future__ import annotations

from collections.abc import Mapping

from yunikorn.reporting.intervals import Series, Timeline

LIMIT = 64


class _Row:
    """Capacity and usage of a few nodes, per resource type."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self.had: dict[str, Series] = {}
        self.used: dict[str, Series] = {}

    def change(self, books: dict[str, Series], amount: Mapping[str, int], sign: int, moment: int) -> None:
        for name, value in amount.items():
            series = books.get(name)
            if series is None:
                series = books[name] = self._timeline.series()
            series.set(moment, series.value + sign * value)

    def absorb(self, other: _Row, moment: int) -> None:
        """Add the capacity and usage of another row, for all times."""
        for books, others in ((self.had, other.had), (self.used, other.used)):
            for name, series in others.items():
                mine = books.get(name)
                if mine is None:
                    mine = books[name] = self._timeline.series()
                mine.absorb(series, moment)


class NodeRows:
    """The rows of one simulation."""

    def __init__(self, timeline: Timeline, limit: int = LIMIT) -> None:
        self.per_row = 1
        """Number of nodes per row; the last row may have fewer."""
        self.nodes = 0
        self._timeline = timeline
        self._limit = limit
        self._rows: list[_Row] = []

    def join(self, moment: int) -> int:
        """Add a node; returns its number."""
        number = self.nodes
        self.nodes += 1
        while number // self.per_row >= self._limit:
            self._merge(moment)
        if number // self.per_row == len(self._rows):
            self._rows.append(_Row(self._timeline))
        return number

    def _merge(self, moment: int) -> None:
        self.per_row *= 2
        for upper, lower in zip(self._rows[::2], self._rows[1::2], strict=False):
            upper.absorb(lower, moment)
        self._rows = self._rows[::2]

    def capacity(self, number: int, amount: Mapping[str, int], sign: int, moment: int) -> None:
        """Increase a node's capacity by `amount` (`sign` 1), or reduce it (-1)."""
        row = self._rows[number // self.per_row]
        row.change(row.had, amount, sign, moment)

    def use(self, number: int, amount: Mapping[str, int], sign: int, moment: int) -> None:
        """Increase a node's usage by `amount` (`sign` 1), or reduce it (-1)."""
        row = self._rows[number // self.per_row]
        row.change(row.used, amount, sign, moment)

    def close(self, moment: int) -> None:
        """Complete all series at the end of the simulation."""
        for row in self._rows:
            for series in (*row.had.values(), *row.used.values()):
                series.wind(moment)

    def shares(self, count: int) -> dict[str, list[list[float | None]]]:
        """Return the used part of the capacity in each of `count` intervals, by resource type and row.

        Values are None for a row without capacity of the type. Call `close` before.
        """
        names = sorted({name for row in self._rows for name in row.had})
        return {name: [_share(row, name, count) for row in self._rows] for name in names}


def _share(row: _Row, name: str, count: int) -> list[float | None]:
    had = row.had[name].sums(count) if name in row.had else [0] * count
    used = row.used[name].sums(count) if name in row.used else [0] * count
    return [part / whole if whole else None for part, whole in zip(used, had, strict=True)]
