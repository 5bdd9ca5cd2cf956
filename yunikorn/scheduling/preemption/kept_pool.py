"""Candidates for one request, from those that are kept by node.

A node is examined only if its free room and its largest candidate could cover the request. Such nodes are
looked at in order of their id, and the first on which a single victim suffices ends the search. Only if there
is none, lower bounds are computed for all nodes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from yunikorn.scheduling.preemption.victims import candidates_on, shortage

if TYPE_CHECKING:
    from yunikorn.api import PreemptionCause
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.node import Node
    from yunikorn.model.queue import Queue
    from yunikorn.resources import Tally
    from yunikorn.scheduling.preemption.kept_candidates import KeptCandidates
    from yunikorn.scheduling.preemption.snapshot import Pairs
    from yunikorn.scheduling.preemption.victim_policy import VictimPolicy
    from yunikorn.scheduling.preemption.victims import EligibleLeaves

IMPOSSIBLE = 1 << 40
"""Lower bound on the number of victims where no number suffices."""
Glance = tuple[int, "list[Allocation] | None", "Sequence[Allocation] | None"]
"""Lower bound on the number of victims on a node, 0 if there are none; the victims if the number is exact:
always if it is 1; and the candidates whose choice showed this, None if it depends on guarantees."""


class KeptPool:
    """Candidates for one request, from those that are kept."""

    def __init__(
        self,
        kept: KeptCandidates,
        eligible: EligibleLeaves,
        policy: VictimPolicy,
        cause: PreemptionCause,
        pairs: Pairs,
    ) -> None:
        self._kept = kept
        self._eligible = eligible
        self._policy = policy
        self._cause = cause
        self._pairs = pairs

    @property
    def has_originators(self) -> bool:
        """True if any candidate may be an originator."""
        return any(self._kept.table.originators)

    def any_order(self, queues: Iterable[Queue] | None = None) -> Iterator[Allocation]:
        """Yield the candidates in no particular order; with `queues`, only those below any of these."""
        return candidates_on(self._below(queues), self._policy.eligible(self._cause))

    def in_order(self, queues: Iterable[Queue]) -> Iterable[Allocation]:
        """Return the candidates below any of `queues` in order."""
        return self._policy.in_order(self.any_order(queues), self._cause)

    def _below(self, queues: Iterable[Queue] | None) -> EligibleLeaves:
        if queues is None:
            return self._eligible
        wanted = frozenset(queues)
        return {leaf: most for leaf, most in self._eligible.items() if not wanted.isdisjoint(leaf.chain)}

    def on(self, node: Node) -> list[Allocation]:
        """Return the candidates on a node in order, those included that are no longer available."""
        table = self._kept.table
        return table.candidates[table.positions[node]]

    def room(self, node: Node) -> Tally:
        """Return the free room of a node once all pending releases have ended."""
        table = self._kept.table
        return table.rooms[table.positions[node]]

    def shortage(self, node: Node) -> Tally:
        """Return what a node lacks for the request once all pending releases have ended."""
        return shortage(self.room(node), self._pairs)

    def by_cost(
        self,
        fits: Callable[[Node], bool],
        glance: Callable[[Node], Glance],
        victims_on: Callable[[Node], list[Allocation] | None],
        may_lose: Callable[[Queue, Tally], bool],
        *,
        originators: bool,
    ) -> Iterator[tuple[Node, list[Allocation]]]:
        """Yield nodes and the victims there, the fewest first, then by node id.

        `fits` returns True for nodes that may host the request. `may_lose` returns True if a leaf keeps its
        guarantees, and is above them, until an amount has gone from it. `originators` is True if the
        functions take these into account.
        """
        table = self._kept.table
        known = self._kept.known(self._pairs, self._eligible, originators=originators)
        later: list[tuple[int, int, list[Allocation] | None]] = []
        examined = set()
        for position in known.left(may_lose):
            node = table.nodes[position]
            examined.add(position)
            if not fits(node):
                continue
            least, victims, chosen = glance(node)
            if least == 1 and victims is not None:
                yield node, victims
                continue
            if chosen is not None:
                known.fail(position, least, chosen)
            if least:
                later.append((least, position, victims))
        for position, least in enumerate(self._least()):
            if least < IMPOSSIBLE and position not in examined and not known.is_hopeless(position):
                later.append((least, position, None))
        heapq.heapify(later)
        while later:
            _, position, found = heapq.heappop(later)
            node = table.nodes[position]
            if found is not None:
                yield node, found
            elif position in examined or fits(node):
                victims = victims_on(node)
                if victims is not None:
                    heapq.heappush(later, (len(victims), position, victims))

    def _least(self) -> Iterable[int]:
        """Return lower bounds on the number of victims, by position."""
        bounds: Iterable[int] | None = None
        for name, amount in self._pairs:
            column = self._kept.table.column(name)
            needed = [
                0 if room >= amount else -((room - amount) // most) if most else IMPOSSIBLE
                for room, most in zip(column.room, column.largest, strict=True)
            ]
            bounds = needed if bounds is None else list(map(max, bounds, needed))
        return [bound or IMPOSSIBLE for bound in bounds or ()]
