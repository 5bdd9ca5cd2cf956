"""Classes of asks: those that every node answers alike, and those of them under the same limits.

Nodes answer by ask class, and limits apply by user and group: a pending class has the requests of one ask
class under the same user and group limits, and two bits. Queues record the pending classes of their
schedulable requests as bits. `PendingClasses.schedulable` has the bits of all pending classes that may be
placed now; a bit is cleared if no request waits, if no node has room, or if a user or group limit is
exhausted.

The second bit represents the same requests in applications that have not started. These also need to be
within the limits on running applications. Where such a limit is reached, only the second bit is cleared.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from yunikorn.index.fit_index import FitIndex
from yunikorn.model.attempt_log import NO_ROOM, OVER_LIMIT, AttemptLog
from yunikorn.resources import Resource, without_zeros

if TYPE_CHECKING:
    from collections.abc import Callable

    from yunikorn.model.ask import Ask
    from yunikorn.model.node import Node
    from yunikorn.model.usage_tracker import UsageTracker

IDLE_ASK_CLASSES = 256
"""Number of idle ask classes (without waiting requests) that are kept for reuse before all idle ones are
dropped."""
IDLE_PENDING_CLASSES = 256
"""The same for pending classes."""

NOTHING_REFUSED: Mapping[str, int] = MappingProxyType({})

NO_NODES: frozenset[str] = frozenset()
_RESTRICTED = "\0restricted"
"""Marks the restrictions to nodes among the classes for predicates."""

Trackers = tuple["UsageTracker", ...]
"""Limits that apply to a request."""
Pairs = tuple[tuple[str, int], ...]
"""Names and amounts of resources."""
Key = tuple[frozenset[tuple[str, int]], str, str, tuple[Hashable, ...], Hashable]
"""Resources, name of the node order, required node, class for each predicate, value for the node order."""


class AskClass:
    """Properties and search results shared by equivalent requests."""

    is_gang = False
    """True for requests that represent gangs."""

    __slots__ = (
        "avoids", "bit", "classes", "home", "key", "log", "node_order", "pairs", "pending_classes",
        "refusals", "refused", "required", "reserving_ask", "resource", "searched_apart", "tries",
        "unschedulable", "value", "verdicts", "waiting",
    )  # fmt: skip

    def __init__(self, key: Key, resource: Resource, bit: int) -> None:
        self.key = key
        _, self.node_order, self.required, self.classes, self.value = key
        self.resource = resource
        self.pairs: Pairs = tuple(resource.items())
        self.bit = bit
        self.searched_apart = bool(self.required)
        """True if the search for a node differs, because nodes are required or avoided."""
        self.avoids = NO_NODES
        """Nodes on which requests are not placed, because the RM could not start them there."""
        self.home: HomeDomain | None = None
        """Domain of the topology in which requests must be placed; None without one."""
        self.pending_classes: dict[tuple[UsageTracker | None, ...], PendingClass] = {}
        """Pending classes by limit trackers; the key ends with an additional None for gangs whose visits are
        forced, and with two for what they grow by."""
        self.unschedulable = False
        """True if no node had room at the latest attempt."""
        self.reserving_ask: Ask | None = None
        """The request of the class that has reserved a node."""
        self.refusals: Mapping[str, int] = NOTHING_REFUSED
        """Reasons why nodes with room refused the class in the latest search, with counts."""
        self.log: AttemptLog | None = None
        """Searches without a node; None without any."""
        self.tries = 0
        """Number of times the class was marked unschedulable."""
        self.waiting = 0
        """Number of pending classes with waiting requests."""
        self.verdicts: dict[Hashable, str | None] = {}
        """Results of predicates that declare node classes, by node class: None, or the reason for a refusal.
        Ask classes may share a mapping."""
        self.refused: dict[str, tuple[int, str]] = {}
        """Refusals by other predicates, by node id: the node's version and the reason."""

    @property
    def asks(self) -> int:
        """Number of waiting requests."""
        return sum(pending_class.asks for pending_class in self.pending_classes.values())

    @property
    def is_pinned(self) -> bool:
        """True if requests of the class may be placed on drained nodes and nodes reserved for others."""
        return bool(self.required)

    def rules_out(self, node: Node) -> bool:
        """Return True if requests must not be placed on `node`, whatever room it has."""
        return False

    def log_search(self, ask: Ask, refusals: Mapping[str, int], now: int) -> None:
        """Log a search without a node; without `refusals`, for the known reasons or for lack of room."""
        log = self.log
        if log is None or (log.latest < ask.created and self.asks == 1):
            # Earlier searches do not concern the only request that waits.
            log = self.log = AttemptLog()
            refusals = refusals or {NO_ROOM: 1}
        if refusals:
            log.note(refusals, now)
        else:
            log.repeat(now)

    def tried(self) -> None:
        """Count one more time that the class was marked unschedulable."""
        self.tries += 1

    def fits(self, node: Node) -> bool:
        """Return True if `node` has room for one request and is the required node, if one is required."""
        if self.required and self.required != node.id:
            return False
        available = node.available
        for name, amount in self.pairs:
            if amount > available.get(name, 0):
                return False
        return True


class HomeDomain(Protocol):
    """Domain of the topology in which further members of a gang must be, as it is now."""

    @property
    def label(self) -> str:
        """Name of the domain in messages."""
        ...

    def suits(self, node: Node) -> bool:
        """Return True if requests may use a node of `nodes`, apart from its room."""
        ...

    def has(self, node: Node) -> bool:
        """Return True if a node is in the domain."""
        ...

    def nodes(self) -> Iterable[Node]:
        """Return the nodes of the domain."""
        ...


class RestrictedClass(AskClass):
    """Ask class of requests that avoid nodes, must be in a domain, or end in time; else as another."""

    __slots__ = ("may_borrow",)

    may_borrow: bool
    """True if requests may use nodes that are kept for a gang, because they end in time."""

    def restrict(self, avoids: frozenset[str], home: HomeDomain | None, lasts: int) -> None:
        """Set the restrictions; called with equal ones only."""
        self.avoids, self.home, self.may_borrow = avoids, home, lasts > 0
        self.searched_apart = bool(self.required or avoids) or home is not None

    def rules_out(self, node: Node) -> bool:
        """Return True if requests must not be placed on `node`."""
        return node.id in self.avoids or (self.home is not None and not self.home.has(node))

    def fits(self, node: Node) -> bool:
        """Return True if `node` has room for one request and is not ruled out."""
        return super().fits(node) and not self.rules_out(node)


class AskClasses:
    """The live ask classes of a partition."""

    def __init__(
        self, dropped: list[Callable[[AskClass], None]], bits_dropped: list[Callable[[int], None]]
    ) -> None:
        """Create without ask classes; the functions in the two lists are called with what is dropped."""
        self.dropped = dropped
        """Called with an ask class without requests that was dropped."""
        self._bits_dropped = bits_dropped
        self._ask_classes: dict[Key, AskClass] = {}
        self._free: list[int] = []
        self._used = 0
        self._idle = 0
        self.unschedulable: dict[int, AskClass] = {}
        """Ask classes for which no node had room at the latest attempt, by bit."""
        self.per_node_order: dict[str, int] = {}
        """Number of ask classes with waiting requests, by name of their node order."""
        self._fit_index = FitIndex(())
        self._unknown = False
        """True if the fit index lacks an ask class with waiting requests."""
        self._visits = 0
        """Number of uses of the fit index since the first such class appeared."""
        self.retired = 0
        """Incremented whenever the last waiting request of an ask class leaves."""

    def __iter__(self) -> Iterator[AskClass]:
        return iter(self._ask_classes.values())

    def of(
        self,
        resource: Resource,
        node_order: str = "",
        required: str = "",
        classes: tuple[Any, ...] = (),
        kind: type[AskClass] = AskClass,
        value: Any = None,
    ) -> AskClass:
        """Return the ask class for `resource`; resource types with amount 0 are ignored.

        `value` is what the node sort policy declares of the requests.
        """
        if 0 in resource.values() or type(resource) is not Resource:
            resource = without_zeros(resource)
        key = (frozenset(resource.items()), node_order, required, classes, value)
        ask_class = self._ask_classes.get(key)
        if ask_class is None:
            if self._idle >= IDLE_ASK_CLASSES and self._idle * 2 > len(self._ask_classes):
                self._drop_idle()
            ask_class = self._ask_classes[key] = kind(key, resource, self._take_bit())
            self._idle += 1
        return ask_class

    def restricted(
        self,
        ask_class: AskClass,
        avoids: frozenset[str] = NO_NODES,
        home: HomeDomain | None = None,
        lasts: int = 0,
    ) -> AskClass:
        """Return the ask class of requests of `ask_class` that avoid nodes, or must be in a domain.

        `lasts` is the number of bits of their longest run time (ns) if that matters, else 0.
        """
        if not avoids and home is None and not lasts:
            return ask_class
        _, node_order, required, classes, value = ask_class.key
        # Classes of predicates are tuples of their values; this one has a longer tuple.
        longer = (*classes, (_RESTRICTED, avoids, home, lasts))
        found = self.of(ask_class.resource, node_order, required, longer, RestrictedClass, value)
        if isinstance(found, RestrictedClass) and not found.avoids and found.home is None:
            found.restrict(avoids, home, lasts)
        return found

    def _take_bit(self) -> int:
        if self._free:
            return self._free.pop()
        self._used += 1
        return 1 << (self._used - 1)

    def refresh_unfit(self, node: Node) -> int:
        """Add the known ask classes that do not fit to `node.unfit`, and return the result as bits."""
        fit_index = self._fit_index
        if self._unknown:
            # The cost of a rebuild is amortised over the node checks that a complete index avoids, however
            # often new ask classes appear.
            self._visits += 1
            if self._visits > len(self._ask_classes):
                self._visits, self._unknown = 0, False
                fit_index = FitIndex(
                    (ask_class.bit, ask_class.pairs)
                    for ask_class in self._ask_classes.values()
                    if ask_class.waiting
                )
                self._fit_index = fit_index
        node.unfit |= fit_index.unfit_bits(node.available)
        return node.unfit

    def wait(self, ask_class: AskClass) -> None:
        """Record that one more pending class of this ask class has waiting requests."""
        if not ask_class.waiting:
            self._idle -= 1
            if not ask_class.bit & self._fit_index.known:
                self._unknown = True
            self.per_node_order[ask_class.node_order] = self.per_node_order.get(ask_class.node_order, 0) + 1
        ask_class.waiting += 1

    def leave(self, ask_class: AskClass) -> None:
        """Record that one pending class less of this ask class has waiting requests."""
        ask_class.waiting -= 1
        if not ask_class.waiting:
            self._idle += 1
            self.retired += 1
            self.per_node_order[ask_class.node_order] -= 1

    def mark_unschedulable(self, ask_class: AskClass) -> None:
        """Record that no node has room for this ask class, until `mark_schedulable`."""
        ask_class.unschedulable = True
        self.unschedulable[ask_class.bit] = ask_class

    def mark_schedulable(self, ask_class: AskClass) -> None:
        """Record that some node may have room for this ask class."""
        ask_class.unschedulable = False
        self.unschedulable.pop(ask_class.bit, None)

    def forget_node(self, node_id: str) -> None:
        """Discard the refusals by an earlier node of this id."""
        for ask_class in self._ask_classes.values():
            ask_class.refused.pop(node_id, None)

    def forget_verdicts(self) -> None:
        """Discard all results of predicates, because the predicates changed."""
        for ask_class in self._ask_classes.values():
            ask_class.verdicts = {}
            ask_class.refused.clear()

    def _drop_idle(self) -> None:
        gone = 0
        for key, ask_class in list(self._ask_classes.items()):
            if not ask_class.waiting:
                del self._ask_classes[key]
                self.unschedulable.pop(ask_class.bit, None)
                for drop in self.dropped:
                    drop(ask_class)
                self._free.append(ask_class.bit)
                gone |= ask_class.bit
        self._idle = 0
        self._fit_index, self._unknown = FitIndex(()), True
        for forget in self._bits_dropped:
            forget(gone)


@lru_cache(maxsize=64)
def _not_started_mask(pairs: int) -> int:
    return sum(2 << (2 * pair) for pair in range(pairs))


def not_started_part(bits: int) -> int:
    """Return the subset of `bits` that represents applications that have not started."""
    return bits & _not_started_mask((bits.bit_length() // 128 + 1) * 64)


def pending_numbers(bits: int) -> Iterator[int]:
    """Yield the numbers of the pending classes that have these bits."""
    while bits:
        bit = bits & -bits
        yield bit.bit_length()
        bits &= ~(bit | bit << 1)


class PendingClass:
    """Requests of one ask class to which the same limits of users and groups apply."""

    __slots__ = (
        "ask_class",
        "asks",
        "bit",
        "bits",
        "force_visit",
        "limit_trackers",
        "log",
        "number",
        "over_limit",
    )

    def __init__(
        self, ask_class: AskClass, limit_trackers: tuple[UsageTracker, ...], bit: int, *, force_visit: bool
    ) -> None:
        self.ask_class = ask_class
        self.limit_trackers = limit_trackers
        self.bit = bit
        self.bits = bit | bit << 1
        self.number = bit.bit_length()
        """Number of the bit: a better key than the bit, because many powers of 2 have the same hash."""
        self.asks = 0
        """Number of waiting requests."""
        self.over_limit = False
        """True if a limit on resources leaves no room."""
        self.log: AttemptLog | None = None
        """Attempts that a limit on resources stopped; None without any."""
        self.force_visit = force_visit
        """True if the requests must be tried even if there is no room (see `AtomicGang.force_visit`)."""


class PendingClasses:
    """The pending classes of a partition."""

    def __init__(self, ask_classes: AskClasses, bits_dropped: list[Callable[[int], None]]) -> None:
        """Create without pending classes; `bits_dropped` are called with the bits of dropped ones."""
        self.ask_classes = ask_classes
        self._bits_dropped = bits_dropped
        self._by_number: dict[int, PendingClass] = {}
        self._free: list[int] = []
        self._used = 0
        self.made = 0
        """Number of pending classes created so far."""
        self._idle = 0
        self.schedulable = 0
        """Bits of the pending classes whose requests may be placed now, as far as is known."""
        self.growth = self.gangs = 0
        """Bits of requests beyond the size of gangs, and of those that represent whole gangs."""
        self.times_full = 0
        """Incremented whenever a limit reaches its maximum of running applications."""
        ask_classes.dropped.append(lambda ask_class: self._forget((ask_class,)))

    def of(
        self, ask_class: AskClass, trackers: Trackers, *, force_visit: bool = False, growth: bool = False
    ) -> PendingClass:
        """Return the pending class of requests of `ask_class` under the limits of `trackers`.

        Gangs with `force_visit` have a pending class of their own, as has the `growth` of gangs.
        """
        key = (*trackers, *(None,) * (force_visit + 2 * growth))
        pending_class = ask_class.pending_classes.get(key)
        if pending_class is None:
            if self._idle >= IDLE_PENDING_CLASSES and self._idle * 2 > len(self._by_number):
                self._forget([*self.ask_classes])
            if self._free:
                bit = self._free.pop()
            else:
                bit = 1 << 2 * self._used
                self._used += 1
            pending_class = PendingClass(ask_class, trackers, bit, force_visit=force_visit)
            ask_class.pending_classes[key] = self._by_number[pending_class.number] = pending_class
            for tracker in trackers:
                tracker.pending_numbers[pending_class.number] = None
            self.made += 1
            self._idle += 1
            if growth:
                self.growth |= pending_class.bits
            elif ask_class.is_gang:
                self.gangs |= pending_class.bits
            self.refresh(pending_class)
        return pending_class

    def refresh(self, pending_class: PendingClass) -> None:
        """Set or clear the bits of a pending class according to the present state of nodes and limits."""
        if (
            pending_class.ask_class.unschedulable or pending_class.over_limit
        ) and not pending_class.force_visit:
            self.schedulable &= ~pending_class.bits
        else:
            self.schedulable |= pending_class.bits
            for tracker in pending_class.limit_trackers:
                if tracker.full:
                    self.schedulable &= ~(pending_class.bit << 1)
                    break

    def wait(self, pending_class: PendingClass) -> None:
        """Count a new waiting request of this pending class."""
        if not pending_class.asks:
            self._idle -= 1
            ask_class = pending_class.ask_class
            self.ask_classes.wait(ask_class)
            if pending_class.limit_trackers or ask_class.unschedulable:
                self.refresh(pending_class)
            else:
                self.schedulable |= pending_class.bits
        pending_class.asks += 1

    def leave(self, pending_class: PendingClass) -> None:
        """Count a request of this pending class that no longer waits."""
        pending_class.asks -= 1
        if not pending_class.asks:
            self._idle += 1
            self.ask_classes.leave(pending_class.ask_class)
            # Queues keep the bits of past requests; cleared here, no descent looks for the requests.
            self.schedulable &= ~pending_class.bits

    # -- nodes --------------------------------------------------------------------------------------

    def mark_unschedulable(self, ask_class: AskClass) -> None:
        """Record that no node has room for this ask class, until `mark_schedulable`."""
        self.ask_classes.mark_unschedulable(ask_class)
        for pending_class in ask_class.pending_classes.values():
            if not pending_class.force_visit:
                self.schedulable &= ~pending_class.bits

    def mark_schedulable(self, ask_class: AskClass) -> None:
        """Record that some node may have room for this ask class."""
        if ask_class.unschedulable:
            self.ask_classes.mark_schedulable(ask_class)
            for pending_class in ask_class.pending_classes.values():
                self.refresh(pending_class)

    # -- limits -------------------------------------------------------------------------------------

    def under(self, tracker: UsageTracker) -> list[PendingClass]:
        """Return the pending classes under the limit of a user or group, in order of creation."""
        return [self._by_number[number] for number in tracker.pending_numbers]

    def mark_over_limit(self, pending_class: PendingClass, tracker: UsageTracker, now: int) -> None:
        """Record that a limit has no room for this pending class, until `room_grew`."""
        pending_class.over_limit = True
        pending_class.log = pending_class.log or AttemptLog()
        pending_class.log.note({OVER_LIMIT: 1}, now)
        tracker.over_limit[pending_class.number] = None
        self.schedulable &= ~pending_class.bits

    def room_grew(self, tracker: UsageTracker) -> None:
        """Reopen the pending classes that have room after usage under a limit fell."""
        for number in list(tracker.over_limit):
            pending_class = self._by_number[number]
            if tracker.has_room(pending_class.ask_class.pairs):
                del tracker.over_limit[number]
                pending_class.over_limit = False
                self.refresh(pending_class)

    def count_changed(self, tracker: UsageTracker, now: int) -> None:
        """Update the bits after the number of running applications under a limit changed."""
        if tracker.is_full != tracker.full:
            tracker.check_full(now)
            self.times_full += tracker.full
            for pending_class in self.under(tracker):
                self.refresh(pending_class)

    def reconsider(self) -> None:
        """Make all pending classes schedulable again after policies or limits changed."""
        for ask_class in self.ask_classes:
            self.ask_classes.mark_schedulable(ask_class)
            for pending_class in ask_class.pending_classes.values():
                pending_class.over_limit = False
                for tracker in pending_class.limit_trackers:
                    tracker.over_limit.pop(pending_class.number, None)
                self.refresh(pending_class)

    # -- idle pending classes -----------------------------------------------------------------------

    def _forget(self, ask_classes: Iterable[AskClass]) -> None:
        """Drop the idle pending classes of these ask classes."""
        gone = 0
        for ask_class in ask_classes:
            gone |= self._drop(ask_class)
        if gone:
            self.schedulable &= ~gone
            self.growth &= ~gone
            self.gangs &= ~gone
            for forget in self._bits_dropped:
                forget(gone)

    def _drop(self, ask_class: AskClass) -> int:
        """Drop the idle pending classes of an ask class, and return their bits."""
        gone = 0
        for key, pending_class in list(ask_class.pending_classes.items()):
            if not pending_class.asks:
                del ask_class.pending_classes[key]
                for tracker in pending_class.limit_trackers:
                    tracker.pending_numbers.pop(pending_class.number, None)
                    tracker.over_limit.pop(pending_class.number, None)
                del self._by_number[pending_class.number]
                self._free.append(pending_class.bit)
                self._idle -= 1
                gone |= pending_class.bits
        return gone
