"""Store of the latest decisions of all resource managers, for readers in any thread.

The core appends the entries of each event batch that contain a decision, and makes nothing of them. A reader
makes the decisions that it wants, newest first. Entries are in blocks of about a thousand; the first reader
notes which applications, queues and nodes a block mentions, and later readers skip blocks without what they
want. So a question about one application looks at few of a hundred thousand decisions.

Placements and their usual ends are the most, and the first to be forgotten. Refusals, preemptions, holds and
failures remain for longer, because someone who asks why something waits looks for these
(`docs/decisions/archive/0100`).

Decisions of the core, as records for operators: what was decided, about what, and why.

A decision is read from the entries of an event batch (`yunikorn.accounting.event_batch`), in the thread that
asks for it. So a decision costs nothing more when it is made than its events (`docs/decisions/archive/0100`).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

import attrs

from yunikorn.accounting.event_batch import ALLOCATED, RELEASED, Entry, EventBatch, Source
from yunikorn.api import Event
from yunikorn.event_types import EventChange, EventDetail, EventType
from yunikorn.resources import Resource


class DecisionKind(StrEnum):
    """Kind of a decision."""

    PLACED = "placed"
    """A request received a node."""
    PLACEHOLDER_PLACED = "placeholder placed"
    PLACEHOLDER_REPLACED = "placeholder replaced"
    """A placeholder ended, and an allocation of its task group has its place."""
    RECOVERED = "recovered"
    """The resource manager reported an allocation that existed before."""
    ENDED = "ended"
    """An allocation ended."""
    TIMED_OUT = "timed out"
    """A request or an allocation ended because its time was over."""
    PREEMPTED = "preempted"
    """The resource manager was asked to end an allocation."""
    RESERVED = "reserved"
    UNRESERVED = "unreserved"
    REFUSED = "refused"
    """A request was not placed."""
    FITS_AGAIN = "fits again"
    """A request that was refused has room again."""
    HELD = "held"
    """A policy, or a maximum of running applications, makes an application or a placement wait."""
    PERMITTED = "permitted"
    """An application or a placement waits no more."""
    TAKEN_BACK = "taken back"
    """A permit policy refused a placement, or the resource manager could not start it."""
    ACCEPTED = "accepted"
    """An application was placed in a queue."""
    LEFT = "left"
    """An application left its queue."""
    REJECTED = "rejected"
    """An application was rejected."""
    FAILED = "failed"
    """An application failed."""
    RESUMED = "resumed"
    """An application continues without its gang."""
    QUOTA_ENFORCED = "quota enforced"
    """A queue used more than its quota, and victims were selected."""


@attrs.frozen(slots=True)
class Decision:
    """One decision; fields that do not apply are empty."""

    time: int
    """Time (ns)."""
    kind: DecisionKind
    source: Source
    """Resource manager and partition."""
    application: str = ""
    queue: str = ""
    """Full path of the queue."""
    node: str = ""
    task: str = ""
    """Key of the ask."""
    allocation: str = ""
    """Id of the allocation."""
    message: str = ""
    """Reason, as a phrase."""
    resource: Mapping[str, int] | None = None


_OF_DETAIL: Mapping[str, DecisionKind] = {
    EventDetail.APP_ALLOC: DecisionKind.PLACED,
    EventDetail.ALLOC_CANCEL: DecisionKind.ENDED,
    EventDetail.ALLOC_NODEREMOVED: DecisionKind.ENDED,
    EventDetail.ALLOC_PREEMPT: DecisionKind.ENDED,
    EventDetail.ALLOC_REPLACED: DecisionKind.PLACEHOLDER_REPLACED,
    EventDetail.ALLOC_TIMEOUT: DecisionKind.TIMED_OUT,
    EventDetail.REQUEST_TIMEOUT: DecisionKind.TIMED_OUT,
    EventDetail.APP_REJECT: DecisionKind.REJECTED,
    EventDetail.APP_FAILING: DecisionKind.FAILED,
    EventDetail.APP_RESUMING: DecisionKind.RESUMED,
    EventDetail.APP_CANNOTRUN_QUEUE: DecisionKind.HELD,
    EventDetail.APP_CANNOTRUN_QUOTA: DecisionKind.HELD,
    EventDetail.APP_RUNNABLE_QUEUE: DecisionKind.PERMITTED,
    EventDetail.APP_RUNNABLE_QUOTA: DecisionKind.PERMITTED,
    EventDetail.NODE_RESERVATION: DecisionKind.RESERVED,
    EventDetail.QUEUE_APP: DecisionKind.ACCEPTED,
    EventDetail.QUEUE_QUOTA_PREEMPTION: DecisionKind.QUOTA_ENFORCED,
}
_OF_REASON: Mapping[str, DecisionKind] = {
    "ApplicationAdmitted": DecisionKind.PERMITTED,
    "ApplicationHeld": DecisionKind.HELD,
    "BackOff": DecisionKind.HELD,
    "GangTooLarge": DecisionKind.REFUSED,
    "GangUnschedulable": DecisionKind.REFUSED,
    "InsufficientGroupQuota": DecisionKind.REFUSED,
    "InsufficientQueueResources": DecisionKind.REFUSED,
    "InsufficientUserQuota": DecisionKind.REFUSED,
    "PermitGranted": DecisionKind.PERMITTED,
    "PermitRefused": DecisionKind.TAKEN_BACK,
    "PermitWait": DecisionKind.HELD,
    "PlaceholderMismatch": DecisionKind.REFUSED,
    "PreemptionFailed": DecisionKind.REFUSED,
    "Preempted": DecisionKind.PREEMPTED,
    "SchedulingFailedOnRM": DecisionKind.TAKEN_BACK,
    "QueueResourcesAvailable": DecisionKind.FITS_AGAIN,
    "Unschedulable": DecisionKind.REFUSED,
    "UserQuotaAvailable": DecisionKind.FITS_AGAIN,
}
_PHRASES: Mapping[str, str] = {
    EventDetail.ALLOC_CANCEL: "ended by the resource manager",
    EventDetail.ALLOC_NODEREMOVED: "the node was removed",
    EventDetail.ALLOC_PREEMPT: "the resource manager confirmed the preemption",
    EventDetail.ALLOC_REPLACED: "an allocation of the task group has its place",
    EventDetail.ALLOC_TIMEOUT: "the time of the allocation is over",
    EventDetail.APP_RUNNABLE_QUEUE: "a queue may run another application",
    EventDetail.APP_RUNNABLE_QUOTA: "the user may run another application",
    DecisionKind.ACCEPTED: "placed in the queue",
    DecisionKind.RESERVED: "the node is kept for the request",
    DecisionKind.UNRESERVED: "the node is no longer kept for the request",
}
"""Reasons of changes whose events have none."""
_REMOVED = {
    DecisionKind.ACCEPTED: DecisionKind.LEFT,
    DecisionKind.RESERVED: DecisionKind.UNRESERVED,
}
"""Kind of a change that removes, where it differs."""
_USUAL = frozenset((EventDetail.ALLOC_CANCEL, EventDetail.APP_ALLOC))


COMPACT = (ALLOCATED, RELEASED)
"""Compact entries of event batches that contain decisions."""


def concerns(entry: Entry) -> bool:
    """Return True if an entry of an event batch contains a decision."""
    if type(entry) is tuple:
        return entry[0] in COMPACT
    event: Any = entry
    return event.detail in _OF_DETAIL or event.reason in _OF_REASON


def is_usual(entry: Entry) -> bool:
    """Return True for a placement, or an end that the resource manager decided: most decisions are these."""
    if type(entry) is tuple:
        return entry[0] is ALLOCATED or entry[4] in _USUAL
    event: Any = entry
    return event.detail in _USUAL


def decisions_in(entries: Iterable[Entry], source: Source) -> list[Decision]:
    """Return the decisions in entries of an event batch, in order."""
    found = []
    for entry in entries:
        decision = _of_entry(entry, source)
        if decision is not None:
            found.append(decision)
    return found


def _of_entry(entry: Entry, source: Source) -> Decision | None:
    if isinstance(entry, Event):
        return _of_event(entry, source)
    if entry[0] is ALLOCATED:
        _, time, allocation, resource = entry
        kind, message = _placement(allocation)
    elif entry[0] is RELEASED:
        _, time, allocation, resource, detail, message = entry
        kind, message = _OF_DETAIL[detail], message or _PHRASES.get(detail, "")
    else:
        return None
    return Decision(
        time,
        kind,
        source,
        allocation.app.id,
        allocation.queue_name,
        allocation.node.id,
        allocation.key,
        allocation.uuid,
        message,
        resource,
    )


def _placement(allocation: Any) -> tuple[DecisionKind, str]:
    """Return the kind of a new allocation, and the reason for its node."""
    if allocation.ask is None:
        return DecisionKind.RECOVERED, "reported by the resource manager"
    if allocation.placeholder:
        return DecisionKind.PLACEHOLDER_PLACED, f"for the task group {allocation.task_group}"
    if allocation.placeholder_requested is not None:
        return DecisionKind.PLACED, f"in place of a placeholder of the task group {allocation.task_group}"
    if allocation.ask.required_node:
        return DecisionKind.PLACED, "on the node that the request requires"
    return DecisionKind.PLACED, "the first suitable node"


def _of_event(event: Event, source: Source) -> Decision | None:
    kind = _OF_DETAIL.get(event.detail) or _OF_REASON.get(event.reason)
    if kind is None:
        return None
    app, queue, node, task = event.application_id, event.queue, event.node_id, event.reference_id
    if event.type == EventType.APP:
        app = app or event.object_id
    elif event.type == EventType.REQUEST:
        app, task = app or event.reference_id, event.object_id
    elif event.type == EventType.QUEUE:
        app, queue, task = event.reference_id, event.object_id, ""
    if event.change == EventChange.REMOVE:
        kind = _REMOVED.get(kind, kind)
    amount = event.resource if isinstance(event.resource, Resource) else None
    message = event.message or _PHRASES.get(event.detail) or _PHRASES.get(kind, "")
    return Decision(event.timestamp, kind, source, app, queue, node, task, "", message, amount)


CAPACITY = 100_000
"""Number of decisions of all kinds that a store keeps by default."""
BLOCK = 1_000
"""Number of decisions in a block."""


@attrs.frozen
class Wish:
    """Selection of decisions; an empty field selects all."""

    source: Source
    """Resource manager and partition."""
    application: str = ""
    queue: str = ""
    """Path of a queue, which includes the queues below."""
    node: str = ""

    def takes(self, one: Decision) -> bool:
        """Return True for a decision of this selection."""
        return (
            one.source == self.source
            and self.application in ("", one.application)
            and self.node in ("", one.node)
            and (not self.queue or is_below(one.queue, self.queue))
        )


def is_below(path: str, queue: str) -> bool:
    """Return True if a path is that of a queue, or of one below."""
    return path == queue or path.startswith(f"{queue}.")


@attrs.frozen
class _Mentions:
    """Everything that the decisions of a block mention."""

    applications: frozenset[str]
    queues: frozenset[str]
    nodes: frozenset[str]

    @classmethod
    def of(cls, decisions: Iterable[Decision]) -> _Mentions:
        applications, queues, nodes = set(), set(), set()
        for one in decisions:
            applications.add(one.application)
            queues.add(one.queue)
            nodes.add(one.node)
        return cls(frozenset(applications), frozenset(queues), frozenset(nodes))

    def may_have(self, wish: Wish) -> bool:
        return (
            (not wish.application or wish.application in self.applications)
            and (not wish.node or wish.node in self.nodes)
            and (not wish.queue or any(is_below(path, wish.queue) for path in self.queues))
        )


Part = tuple[Source, Sequence[Entry | Decision]]
"""Successive entries of one partition."""


@attrs.define(eq=False)
class _Block:
    """Successive decisions."""

    parts: list[Part] = attrs.field(factory=list)
    size: int = 0
    mentions: _Mentions | None = None
    """None before the first reader; no decisions are added to a block that has it."""


class _Ring:
    """Blocks of decisions, of which the oldest are forgotten beyond a number of decisions."""

    def __init__(self, capacity: int, on_forget: Callable[[_Block], None] | None = None) -> None:
        self.capacity = capacity
        self.size = 0
        self.blocks: deque[_Block] = deque([_Block()])
        self._on_forget = on_forget

    def append(self, source: Source, entries: Sequence[Entry | Decision]) -> None:
        for start in range(0, len(entries), BLOCK):
            part = entries[start : start + BLOCK]
            block = self.blocks[-1]
            if block.size >= BLOCK:
                block = _Block()
                self.blocks.append(block)
            block.parts.append((source, part))
            block.size += len(part)
            self.size += len(part)
        self.trim()

    def trim(self) -> None:
        """Forget the oldest blocks, as long as the others have as many decisions as the capacity."""
        while len(self.blocks) > 1 and self.size - self.blocks[0].size >= self.capacity:
            oldest = self.blocks.popleft()
            self.size -= oldest.size
            if self._on_forget is not None:
                self._on_forget(oldest)


class DecisionStore:
    """The latest decisions. `append` is called in the core's thread, everything else in any thread."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        """Create an empty store, which keeps `capacity` decisions and up to four blocks more.

        A fifth of the capacity is for decisions that are not usual.
        """
        if capacity < 1:
            raise ValueError(f"the capacity of the store must be at least 1 decision, got {capacity}")
        self._lock = threading.Lock()
        self._kept = _Ring(capacity // 5)
        """Decisions that are not usual, from forgotten blocks."""
        self._latest = _Ring(capacity - capacity // 5, self._keep)

    def __len__(self) -> int:
        with self._lock:
            return self._latest.size + self._kept.size

    def append(self, batch: EventBatch) -> None:
        """Add the decisions of a batch; never waits for a reader."""
        # Written out for the many entries that are tuples: this is on the path of every decision.
        entries = [
            entry
            for entry in batch.entries
            if (entry[0] in COMPACT if type(entry) is tuple else concerns(entry))
        ]
        if entries:
            with self._lock:
                self._latest.append(batch.source, entries)

    def resize(self, capacity: int) -> None:
        """Keep another number of decisions from now on."""
        with self._lock:
            self._kept.capacity = capacity // 5
            self._latest.capacity = capacity - capacity // 5
            self._latest.trim()
            self._kept.trim()

    def _keep(self, block: _Block) -> None:
        """Keep the unusual decisions of a forgotten block, without the objects of the core."""
        for source, entries in block.parts:
            unusual = [one for one in entries if not isinstance(one, Decision) and not is_usual(one)]
            if unusual:
                self._kept.append(source, decisions_in(unusual, source))

    def search(self, wish: Wish) -> Iterator[Decision | None]:
        """Yield the wanted decisions, newest first; a None after each block is an opportunity to pause."""
        blocks: list[_Block] = []
        with self._lock:
            for ring in (self._kept, self._latest):
                blocks += ring.blocks
                # Only the last block of a ring changes.
                blocks[-1] = _Block(list(ring.blocks[-1].parts))
        for block in reversed(blocks):
            if block.mentions is not None and not block.mentions.may_have(wish):
                continue
            decisions = _made_of(block.parts)
            block.mentions = _Mentions.of(decisions)
            yield from (one for one in reversed(decisions) if wish.takes(one))
            yield None


def _made_of(parts: Iterable[Part]) -> list[Decision]:
    found: list[Decision] = []
    for source, entries in parts:
        if entries and isinstance(entries[0], Decision):
            found += [one for one in entries if isinstance(one, Decision)]
        else:
            found += decisions_in([one for one in entries if not isinstance(one, Decision)], source)
    return found
