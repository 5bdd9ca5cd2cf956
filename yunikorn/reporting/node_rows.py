"""How full nodes were over time, a bounded number of rows whatever the cluster's size.

Nodes stand in the order in which they registered. As long as there are few, each has a row; when there would
be more rows than the limit, neighbours are merged, so that every row has as many nodes.
"""

from __future__ import annotations

from collections.abc import Mapping

from yunikorn.reporting.intervals import Series, Timeline

LIMIT = 64


class _Row:
    """A few nodes: per resource type what they have, and what of it is used."""

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
        """The nodes of another row are its own from now on, and always were."""
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
        """How many nodes a row has; the last one may have fewer."""
        self.nodes = 0
        self._timeline = timeline
        self._limit = limit
        self._rows: list[_Row] = []

    def join(self, moment: int) -> int:
        """One more node; returns its number."""
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
        """A node has `amount` more (`sign` 1) or less (-1)."""
        row = self._rows[number // self.per_row]
        row.change(row.had, amount, sign, moment)

    def use(self, number: int, amount: Mapping[str, int], sign: int, moment: int) -> None:
        """On a node `amount` more is used (`sign` 1) or less (-1)."""
        row = self._rows[number // self.per_row]
        row.change(row.used, amount, sign, moment)

    def close(self, moment: int) -> None:
        """The simulation ended: enter what is open."""
        for row in self._rows:
            for series in (*row.had.values(), *row.used.values()):
                series.wind(moment)

    def shares(self, count: int) -> dict[str, list[list[float | None]]]:
        """Per resource type, row by row: which part was used in each of `count` intervals.

        None where a row had none of the type. After `close`.
        """
        names = sorted({name for row in self._rows for name in row.had})
        return {name: [_share(row, name, count) for row in self._rows] for name in names}


def _share(row: _Row, name: str, count: int) -> list[float | None]:
    had = row.had[name].sums(count) if name in row.had else [0] * count
    used = row.used[name].sums(count) if name in row.used else [0] * count
    return [part / whole if whole else None for part, whole in zip(used, had, strict=True)]
