"""Which nodes are kept for which requests: the book of reservations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from yunikorn.objects.ask import Ask
    from yunikorn.objects.ask_class import AskClass
    from yunikorn.objects.event_recorder import EventRecorder
    from yunikorn.objects.node import Node


class ReservationWatcher(Protocol):
    """Somebody who is told what is kept."""

    def reserved(self, ask: Ask, node: Node) -> None:
        """A node is kept for a request."""
        ...

    def unreserved(self, ask: Ask) -> None:
        """No node is kept for a request any more, and it still waits."""
        ...


class NodeChange(Protocol):
    """How the accounting takes note of a node."""

    def __call__(self, node: Node, *, gained: bool) -> None:
        """A node's room or state changed."""
        ...


class NodeReservations:
    """The reservations of one partition, and what they leave to be done."""

    def __init__(self, event_recorder: EventRecorder, changed: NodeChange) -> None:
        self._event_recorder = event_recorder
        self._changed = changed
        self.watcher: ReservationWatcher | None = None
        """Wants to know what is kept, if anybody does."""
        self.inheritable: dict[Ask, None] = {}
        """Asks that are served or gone, whose node is still kept: for the next of their ask class."""
        self.lost: dict[AskClass, None] = {}
        """Ask classes whose request lost the node that was kept for it, and still waits."""
        self.changed_hosts: dict[Node, None] = {}
        """Nodes that came, or could host something else than before: they may be kept for a request."""
        self.capacity_version = 0
        """Counts what changed what the nodes could host if nothing ran on them."""

    def reserve(self, ask: Ask, node: Node) -> None:
        """Keep `node` for `ask` alone."""
        ask.ensure_extras().reserved = node
        ask.ask_class.reserving_ask = ask
        if self.watcher is not None:
            self.watcher.reserved(ask, node)
        node.reservations[ask] = None
        self.inheritable.pop(ask, None)
        # It may have room already: kept for another it was hidden from `ask`, or a quota was in the way.
        self._changed(node, gained=ask.ask_class.fits(node))
        self._event_recorder.record("NODE", node.id, ask.key, change="ADD", detail="NODE_RESERVATION")

    def transfer(self, holder: Ask, ask: Ask) -> None:
        """The node that was kept for `holder` is kept for `ask` of the same ask class."""
        node = holder.reserved
        if node is not None:
            self._forget_reservation(holder, node)
            self.reserve(ask, node)

    def unreserve(self, ask: Ask) -> None:
        """The node that is kept for `ask` is free for all again; harmless when there is none."""
        node = ask.reserved
        if node is not None:
            self._forget_reservation(ask, node)
            self._changed(node, gained=True)
            if ask.pending:
                self.lost[ask.ask_class] = None
                if self.watcher is not None:
                    self.watcher.unreserved(ask)

    def _forget_reservation(self, ask: Ask, node: Node) -> None:
        ask.ensure_extras().reserved = None
        if ask.ask_class.reserving_ask is ask:
            ask.ask_class.reserving_ask = None
        del node.reservations[ask]
        self.inheritable.pop(ask, None)
        self._event_recorder.record("NODE", node.id, ask.key, change="REMOVE", detail="NODE_RESERVATION")

    def capacity_changed(self, node: Node) -> None:
        """A node came, or what it could host if nothing ran on it has changed."""
        self.capacity_version += 1
        self.changed_hosts[node] = None
        for ask in [ask for ask in node.reservations if not node.could_host(ask.ask_class.pairs)]:
            self.unreserve(ask)
