"""All node orders of a partition: the default one, named alternatives, and one per ask class where asked.

An alternative exists while something pending uses it (decision 10); an order of a policy that looks at
the request exists per live ask class (decision 47), and for a while after, for requests of this ask class
that come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from yunikorn.scheduling.node_order import Change, NodeOrder
from yunikorn.states import REMOVED, SCHEDULABLE

if TYPE_CHECKING:
    from yunikorn.clock import Clock
    from yunikorn.objects.allocation_accounting import AllocationAccounting
    from yunikorn.objects.ask_class import AskClass
    from yunikorn.objects.node import Node
    from yunikorn.objects.pending_class import PendingClasses
    from yunikorn.scheduling.named_policy import NamedPolicy
    from yunikorn.scheduling.plugin_failures import PluginFailures

LOG = 4_096
"""Changes of nodes that orders for one ask class may lie behind."""
KEPT = 200_000
"""Places of nodes in orders for one ask class that nobody waits in, all together: tens of megabytes."""

DEFAULT = ""
"""The name of the partition's own order."""


class NodeOrders:
    """The node orders that are in use, kept up to date together."""

    def __init__(
        self,
        policies: dict[str, NamedPolicy],
        nodes: Callable[[], Iterable[Node]],
        pending_classes: PendingClasses,
        clock: Clock,
        failures: PluginFailures,
    ) -> None:
        self.policies = policies
        self._nodes = nodes
        self._pending_classes = pending_classes
        self._ask_classes = ask_classes = pending_classes.ask_classes
        self._clock = clock
        self._failures = failures
        self._orders: dict[tuple[str, int], NodeOrder] = {}
        self._common: list[NodeOrder] = []
        """Those of them that are the same for all requests."""
        self._log: list[Change] = []
        """What changed, for the others to read when they are looked at."""
        self._retired = 0
        """How many ask classes nobody waited for any more when orders without use were last dropped."""
        self._only: NodeOrder | None = None
        """The default order, once it is made, if it is the same for all requests and at all times."""
        self.regained: list[Node] = []
        """Reserved nodes that gained room since their requests were last tried on them."""
        ask_classes.on_forget.append(self.forget_ask_classes)

    def of(self, ask_class: AskClass) -> NodeOrder:
        """The order for requests of `ask_class`, made now if it does not exist."""
        if self._only is not None and not ask_class.node_order:
            return self._only
        named = self.policies[ask_class.node_order]
        key = (ask_class.node_order, ask_class.bit if named.by_ask_class else 0)
        order = self._orders.get(key)
        if order is None:
            order = NodeOrder(
                named.policy,
                named.origin,
                self._failures,
                self._ask_classes,
                ask_class if named.by_ask_class else None,
            )
            self._orders[key] = order
            order.seen = len(self._log)
            if not named.by_ask_class:
                self._common.append(order)
            if not named.by_ask_class and not order.ages and ask_class.node_order == DEFAULT:
                self._only = order
            order.is_due(self._clock.now())
            for node in self._nodes():
                if node.is_free:
                    order.put(node, True)
            if named.by_ask_class:
                self._make_room(len(order))
        elif order.ask_class is not None and order.seen != len(self._log):
            order.catch_up(self._log)
        if order.ages and order.is_due(self._clock.now()):
            for node in self._nodes():
                if node.is_free:
                    order.put(node, False)
        return order

    def resort(self, accounting: AllocationAccounting) -> None:
        """Bring all orders up to date with the nodes that changed, and reopen ask classes that have room
        again.
        """
        only, changed = self._only, accounting.changed_nodes
        if only is not None and len(changed) == 1 and len(self._orders) == 1:
            node = changed[0]
            if not node.gained and node.state == SCHEDULABLE and not node.reservations:
                # Nearly always: the one that was just given something.
                changed.clear()
                node.is_dirty = False
                only.put(node, False)
                return
        accounting.changed_nodes = []
        if len(self._orders) > 1 and self._retired != self._ask_classes.retired:
            self._drop_unused()
        common = self._common
        for node in changed:
            gained, node.gained, node.is_dirty = node.gained, False, False
            free = node.state == SCHEDULABLE and not node.reservations
            for order in common:
                if free:
                    order.put(node, gained)
                else:
                    order.remove(node.id)
            if len(common) < len(self._orders):
                self._note(node, gained)
            if gained:
                self._regained(node, free)

    def _note(self, node: Node, gained: bool) -> None:
        """Have the orders for one ask class know of a change when they are looked at."""
        if len(self._log) >= LOG:
            for key, order in list(self._orders.items()):
                if order.ask_class is None:
                    continue
                if order.ask_class.waiting:
                    order.catch_up(self._log)
                    order.seen = 0
                else:
                    self._drop(key)
            self._log = []
        self._log.append((node, gained))

    def _regained(self, node: Node, free: bool) -> None:
        """A node may take more than before."""
        if node.reservations:
            self.regained.append(node)
        if self._ask_classes.unschedulable and node.state != REMOVED:
            self._reopen(node, free)

    def follow(self, node: Node, *, gained: bool) -> None:
        """A free node has other room while a plan is made: have it stand where it belongs meanwhile."""
        if node.is_free:
            for order in self._common:
                order.put(node, gained)
            self._note(node, gained)

    def _reopen(self, node: Node, free: bool) -> None:
        # A request that requires this node may come even where no other may.
        for ask_class in [
            ask_class for ask_class in self._ask_classes.unschedulable.values() if free or ask_class.is_pinned
        ]:
            if ask_class.fits(node) and ask_class.verdicts.get(node.classes) is None:
                self._pending_classes.mark_schedulable(ask_class)

    def _drop_unused(self) -> None:
        self._retired = self._ask_classes.retired
        users = self._ask_classes.users
        for key in list(self._orders):
            name, _ = key
            if name != DEFAULT and not users.get(name):
                self._drop(key)

    def _make_room(self, places: int) -> None:
        """Drop orders for one ask class that nobody waits in, longest unused first, as there are too many.

        As long as they are kept they cost nothing but their `places`: what has changed they learn when a
        request of their ask class comes again, which is cheaper than to compute the scores of all nodes.
        """
        idle = [
            (order.seen, key)
            for key, order in self._orders.items()
            if order.ask_class is not None and not order.ask_class.waiting
        ]
        for _, key in sorted(idle)[: max(0, len(idle) - KEPT // max(1, places))]:
            self._drop(key)

    def _drop(self, key: tuple[str, int]) -> None:
        order = self._orders.pop(key)
        if order in self._common:
            self._common.remove(order)
            order.dissolve()

    def forget_ask_classes(self, bits: int) -> None:
        """These ask classes are no more; their bits will serve for others."""
        for node in self._nodes():
            node.unfit &= ~bits
        for (name, bit), order in list(self._orders.items()):
            if bit & bits:
                self._drop((name, bit))
            else:
                order.forget_ask_classes(bits)

    def replace(self, policies: dict[str, NamedPolicy]) -> None:
        """Sort by other policies from now on."""
        self.policies = policies
        for order in self._common:
            order.dissolve()
        self._orders.clear()
        self._common.clear()
        self._only = None
