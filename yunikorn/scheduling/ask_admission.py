"""Admission of asks in a partition: adds, changes and drops requests as the RM reports them.

Most asks of a large application arrive together and are alike. They are a batch: created one by one, booked
on the application and its queues once, and their classes are found once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from yunikorn.accounting.key_indexes import AskIndex
from yunikorn.model.allocation import TerminationType, is_own
from yunikorn.model.ask import DEFAULT_SPEC, REQUIRED_NODE_TAG, Ask, AskSpec
from yunikorn.model.ask_class import NO_NODES
from yunikorn.model.creation_times import created_at
from yunikorn.resources import INT32_MAX, INT32_MIN, Resource, fits
from yunikorn.states import ACCEPTED, ASK, FAILING, RUNNING, STARTING

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.application import Application
    from yunikorn.model.ask_class import AskClass, PendingClass
    from yunikorn.model.gang import AtomicGang
    from yunikorn.scheduling.application_admission import MaxAppsEvents
    from yunikorn.scheduling.ask_order import AskOrder
    from yunikorn.scheduling.preemption.preemption import Preemption
    from yunikorn.scheduling.topology.gang_planner import GangPlanner

AS_REQUESTED = "ask released as per RM request"
TAKING = frozenset({ACCEPTED, STARTING, RUNNING})
"""Application states that a new ask does not change."""
_PENDING = ASK.moves["Initial", "ask"]


class AskBatch:
    """New asks of one application that are not accounted for until `AskAdmission.flush`."""

    __slots__ = (
        "amounts",
        "app",
        "app_id",
        "asks",
        "is_plain",
        "now",
        "pending_class",
        "placeholders",
        "resource",
    )

    def __init__(self, app: Application, now: int, *, placeholders: bool) -> None:
        self.app = app
        self.app_id = app.id
        self.now = now
        self.placeholders = placeholders
        """True if the asks are placeholders: these may block other asks, once those are accounted for."""
        self.asks: list[Ask] = []
        self.is_plain = True
        """True while no ask has options of its own; all asks were then created now."""
        self.resource: Resource | None = None
        """Amount of the previous ask; most consecutive asks of an application have the same."""
        self.pending_class: PendingClass | None = None
        """Pending class of every ask with this amount; None if none is known, or if it depends on more."""
        self.amounts: dict[int, tuple[Resource, PendingClass | None]] = {}
        """Checked amounts by identity, which this keeps alive, each with its `pending_class`."""

    def look_up(self, resource: Resource) -> str:
        """Make `resource` the amount of the next ask; return why no ask can have it, or an empty text."""
        if resource == self.resource:
            return ""
        known = self.amounts.get(id(resource))
        if known is None:
            if not any(resource.values()):
                return "ask contains no resources"
            if min(resource.values()) < 0:
                return "ask contains negative resources"
            known = self.amounts[id(resource)] = (resource, None)
        self.resource, self.pending_class = known
        return ""


class AskAdmission:
    """Admission of the asks of one partition.

    Consecutive new asks of an application are a batch, which `flush` accounts for. Whatever else concerns the
    partition comes after `flush`.
    """

    def __init__(
        self,
        partition: Partition,
        planner: GangPlanner,
        preemption: Preemption,
        max_apps_events: MaxAppsEvents,
    ) -> None:
        self._partition = partition
        self._planner, self._orders = planner, planner.orders
        partition.changes.readers.gang_finished.append(self._classify_waiting)
        partition.changes.readers.gang_restarted.append(self._classify_waiting)
        self._preemption = preemption
        self._max_apps_events = max_apps_events
        self._batch: AskBatch | None = None
        """New asks of one application since the last `flush`."""
        self.priorities_are_final = False
        """True if `add` gets priorities in which those of applications are included already."""

    def add(
        self,
        app_id: str,
        key: str,
        resource: Resource,
        count: int,
        priority: int,
        spec: AskSpec = DEFAULT_SPEC,
    ) -> None:
        """Add an ask, or change the existing ask with the same key; reject an invalid one with a reason."""
        batch = self._batch
        if batch is None or batch.app_id != app_id or spec.placeholder is not batch.placeholders:
            if batch is not None:
                self.flush()
            if reason := self._open(app_id, placeholders=spec.placeholder):
                self._reject(app_id, key, reason)
                return
            batch = self._batch
            assert batch is not None
        app, reason = batch.app, "" if resource is batch.resource else batch.look_up(resource)
        in_range = count > 0 and (not priority or INT32_MIN < priority <= INT32_MAX)
        if reason or not in_range or spec.placeholder:
            reason = _placeholder_refusal(app, spec) or reason or _number_refusal(count, priority)
            if reason:
                self._reject(app_id, key, reason)
                return
            if not spec.task_group:
                spec = spec.without_placeholder()
        asks = app.asks
        if key in asks:
            self.flush()
            self._change(asks[key], resource, count, priority, spec)
            return
        created, pending_class = batch.now, batch.pending_class
        if spec is not DEFAULT_SPEC:
            batch.is_plain = False
            if spec.tags:
                created = created_at(spec.tags, created)
                if REQUIRED_NODE_TAG in spec.tags:
                    pending_class = None
        partition = self._partition
        partition.arrivals = arrival = partition.arrivals + 1
        ask = Ask(key, app, resource, count, priority, created, arrival, spec)
        if pending_class is None:
            pending_class = self._class_of_new(ask, batch)
        ask.pending_class = pending_class
        if resource is not pending_class.ask_class.resource:
            ask.share_amount()
        ask.state = _PENDING
        if pending_class.asks:
            pending_class.asks += 1
        else:
            partition.pending_classes.wait(pending_class)
        asks[key] = ask
        batch.asks.append(ask)
        if app.state not in TAKING:
            self.flush()

    def _class_of_new(self, ask: Ask, batch: AskBatch) -> PendingClass:
        """Return the pending class of a new ask; others with the same amount use it, too, if they can."""
        app = batch.app
        if self._planner.topology.trees or app.topology is not None or app.atomic is not None:
            return self.pending_class_of(ask)
        ask_class = self._unrestricted_class(ask)
        pending_class = self._partition.pending_classes.of(ask_class, app.limit_trackers)
        if self._orders.by_resources and not ask_class.searched_apart:
            batch.pending_class = pending_class
            batch.amounts[id(ask.resource)] = ask.resource, pending_class
        return pending_class

    def is_allocated(self, app_id: str, key: str) -> bool:
        """Return True if the request with this key has allocations that the RM is informed of."""
        app = self._partition.applications.get(app_id)
        return app is not None and any([one.hold is None for one in app.of_key(key)])

    def _open(self, app_id: str, *, placeholders: bool) -> str:
        """Open a batch for asks of an application; return why the application accepts none."""
        if reason := self._partition.closed_to("requests"):
            return reason
        app = self._partition.applications.get(app_id)
        if app is None:
            return f"failed to find application {app_id}"
        if app.state == FAILING:
            return f"application {app_id} is failing and accepts no new requests"
        self._batch = AskBatch(app, self._partition.clock.now(), placeholders=placeholders)
        return ""

    def _reject(self, app_id: str, key: str, reason: str) -> None:
        self.flush()
        self._partition.changes.ask_rejected(key, reason, app_id)

    def flush(self) -> None:
        """Account for the new asks."""
        batch, self._batch = self._batch, None
        if batch is None or not batch.asks:
            return
        app, asks = batch.app, batch.asks
        if app.ask_priority is not None and not self.priorities_are_final:
            for ask in asks:
                ask.priority = app.ask_priority
        order: AskOrder | None = app.chain[0].order.ask_order
        if order is not None:
            order.set_keys(asks)
        self._partition.accounting.pending_accounting.add_all(app, asks, plain=batch.is_plain)
        if app.not_started and self._partition.changes.events.wants_waiting:
            self._max_apps_events.watch(app)
        if batch.is_plain:
            self._preemption.notice(asks[0])
        else:
            self._announce(asks)

    def _announce(self, asks: Sequence[Ask]) -> None:
        """Announce new asks of one application to preemption: the earliest, and those that require a node."""
        earliest: Ask | None = None
        for ask in asks:
            if ask.spec is DEFAULT_SPEC:
                if earliest is None or ask.created < earliest.created:
                    earliest = ask
            elif ask.ask_class.required:
                self._preemption.notice(ask)
            elif ask.may_preempt and (earliest is None or ask.created < earliest.created):
                earliest = ask
        if earliest is not None:
            self._preemption.notice(earliest)

    def _classify_waiting(self, gang: AtomicGang) -> None:
        """Restrict the remaining asks of a gang to the domain in which its members are, or no more."""
        for ask in gang.asks:
            self.reclassify(ask)

    def reclassify(self, ask: Ask) -> bool:
        """Move a pending ask to the pending class that it has now; return False if it is there already."""
        if not ask.pending or (pending_class := self.pending_class_of(ask)) is ask.pending_class:
            return False
        self._partition.accounting.pending_accounting.reshape(ask, pending_class)
        return True

    def classify(self, ask: Ask) -> None:
        """Compute the sort key and the pending class of an ask of which no replica is pending."""
        order: AskOrder | None = ask.app.chain[0].order.ask_order
        if order is not None:
            ask.sort_key = order.key_of(ask)
        ask.pending_class = self.pending_class_of(ask)
        ask.share_amount()

    def pending_class_of(self, ask: Ask) -> PendingClass:
        """Return the pending class that an ask has now: of its own if its gang needs no more members."""
        app, gang = ask.app, ask.app.atomic
        growth = gang is not None and gang.done and ask.task_group != "" and fits(app.allocated, gang.total)
        if growth:
            # The cycle looks for gangs that precede requests with extras.
            ask.ensure_extras()
        return self._partition.pending_classes.of(self.class_of_known(ask), app.limit_trackers, growth=growth)

    def class_of_known(self, ask: Ask) -> AskClass:
        """Return the equivalence class of an ask that may have failed to start on some nodes."""
        ask_class, failed = self._unrestricted_class(ask), ask.failed_starts
        avoids = NO_NODES
        if failed is not None and not ask_class.required:
            failed.review(self._partition.clock.now())
            avoids = failed.nodes if failed.avoided else NO_NODES
        home = None if ask.app.topology is None else self._planner.home_of(ask)
        # By its number of bits: a class for each limit would make each change of a node expensive.
        lasts = ask.spec.execution_timeout.bit_length() if self._planner.topology.trees else 0
        return self._partition.ask_classes.restricted(ask_class, avoids, home, lasts)

    def _unrestricted_class(self, ask: Ask) -> AskClass:
        """Return the equivalence class of the ask with respect to nodes, given the policies in use."""
        orders, node_order = self._orders, ask.app.node_order
        tags = ask.spec.tags
        required = tags.get(REQUIRED_NODE_TAG, "") if tags else ""
        if orders.by_resources:
            return self._partition.ask_classes.of(ask.resource, node_order, required)
        chain = orders.chain
        classes = chain.predicate_classes(ask) if chain is not None else ()
        named = orders.policies[node_order]
        value = named.value_of(ask) if named.declares and not required else None
        return self._partition.ask_classes.of(ask.resource, node_order, required, classes, value=value)

    def _change(self, ask: Ask, resource: Resource, count: int, priority: int, spec: AskSpec) -> None:
        if reason := _other_part(ask, spec):
            self._partition.changes.ask_rejected(ask.key, reason, ask.app.id)
            return
        if ask.app.ask_priority is not None and not self.priorities_are_final:
            priority = ask.app.ask_priority
        accounting, counted = self._partition.accounting, ask.app.counted_by_limits
        self._partition.ask_changes += 1
        # The RM counts a request that permit policies hold as pending.
        self._partition.held_placements.take_back_of(ask.app, ask.key)
        same = (ask.resource, ask.priority, ask.tags) == (resource, priority, spec.tags)
        ask.spec = spec
        order: AskOrder | None = ask.app.chain[0].order.ask_order
        if same and (order is None or order.key_of(ask) == ask.sort_key):
            if not ask.pending:
                # While no replica was pending, the ask class may have been dropped, or the limits may have
                # changed.
                accounting.node_reservations.unreserve(ask)
                self.classify(ask)
        else:
            # The reservation and the victims were chosen for the previous resources and priority.
            accounting.node_reservations.unreserve(ask)
            if ask.extras is not None:
                ask.extras.eviction = None
            accounting.pending_accounting.change_pending(ask, 0)
            ask.resource, ask.priority = resource, priority
            self.classify(ask)
        accounting.pending_accounting.change_pending(ask, count)
        if counted:
            accounting.usage.resume(ask.app)
        self._preemption.notice(ask)

    def release(self, app_id: str, key: str, termination: TerminationType, message: str = "") -> None:
        """Drop the ask with this key, or without a key all asks of the application; `app_id` is optional.

        Each dropped ask is confirmed, with the RM's message if given. Unknown asks are answered and counted
        (see `Partition.unknown_releases`).
        """
        partition, found = self._partition, self._owners(app_id, key)
        if not found or (key and key not in found[0].asks):
            partition.answer_unknown_ask_release(app_id, key, confirmed=not is_own(termination))
            return
        message = message or AS_REQUESTED
        partition.ask_changes += 1
        partition.held_placements.take_back_of(found[0], key)
        for ask in asks_of(found[0], key):
            partition.changes.ask_released(ask.app.id, ask.key, termination, message)
            partition.accounting.pending_accounting.drop(ask, termination, message)

    def _owners(self, app_id: str, key: str) -> list[Application]:
        app = self._partition.applications.get(app_id) if app_id else self.index.find(key)
        return [app] if app is not None else []

    @property
    def index(self) -> AskIndex:
        """Index from ask key to applications; created on first use and kept up to date from then on."""
        pending_accounting = self._partition.accounting.pending_accounting
        if pending_accounting.index is None:
            pending_accounting.index = AskIndex(self._partition.applications)
        return pending_accounting.index


def _placeholder_refusal(app: Application, spec: AskSpec) -> str:
    if spec.placeholder and app.atomic is not None:
        return f"application {app.id} is an atomic gang and accepts no placeholders"
    return ""


def _number_refusal(count: int, priority: int) -> str:
    if count < 1:
        return f"maxAllocations is {count}, it must be 1 or more"
    return "" if INT32_MIN < priority <= INT32_MAX else f"priority {priority} is out of range"


def _other_part(ask: Ask, spec: AskSpec) -> str:
    """Return why `spec` cannot replace that of an ask: the role in the application's gang differs."""
    if (ask.task_group, ask.placeholder) == (spec.task_group, spec.placeholder):
        return ""
    if not ask.task_group:
        part = "in no task group"
    else:
        part = f"{'a placeholder' if ask.placeholder else 'a real task'} of task group '{ask.task_group}'"
    return f"ask {ask.key} is {part}, which cannot be changed: release the ask and submit a new one"


def asks_of(app: Application, key: str) -> list[Ask]:
    """Return the ask with this key as a list, empty if unknown; without a key all asks of the application."""
    if not key:
        return list(app.asks.values())
    ask = app.asks.get(key)
    return [] if ask is None else [ask]


def ended_by(
    app: Application, uuid: str, key: str, termination: TerminationType
) -> tuple[list[Allocation], list[Ask]]:
    """Return the allocations and asks that a release by the RM ends."""
    replaced = termination == TerminationType.PLACEHOLDER_REPLACED
    if uuid:
        one = app.allocations.get(uuid)
        if one is None or one.hold is not None or (replaced and one.releasing != termination):
            return [], []
        return [one], []
    found = app.of_key(key) if key else list(app.allocations.values())
    ending = [one for one in found if one.releasing == termination]
    if replaced or ending:
        # A confirmation by key applies only to allocations that the core asked the RM to end.
        return ending, []
    if termination in (TerminationType.TIMEOUT, TerminationType.SCHEDULING_FAILED_ON_RM):
        return [one for one in found if one.hold is None], []
    return found, asks_of(app, key)
