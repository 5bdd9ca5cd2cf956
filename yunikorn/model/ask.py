"""Asks: requests of an application for allocations, with their spec and their scheduling state."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from yunikorn.model.ask_class import NOTHING_REFUSED
from yunikorn.model.attempt_log import MOST, AttemptLog, FailedAttempts, merged
from yunikorn.resources import INT32_MIN, INT64_MIN, NOTHING, Resource
from yunikorn.states import ASK

if TYPE_CHECKING:
    from yunikorn.model.allocation import Eviction
    from yunikorn.model.application import Application
    from yunikorn.model.ask_class import AskClass, PendingClass
    from yunikorn.model.failed_starts import FailedStarts
    from yunikorn.model.gang import AtomicGang
    from yunikorn.model.node import Node


REQUIRED_NODE_TAG = "yunikorn.apache.org/requiredNode"
"""Tag of an ask with the id of the only node that may run the ask."""

TERMINATING_TAG = "yunikorn.apache.org/terminating"
"""Tag of an allocation that the RM is ending already; the value is "true"."""

_NO_TAGS: dict[str, str] = {}


class AskSpec:
    """Immutable options of an ask, which also apply to its allocations."""

    __slots__ = (
        "execution_timeout",
        "may_be_preempted",
        "may_preempt",
        "originator",
        "placeholder",
        "tags",
        "task_group",
    )

    def __init__(
        self,
        tags: Mapping[str, str] = _NO_TAGS,
        *,
        may_preempt: bool = True,
        may_be_preempted: bool = True,
        originator: bool = False,
        execution_timeout: int = 0,
        task_group: str = "",
        placeholder: bool = False,
    ) -> None:
        self.tags: Mapping[str, str] = MappingProxyType(tags if type(tags) is dict else dict(tags))
        self.may_preempt = may_preempt
        """True if the request may preempt other allocations."""
        self.may_be_preempted = may_be_preempted
        """True if the allocations may be preempted for other requests (docs/decisions/archive/0023)."""
        self.originator = originator
        """True for the originator (driver) of an application, a victim of preemption after all others."""
        self.execution_timeout = execution_timeout
        """Maximum run time of each allocation (ns); 0 means unlimited."""
        self.task_group = task_group
        self.placeholder = placeholder
        """True if the allocations are placeholders, which reserve room for the real tasks of the task
        group."""

    def with_tags(self, tags: Mapping[str, str]) -> AskSpec:
        """Return the spec with other tags."""
        return AskSpec(
            tags,
            may_preempt=self.may_preempt,
            may_be_preempted=self.may_be_preempted,
            originator=self.originator,
            execution_timeout=self.execution_timeout,
            task_group=self.task_group,
            placeholder=self.placeholder,
        )

    def without_placeholder(self) -> AskSpec:
        """Return the spec of a request that is no placeholder."""
        return AskSpec(
            self.tags,
            may_preempt=self.may_preempt,
            may_be_preempted=self.may_be_preempted,
            originator=self.originator,
            execution_timeout=self.execution_timeout,
            task_group=self.task_group,
        )


DEFAULT_SPEC = AskSpec()


class WithSpec:
    """Base of asks and allocations, which expose the options of their `AskSpec`."""

    __slots__ = ("spec",)

    spec: AskSpec

    @property
    def foreign(self) -> bool:
        """False: the task belongs to an application of this scheduler."""
        return False

    @property
    def tags(self) -> Mapping[str, str]:
        """Tags from the RM; predicates and policies may read them."""
        return self.spec.tags

    @property
    def may_preempt(self) -> bool:
        """True if the request may preempt other allocations."""
        return self.spec.may_preempt

    @property
    def may_be_preempted(self) -> bool:
        """True if the allocations may be preempted for other requests (docs/decisions/archive/0023)."""
        return self.spec.may_be_preempted

    @property
    def originator(self) -> bool:
        """True for the originator (driver) of an application, a victim of preemption after all others."""
        return self.spec.originator

    @property
    def execution_timeout(self) -> int:
        """Maximum run time once placed (ns); 0 means unlimited."""
        return self.spec.execution_timeout

    @property
    def task_group(self) -> str:
        """Name of the task group; empty without one."""
        return self.spec.task_group

    @property
    def placeholder(self) -> bool:
        """True for a placeholder, which reserves room for a real task of its task group."""
        return self.spec.placeholder


class AskExtras:
    """Rarely needed scheduling state of an ask; created on first use."""

    __slots__ = (
        "attempt_change",
        "barred_until",
        "earlier",
        "eviction",
        "failed_starts",
        "gang",
        "gang_blocked",
        "limit_reported",
        "log",
        "made",
        "quota_reported",
        "refusals",
        "reserved",
        "tries",
        "unschedulable",
    )

    limit_reported: bool
    """True if the ask was reported as exceeding the headroom of its user or group."""
    quota_reported: bool
    """True if the ask was reported as exceeding the headroom of its queues."""
    eviction: Eviction | None
    """The latest eviction made for the ask."""
    made: int
    """Number of allocations made for the ask since its extras were created; shows if an eviction served
    its purpose."""
    barred_until: int
    """Time before which preemption is not retried after a failed attempt (ns)."""
    attempt_change: int
    """`AllocationAccounting.changes` at the latest preemption attempt for the ask, or -1 before the first."""
    reserved: Node | None
    """The node reserved for the ask."""
    unschedulable: bool
    """True if the ask is not scheduled until something changes (see `scheduling.unschedulable_queue`)."""
    refusals: Mapping[str, int]
    """Reasons why nodes with room refused this particular ask, with counts."""
    log: AttemptLog | None
    """Attempts that failed for reasons of this particular ask; None without any."""
    tries: int
    """Number of times the ask was marked unschedulable."""
    gang_blocked: bool
    """True if the ask is not scheduled because of its gang; it is then unschedulable as well."""
    gang: AtomicGang | None
    """The atomic gang that this ask represents with all its members; None for an ordinary ask."""
    failed_starts: FailedStarts | None
    """Failures of the RM to start the allocations; None without any."""

    def __init__(self) -> None:
        self.limit_reported = self.quota_reported = self.unschedulable = self.gang_blocked = False
        self.eviction = self.reserved = self.gang = self.failed_starts = None
        self.log = None
        self.earlier: tuple[FailedAttempts, ...] = ()
        """Failed attempts in earlier pending classes, apart from `log`, which has those of this ask alone."""
        self.made = self.tries = 0
        self.barred_until = INT64_MIN
        self.attempt_change = -1
        self.refusals = NOTHING_REFUSED

    def refuse(self, refusals: Mapping[str, int], now: int) -> None:
        """Set the refusals of this particular ask, and log them."""
        self.refusals = refusals
        self.log = self.log or AttemptLog()
        self.log.note(refusals, now)


class Unpermitted(dict[str, int]):
    """Refusal of a placement by a permit policy, in place of the refusals by nodes: the reason, once."""


AskKey = tuple[Any, ...]
"""Part of the order of a request that its sort policy sets; keys of one application compare."""
BY_ARRIVAL: AskKey = ()
"""Key of all requests whose sort policy leaves them in order of arrival."""
Order = tuple[int, AskKey, int, int]
"""Sort key of a request: negated priority, key of the sort policy, creation time, arrival
(docs/decisions/0016, 0203). Requests of one application compare, but not those of different queues."""


class Ask(WithSpec):
    """A request for `pending` more allocations of `resource` each."""

    __slots__ = (
        "app",
        "arrival",
        "created",
        "extras",
        "key",
        "live",
        "pending",
        "pending_class",
        "priority",
        "resource",
        "sort_key",
        "state",
    )

    def __init__(
        self,
        key: str,
        app: Application,
        resource: Resource,
        pending: int,
        priority: int,
        created: int,
        arrival: int,
        spec: AskSpec,
    ) -> None:
        self.key = key
        self.app = app
        self.resource = resource
        self.pending = pending
        self.live = 0
        """Number of allocations of the ask that have not ended."""
        self.priority = priority
        self.created = created
        self.arrival = arrival
        self.sort_key = BY_ARRIVAL
        """Key of the sort policy, which depends on the ask alone; see `scheduling.ask_order`."""
        self.pending_class: PendingClass
        """Set before the ask is accounted for."""
        self.state = ASK.initial
        self.spec = spec
        self.extras: AskExtras | None = None
        """None for most asks; read its fields through the properties below."""

    @property
    def ask_class(self) -> AskClass:
        """The ask class, which determines how nodes answer."""
        return self.pending_class.ask_class

    @property
    def required_node(self) -> str:
        """Id of the only node that may run the request; empty without this requirement."""
        return self.spec.tags.get(REQUIRED_NODE_TAG, "")

    @property
    def order(self) -> Order:
        """Sort key among the requests of the application (docs/decisions/0016, 0203)."""
        return (-self.priority, self.sort_key, self.created, self.arrival)

    def precedes(self, other: Ask) -> bool:
        """Return True if the ask is ordered before `other`, which mostly arrived later."""
        same = self.priority == other.priority and self.sort_key is other.sort_key
        if same and self.created <= other.created:
            return self.created < other.created or self.arrival <= other.arrival
        return self.order < other.order

    def share_amount(self) -> None:
        """Use the `Resource` of the ask class if equal, to save memory: requests bring their own."""
        resource = self.pending_class.ask_class.resource
        if self.resource == resource:
            self.resource = resource

    # -- extras -------------------------------------------------------------------------------------

    def ensure_extras(self) -> AskExtras:
        """Return the extras for modification; create them on first use."""
        if self.extras is None:
            self.extras = AskExtras()
        return self.extras

    @property
    def made(self) -> int:
        """Number of allocations made for the ask since its extras were created."""
        return 0 if self.extras is None else self.extras.made

    @property
    def limit_reported(self) -> bool:
        """True if the ask was reported as exceeding the headroom of its user or group."""
        return False if self.extras is None else self.extras.limit_reported

    @property
    def quota_reported(self) -> bool:
        """True if the ask was reported as exceeding the headroom of its queues."""
        return False if self.extras is None else self.extras.quota_reported

    @property
    def eviction(self) -> Eviction | None:
        """The latest eviction made for the ask."""
        return None if self.extras is None else self.extras.eviction

    @property
    def barred_until(self) -> int:
        """Time before which preemption is not retried after a failed attempt (ns)."""
        return INT64_MIN if self.extras is None else self.extras.barred_until

    @property
    def attempt_change(self) -> int:
        """`AllocationAccounting.changes` at the latest preemption attempt for the ask, or -1."""
        return -1 if self.extras is None else self.extras.attempt_change

    @property
    def reserved(self) -> Node | None:
        """The node reserved for the ask."""
        return None if self.extras is None else self.extras.reserved

    @property
    def unschedulable(self) -> bool:
        """True if the ask is not scheduled until something changes (see `scheduling.unschedulable_queue`)."""
        return False if self.extras is None else self.extras.unschedulable

    @property
    def refusals(self) -> Mapping[str, int]:
        """Reasons why nodes with room refused the ask or its ask class in the latest search, with counts."""
        if self.extras is not None and self.extras.unschedulable:
            return self.extras.refusals
        return self.ask_class.refusals if self.ask_class.unschedulable else NOTHING_REFUSED

    def move_to(self, pending_class: PendingClass) -> None:
        """Join another pending class; the ask keeps failed attempts that the other class does not count."""
        if pending_class is self.pending_class:
            return
        attempts = merged(self._attempts_by_class())
        self.pending_class = pending_class
        if attempts:
            extras = self.ensure_extras()
            extras.earlier = ()
            # The ask may have been in that class before, whose log then has some of these attempts.
            counted = {one.reason: one.number for one in merged(self._attempts_by_class())}
            extras.earlier = tuple(
                FailedAttempts(reason, more, latest)
                for reason, number, latest in attempts[-MOST:]
                if (more := number - counted.get(reason, 0)) > 0
            )

    @property
    def whole_gang(self) -> AtomicGang | None:
        """The gang whose members are placed as a whole, if the ask may be one of them; else None.

        Where placeholders are placed as a whole, real requests are no members.
        """
        gang: AtomicGang | None = self.app.whole_gang if self.placeholder or self.app.gang is None else None
        return gang if gang is None else gang.part_of(self.task_group)

    @property
    def failed_attempts(self) -> list[FailedAttempts]:
        """Failed attempts to place the ask or equivalent ones, by reason, the latest last."""
        found, gang = self._attempts_by_class(), self.whole_gang
        if self.extras is not None and self.extras.log is not None:
            found += self.extras.log.since(INT64_MIN, is_stopped=True)
        if gang is not None and self.key in gang.needed and gang.request is not None:
            found += gang.request.failed_attempts
        return merged(found)

    def _attempts_by_class(self) -> list[FailedAttempts]:
        pending_class, created = self.pending_class, self.created
        ask_class, number, found = pending_class.ask_class, pending_class.number, list[FailedAttempts]()
        if self.extras is not None:
            found += self.extras.earlier
        if ask_class.log is not None:
            found += ask_class.log.since(created, is_stopped=ask_class.unschedulable)
        if pending_class.log is not None:
            found += pending_class.log.since(created, is_stopped=pending_class.over_limit)
        for queue in self.app.chain:
            if number in queue.attempts:
                found += queue.attempts[number].since(created, is_stopped=number in queue.over_quota)
        return found

    @property
    def failed_starts(self) -> FailedStarts | None:
        """Failures of the RM to start the allocations; None without any."""
        return None if self.extras is None else self.extras.failed_starts

    def is_paused(self, now: int) -> bool:
        """Return True if the request is not tried yet after the RM could not start it."""
        failed = self.failed_starts
        return failed is not None and now < failed.paused_until

    @property
    def unpermitted(self) -> str:
        """Reason for which a permit policy refused the latest placement; empty if none did."""
        refusals = self.refusals
        return next(iter(refusals)) if isinstance(refusals, Unpermitted) else ""

    @property
    def tries(self) -> int:
        """Number of times the ask was marked unschedulable."""
        return 0 if self.extras is None else self.extras.tries

    @property
    def gang_blocked(self) -> bool:
        """True if the ask is not scheduled because of its gang; it is then unschedulable as well."""
        return False if self.extras is None else self.extras.gang_blocked

    @property
    def gang(self) -> AtomicGang | None:
        """The atomic gang that this ask represents with all its members; None for an ordinary ask."""
        return None if self.extras is None else self.extras.gang

    def tried(self) -> None:
        """Count one more time that the ask was marked unschedulable."""
        self.ensure_extras().tries += 1

    @property
    def making_way(self) -> list[Resource]:
        """Resources of victims that have not ended yet; empty unless the ask waits for an eviction."""
        eviction = self.eviction
        return list(eviction.outstanding.values()) if eviction is not None and eviction.is_awaited else []

    @property
    def label(self) -> str:
        """Name of the ask in messages."""
        return f"ask {self.key} of application {self.app.id}"

    def __repr__(self) -> str:
        return f"<Ask {self.key} {self.state} x{self.pending}>"


class NodeOwner(Ask):
    """Owner of nodes: stands among their reservations for an application that has them alone.

    It is no request, and cannot be cancelled like a reservation.
    """

    __slots__ = ("nodes",)

    def __init__(self, app: Application, pending_class: PendingClass) -> None:
        super().__init__(f"{app.label} alone", app, NOTHING, 0, INT32_MIN, 0, 0, DEFAULT_SPEC)
        self.pending_class = pending_class
        self.nodes: dict[Node, None] = {}
        self.ensure_extras().gang = app.whole_gang
