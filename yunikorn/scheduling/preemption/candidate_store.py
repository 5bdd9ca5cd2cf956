"""Store of a partition's candidates for preemption, by cause, and the candidates in it for one request.

Most nodes that a search examines were examined before for a request of the same size, and have not changed
since. `KnownNodes` keeps what was found there, for one amount and one set of eligible leaves, and lists the
nodes that are left to examine. What was found on a node holds for another request if the candidates that were
chosen there may go together: their queues must be as far above their guarantees as the chosen candidates of
any known node require (`docs/decisions/archive/0175`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from yunikorn.scheduling.preemption.candidates import Needs, candidates_on, shortage
from yunikorn.scheduling.preemption.kept_candidates import (
    KeptCandidates,
    NodeChanges,
    Unkeepable,
    all_leaves,
)

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.api import PreemptionCause
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.node import Node
    from yunikorn.model.queue import Queue
    from yunikorn.resources import Tally
    from yunikorn.scheduling.preemption.candidates import EligibleLeaves
    from yunikorn.scheduling.preemption.snapshot import Pairs
    from yunikorn.scheduling.preemption.victim_policy import VictimPolicy

KEPT = 50_000
"""Number of nodes, over all causes, whose candidates are kept."""
KNOWN = 500_000
"""Number of nodes, over all `KnownNodes` of a cause, of which it is kept what was found there."""
WORTHWHILE = 1
"""Number of allocations in eligible leaves, per node of the partition, after which candidates are kept."""
QUEUES = 32
"""Number of removed queues that may be counted before they are forgotten."""
IMPOSSIBLE = 1 << 40
"""Lower bound on the number of victims where no number suffices."""
UNKNOWN, SEVERAL, HOPELESS = range(3)


class CandidateStore:
    """Kept candidates of a partition by cause; empty if the policy's answers are not constant."""

    def __init__(self, policy: VictimPolicy, partition: Partition) -> None:
        self._policy = policy
        self._partition = partition
        self._changes = NodeChanges(partition)
        self._kept: dict[object, tuple[KeptCandidates, dict[object, KnownNodes]]] = {}
        """Candidates by cause, with the known nodes by amount and eligible leaves."""
        self._seen: dict[Queue, int] = {}
        """Allocations in eligible leaves, by asking queue, summed over the searches that kept nothing."""
        self._most_seen = QUEUES
        """Number of queues in `_seen` at which removed queues are forgotten."""
        self._usable = policy.is_constant

    def find(
        self, asking: Queue, cause: PreemptionCause, eligible: EligibleLeaves, pairs: Pairs
    ) -> KeptPool | None:
        """Return the candidates for a request, up to date; None if they cannot, or need not, be kept."""
        if not self._usable or not pairs:
            return None
        key = cause.kind, asking, cause.priority
        if key not in self._kept and not self._is_worthwhile(asking, eligible):
            return None
        self._changes.collect()
        # The longest unused is first.
        found = self._kept.pop(key, None) or (KeptCandidates(asking, cause, self._policy), {})
        self._kept[key] = kept, known = found
        while len(self._kept) > max(1, KEPT // max(1, len(self._changes.nodes))):
            del self._kept[next(iter(self._kept))]
        try:
            kept.update(self._changes, eligible)
        except Unkeepable:
            self._usable = False
            self._kept.clear()
            return None
        return KeptPool(kept, known, eligible, pairs)

    def _is_worthwhile(self, asking: Queue, eligible: EligibleLeaves) -> bool:
        """Return True if the searches of a queue have seen as many allocations as there are nodes to list.

        What they saw are the allocations in eligible leaves; most are candidates.

        Listing all nodes for a queue that finds no candidates, or few, would cost far more than its search,
        and a thousand queues may search at one time.
        """
        seen = self._seen.pop(asking, 0)
        seen += sum(len(app.allocations) for leaf in eligible for app in leaf.applications.values())
        if seen >= WORTHWHILE * len(self._partition.nodes):
            return True
        if len(self._seen) >= self._most_seen:
            present = all_leaves(asking)
            self._seen = {queue: count for queue, count in self._seen.items() if queue in present}
            self._most_seen = 2 * len(self._seen) + QUEUES
        self._seen[asking] = seen
        return False


class KeptPool:
    """Candidates for one request, from those that are kept."""

    def __init__(
        self,
        kept: KeptCandidates,
        known: dict[object, KnownNodes],
        eligible: EligibleLeaves,
        pairs: Pairs,
    ) -> None:
        self._kept, self._known = kept, known
        self._eligible = eligible
        self._pairs = pairs

    @property
    def has_spared(self) -> bool:
        """True if any candidate may be spared."""
        return self._kept.has_spared

    def any_order(self, queues: Iterable[Queue] | None = None) -> Iterator[Allocation]:
        """Yield the candidates in no particular order; with `queues`, only those below any of these."""
        eligible = self._eligible
        if queues is not None:
            wanted = frozenset(queues)
            eligible = {leaf: most for leaf, most in eligible.items() if not wanted.isdisjoint(leaf.chain)}
        return candidates_on(eligible, self._kept.policy.eligible(self._kept.cause))

    def in_order(self, queues: Iterable[Queue]) -> Iterable[Allocation]:
        """Return the candidates below any of `queues` in order."""
        return self._kept.policy.in_order(self.any_order(queues), self._kept.cause)

    def on(self, node: Node) -> list[Allocation]:
        """Return the candidates on a node in order, those included that are no longer available."""
        return self._kept.on(node).candidates

    def room(self, node: Node) -> Tally:
        """Return the free room of a node once all pending releases have ended."""
        return self._kept.on(node).room

    def shortage(self, node: Node) -> Tally:
        """Return what a node lacks for the request once all pending releases have ended."""
        return shortage(self.room(node), self._pairs)

    @property
    def nodes(self) -> list[Node]:
        """All nodes in the order of their ids, which is that of positions."""
        return self._kept.nodes

    def known_nodes(self, *, spared: bool) -> KnownNodes:
        """Return what is known of nodes, up to date; with `spared` if these may be victims, too."""
        kept, every = self._kept, self._known
        key = tuple(self._pairs), frozenset(self._eligible), spared
        # The longest unused is first.
        known = every.pop(key, None)
        if known is None or not known.catch_up():
            known = KnownNodes(kept, self._pairs)
        every[key] = known
        while len(every) > max(1, KNOWN // max(1, len(kept.nodes))):
            del every[next(iter(every))]
        return known

    def least(self) -> Iterable[int]:
        """Return lower bounds on the number of victims, by position; 0 where no number suffices."""
        bounds: Iterable[int] | None = None
        for name, amount in self._pairs:
            column = self._kept.column(name)
            needed = [
                0 if room >= amount else -((room - amount) // most) if most else IMPOSSIBLE
                for room, most in zip(column.room, column.largest, strict=True)
            ]
            bounds = needed if bounds is None else list(map(max, bounds, needed))
        return [bound if bound < IMPOSSIBLE else 0 for bound in bounds or ()]


class KnownNodes:
    """Nodes for one amount and one set of eligible leaves; a position refers to `KeptCandidates.nodes`."""

    def __init__(self, kept: KeptCandidates, pairs: Pairs) -> None:
        self._kept = kept
        self._nodes = kept.nodes
        self._pairs = pairs
        self._open: list[int] = []
        """Positions below `_frontier` of nodes where a single victim may suffice, ascending."""
        self._frontier = 0
        """Position of the first node that no search has reached yet."""
        self._found = bytearray(len(kept.nodes))
        """Result of the latest search by position: `UNKNOWN`, `SEVERAL` or `HOPELESS`."""
        self._needs = Needs()
        """Amounts of the choices with which nodes failed."""
        self._by_leaf: dict[Queue, set[int]] = {}
        """Positions of failed nodes with such candidates of a leaf; some may have changed since."""
        self._seen = kept.log.end
        """Number of the first change that was not applied."""

    def catch_up(self) -> bool:
        """Apply the changes of nodes since the last call; False if that is impossible."""
        kept, open_ = self._kept, self._open
        if self._nodes is not kept.nodes or self._seen < kept.log.start:
            return False
        for position in set(kept.log.since(self._seen)):
            if position < self._frontier:
                self._found[position] = UNKNOWN
                at = bisect_left(open_, position)
                is_listed = at < len(open_) and open_[at] == position
                if kept.reaches(position, self._pairs):
                    if not is_listed:
                        open_.insert(at, position)
                elif is_listed:
                    del open_[at]
        self._seen = kept.log.end
        return True

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
        for position in self._kept.reached(self._pairs, self._frontier):
            self._open.append(position)
            self._frontier = position + 1
            yield position
        self._frontier = len(self._nodes)

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
        for leaf in self._needs.add(chosen):
            self._by_leaf.setdefault(leaf, set()).add(position)
