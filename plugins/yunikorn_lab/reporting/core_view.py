"""Read-only access of recorders to the core of a simulation, which becomes known later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.application import Application
from yunikorn.resources import NOTHING, Resource, Tally, grow
from yunikorn.scheduling.partition_scheduler import PartitionScheduler


@attrs.frozen
class QueueQuota:
    """Guarantee of a queue and its own maximum; types missing from the maximum are unlimited."""

    guaranteed: Resource = NOTHING
    max: Resource = NOTHING


class PartitionWaits:
    """The reasons for which requests of a partition wait at this moment, as far as its core knows them."""

    def __init__(self, at: PartitionScheduler) -> None:
        self._at = at

    def changed_reservations(self) -> Iterator[tuple[str, set[Resource]]]:
        """Yield nodes whose reservations changed since the last call, with the sizes of their requests.

        The first call yields all nodes with a reservation.
        """
        node_reservations = self._at.partition.accounting.node_reservations
        changed = node_reservations.nodes if node_reservations.log is None else node_reservations.log
        node_reservations.log = {}
        for node in changed:
            yield node.id, {ask.resource for ask in node.reservations}

    def held_placements(self) -> Tally:
        """Return the amounts of placements that permit policies hold."""
        total: Tally = {}
        for hold in self._at.partition.held_placements if len(self._at.partition.held_placements) else ():
            for allocation in hold.members:
                grow(total, allocation.resource)
        return total

    @property
    def has_backpressure(self) -> bool:
        """True if an overdue gang keeps all requests after it from being tried."""
        return self._at.cycle.has_backpressure

    @property
    def excludes_applications(self) -> bool:
        """True if a policy keeps applications from being scheduled, or has not decided yet."""
        at = self._at
        return bool(len(at.held_applications) or len(at.submitted) or at.cycle.is_excluding)

    def excluded(self, applications: Iterable[str]) -> Iterator[str]:
        """Yield those of the applications that a policy keeps from being scheduled."""
        for name in applications:
            app = self._at.partition.applications.get(name)
            if name in self._at.submitted or (app is not None and (app.held is not None or not app.admitted)):
                yield name

    def sizes_refused_by_predicates(self) -> set[Resource]:
        """Return the sizes of waiting requests for which predicates refused a node with room."""
        at, found = self._at, set[Resource]()
        if not at.policies.predicates:
            return found
        for ask_class in at.partition.ask_classes.unschedulable.values():
            if ask_class.refusals and ask_class.waiting:
                found.add(ask_class.resource)
        return found | at.cycle.unschedulable_queue.waiting_sizes()


class CoreView:
    """The part of a core's state that the figures of a simulation need; looking changes no decision."""

    def __init__(self) -> None:
        self._core: Scheduler | None = None

    def meet(self, core: Scheduler) -> None:
        """Set the core."""
        self._core = core

    def partition(self, name: str) -> PartitionWaits | None:
        """Return the state of a partition; None if the core has no such partition (any more)."""
        at = self._at(name)
        return None if at is None else PartitionWaits(at)

    def _at(self, partition: str) -> PartitionScheduler | None:
        known = self._core.all_partitions() if self._core is not None else []
        return next((at for _, at in known if at.name == partition), None)

    def application(self, partition: str, application: str) -> Application | None:
        """Return an application of the core; None if the core has no such application (any more)."""
        at = self._at(partition)
        return None if at is None else at.partition.applications.get(application)

    def domains_of(self, partition: str, node: str) -> tuple[tuple[str, str], ...]:
        """Return level and path of the domains of a node, the outermost first; none if the core lacks it."""
        at = self._at(partition)
        found = at.partition.nodes.get(node) if at is not None else None
        if at is None or found is None:
            return ()
        return tuple(
            [
                (tree.levels[domain.level], domain.path)
                for tree in at.policies.topology.trees
                for domain in reversed([*tree.domain_of[found].chain][:-1])
                if domain.name
            ]
        )

    def queue_of(self, partition: str, application: str) -> str:
        """Return the queue of an application; empty if the core has no such application (any more)."""
        found = self.application(partition, application)
        return found.chain[0].path if found is not None and found.chain else ""

    def quota(self, partition: str, queue: str) -> QueueQuota:
        """Return the quota of a queue; empty if the core has no such queue (any more)."""
        at = self._at(partition)
        found = at.partition.queues.queue(queue) if at is not None else None
        if found is None or found.parent is None:
            return QueueQuota()
        return QueueQuota(found.guaranteed, found.max or NOTHING)
