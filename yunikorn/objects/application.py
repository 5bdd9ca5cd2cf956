"""Applications: what a user submits, with its asks, its allocations and its history."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from yunikorn.objects.app_requests import Requests
from yunikorn.objects.ask import INT32_MIN, Ask
from yunikorn.objects.gang import SOFT
from yunikorn.objects.sorted_members import QueueMember
from yunikorn.objects.state_log import StateLogEntry
from yunikorn.resources import NOTHING, Tally
from yunikorn.states import ACCEPTED, APPLICATION, COMPLETING, FAILING, FINAL_STATES, NEW, RUNNING, STARTING

if TYPE_CHECKING:
    from collections.abc import Hashable

    from yunikorn.clock import Timer
    from yunikorn.objects.allocation import Allocation
    from yunikorn.objects.atomic_gang import AtomicGang
    from yunikorn.objects.execution_timeout import ExecutionTimeout
    from yunikorn.objects.gang import Gang
    from yunikorn.objects.queue import Queue
    from yunikorn.objects.sorted_members import SortKey
    from yunikorn.objects.usage_tracker import UsageTracker

COUNTED = frozenset({STARTING, RUNNING})
"""States in which an application counts as running (decisions, "States")."""

LOG_LENGTH = 128
"""States that are kept of an application: how it began, and what was last.

One that sleeps and wakes for months comes to a new one every few minutes.
"""


def max_apps_message(holder: Queue | UsageTracker) -> str:
    """What a queue or limit says where as many applications run as may."""
    return f"{holder.label} runs {holder.count} of at most {holder.max_applications} applications"


class Application(QueueMember):
    """An application of a partition."""

    __slots__ = (
        "_queue",
        "admission_class",
        "admission_key",
        "admitted",
        "allocations",
        "arrival",
        "asks",
        "atomic",
        "backoff_timer",
        "booked",
        "by_key",
        "chain",
        "counted",
        "counted_by_limits",
        "execution_timeout",
        "finished",
        "forced",
        "gang",
        "gang_style",
        "group",
        "groups",
        "id",
        "leaving",
        "listener",
        "misses",
        "node_order",
        "not_started",
        "owner",
        "queue_name",
        "reason",
        "requests",
        "state",
        "state_log",
        "submitted",
        "tags",
        "timer",
        "tracked",
        "usage_dirty",
        "user",
        "waiting_since",
    )

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
        listener: Callable[[Application, str], None],
    ) -> None:
        super().__init__(arrival, INT32_MIN)
        # What every decision looks at comes first: there it lies together where this is compiled.
        self._queue: Queue | None = None
        self.requests = Requests()
        self.backoff_timer: Timer | None = None
        """While it is left alone because of requests that found no node: what wakes it."""
        self.admitted = True
        """Whether the policy of its queue lets it take part."""
        self.not_started = True
        """Whether it has not started: then it needs a place among the running applications too."""
        self.usage_dirty = False
        """Whether what it holds differs from what is `booked`."""
        self.chain: tuple[Queue, ...] = ()
        """Its queue and all above, leaf first."""
        self.owner: tuple[UsageTracker, ...] = ()
        """Those of the `tracked` that have a limit."""
        self.allocations: dict[str, Allocation] = {}
        self.by_key: dict[str, list[Allocation]] | None = None
        """The same by key of their asks, once somebody has looked for one by key (see `of_key`)."""
        self.state = NEW
        self.waiting_since = submitted
        self.misses = 0
        """Requests in a row that found no node, where its queue counts them."""
        self.id = app_id
        self.submitted = submitted
        # The rest is looked at when it comes, changes or goes.
        self.user = user
        self.groups: tuple[str, ...] = tuple(groups)
        self.queue_name = queue_name
        self.tags = tags
        self.arrival = arrival
        self.listener = listener
        self.state_log: list[StateLogEntry] = []
        self.reason = ""
        """Why it was rejected or failed."""
        self.forced = False
        """Whether it must be taken even where placement finds no queue (recovery)."""
        self.finished = 0
        self.leaving = False
        """Whether the RM is taking it away: then it does not complete on the way out."""
        self.timer: Timer | None = None
        self.execution_timeout: ExecutionTimeout | None = None
        """How long it may run; None for as long as it likes."""
        self.gang: Gang | None = None
        """Its placeholders, if it is a gang that has them."""
        self.gang_style = SOFT
        """The style of its gang, also if placeholders make it one later."""
        self.atomic: AtomicGang | None = None
        """Its members, if it is a gang that is placed as a whole."""
        self.counted = False
        """Whether it counts as running in its queue and all above."""
        self.counted_by_limits = False
        """Whether it counts as running for its user and group; what is `usage_dirty` is counted later."""
        self.asks: dict[str, Ask] = {}
        self.group = ""
        """The one group whose limits count for it; empty when none does."""
        self.tracked: tuple[UsageTracker, ...] = ()
        """Where its usage is booked for its user and group."""
        self.booked: Tally = {}
        """What of all that it holds is booked there, if none of them has a limit."""
        self.node_order = ""
        self.admission_class: Hashable = None
        self.admission_key: SortKey | None = None
        """Where it stands in its admission class, if its queue has admission classes."""

    @property
    def label(self) -> str:
        """What a message calls it."""
        return f"application {self.id}"

    @property
    def queue(self) -> Queue | None:
        """The leaf queue it is in."""
        return self._queue

    @property
    def fair_total(self) -> Mapping[str, int]:
        """What its share is taken of (decision 17)."""
        return self._queue.measures()[1] if self._queue is not None else NOTHING

    @property
    def is_final(self) -> bool:
        """Whether it has ended."""
        return self.state in FINAL_STATES

    def waits(self) -> bool:
        """Whether anything of it is to be tried in its turn."""
        return (
            self.requests.bits != 0
            and self.backoff_timer is None
            and self.admitted
            and self._queue is not None
        )

    @property
    def has_waiting(self) -> bool:
        """Whether any ask waits, unschedulable ones included."""
        return self.requests.any_wait

    @property
    def max_apps_blocker(self) -> Queue | UsageTracker | None:
        """Where as many applications run as may, so that it cannot start; None when it can, or has."""
        if self.not_started:
            for queue in self.chain:
                if queue.full:
                    return queue
            for tracker in self.owner:
                if tracker.full:
                    return tracker
        return None

    @property
    def max_apps_blockers(self) -> Iterator[Queue | UsageTracker]:
        """Everything that keeps it from starting: queues leaf first, then limits."""
        if self.not_started:
            yield from (queue for queue in self.chain if queue.full)
            yield from (tracker for tracker in self.owner if tracker.full)

    @property
    def max_apps_reason(self) -> str:
        """Why it may not start, empty when it may or has; it waits until another has ended."""
        holder = self.max_apps_blocker
        return "" if holder is None else max_apps_message(holder)

    def enter(self, queue: Queue) -> None:
        """Join a leaf queue."""
        self._queue = queue
        self.chain = queue.chain

    def leave(self) -> None:
        """Part from its queue; the name of it stays in `queue_name`."""
        self._queue = None
        self.chain = ()

    # -- allocations ----------------------------------------------------------------------------------

    def obtain(self, allocation: Allocation) -> None:
        """Enter an allocation into its books."""
        self.allocations[allocation.uuid] = allocation
        if self.by_key is not None:
            self.by_key.setdefault(allocation.key, []).append(allocation)

    def lose(self, allocation: Allocation) -> None:
        """Undo `obtain`."""
        del self.allocations[allocation.uuid]
        if self.by_key is not None:
            alike = self.by_key[allocation.key]
            alike.remove(allocation)
            if not alike:
                del self.by_key[allocation.key]

    def of_key(self, key: str) -> list[Allocation]:
        """Its allocations for the ask of this key, oldest first.

        An RM that speaks of allocations by key does so of all of them: from the first time on they are kept
        by key as well.
        """
        if self.by_key is None:
            self.by_key = {}
            for allocation in self.allocations.values():
                self.by_key.setdefault(allocation.key, []).append(allocation)
        return list(self.by_key.get(key, ()))

    # -- states -------------------------------------------------------------------------------------

    def fire(self, event: str, reason: str = "") -> bool:
        """Take it through an event of its state machine; returns whether the state changed."""
        return APPLICATION.fire(self, event, reason)

    def run(self, reason: str = "") -> None:
        """Progress to the next active state; nothing to do where it is running already."""
        if self.state != RUNNING:
            APPLICATION.fire(self, "run", reason)

    def on_state_change(self, before: str, reason: str) -> None:
        """Called by the state machine after a change."""
        self.listener(self, reason)

    def log_state(self, now: int, reason: str) -> StateLogEntry:
        """Write the present state into the state log: of a long one the middle is forgotten."""
        entry = StateLogEntry(self.state, now, reason)
        log = self.state_log
        log.append(entry)
        if len(log) > LOG_LENGTH:
            del log[LOG_LENGTH // 2]
        return entry

    @property
    def is_idle(self) -> bool:
        """Whether it is active, but has nothing and wants nothing: then it is completing."""
        if self.allocations or self.has_waiting or self.leaving:
            return False
        return self.state in (ACCEPTED, STARTING, RUNNING)

    def conclude(self) -> None:
        """Without anything it has or wants it is completing; if it was failing, it has failed."""
        if self.state == FAILING:
            if not (self.allocations or self.has_waiting or self.leaving):
                self.fire("fail", self.reason)
        elif self.is_idle:
            self.fire("complete", "no requests and no allocations left")

    @property
    def can_wake(self) -> bool:
        """Whether a new ask brings it back to the next active state."""
        return self.state in (NEW, COMPLETING)

    # -- standing -----------------------------------------------------------------------------------

    def mark_dirty(self) -> None:
        """Something about it changed that its place in the queue's line may depend on."""
        queue = self._queue
        if not self.is_dirty and queue is not None:
            self.is_dirty = True
            queue.dirty.append(self)
            if queue.policy_excluded:
                # Who takes part depends on all applications of the queue: look at it again.
                queue.activate(queue.policy_excluded)

    def learn_bits(self) -> None:
        """Some request went: nothing of its pending class is worth trying any more if it was the last."""
        bits = self.requests.bits
        self.bits &= bits << 1 if self.not_started else bits

    def set_not_started(self, not_started: bool) -> None:
        """It has started, or it starts anew: its requests stand under other bits now."""
        self.not_started = not_started
        self.bits = 0
        if self.requests.bits:
            self.activate(self.requests.bits)

    def activate(self, bits: int) -> None:
        """Requests of these pending classes are worth trying, here and in every queue above."""
        if self.not_started:
            bits <<= 1
        self.bits |= bits
        if self.block is not None:
            self.block.bits |= bits
        if self._queue is not None:
            self._queue.activate(bits)

    def reprioritise(self) -> None:
        """Compute its priority anew, and tell the queues above when it changed."""
        priority = self.requests.priority
        if priority != self.priority:
            if self._queue is not None:
                self._queue.count_priority(self.priority, priority)
            self.priority = priority

    def __repr__(self) -> str:
        return f"<Application {self.id} {self.state}>"
