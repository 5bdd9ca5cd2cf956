"""Reservations: nodes that are held for one request each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from yunikorn.accounting.changes import Changes
    from yunikorn.model.ask import Ask, NodeOwner
    from yunikorn.model.ask_class import AskClass
    from yunikorn.model.node import Node


class NodeChange(Protocol):
    """Callback of the accounting for changes of a node."""

    def __call__(self, node: Node, *, gained: bool) -> None:
        """Record a change of a node's available resources or state."""
        ...


class ReservationAccounting:
    """Reservations of one partition, and the follow-up work for the scheduling layer."""

    def __init__(self, changes: Changes, changed: NodeChange) -> None:
        self._changes = changes
        self._changed = changed
        self.inheritable: dict[Ask, None] = {}
        """Asks that no longer wait but whose reservation the next ask of the same class may inherit."""
        self.lost: dict[AskClass, None] = {}
        """Ask classes whose reserving ask still waits but lost its node."""
        self.nodes: dict[Node, None] = {}
        """Nodes with a reservation."""
        self.log: dict[Node, None] | None = None
        """Nodes whose reservations changed, for an observer that empties it; None if nothing observes."""
        self.changed_hosts: dict[Node, None] = {}
        """Nodes that are new or whose capacity for requests changed, so that reserving may make sense now."""
        self.capacity_version = 0
        """Incremented whenever the resources that nodes could offer without allocations change."""

    def reserve(self, ask: Ask, node: Node) -> None:
        """Reserve `node` for `ask`."""
        ask.ensure_extras().reserved = node
        ask.ask_class.reserving_ask = ask
        node.reservations[ask] = None
        self.nodes[node] = None
        if self.log is not None:
            self.log[node] = None
        self.inheritable.pop(ask, None)
        # The node may fit `ask` already, if a reservation for another ask or a quota prevented the placement.
        self._changed(node, gained=ask.ask_class.fits(node))
        self._changes.reserved(ask, node)

    def own(self, owner: NodeOwner, node: Node, *, owns: bool) -> None:
        """Give `node` to `owner` alone, or open it again."""
        if owns:
            owner.nodes[node] = node.reservations[owner] = self.nodes[node] = None
        else:
            del owner.nodes[node], node.reservations[owner]
            if not node.reservations:
                del self.nodes[node]
        self._changed(node, gained=not owns)

    def transfer(self, holder: Ask, ask: Ask) -> None:
        """Transfer the reservation of `holder` to `ask`, which belongs to the same ask class."""
        node = holder.reserved
        if node is not None:
            self._forget_reservation(holder, node)
            self.reserve(ask, node)

    def unreserve(self, ask: Ask) -> None:
        """Cancel the reservation of `ask`, if there is one."""
        node = ask.reserved
        if node is not None:
            self._forget_reservation(ask, node)
            self._changed(node, gained=True)
            if ask.pending:
                self.lost[ask.ask_class] = None
                self._changes.reservation_lost(ask)

    def _forget_reservation(self, ask: Ask, node: Node) -> None:
        ask.ensure_extras().reserved = None
        if ask.ask_class.reserving_ask is ask:
            ask.ask_class.reserving_ask = None
        del node.reservations[ask]
        if not node.reservations:
            del self.nodes[node]
        if self.log is not None:
            self.log[node] = None
        self.inheritable.pop(ask, None)
        self._changes.unreserved(ask, node)

    def capacity_changed(self, node: Node) -> None:
        """Record a new node, or a change of the resources that a node could offer without allocations."""
        self.capacity_version += 1
        self.changed_hosts[node] = None
        for ask in [ask for ask in node.reservations if not node.could_host(ask.ask_class.pairs)]:
            self.unreserve(ask)
