"""Nodes on which no single victim makes room for an amount, as known from earlier searches.

Most nodes that a search examines were examined before for a request of the same size, and have not changed
since. `KnownNodes` keeps what was found there, for one amount and one set of eligible leaves, and lists the
nodes that are left to examine. It follows the log of changed nodes of its `CandidateTable`.

What was found on a node holds for another request if the candidates that were chosen there may go together:
their queues must be as far above their guarantees as the chosen candidates of any known node require.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.queue import Queue
    from yunikorn.resources import Tally
    from yunikorn.scheduling.preemption.candidate_table import CandidateTable
    from yunikorn.scheduling.preemption.snapshot import Pairs

UNKNOWN, SEVERAL, HOPELESS = range(3)


class KnownNodes:
    """Nodes for one amount and one set of eligible leaves; a position refers to `CandidateTable.nodes`."""

    def __init__(self, table: CandidateTable, pairs: Pairs) -> None:
        self._table = table
        self._pairs = pairs
        self._open: list[int] = []
        """Positions below `_frontier` of nodes where a single victim may suffice, ascending."""
        self._frontier = 0
        """Position of the first node that no search has reached yet."""
        self._found = bytearray(len(table.nodes))
        """Result of the latest search by position: `UNKNOWN`, `SEVERAL` or `HOPELESS`."""
        self._needs: dict[Queue, Tally] = {}
        """Largest amounts of the candidates chosen on any failed node, by leaf."""
        self._by_leaf: dict[Queue, set[int]] = {}
        """Positions of failed nodes with such candidates of a leaf; some may have changed since."""
        self.seen = table.changes
        """Number of entries of the log that were applied."""

    def catch_up(self) -> None:
        """Apply the changes of nodes since the last call."""
        table, open_ = self._table, self._open
        for position in table.changed_since(self.seen):
            if position < self._frontier:
                self._found[position] = UNKNOWN
                at = bisect_left(open_, position)
                is_listed = at < len(open_) and open_[at] == position
                if table.reaches(position, self._pairs):
                    if not is_listed:
                        open_.insert(at, position)
                elif is_listed:
                    del open_[at]
        self.seen = table.changes

    def left(self, may_lose: Callable[[Queue, Tally], bool]) -> Iterator[int]:
        """Yield the positions of nodes that are left to examine, ascending.

        `may_lose` returns True for leaves that may lose an amount. What is known of a node does not hold if
        a leaf of the candidates chosen there may not lose as much as on any known node.
        """
        again: set[int] = set()
        for leaf, need in self._needs.items():
            if not may_lose(leaf, need):
                again.update(one for one in self._by_leaf[leaf] if self._found[one])
        yield from sorted(again.union(self._open)) if again else tuple(self._open)
        for position in self._table.reached(self._pairs, self._frontier):
            self._open.append(position)
            self._frontier = position + 1
            yield position
        self._frontier = len(self._table.nodes)

    def is_hopeless(self, position: int) -> bool:
        """Return True if it is known that no number of victims suffices on a node."""
        return self._found[position] == HOPELESS

    def fail(self, position: int, least: int, chosen: Sequence[Allocation]) -> None:
        """Note that at least `least` victims are needed on a node, or that no number suffices (0).

        This was found by choosing `chosen` there, and holds while these may go together.
        """
        if not self._found[position]:
            del self._open[bisect_left(self._open, position)]
        self._found[position] = SEVERAL if least else HOPELESS
        total = total_of(chosen)
        for leaf in {one.app.chain[0]: None for one in chosen}:
            self._by_leaf.setdefault(leaf, set()).add(position)
            need = self._needs.setdefault(leaf, {})
            for name, amount in total.items():
                if amount > need.get(name, 0):
                    need[name] = amount


def total_of(allocations: Iterable[Allocation]) -> Tally:
    """Return the sum of the resources of allocations."""
    total: Tally = {}
    for one in allocations:
        for name, amount in one.resource.items():
            total[name] = total.get(name, 0) + amount
    return total
