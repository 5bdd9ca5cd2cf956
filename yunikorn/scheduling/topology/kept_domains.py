"""Reservation of the nodes of a domain for a gang, while what runs there ends.

Each node has a reservation of its own, whose holder stands for the members that will be placed there. It is
no request: when the node has room for its members, the gang is tried. Work that ends before the gang can
start may use the nodes meanwhile.

An application that has domains alone owns all nodes there while its members run. The owner is among the
reservations of each node, so that other requests pay nothing: a reserved node is closed to them.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from yunikorn.clock import SECOND
from yunikorn.config.durations import describe_duration
from yunikorn.model.ask import DEFAULT_SPEC, Ask, NodeOwner
from yunikorn.resources import NOTHING, Resource, Tally, grow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from yunikorn.accounting.partition import Partition
    from yunikorn.clock import Timer
    from yunikorn.model.allocation import Allocation, Eviction
    from yunikorn.model.application import Application
    from yunikorn.model.gang import AtomicGang
    from yunikorn.model.node import Node
    from yunikorn.scheduling.topology.gang_home import TopologyHolder

GRACE = 30 * SECOND
"""Time for which the nodes are kept if a gang is not whole any more, for a request that replaces a member."""
MOST_SHARE = 10
"""Share of the nodes (%) that are kept for gangs, from which on no further domain is."""


class KeptDomain:
    """Nodes that are kept for a gang."""

    __slots__ = ("drains", "gang", "holders", "label", "start", "timer")

    def __init__(self, gang: AtomicGang, label: str, start: int | None, *, drains: bool) -> None:
        self.gang = gang
        self.label = label
        """Name of the domain in messages."""
        self.start = start
        """Time at which the last of the work there ends (ns); None if that is not known."""
        self.drains = drains
        """True if the work ends by itself; False if it was preempted."""
        self.holders: list[Ask] = []
        self.timer: Timer | None = None

    @property
    def nodes(self) -> list[Node]:
        """Nodes that are still kept."""
        return [one.reserved for one in self.holders if one.reserved is not None]

    def text(self, now: int) -> str:
        """Return what the gang waits for."""
        left = "" if self.start is None else f", in at most {describe_duration(max(self.start - now, 0))}"
        return f"{self.label} is kept free for it while work there ends{left}"


class KeptDomains:
    """The nodes of one partition that are kept for gangs."""

    def __init__(
        self, partition: Partition, planner: TopologyHolder, lapsed: Callable[[AtomicGang], None]
    ) -> None:
        """Create without reservations; `lapsed` is called with a gang whose time is over, or has come."""
        self._partition, self._planner, self._lapsed = partition, planner, lapsed
        self.owners: dict[str, NodeOwner] = {}
        """Owners of nodes by id of the application."""
        self._nodes = partition.accounting.node_reservations
        self.by_gang: dict[AtomicGang, KeptDomain] = {}
        self.queue: dict[AtomicGang, None] = {}
        """Gangs that wait until others need fewer nodes (an ordered set)."""
        readers = partition.changes.readers
        readers.gang_finished.append(self.release)
        readers.gang_left.append(self._left)
        readers.reservation_ended.append(self._lost)
        readers.home_changed.append(self._moved)

    def of(self, gang: AtomicGang) -> KeptDomain | None:
        """Return the reservation for a gang."""
        return self.by_gang.get(gang)

    @property
    def is_full(self) -> bool:
        """True if no further domain may be kept."""
        kept = sum(len(one.holders) for one in self.by_gang.values())
        return kept * 100 >= len(self._partition.nodes) * MOST_SHARE

    def keep(
        self,
        gang: AtomicGang,
        plan: Sequence[tuple[Ask, Node]],
        label: str,
        start: int | None,
        eviction: Eviction | None = None,
    ) -> None:
        """Keep the nodes of a plan for a gang alone, for which `eviction` may make room there."""
        self.release(gang)
        kept = self.by_gang[gang] = KeptDomain(gang, label, start, drains=eviction is None)
        amounts: dict[Node, Tally] = {}
        for ask, node in plan:
            grow(amounts.setdefault(node, {}), ask.resource)
            domain = self._planner.topology.above(node, gang.app.alone(ask.task_group))
            if domain is not None and gang.app.id not in self.owners:
                # Nothing will run on its other nodes, but others must not use them either.
                amounts = {other: {} for other in domain.nodes} | amounts
        for node, amount in amounts.items():
            for other in list(node.reservations):
                self._nodes.unreserve(other)
            kept.holders.append(self._holder(gang, Resource(amount), eviction))
            self._nodes.reserve(kept.holders[-1], node)
        patience = self._partition.timeouts.gang_patience
        kept.timer = self._partition.timers.after(patience, lambda: self._expire(gang))

    def _holder(self, gang: AtomicGang, amount: Resource, eviction: Eviction | None) -> Ask:
        app, classes = gang.app, self._partition.pending_classes
        first = gang.members[0][0]
        holder = Ask(
            f"gang of {app.id}", app, amount, 0, first.priority, first.created, first.arrival, DEFAULT_SPEC
        )
        ask_class = classes.ask_classes.of(amount, classes=("kept", app.id))
        holder.pending_class = classes.of(ask_class, app.limit_trackers)
        extras = holder.ensure_extras()
        extras.gang, extras.eviction = gang, eviction
        return holder

    def release(self, gang: AtomicGang) -> None:
        """End the reservation for a gang, if there is one."""
        self.queue.pop(gang, None)
        kept = self.by_gang.pop(gang, None)
        if kept is None:
            return
        if kept.timer is not None:
            kept.timer.cancel()
        for holder in kept.holders:
            self._nodes.unreserve(holder)
        waiting = [one for one in self.queue if one.request is not None]
        if waiting and not self.is_full:
            del self.queue[waiting[0]]
            self._lapsed(waiting[0])

    def _expire(self, gang: AtomicGang) -> None:
        self.release(gang)
        if gang.request is not None:
            self._lapsed(gang)

    def _lost(self, holder: Ask) -> None:
        """Choose again for a gang whose last node was lost."""
        kept = None if holder.gang is None else self.of(holder.gang)
        if kept is not None and kept.drains and holder in kept.holders and not kept.nodes:
            self._expire(kept.gang)

    def _left(self, gang: AtomicGang) -> None:
        """Give a gang that lost members some time to be whole again."""
        kept = self.of(gang)
        self.queue.pop(gang, None)
        if not gang.app.asks:
            self.release(gang)
        elif kept is not None:
            self._partition.timers.after(GRACE, lambda: self._end_abandoned(kept))

    def _end_abandoned(self, kept: KeptDomain) -> None:
        if self.of(kept.gang) is kept and kept.gang.request is None:
            self.release(kept.gang)

    @contextmanager
    def lifted(self, gang: AtomicGang, others: Iterable[Ask] = ()) -> Iterator[list[Node]]:
        """Open the nodes that are kept for a gang while it is tried; yields all nodes if some are lost.

        Reservations of `others` are ignored meanwhile, too.
        """
        kept = self.of(gang)
        holders = [] if kept is None else [one for one in kept.holders if one.reserved is not None]
        nodes = [one.reserved for one in holders if one.reserved is not None]
        opened = [(one, one.reserved) for one in (*holders, *others) if one.reserved is not None]
        if (owner := self.owners.get(gang.app.id)) is not None:
            opened += [(owner, node) for node in owner.nodes]
        for holder, node in opened:
            del node.reservations[holder]
            if not node.reservations:
                del self._nodes.nodes[node]
        try:
            lost = kept is not None and len(nodes) < len(kept.holders)
            yield list(self._partition.nodes.values()) if lost else nodes
        finally:
            for holder, node in opened:
                node.reservations[holder] = None
                self._nodes.nodes[node] = None

    def lendable(self, until: int) -> Iterator[Node]:
        """Yield the nodes that work which ends by `until` (ns) may use."""
        for kept in self.by_gang.values():
            if kept.start is not None and until <= kept.start:
                yield from kept.nodes

    # -- domains that are alone -----------------------------------------------------------------------

    def _moved(self, one: Allocation) -> None:
        """Follow a task that is on its node now, or has left it."""
        app, owner = one.app, self.owners.get(one.app.id)
        domain = self._planner.topology.above(one.node, app.alone(one.task_group))
        if domain is not None:
            there = (other for node in domain.nodes for other in node.allocations.values())
            runs = any(other.app is app and app.alone(other.task_group) for other in there)
            if runs != (owner is not None and one.node in owner.nodes):
                self.settle(app)

    def joined(self, node: Node) -> None:
        """Follow a node that has joined, left or changed its domains."""
        apps = {one.app: None for one in node.owners} | {one.app: None for one in node.allocations.values()}
        for tree in self._planner.topology.trees if self.owners else ():
            for domain in tree.domain_of[node].chain if node in tree.domain_of else ():
                # All nodes of a domain have the same owner.
                neighbour = next((one for one in domain.nodes if one is not node), node)
                apps |= {one.app: None for one in neighbour.owners}
        for app in apps:
            self.settle(app)

    def settle(self, app: Application) -> None:
        """Bring the nodes that an application has alone up to date."""
        above, running = self._planner.topology.above, app.allocations.values()
        domains = dict.fromkeys(above(one.node, app.alone(one.task_group)) for one in running)
        wanted = {node: None for domain in domains if domain for node in domain.nodes}
        if wanted and app.id not in self.owners:
            classes = self._partition.pending_classes
            ask_class = classes.ask_classes.of(NOTHING, classes=("owner",))
            self.owners[app.id] = NodeOwner(app, classes.of(ask_class, app.limit_trackers))
        if (owner := self.owners.get(app.id)) is not None:
            for node in [one for one in {**owner.nodes, **wanted} if (one in wanted) != (one in owner.nodes)]:
                self._nodes.own(owner, node, owns=node in wanted)
            if not wanted:
                del self.owners[app.id]
