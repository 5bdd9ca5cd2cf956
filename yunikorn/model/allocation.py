"""Allocations, the reasons for their end, evictions, and holds by permit policies."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from yunikorn.model.ask import WithSpec
from yunikorn.model.creation_times import created_at
from yunikorn.resources import grow, shrink
from yunikorn.states import ALLOCATED, ALLOCATION, AllocationEvent

if TYPE_CHECKING:
    from yunikorn.clock import Timer
    from yunikorn.model.application import Application
    from yunikorn.model.ask import Ask, AskSpec
    from yunikorn.model.gang import AtomicGang
    from yunikorn.model.node import Node
    from yunikorn.resources import Resource


class TerminationType(enum.IntEnum):
    """Reason for the end of an allocation or ask, numbered as in the current scheduler interface."""

    UNKNOWN = 0
    STOPPED_BY_RM = 1
    TIMEOUT = 2
    PREEMPTED_BY_SCHEDULER = 3
    PLACEHOLDER_REPLACED = 4
    SCHEDULING_FAILED_ON_RM = 5
    """The RM could not start the task: the request waits again (`docs/decisions/archive/0120`)."""


class PreemptionMode(enum.IntEnum):
    """Way in which a victim of preemption makes room: an instruction to the RM.

    See docs/decisions/archive/0204.
    """

    END = 0
    """The task ends; what follows is up to the RM."""
    REQUEUE = 1
    """The task ends, and the RM asks for it again: it starts from its beginning."""
    SUSPEND = 2
    """The task keeps its progress, and the RM asks for it again: it continues."""


ALLOCATION_EVENT: dict[TerminationType, AllocationEvent] = {
    TerminationType.UNKNOWN: "stop",
    TerminationType.STOPPED_BY_RM: "stop",
    TerminationType.TIMEOUT: "timeout",
    TerminationType.PREEMPTED_BY_SCHEDULER: "preempt",
    TerminationType.PLACEHOLDER_REPLACED: "stop",
    TerminationType.SCHEDULING_FAILED_ON_RM: "stop",
}
"""Event of the allocation's state machine for each termination type."""


def is_own(termination: TerminationType) -> bool:
    """Return True if a release of this type is the RM's own decision rather than a confirmation."""
    return termination in (
        TerminationType.STOPPED_BY_RM,
        TerminationType.UNKNOWN,
        TerminationType.SCHEDULING_FAILED_ON_RM,
    )


class Eviction:
    """Set of victims that end for a common purpose."""

    __slots__ = ("ask", "made", "node", "outstanding", "started")

    def __init__(self, ask: Ask | None, node: Node | None, started: int) -> None:
        self.ask = ask
        """The request that needs the room; None if a quota or a node became smaller."""
        self.node = node
        """The node reserved for the request; None if the request lacks room in a queue instead."""
        self.made = ask.made if ask is not None else 0
        """Value of `ask.made` at the start; the eviction has served its purpose when `ask.made` is larger."""
        self.started = started
        """Time of the decision (ns)."""
        self.outstanding: dict[str, Resource] = {}
        """Resources of the victims that have not ended yet, by uuid."""

    def add(self, victims: Iterable[Allocation]) -> None:
        """Add victims, and count their resources as `preempting` in their queues."""
        for victim in victims:
            extras = victim.ensure_extras()
            if extras.eviction is not None:
                extras.eviction.left(victim)
            extras.eviction = self
            victim.node.log_change()
            self.outstanding[victim.uuid] = victim.resource
            for queue in victim.app.chain:
                grow(queue.preempting, victim.resource)

    def left(self, victim: Allocation) -> None:
        """Remove a victim that ended for any reason, while the victim is still in its queues."""
        amount = self.outstanding.pop(victim.uuid)
        for queue in victim.app.chain:
            shrink(queue.preempting, amount)

    def resized(self, victim: Allocation, resource: Resource) -> None:
        """Update the size of a victim that has not ended yet."""
        self.left(victim)
        self.outstanding[victim.uuid] = resource
        for queue in victim.app.chain:
            grow(queue.preempting, resource)

    @property
    def is_awaited(self) -> bool:
        """True if the request still waits for the room that the eviction makes."""
        ask = self.ask
        return ask is not None and ask.eviction is self and ask.pending > 0 and ask.made == self.made


class ReportedEnds(Eviction):
    """Set of the allocations that the RM is ending by itself, such as pods with a deletion time."""

    __slots__ = ("allocations",)

    def __init__(self) -> None:
        super().__init__(None, None, 0)
        self.allocations: dict[str, Allocation] = {}
        """Allocations that have not ended yet, by uuid."""

    def add(self, victims: Iterable[Allocation]) -> None:
        """Add allocations, and count their resources as `preempting` in their queues."""
        added = [*victims]
        super().add(added)
        self.allocations.update((one.uuid, one) for one in added)

    def left(self, victim: Allocation) -> None:
        """Remove an allocation that ended, while the allocation is still in its queues."""
        super().left(victim)
        del self.allocations[victim.uuid]

    def resized(self, victim: Allocation, resource: Resource) -> None:
        """Update the size of an allocation that has not ended yet."""
        super().resized(victim, resource)
        self.allocations[victim.uuid] = victim


class AllocationExtras:
    """Hold and termination state of an allocation that has not ended; created on first use."""

    __slots__ = ("eviction", "hold", "placeholder_requested", "releasing", "replacement", "replaces", "timer")

    def __init__(self) -> None:
        self.eviction: Eviction | None = None
        """The eviction that this allocation is a victim of, if any."""
        self.placeholder_requested: int | None = None
        """Creation time of the request for the placeholder that this allocation has replaced (ns)."""
        self.releasing: TerminationType | None = None
        """Termination type of the release sent to the RM, until the RM confirms that release."""
        self.replacement: Allocation | None = None
        """The real allocation that replaces this placeholder once the RM confirms the release."""
        self.replaces: Allocation | None = None
        """The placeholder that this allocation will replace; until then only another node's usage includes
        the allocation."""
        self.timer: Timer | None = None
        """Timer that ends the allocation when its execution timeout expires, if the allocation has one."""
        self.hold: PlacementHold | None = None
        """Hold by a permit policy, until the allocation is announced to the RM; None for most."""


class Allocation(WithSpec):
    """Resources of a node that are assigned to an application."""

    __slots__ = (
        "app",
        "ask",
        "extras",
        "key",
        "node",
        "placed",
        "priority",
        "queue_name",
        "resource",
        "state",
        "uuid",
    )

    def __init__(
        self,
        uuid: str,
        key: str,
        app: Application,
        ask: Ask | None,
        node: Node,
        resource: Resource,
        priority: int,
        spec: AskSpec,
        placed: int,
    ) -> None:
        self.uuid = uuid
        self.key = key
        self.app = app
        self.ask = ask
        """The ask that led to this allocation; None for an allocation reported by an RM (recovery)."""
        self.node = node
        self.queue_name = app.chain[0].path
        """Path of the application's leaf queue at the time of placement."""
        self.resource = resource
        self.priority = priority
        self.spec = spec
        """Spec of the ask at the time of placement."""
        self.placed = placed
        """Time of placement (ns)."""
        self.state = ALLOCATED
        self.extras: AllocationExtras | None = None
        """None for most allocations; read its fields through the properties below."""

    @property
    def created(self) -> int:
        """Creation time of the request as the RM reported it, else the time of placement (ns)."""
        return created_at(self.spec.tags, self.placed)

    @property
    def label(self) -> str:
        """Name of the allocation in messages."""
        return f"allocation {self.uuid} of application {self.app.id}"

    def resize(self, resource: Resource) -> None:
        """Change the size; the node lists the allocation again, after those that came later."""
        # Without extras, the order in the node is that in the application (see `kept_candidates`).
        self.ensure_extras()
        self.resource = resource
        if self.app.core is not None:
            self.app.core.forget()

    def end(self, event: AllocationEvent) -> None:
        """Apply the event `stop`, `preempt` or `timeout`; raise `StateError` if the allocation has ended."""
        self.state = ALLOCATION.next(self.label, self.state, event)
        if self.extras is not None and self.extras.timer is not None:
            self.extras.timer.cancel()
            self.extras.timer = None

    # -- termination --------------------------------------------------------------------------------

    def ensure_extras(self) -> AllocationExtras:
        """Return the extras for modification; create them on first use."""
        if self.extras is None:
            self.extras = AllocationExtras()
        return self.extras

    def mark_releasing(self, termination: TerminationType) -> None:
        """Note that the RM was asked to end the allocation, which is no possible victim from now on."""
        self.ensure_extras().releasing = termination
        self.node.log_change()

    @property
    def eviction(self) -> Eviction | None:
        """The eviction that this allocation is a victim of, if any."""
        return None if self.extras is None else self.extras.eviction

    @property
    def releasing(self) -> TerminationType | None:
        """Termination type of the release sent to the RM, until the RM confirms that release."""
        return None if self.extras is None else self.extras.releasing

    @property
    def replacement(self) -> Allocation | None:
        """The real allocation that replaces this placeholder once the RM confirms the release."""
        return None if self.extras is None else self.extras.replacement

    @property
    def replaces(self) -> Allocation | None:
        """The placeholder that this allocation will replace.

        Until then the allocation is not accounted for, except on its node if that differs from the
        placeholder's.
        """
        return None if self.extras is None else self.extras.replaces

    @property
    def placeholder_requested(self) -> int | None:
        """Creation time of the request for the placeholder that this allocation has replaced (ns)."""
        return None if self.extras is None else self.extras.placeholder_requested

    @property
    def timer(self) -> Timer | None:
        """Timer that ends the allocation when its execution timeout expires, if the allocation has one."""
        return None if self.extras is None else self.extras.timer

    @property
    def hold(self) -> PlacementHold | None:
        """Hold by a permit policy, of which the RM is not informed; None for most allocations."""
        return None if self.extras is None else self.extras.hold

    def __repr__(self) -> str:
        return f"<Allocation {self.uuid} on {self.node.id} {self.state}>"


class PlacementHold:
    """Placement that permit policies hold, or those of all members of an atomic gang.

    Held placements are booked, and not announced to the RM (docs/decisions/archive/0069).
    """

    __slots__ = (
        "asked",
        "at",
        "before",
        "deadlines",
        "gang",
        "group",
        "member",
        "members",
        "number",
        "place",
        "policy",
        "since",
        "until",
        "why",
    )

    def __init__(
        self,
        members: Sequence[Allocation],
        number: int,
        before: tuple[int, int],
        gang: AtomicGang | None = None,
    ) -> None:
        self.members = members
        self.number = number
        """Number in the order of placement."""
        self.before = before
        """`waiting_since` and `misses` of the application before the placement."""
        self.gang = gang
        """The gang whose members these are; None for a single placement."""
        self.since = members[0].placed
        """Time of placement (ns)."""
        self.member = self.at = 0
        """Positions of the member and of the policy to be asked next; earlier ones are permitted."""
        self.policy = self.why = ""
        """Name and reason of the policy that holds the placement; empty before the first answer."""
        self.deadlines: dict[str, int] = {}
        """Time (ns) at which the placement is taken back unless permitted, by the name of the policy."""
        self.place: tuple[int, str] | None = None
        """Position of the policy that holds the placement, and its group; None without a group."""
        self.group: str | None = None
        """Group that the policy has named for the member; None before it was asked."""
        self.until = self.since
        """Time at which the policy is asked again (ns)."""
        self.asked = 0
        """Number of changes of groups when the policy was last asked."""

    @property
    def app(self) -> Application:
        """The application of all members."""
        return self.members[0].app

    @property
    def message(self) -> str:
        """Message that names the policy and its reason."""
        return f"held by permit policy {self.policy}: {self.why}"


Unit = tuple[Allocation, ...]
"""Allocations that end together: one, a step of a gang, or a whole gang."""
