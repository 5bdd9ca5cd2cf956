"""Admission of asks in a partition: adds, changes and drops requests as the RM reports them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from yunikorn.accounting.ask_batch import AskBatch
from yunikorn.accounting.key_indexes import AskIndex
from yunikorn.clock import SECOND
from yunikorn.model.allocation import TerminationType, is_own
from yunikorn.model.ask import DEFAULT_SPEC, INT32_MAX, INT32_MIN, REQUIRED_NODE_TAG, Ask, AskSpec
from yunikorn.model.gang import TIME_DIGITS
from yunikorn.resources import Resource
from yunikorn.states import ACCEPTED, FAILING, RUNNING, STARTING

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.model.application import Application
    from yunikorn.model.ask_class import AskClass
    from yunikorn.scheduling.application_admission import MaxAppsEvents
    from yunikorn.scheduling.node_orders import NodeOrders
    from yunikorn.scheduling.preemption.preemption import Preemption

AS_REQUESTED = "ask released as per RM request"
CREATION_TAG = "creationTime"
TAKING = frozenset({ACCEPTED, STARTING, RUNNING})
"""Application states that a new ask does not change."""


class AskAdmission:
    """Admission of the asks of one partition.

    Consecutive new asks of an application are a batch, which `flush` accounts for. Whatever else concerns the
    partition comes after `flush`.
    """

    def __init__(
        self,
        partition: Partition,
        orders: NodeOrders,
        preemption: Preemption,
        max_apps_events: MaxAppsEvents,
    ) -> None:
        self._partition = partition
        self._orders = orders
        self._preemption = preemption
        self._max_apps_events = max_apps_events
        self._batch: AskBatch | None = None
        """New asks of one application since the last `flush`."""

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
        if batch is None or batch.app.id != app_id or (spec.task_group and batch.asks):
            # An ask of a task group comes alone, since its gang may block it.
            if batch is not None:
                self.flush()
            if reason := self._open(app_id):
                self._reject(app_id, key, reason)
                return
            batch = self._batch
            assert batch is not None
        reason = ""
        if id(resource) not in batch.sound:
            reason = amount_refusal(resource)
            if not reason:
                batch.sound[id(resource)] = resource
        if reason or count < 1 or not INT32_MIN < priority <= INT32_MAX or spec.placeholder:
            reason = _placeholder_refusal(batch.app, spec) or reason or _number_refusal(count, priority)
            if reason:
                self._reject(app_id, key, reason)
                return
            if not spec.task_group:
                spec = spec.without_placeholder()
        known = batch.app.asks.get(key)
        if known is not None:
            self.flush()
            self._change(known, resource, count, priority, spec)
            return
        created, alike = batch.now, self._orders.by_resources
        if spec is not DEFAULT_SPEC:
            batch.is_plain = False
            if spec.tags:
                created = created_at(spec.tags, created)
                alike = alike and REQUIRED_NODE_TAG not in spec.tags
        batch.add(key, resource, count, priority, created, spec, alike)
        if spec.task_group or batch.app.state not in TAKING:
            self.flush()

    def is_allocated(self, app_id: str, key: str) -> bool:
        """Return True if the request with this key has allocations that the RM is informed of."""
        app = self._partition.applications.get(app_id)
        return app is not None and any([one.hold is None for one in app.of_key(key)])

    def _open(self, app_id: str) -> str:
        """Open a batch for the asks of an application; return why the application accepts none."""
        if reason := self._partition.closed_to("requests"):
            return reason
        app = self._partition.applications.get(app_id)
        if app is None:
            return f"failed to find application {app_id}"
        if app.state == FAILING:
            return f"application {app_id} is failing and accepts no new requests"
        self._batch = AskBatch(app, self._partition, self.ask_class_of)
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
        if app.ask_priority is not None:
            for ask in asks:
                ask.priority = app.ask_priority
        self._partition.accounting.pending_accounting.add_all(app, asks)
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

    def classify(self, ask: Ask) -> None:
        """Compute the pending class of an ask of which no replica is pending."""
        ask_class = self.class_of_known(ask)
        ask.pending_class = self._partition.pending_classes.of(ask_class, ask.app.limit_trackers)
        ask.share_amount()

    def class_of_known(self, ask: Ask) -> AskClass:
        """Return the equivalence class of an ask that may have failed to start on some nodes."""
        ask_class, failed = self.ask_class_of(ask), ask.failed_starts
        if failed is None or ask_class.required:
            return ask_class
        failed.review(self._partition.clock.now())
        return self._partition.ask_classes.avoiding(ask_class, failed.nodes) if failed.avoided else ask_class

    def ask_class_of(self, ask: Ask) -> AskClass:
        """Return the equivalence class of the ask with respect to nodes, given the policies in use."""
        orders, node_order = self._orders, ask.app.node_order
        tags = ask.spec.tags
        required = tags.get(REQUIRED_NODE_TAG, "") if tags else ""
        if orders.by_resources:
            return self._partition.ask_classes.of(ask.resource, node_order, required)
        predicates = orders.predicates
        classes = predicates.predicate_classes(ask) if predicates else ()
        named = orders.policies[node_order]
        value = named.value_of(ask) if named.declares and not required else None
        return self._partition.ask_classes.of(ask.resource, node_order, required, classes, value=value)

    def _change(self, ask: Ask, resource: Resource, count: int, priority: int, spec: AskSpec) -> None:
        if reason := _other_part(ask, spec):
            self._partition.changes.ask_rejected(ask.key, reason, ask.app.id)
            return
        if ask.app.ask_priority is not None:
            priority = ask.app.ask_priority
        accounting = self._partition.accounting
        self._partition.ask_changes += 1
        # The RM counts a request that permit policies hold as pending.
        self._partition.held.take_back_of(ask.app, ask.key)
        same = (ask.resource, ask.priority, ask.tags) == (resource, priority, spec.tags)
        ask.spec = spec
        if same:
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
        partition.held.take_back_of(found[0], key)
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


def amount_refusal(resource: Resource) -> str:
    """Return why an ask cannot have these resources, or an empty text."""
    if not any(resource.values()):
        return "ask contains no resources"
    return "ask contains negative resources" if min(resource.values()) < 0 else ""


def _placeholder_refusal(app: Application, spec: AskSpec) -> str:
    if spec.placeholder and app.atomic is not None:
        return f"application {app.id} is an atomic gang and accepts no placeholders"
    return ""


def _number_refusal(count: int, priority: int) -> str:
    if count < 1:
        return f"maxAllocations is {count}, it must be 1 or more"
    return "" if INT32_MIN < priority <= INT32_MAX else f"priority {priority} is out of range"


def created_at(tags: Mapping[str, str], now: int) -> int:
    """Return the creation time (ns) of a request with these tags, by default the current time."""
    # The RM sends Unix seconds, so that requests keep their order after a restart of the core.
    text = tags.get(CREATION_TAG, "") if tags else ""
    return int(text) * SECOND if text.isdecimal() and len(text) <= TIME_DIGITS else now


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
