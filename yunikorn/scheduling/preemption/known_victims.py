"""Victims on single nodes that are known from earlier searches with the same candidates.

Which victims make room on a node depends on the node alone, except that a victim is passed over if its queue
would lose its guarantee. While every queue has more above its guarantees than the victims of any node use, no
victim is passed over, and the victims of a node are the same for all requests of an ask class. They are then
computed once per round, and again only for nodes that changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from yunikorn.resources import Tally, grow
from yunikorn.scheduling.preemption.snapshot import apart

if TYPE_CHECKING:
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.node import Node
    from yunikorn.model.queue import Queue
    from yunikorn.scheduling.preemption.snapshot import Pairs, PreemptionSnapshot

Entry = tuple[float, str, "Node", "list[Allocation] | None"]
"""Heap entry: (lower bound of the cost, or the cost, node id, node, victims or None if not computed yet).

Without costs of the policy, the cost is the number of victims."""
Needs = dict["Queue", Tally]
"""Amounts that victims use, by queue; leaves and their ancestors."""


class KnownVictims:
    """Victims by node for one ask class and one set of eligible leaves, as far as they are known."""

    def __init__(self, bounds: Mapping[str, Entry]) -> None:
        """Create with lower bounds only; `bounds` has an entry for each node."""
        self._entries = dict(bounds)
        """Entry by id of the node: the cost with the victims if they are known, else a lower bound."""
        self._needs: Needs = {}
        """Largest amounts that the victims of any known node use."""

    def heap(self) -> list[Entry]:
        """Return the entries of all nodes, in no particular order."""
        return list(self._entries.values())

    def update(self, node_id: str, entry: Entry | None) -> None:
        """Replace what is known of a node by a lower bound, or by None if the node is impossible."""
        if entry is None:
            self._entries.pop(node_id, None)
        else:
            self._entries[node_id] = entry

    def add(self, entry: Entry, needs: Needs) -> None:
        """Remember the victims of a node, with the amounts that all victims tried there use."""
        self._entries[entry[1]] = entry
        for queue, need in needs.items():
            known = self._needs.setdefault(queue, {})
            for name, amount in need.items():
                if amount > known.get(name, 0):
                    known[name] = amount

    def hold_for(self, snapshot: PreemptionSnapshot, asking: Queue, pairs: Pairs) -> bool:
        """Return True if no known victim would be passed over for a request of the queue `asking`."""
        return spares(self._needs, snapshot, asking, pairs)


def needs_of(victims: Iterable[Allocation]) -> Needs:
    """Return the amounts that victims use, by queue."""
    found: Needs = {}
    for victim in victims:
        for queue in victim.app.chain:
            grow(found.setdefault(queue, {}), victim.resource)
    return found


def spares(needs: Needs, snapshot: PreemptionSnapshot, asking: Queue, pairs: Pairs) -> bool:
    """Return True if all queues stay above their guarantees without `needs`, whatever the order of victims.

    The conditions are those of `Search._take` after the last victim: before it, all queues use more.
    """
    for queue, need in needs.items():
        if queue.is_leaf and queue is not asking and not _is_over(queue, needs, snapshot, asking, pairs):
            return False
        if queue.guaranteed and queue not in asking.chain:
            used = snapshot.used(queue)
            for name, amount in queue.guaranteed.items():
                if need.get(name) and used.get(name, 0) - need[name] < amount:
                    return False
    return True


def _is_over(leaf: Queue, needs: Needs, snapshot: PreemptionSnapshot, asking: Queue, pairs: Pairs) -> bool:
    """Return True if `leaf` still exceeds a guarantee for any of these types, or has no guarantee."""
    bare = True
    for queue in apart(leaf, asking):
        if queue.guaranteed:
            bare = False
            used, need = snapshot.used(queue), needs.get(queue, {})
            for name, _ in pairs:
                amount = queue.guaranteed.get(name)
                if amount is not None and used.get(name, 0) - need.get(name, 0) > amount:
                    return True
    return bare
