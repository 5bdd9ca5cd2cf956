"""Applications: their requests and allocations, their states, and their position in a queue."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from yunikorn.api import PastService
from yunikorn.api.views import NO_USAGE
from yunikorn.clock import SECOND
from yunikorn.index.sorted_members import QueueMember
from yunikorn.model.app_requests import Requests
from yunikorn.model.gang import SOFT
from yunikorn.model.running_service import RunningService
from yunikorn.resources import INT32_MIN, NOTHING, Tally, grow
from yunikorn.states import (
    ACCEPTED,
    ADVANCE,
    APPLICATION,
    COMPLETING,
    FAILING,
    NEW,
    RESUMING,
    RUNNING,
    STARTING,
    StateLogEntry,
)

if TYPE_CHECKING:
    from collections.abc import Hashable

    from yunikorn.api import UsageView
    from yunikorn.clock import Timer
    from yunikorn.index.sorted_blocks import SortKey
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.ask import Ask
    from yunikorn.model.gang import AtomicGang, Gang, GangCore
    from yunikorn.model.gang_topology import GangTopology
    from yunikorn.model.queue import Queue
    from yunikorn.model.usage_history import UsageHistory
    from yunikorn.model.usage_tracker import UsageTracker
    from yunikorn.states import ApplicationEvent


class ExecutionTimeout:
    """Time limit of an application (ns), counted from its first start (docs/decisions/archive/0022)."""

    __slots__ = ("amount", "deadline", "timer")

    def __init__(self, amount: int) -> None:
        self.amount = amount
        self.deadline: int | None = None
        """Time at which the limit is reached (ns); None until the application first runs."""
        self.timer: Timer | None = None
        """Timer of the deadline while the application runs."""

    def stop(self) -> None:
        """Stop the timer when the application no longer runs, temporarily or finally."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class ApplicationHold:
    """Hold of an application by an admission policy."""

    __slots__ = ("at", "latest", "number", "policy", "since", "until", "why", "withdraw")

    def __init__(
        self, policy: str, why: str, since: int, until: int, at: int, withdraw: Callable[[], None]
    ) -> None:
        self.policy = policy
        """Name of the policy."""
        self.why = why
        self.since = since
        """Time at which the application was first held (ns)."""
        self.latest = since
        """Time of the latest question (ns)."""
        self.number = 1
        """Number of questions so far."""
        self.until = until
        """Time at which the policy is asked again (ns)."""
        self.at = at
        """Position of the policy."""
        self.withdraw = withdraw
        """Ends the questions about the application; called when it leaves."""

    @property
    def message(self) -> str:
        """Message that names the policy and its reason."""
        return f"held by admission policy {self.policy}: {self.why}"


class LifetimeUsage:
    """Resource use of an application until the latest end of an allocation, and its ended tasks."""

    __slots__ = (
        "completed",
        "completed_time",
        "ended",
        "history",
        "peak",
        "placeholders",
        "preempted",
        "service",
        "unlisted",
        "used",
    )

    def __init__(self) -> None:
        self.peak: Tally = {}
        """Highest use per type, without placeholders."""
        self.used: dict[str, Tally] = {}
        """Amounts times nanoseconds by instance type, of allocations that were not preempted."""
        self.preempted: dict[str, Tally] = {}
        """Likewise of preempted allocations."""
        self.placeholders: dict[str, Tally] = {}
        """Likewise of placeholders that were not preempted."""
        self.unlisted: Tally = {}
        """Amounts times nanoseconds that do not follow from the size and the time of placement of an
        allocation: before it was resized, and while permit policies held it."""
        self.ended = self.completed = self.completed_time = 0
        self.service: RunningService | None = None
        """Service of the running allocations; None until it is first read."""
        self.history: UsageHistory | None = None
        """Usage that decays; None unless the policy of the queue has a half-life."""


COUNTED = frozenset({STARTING, RUNNING})
"""States in which an application counts as running (docs/states.md)."""
REACTIVATED = frozenset({NEW, COMPLETING})
"""States in which a new ask moves an application to its next active state."""

LOG_LENGTH = 128
"""Maximum number of states kept in the log of an application: the first ones and the latest ones.

The limit matters for an application that alternates between Running and Completing for months."""


def max_apps_message(holder: Queue | UsageTracker) -> str:
    """Return the message of a queue or limit that has reached its maximum of running applications."""
    return f"{holder.label} runs {holder.count} of at most {holder.max_applications} applications"


class Application(QueueMember):
    """An application of a partition."""

    __slots__ = (
        "_queue", "admission_class", "admission_key", "admitted", "allocations", "arrival",
        "ask_priority", "asks", "atomic", "backoff_timer", "booked", "by_key", "chain", "core",
        "counted", "counted_by_limits", "execution_timeout", "finished", "forced", "gang",
        "gang_style", "group", "groups", "held", "id", "leaving", "lifetime", "limit_trackers",
        "misses", "node_order", "not_started", "paused", "queue_name", "reason", "requests",
        "state", "state_log", "submitted", "tags", "timer", "topology", "tracked", "unannounced",
        "unanswered", "usage_dirty", "user", "waiting_since",
    )  # fmt: skip

    def __init__(
        self,
        app_id: str,
        user: str,
        groups: Sequence[str],
        queue_name: str,
        tags: Mapping[str, str],
        *,
        submitted: int,
        arrival: int,
    ) -> None:
        super().__init__(arrival, INT32_MIN)
        # Attributes used by every decision come first: compiled builds store them next to each other.
        self._queue: Queue | None = None
        self.requests = Requests()
        self.backoff_timer: Timer | None = None
        """Timer that ends the back-off after requests that fit no node; None outside of a back-off."""
        self.paused = False
        """True while a back-off or an admission policy keeps the requests from being tried."""
        self.admitted = True
        """False while the policy of its queue excludes the application from scheduling."""
        self.not_started = True
        """True until it counts as running; to start, it must be within the limits on running applications."""
        self.usage_dirty = False
        """True if `allocated` differs from `booked`."""
        self.chain: tuple[Queue, ...] = ()
        """The leaf queue and all its parents, leaf first."""
        self.limit_trackers: tuple[UsageTracker, ...] = ()
        """Usage trackers among `tracked` that have a limit."""
        self.allocations: dict[str, Allocation] = {}
        self.by_key: dict[str, list[Allocation]] | None = None
        """Allocations by the key of their ask; None until the first look-up by key (see `of_key`)."""
        self.state, self.waiting_since = NEW, submitted
        self.misses = 0
        """Number of consecutive requests that fit no node, if its queue has a back-off."""
        self.id, self.submitted, self.arrival = app_id, submitted, arrival
        # Attributes used only when the application is added, changed or removed.
        self.user, self.queue_name = user, queue_name
        self.groups: tuple[str, ...] = tuple(groups)
        self.tags: Mapping[str, str] = MappingProxyType(tags if type(tags) is dict else dict(tags))
        self.state_log: list[StateLogEntry] = []
        self.reason, self.finished = "", 0
        self.forced = False
        """True if the application must be accepted even if no placement rule matches (recovery)."""
        self.leaving = False
        """True while the RM removes the application, which then does not become Completing."""
        self.lifetime: LifetimeUsage | None = None
        """None until an allocation ends or the service is read."""
        self.timer: Timer | None = None
        self.execution_timeout: ExecutionTimeout | None = None
        self.gang: Gang | None = None
        self.gang_style = SOFT
        """Gang scheduling style, also of placeholders that arrive later."""
        self.atomic: AtomicGang | None = None
        self.core: GangCore | None = None
        """Members that end together; None if each allocation may be preempted by itself."""
        self.topology: GangTopology | None = None
        """Requirements of the tasks on the topology; None without any."""
        self.counted = False
        """True if the application counts as running in its leaf queue and all parents."""
        self.counted_by_limits = False
        """True if it counts as running for its user and group; updated late while `usage_dirty` is set."""
        self.asks: dict[str, Ask] = {}
        self.group = ""
        """The group whose limits apply to the application; empty if no group limit applies."""
        self.tracked: tuple[UsageTracker, ...] = ()
        """Usage trackers of its user and group in all its queues."""
        self.booked: Tally = {}
        """Resources included in the usage of `tracked`, if no tracker has a limit."""
        self.node_order = ""
        self.admission_class: Hashable = None
        self.admission_key: SortKey | None = None
        """Position in its admission class, if its queue has admission classes."""
        self.ask_priority: int | None = None
        """Priority of all its asks, set by a submit policy; None for the priority of each ask."""
        self.held: ApplicationHold | None = None
        self.unannounced = 0
        """Number of its allocations that permit policies hold."""
        self.unanswered = 0
        """Number of its asks that wait for the answer of a submit policy; they are not in `asks` yet."""

    @property
    def label(self) -> str:
        """Name of the application in messages."""
        return f"application {self.id}"

    @property
    def queue(self) -> Queue | None:
        """The leaf queue of the application; None after the application has left."""
        return self._queue

    @property
    def fair_total(self) -> Mapping[str, int]:
        """Resources that the fair share is relative to (docs/decisions/archive/0017)."""
        return self._queue.measures()[1] if self._queue is not None else NOTHING

    def is_schedulable(self) -> bool:
        """Return True if any request may be scheduled at the application's turn."""
        return self.requests.bits != 0 and not self.paused and self.admitted and self._queue is not None

    @property
    def has_waiting(self) -> bool:
        """True if any ask waits, including unschedulable asks."""
        return self.requests.any_wait

    @property
    def has_unplaced(self) -> bool:
        """True if any ask waits to be placed, or to be checked by a submit policy before."""
        return self.requests.any_wait or self.unanswered > 0

    @property
    def max_apps_blocker(self) -> Queue | UsageTracker | None:
        """The first queue or limit whose maximum of running applications prevents the start, or None."""
        if self.not_started:
            for queue in self.chain:
                if queue.full:
                    return queue
            for tracker in self.limit_trackers:
                if tracker.full:
                    return tracker
        return None

    @property
    def max_apps_blockers(self) -> Iterator[Queue | UsageTracker]:
        """All queues and limits that prevent the start: queues from leaf to root, then limits."""
        if self.not_started:
            yield from (queue for queue in self.chain if queue.full)
            yield from (tracker for tracker in self.limit_trackers if tracker.full)

    @property
    def max_apps_reason(self) -> str:
        """Message that names the limit which prevents the start; empty if there is no such limit."""
        holder = self.max_apps_blocker
        return "" if holder is None else max_apps_message(holder)

    def enter(self, queue: Queue) -> None:
        """Assign the application to a leaf queue."""
        self._queue = queue
        self.chain = queue.chain

    def leave(self) -> None:
        """Detach the application from its queue; `queue_name` keeps the name."""
        self._queue = None
        self.chain = ()

    # -- allocations ----------------------------------------------------------------------------------

    def obtain(self, allocation: Allocation) -> None:
        """Add an allocation."""
        self.allocations[allocation.uuid] = allocation
        if self.by_key is not None:
            self.by_key.setdefault(allocation.key, []).append(allocation)

    def lose(self, allocation: Allocation) -> None:
        """Remove an allocation."""
        if self.lifetime is not None and self.lifetime.service is not None:
            self.lifetime.service.leave(allocation)
        del self.allocations[allocation.uuid]
        if self.by_key is not None:
            alike = self.by_key[allocation.key]
            alike.remove(allocation)
            if not alike:
                del self.by_key[allocation.key]

    def of_key(self, key: str) -> list[Allocation]:
        """Return the allocations of the ask with this key, oldest first.

        The index by key is built on the first call and maintained from then on: an RM that names allocations
        by key does so for all of them.
        """
        if self.by_key is None:
            self.by_key = {}
            for allocation in self.allocations.values():
                self.by_key.setdefault(allocation.key, []).append(allocation)
        return list(self.by_key.get(key, ()))

    @property
    def allocations_by_node(self) -> dict[str, list[Allocation]]:
        """Allocations by the id of their node; computed on every access."""
        found: dict[str, list[Allocation]] = {}
        for allocation in self.allocations.values():
            found.setdefault(allocation.node.id, []).append(allocation)
        return found

    def ensure_lifetime(self) -> LifetimeUsage:
        """Return the use over the life for modification; create it on first use."""
        if self.lifetime is None:
            self.lifetime = LifetimeUsage()
        return self.lifetime

    @property
    def usage(self) -> UsageView:
        """Usage by owner that the policy of the queue reads."""
        return NO_USAGE if self._queue is None else self._queue.order.usage

    @property
    def past(self) -> PastService:
        """Service that the application has received, and its ended tasks."""
        if self._queue is None:
            return PastService()
        lifetime = self.ensure_lifetime()
        total = dict(lifetime.unlisted)
        for usage in (lifetime.used, lifetime.preempted, lifetime.placeholders):
            for amounts in usage.values():
                grow(total, amounts)
        if lifetime.service is None:
            lifetime.service = RunningService(self.allocations)
        lifetime.service.add_to(total, self.allocated, self._queue.cluster.now())
        served = {name: amount / SECOND for name, amount in total.items() if amount > 0}
        recent = NOTHING if lifetime.history is None else lifetime.history.recent()
        return PastService(served, recent, lifetime.ended, lifetime.completed, lifetime.completed_time)

    # -- states -------------------------------------------------------------------------------------

    def log_state(self, now: int, reason: str) -> StateLogEntry:
        """Append the present state to the state log; drop an entry in the middle if the log is too long."""
        entry = StateLogEntry(self.state, now, reason)
        log = self.state_log
        log.append(entry)
        if len(log) > LOG_LENGTH:
            del log[LOG_LENGTH // 2]
        return entry

    @property
    def is_idle(self) -> bool:
        """True if the application is active but has no allocations and no requests left."""
        if self.allocations or self.has_unplaced or self.leaving or self.held is not None:
            return False
        return self.state in (ACCEPTED, STARTING, RUNNING)

    # -- position in the queue ----------------------------------------------------------------------

    def mark_dirty(self) -> None:
        """Mark the application as changed, so that its queue updates its position."""
        queue = self._queue
        if not self.is_dirty and queue is not None:
            self.is_dirty = True
            queue.dirty.append(self)
            if queue.policy_excluded:
                # Admission depends on all applications of the queue: evaluate the excluded ones again.
                queue.activate(queue.policy_excluded)

    def learn_bits(self) -> None:
        """Update the bits after a request was removed: its pending class may have no request left."""
        bits = self.requests.bits
        self.bits &= bits << 1 if self.not_started else bits

    def set_not_started(self, not_started: bool) -> None:
        """Set `not_started`, and switch the requests to the corresponding bits of their pending classes."""
        self.not_started = not_started
        self.bits = 0
        if self.requests.bits:
            self.activate(self.requests.bits)

    def activate(self, bits: int) -> None:
        """Make requests of these pending classes schedulable in the application and all its queues."""
        if self.not_started:
            bits <<= 1
        self.bits |= bits
        if self.block is not None:
            self.block.bits |= bits
        if self._queue is not None:
            self._queue.activate(bits)

    def reprioritise(self) -> None:
        """Recompute the priority and propagate a change to the queues."""
        self.set_priority(self.requests.priority)

    def set_priority(self, priority: int) -> None:
        """Set the priority, which is that of the requests, and propagate a change to the queues."""
        if priority != self.priority:
            if self._queue is not None and self.held is None:
                self._queue.count_priority(self.priority, priority)
            self.priority = priority

    def sort_asks_again(self) -> None:
        """Sort the asks, their groups and gangs by the present orders of the asks."""
        if self.gang is not None:
            for group in self.gang.groups.values():
                group.sort_again()
        if self.whole_gang is not None:
            self.whole_gang.sort_again()
        self.requests.sort_again()

    @property
    def whole_gang(self) -> AtomicGang | None:
        """Members or placeholders that are placed as a whole; None without any."""
        return self.atomic if self.gang is None else self.gang.together

    def alone(self, task_group: str) -> str:
        """Return the level of which a task has its domain alone; empty for none.

        A task beside a gang, such as a driver, has none.
        """
        is_member = bool(task_group) or self.whole_gang is None
        return self.topology.exclusive if is_member and self.topology is not None else ""

    def hold(self, hold: ApplicationHold) -> None:
        """Keep the application from being scheduled; it must not have pending asks yet."""
        self.held, self.paused = hold, True

    def end_hold(self) -> None:
        """Let the application be scheduled again; its queues now count its priority and its requests."""
        self.held, self.paused = None, self.backoff_timer is not None
        if self._queue is not None:
            self._queue.count_priority(INT32_MIN, self.priority)
        self.mark_dirty()
        self.activate(self.requests.bits)

    def __repr__(self) -> str:
        return f"<Application {self.id} {self.state}>"


class ApplicationStates:
    """Changes of the states of applications: which event moves an application, and when."""

    __slots__ = ("_entered",)

    def __init__(self, entered: Callable[[Application, str], None]) -> None:
        """Create for a partition; `entered` does what follows from each new state, with its reason."""
        self._entered = entered

    def fire(self, app: Application, event: ApplicationEvent, reason: str = "") -> bool:
        """Apply an event of the state machine; return True if the state changed.

        Raises `StateError` if the state does not allow the event.
        """
        target = APPLICATION.moves.get((app.state, event)) or APPLICATION.next(app.label, app.state, event)
        if target == app.state:
            return False
        app.state = target
        self._entered(app, reason)
        return True

    def advance(self, app: Application, reason: str = "") -> None:
        """Move to the next active state; do nothing if the state is Running."""
        if app.state != RUNNING:
            self.fire(app, ADVANCE.get(app.state, "run"), reason)

    def start(self, app: Application) -> None:
        """Move to the next active state after a real allocation; do nothing if the state is Running."""
        if app.state == RESUMING:
            self.fire(app, ADVANCE[RESUMING], "allocation added")
        if app.state != RUNNING:
            self.fire(app, ADVANCE.get(app.state, "run"), "allocation added")

    def conclude(self, app: Application) -> None:
        """Fire `complete`, or `fail` in state Failing, if no allocations and no requests are left."""
        if app.state == FAILING:
            if not (app.allocations or app.has_waiting or app.leaving):
                self.fire(app, "fail", app.reason)
        elif app.is_idle:
            self.fire(app, "complete", "no requests and no allocations left")
