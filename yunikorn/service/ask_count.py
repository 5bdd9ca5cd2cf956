"""Number of asks of one RM in the core: pending asks, and asks with allocations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from yunikorn.interface.messages import Allocation, AllocationAsk, UpdateRequest
from yunikorn.interface.scheduler import Scheduler
from yunikorn.model import allocation as objects
from yunikorn.model.application import Application
from yunikorn.model.ask import Ask
from yunikorn.scheduling.ask_admission import asks_of
from yunikorn.scheduling.existing_allocations import FOREIGN_TAG
from yunikorn.scheduling.partition_scheduler import PartitionScheduler, ended_by


class AskCount:
    """Exact number of asks in the core after the removals and recoveries of an update.

    An allocation without an ask (recovered, placed by the RM, or with a released ask) counts as one. The core
    applies removals of applications before asks and releases after asks: both reduce the number for the asks
    of the update.
    """

    def __init__(self, core: Scheduler, update: UpdateRequest) -> None:
        self._core = core
        self._rm_id = update.rm_id
        self._removed = set(removed_applications(core, update))
        self._ended: set[objects.Allocation] = set()
        self._ended_of: Counter[Ask] = Counter()
        """Number of ending allocations per ask."""
        self._dropped: set[Ask] = set()
        self._owners: dict[tuple[str, str], Iterator[Application]] = {}
        """Applications with an ask of a key, by partition and key; a release advances the iterator."""
        self._open: dict[tuple[str, str, str], int] = {}
        """Number of replicas per ask that the RM may still place itself in this update."""
        self._note_releases(update)
        self._ended_of.update(one.ask for one in self._ended if one.ask is not None)
        self.total = existing_in(update)
        for at in core.partitions(self._rm_id):
            self.total += len(at.existing.awaited)
            self.total += sum(map(self._count, at.partition.applications.values()))

    def _note_releases(self, update: UpdateRequest) -> None:
        for gone in update.releases.allocation_asks_to_release:
            at = self._core_partition(gone.partition_name)
            app = self._owner(at, gone.application_id, gone.allocation_key)
            if app is not None:
                self._dropped.update(asks_of(app, gone.allocation_key))
        for end in update.releases.allocations_to_release:
            owner = self._application(end.partition_name, end.application_id)
            if owner is not None:
                found, asks = ended_by(owner, end.uuid, end.allocation_key, end.termination_type)
                self._ended.update(found)
                self._dropped.update(asks)

    def _owner(self, at: PartitionScheduler | None, app_id: str, key: str) -> Application | None:
        """Return the application whose asks a release drops; without an id, the first with such an ask."""
        if at is None:
            return None
        if app_id:
            return at.partition.applications.get(app_id)
        # No release matches an application that an earlier release passed over, so iterators never restart.
        owners = self._owners.get((at.name, key))
        if owners is None:
            owners = self._owners[at.name, key] = iter(at.asks.index.find_all(key) if key else ())
        left = (app for app in owners if app not in self._removed and app.asks[key] not in self._dropped)
        return next(left, None)

    def _count(self, app: Application) -> int:
        if app in self._removed:
            return 0
        without = sum(self._has_no_ask(app, one) for one in app.allocations.values())
        if not (self._dropped or self._ended):
            return len(app.asks) + without
        return sum(not self._is_gone(ask) for ask in app.asks.values()) + without

    def _has_no_ask(self, app: Application, one: objects.Allocation) -> bool:
        if one in self._ended:
            return False
        ask = one.ask
        return ask is None or ask in self._dropped or app.asks.get(one.key) is not ask

    def _is_gone(self, ask: Ask) -> bool:
        """Return True if the releases end this ask."""
        if ask in self._dropped:
            return True
        return not ask.pending and bool(self._ended) and ask.live == self._ended_of[ask]

    def _core_partition(self, name: str) -> PartitionScheduler | None:
        return self._core.partition(self._rm_id, name)

    def _application(self, partition: str, app_id: str) -> Application | None:
        """Return the application with this id, unless the update removes the application."""
        at = self._core_partition(partition)
        app = None if at is None else at.partition.applications.get(app_id)
        return None if app in self._removed else app

    # -- entries --------------------------------------------------------------------------------------

    def adds(self, one: AllocationAsk | Allocation) -> bool:
        """Return True if this entry adds an ask or an allocation without an ask."""
        if isinstance(one, Allocation):
            if FOREIGN_TAG in one.allocation_tags:
                return False
            if self._resizes(one):
                return False
            if one.node_id:
                return not self._takes_place(one)
        app = self._application(one.partition_name, one.application_id or one.allocation_key)
        ask = None if app is None else app.asks.get(one.allocation_key)
        return ask is None or self._is_gone(ask)

    def add(self, one: AllocationAsk | Allocation) -> None:
        """Count an entry for which `adds` returned True."""
        self.total += 1
        if isinstance(one, AllocationAsk):
            self._open[self._name(one)] = one.max_allocations

    def _resizes(self, one: Allocation) -> bool:
        app = self._application(one.partition_name, one.application_id)
        if app is None:
            return False
        if one.uuid and one.node_id:
            known = app.allocations.get(one.uuid)
            return known is not None and known not in self._ended
        return any(there not in self._ended for there in app.of_key(one.allocation_key))

    def _takes_place(self, one: Allocation) -> bool:
        """Return True if an allocation takes the place of a pending replica; each replica is taken once."""
        name = self._name(one)
        if name not in self._open:
            app = self._application(one.partition_name, one.application_id)
            ask = None if app is None else app.asks.get(one.allocation_key)
            self._open[name] = 0 if ask is None or self._is_gone(ask) else ask.pending
        self._open[name] -= 1
        return self._open[name] >= 0

    def _name(self, one: AllocationAsk | Allocation) -> tuple[str, str, str]:
        return (one.partition_name, one.application_id, one.allocation_key)


def existing_in(update: UpdateRequest) -> int:
    """Return the number of allocations on the new nodes of an update, without foreign ones."""
    existing = (one for node in update.new_schedulable_nodes for one in node.existing_allocations)
    return sum(FOREIGN_TAG not in one.allocation_tags for one in existing)


def removed_applications(core: Scheduler, update: UpdateRequest) -> Iterator[Application]:
    """Yield the applications of the core that an update removes, each once."""
    seen: set[Application] = set()
    for gone in update.remove_applications:
        at = core.partition(update.rm_id, gone.partition_name)
        app = None if at is None else at.partition.applications.get(gone.application_id)
        if app is not None and app not in seen:
            seen.add(app)
            yield app
