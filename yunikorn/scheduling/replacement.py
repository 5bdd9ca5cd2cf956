"""Replacement of placeholders by real requests of the same task group.

Replacements are decided before all other decisions except reservations, in the order in which they became
possible. A task group is examined only after the arrival of a real request or the allocation of a
placeholder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.model.allocation import TerminationType
from yunikorn.resources import fits
from yunikorn.states import STOPPED

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.ask import Ask
    from yunikorn.model.gang import TaskGroup
    from yunikorn.model.node import Node
    from yunikorn.scheduling.node_orders import NodeOrders
    from yunikorn.scheduling.unschedulable_queue import UnschedulableQueue


class Replacement:
    """Decides which real request replaces which placeholder."""

    def __init__(
        self,
        partition: Partition,
        orders: NodeOrders,
        unschedulable_queue: UnschedulableQueue,
    ) -> None:
        self._partition = partition
        self._gangs = partition.gangs
        self._orders = orders
        self._unschedulable_queue = unschedulable_queue
        self._stopped: list[TaskGroup] = []
        """Ready task groups whose queue was stopped or whose application is held."""

    def resume(self) -> None:
        """Re-examine these task groups, after a queue was stopped or started or an application admitted."""
        self._gangs.ready.extend(self._stopped)
        self._stopped = []

    def decide(self) -> Allocation | None:
        """Replace the next placeholder; None if no replacement is possible now."""
        ready = self._gangs.ready
        while ready:
            group = ready[0]
            ask = group.next() if group.placeholders else None
            if ask is None:
                ready.popleft()
                group.is_ready = False
                continue
            if ask.app.held is not None or any(queue.state == STOPPED for queue in ask.app.chain):
                self._stopped.append(ready.popleft())
                continue
            found = self._find(group, ask)
            if found is not None and self._commits(ask, *found):
                return self._gangs.replace(found[0], ask, found[1])
            group.put_aside()
            if group.placeholders:
                # A predicate refuses the node and no other node has room: the request waits for a change.
                self._unschedulable_queue.mark_unschedulable(ask)
            else:
                group.add(ask)
        return None

    def _find(self, group: TaskGroup, ask: Ask) -> tuple[Allocation, Node] | None:
        """Return a large enough placeholder and a node, preferably the placeholder's own node."""
        chain = self._orders.predicates
        chain.begin()
        fallback: Allocation | None = None
        too_small: list[Allocation] = []
        found: tuple[Allocation, Node] | None = None
        for placeholder in group.placeholders.values():
            if placeholder.releasing is not None:
                continue
            if not fits(placeholder.resource, ask.resource):
                too_small.append(placeholder)
                continue
            fallback = fallback or placeholder
            node, required = placeholder.node, ask.ask_class.required
            if ask.ask_class.rules_out(node):
                continue
            # The placeholder already holds the room, and ends: predicates are asked as for a reservation.
            if required in ("", node.id) and (not chain or self._judge(ask, placeholder) is None):
                found = placeholder, node
                break
        for placeholder in too_small:
            self._refuse(group, placeholder, ask)
        if found is not None or fallback is None:
            return found
        elsewhere = self._orders.find(ask)
        return None if elsewhere is None else (fallback, elsewhere)

    def _commits(self, ask: Ask, placeholder: Allocation, node: Node) -> bool:
        """Return False if a predicate fails to commit a request in place of a placeholder."""
        books = self._orders.books
        return books is None or books.plan([(ask, node)], [(placeholder, placeholder.node)])

    def _judge(self, ask: Ask, placeholder: Allocation) -> str | None:
        return self._orders.judge_without(ask, placeholder.node, [placeholder])

    def _refuse(self, group: TaskGroup, placeholder: Allocation, ask: Ask) -> None:
        self._partition.changes.requests.placeholder_mismatch(placeholder, ask, group.name)
        message = "cancel placeholder: resource incompatible"
        self._gangs.end(placeholder, TerminationType.TIMEOUT, message)
