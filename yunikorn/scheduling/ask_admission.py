"""Admission of asks in a partition: adds, changes and drops requests as the RM reports them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from yunikorn.accounting.ask_batch import AskBatch
from yunikorn.accounting.key_indexes import AskIndex
from yunikorn.accounting.outbox import AskRelease, Refusal
from yunikorn.model.allocation import TerminationType, is_own
from yunikorn.model.ask import INT32_MAX, INT32_MIN, Ask, AskSpec
from yunikorn.resources import Resource, has_negative, is_zero
from yunikorn.states import ACCEPTED, ACTIVE, FAILING, RUNNING, STARTING

if TYPE_CHECKING:
    from yunikorn.model.application import Application
    from yunikorn.model.ask_class import AskClass
    from yunikorn.scheduling.partition_scheduler import PartitionScheduler

AS_REQUESTED = "ask released as per RM request"
REQUIRED_NODE_TAG = "yunikorn.apache.org/requiredNode"
TAKING = frozenset({ACCEPTED, STARTING, RUNNING})
"""Application states that a new ask does not change."""


@attrs.define
class NewAsk:
    """An ask as submitted: `count` times `resource`."""

    key: str
    resource: Resource
    count: int = 1
    priority: int = 0
    tags: Mapping[str, str] = attrs.field(factory=dict)
    originator: bool = False
    may_preempt: bool = True
    may_be_preempted: bool = True
    execution_timeout: int = 0
    """Maximum lifetime of each allocation (ns); 0 means unlimited."""
    task_group: str = ""
    placeholder: bool = False
    """True if the ask is a placeholder of its task group; ignored without a task group."""


class AskAdmission:
    """Admission of the asks of one partition."""

    def __init__(self, at: PartitionScheduler) -> None:
        self._at = at
        self._partition = at.partition

    def take(self, app_id: str, demand: NewAsk) -> None:
        """Add an ask, or change the existing ask with the same key; reject an invalid one with a reason."""
        app = self._partition.applications.get(app_id)
        reason = self._at.closed_to("requests") or self._refusal(app, app_id, demand)
        if reason or app is None:
            self._partition.outbox.rejected_asks.append(Refusal(demand.key, reason, app_id))
            return
        known = app.asks.get(demand.key)
        if known is not None and (reason := _other_part(known, demand)):
            self._partition.outbox.rejected_asks.append(Refusal(demand.key, reason, app_id))
            return
        if known is not None:
            self._change(known, demand)
            self._at.preemption.notice(known)
            return
        ask = self._new_ask(app, demand)
        self._classify(ask)
        self._partition.accounting.pending_accounting.add(ask)
        if app.not_started and self._partition.event_recorder.enabled:
            self._at.max_apps_events.watch(app)
        self._at.preemption.notice(ask)

    def batch(self, app_id: str, *, once: bool = False) -> AskBatch | None:
        """Return a batch for simple asks of an application, to be added by `book`.

        With `once`, an ask with the key of an existing allocation does not count as a new ask.

        None if `take` must handle each ask: the application has no asks yet, is a gang, or accepts no asks.
        """
        app = self._partition.applications.get(app_id)
        if app is None or app.state not in TAKING or self._partition.state != ACTIVE:
            return None
        if app.gang is not None or app.atomic is not None:
            return None
        return AskBatch(
            app, self._partition, self.ask_class_of, alike=not self._at.policies.predicates, once=once
        )

    def book(self, batch: AskBatch) -> None:
        """Add the asks of a batch to the pending asks."""
        first = batch.book()
        if first is not None:
            if first.app.not_started and self._partition.event_recorder.enabled:
                self._at.max_apps_events.watch(first.app)
            # The other asks of the batch have the same arrival time and queue.
            self._at.preemption.notice(first)

    @staticmethod
    def _refusal(app: Application | None, app_id: str, demand: NewAsk) -> str:
        if app is None:
            return f"failed to find application {app_id}"
        if app.state == FAILING:
            return f"application {app_id} is failing and accepts no new requests"
        if demand.placeholder and app.atomic is not None:
            return f"application {app_id} is an atomic gang and accepts no placeholders"
        if is_zero(demand.resource):
            return "ask contains no resources"
        if has_negative(demand.resource):
            return "ask contains negative resources"
        if demand.count < 1:
            return f"maxAllocations is {demand.count}, it must be 1 or more"
        if not INT32_MIN < demand.priority <= INT32_MAX:
            return f"priority {demand.priority} is out of range"
        return ""

    def _new_ask(self, app: Application, demand: NewAsk) -> Ask:
        created, arrival = self._at.created(demand.tags), self._partition.next_arrival()
        spec = _spec(demand)
        return Ask(demand.key, app, demand.resource, demand.count, demand.priority, created, arrival, spec)

    def _classify(self, ask: Ask) -> None:
        ask.pending_class = self._partition.pending_classes.of(self.ask_class_of(ask), ask.app.owner)
        ask.share_amount()

    def ask_class_of(self, ask: Ask) -> AskClass:
        """Return the equivalence class of the ask with respect to nodes, given the predicates in use."""
        predicates = self._at.policies.predicates
        classes = predicates.predicate_classes(ask) if predicates else ()
        required = ask.tags.get(REQUIRED_NODE_TAG, "") if ask.tags else ""
        return self._partition.ask_classes.of(ask.resource, ask.app.node_order, required, classes)

    def _change(self, ask: Ask, demand: NewAsk) -> None:
        accounting = self._partition.accounting
        same = (ask.resource, ask.priority, ask.tags) == (demand.resource, demand.priority, demand.tags)
        ask.spec = _spec(demand)
        if same:
            if not ask.pending:
                # While no replica was pending, the ask class may have been dropped, or the limits may have
                # changed.
                accounting.node_reservations.unreserve(ask)
                self._classify(ask)
            accounting.pending_accounting.change_pending(ask, demand.count)
            return
        # The reservation and the victims were chosen for the previous resources and priority.
        accounting.node_reservations.unreserve(ask)
        if ask.extras is not None:
            ask.extras.eviction = None
        accounting.pending_accounting.change_pending(ask, 0)
        ask.resource, ask.priority = demand.resource, demand.priority
        self._classify(ask)
        accounting.pending_accounting.change_pending(ask, demand.count)

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
        for ask in asks_of(found[0], key):
            partition.outbox.ask_releases.append(AskRelease(ask.app.id, ask.key, termination, message))
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


def _spec(demand: NewAsk) -> AskSpec:
    return AskSpec(
        demand.tags,
        may_preempt=demand.may_preempt,
        may_be_preempted=demand.may_be_preempted,
        originator=demand.originator,
        execution_timeout=demand.execution_timeout,
        task_group=demand.task_group,
        placeholder=demand.placeholder and bool(demand.task_group),
    )


def _other_part(ask: Ask, demand: NewAsk) -> str:
    """Return why `demand` cannot replace this ask: its role in the application's gang differs."""
    if (ask.task_group, ask.placeholder) == (
        demand.task_group,
        demand.placeholder and bool(demand.task_group),
    ):
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
