"""Gangs: task groups with placeholders, and Atomic gangs, which are placed as a whole."""

from __future__ import annotations

import heapq
from operator import attrgetter
from typing import TYPE_CHECKING

from yunikorn.clock import MILLISECOND, SECOND
from yunikorn.model.ask import Ask
from yunikorn.model.ask_class import AskClass
from yunikorn.model.creation_times import TIME_DIGITS
from yunikorn.resources import INT64_MAX, Resource, Tally, fits, grow, saturate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from yunikorn.clock import Timer
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.application import Application
    from yunikorn.model.ask import Order
    from yunikorn.model.ask_class import Key
    from yunikorn.model.node import Node


SOFT, HARD, ATOMIC = "Soft", "Hard", "Atomic"
STYLES = (SOFT, HARD, ATOMIC)
"""Gang scheduling styles; unknown names mean Soft."""
_BY_NAME = {"": SOFT} | {style.lower(): style for style in STYLES}

CREATION_TAG = "yunikorn.apache.org/creationTime"
"""Maximum number of digits of a creation time (seconds); Python also refuses to convert very long numbers."""
DEFAULT_TIMEOUT = 900 * SECOND


class TaskGroup:
    """Task group of an application with its placeholders."""

    __slots__ = (
        "_heap",
        "_pushed",
        "count",
        "is_ready",
        "name",
        "placeholders",
        "replaced",
        "size",
        "timed_out",
    )

    def __init__(self, name: str, size: Resource) -> None:
        self.name = name
        self.size = size
        """Size of the first placeholder."""
        self.count = 0
        """Number of placeholders ever requested."""
        self.replaced = 0
        """Number of placeholders replaced by real allocations."""
        self.timed_out = 0
        """Number of placeholders that ended, or were dropped, for any other reason."""
        self.placeholders: dict[str, Allocation] = {}
        """Replaceable placeholders by uuid, in order of placement."""
        self.is_ready = False
        """True if the group is in `PartitionGangs.ready`."""
        self._heap: list[tuple[Order, int, Ask]] = []
        self._pushed = 0

    @property
    def is_replaceable(self) -> bool:
        """True if the group has allocated or pending placeholders for its real requests to replace."""
        return self.count > self.replaced + self.timed_out

    def add(self, ask: Ask) -> None:
        """Add a real request that waits to replace a placeholder."""
        self._pushed += 1
        heapq.heappush(self._heap, (ask.order, self._pushed, ask))

    def next(self) -> Ask | None:
        """Return the first real request that waits to replace a placeholder."""
        heap = self._heap
        while heap:
            ask = heap[0][2]
            if ask.gang_blocked and ask.pending:
                return ask
            heapq.heappop(heap)
        return None

    def sort_again(self) -> None:
        """Sort the real requests by their present orders."""
        self._heap = [(ask.order, pushed, ask) for _, pushed, ask in self._heap]
        heapq.heapify(self._heap)

    def put_aside(self) -> None:
        """Skip the first request until it is added again."""
        heapq.heappop(self._heap)


class Gang:
    """Gang of an application: its task groups and the resources held by placeholders."""

    __slots__ = (
        "groups", "placed", "placeholders", "promised", "style", "timeout", "timer", "together",
        "total", "worked",
    )  # fmt: skip

    def __init__(self, total: Resource, style: str, timeout: int) -> None:
        self.total = total
        """Sum of all announced placeholders; empty if the resource manager gave none."""
        self.style = style
        self.timeout = timeout
        """Time limit of placeholders, counted from the first placement (ns)."""
        self.groups: dict[str, TaskGroup] = {}
        self.placed: Tally = {}
        """Resources of the allocated placeholders."""
        self.placeholders = 0
        """Number of allocated placeholders."""
        self.promised: dict[Ask, list[Allocation]] = {}
        """Replacements by request whose placeholders the resource manager has not ended yet."""
        self.timer: Timer | None = None
        self.together: AtomicGang | None = None
        """The placeholders, placed as a whole where the topology requires it; None if one by one."""
        self.worked = False
        """True if a real allocation of the application has ended."""

    def group(self, name: str, size: Resource) -> TaskGroup:
        """Return the task group of this name; create the group if it is new."""
        group = self.groups.get(name)
        if group is None:
            group = self.groups[name] = TaskGroup(name, size)
        return group

    def promise(self, ask: Ask, real: Allocation) -> None:
        """Note that a replacement by a replica of `ask` has begun."""
        self.promised.setdefault(ask, []).append(real)

    def settle(self, ask: Ask, real: Allocation) -> None:
        """Note that a replacement was finished or undone."""
        left = self.promised[ask]
        left.remove(real)
        if not left:
            del self.promised[ask]

    @property
    def is_complete(self) -> bool:
        """True if all announced placeholders are allocated."""
        return fits(self.placed, self.total)

    @property
    def pending(self) -> int:
        """Number of pending placeholders."""
        alive = sum(group.count - group.replaced - group.timed_out for group in self.groups.values())
        return alive - self.placeholders

    def stop_timer(self) -> None:
        """Cancel the time limit of the placeholders."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


def style_named(name: str) -> str | None:
    """Return the style of this name, ignoring case; Soft for an empty name, None for an unknown name."""
    return _BY_NAME.get(name.lower())


def placeholder_timeout(wanted: int, tags: Mapping[str, str], now: int) -> int:
    """Return the timeout of placeholders (ns), less the age of the application, as in YuniKorn 1.9."""
    timeout = wanted if wanted > 0 else DEFAULT_TIMEOUT
    created = tags.get(CREATION_TAG, "")
    if created.isdecimal() and len(created) <= TIME_DIGITS:
        timeout = max(MILLISECOND, int(created) * SECOND + timeout - now)
    return timeout


Members = list[tuple[Ask, int]]
"""Asks in order, each with the number of its replicas that are members."""

MOST_MEMBERS = 200_000
"""Maximum number of members of a gang, because one decision places all of them and delays all other
decisions."""

_ORDER = attrgetter("order")


class GangClass(AskClass):
    """Ask class of the requests that represent gangs of equal composition."""

    __slots__ = ("members", "possible", "why")

    def __init__(self, key: Key, resource: Resource, bit: int) -> None:
        super().__init__(key, resource, bit)
        self.members: tuple[AskClass, ...] = ()
        self.possible: tuple[tuple[int, int], bool] | None = None
        """Result of the check for a fit on empty nodes, preceded by the versions of nodes and
        configuration."""
        self.why = ""
        """Reason why the latest attempt to place such a gang failed."""

    @property
    def is_pinned(self) -> bool:
        """True if a member may be placed on a drained node or a node reserved for others."""
        return any(member.required for member in self.members)

    def fits(self, node: Node) -> bool:
        """Return True if `node` has room for any member, so that the gang may have become placeable."""
        free = node.is_free
        return any((free or member.required) and member.fits(node) for member in self.members)


class AtomicGang:
    """Gang of an application whose members are placed together; `GangFormation` changes it."""

    __slots__ = (
        "alone",
        "app",
        "arrived",
        "asks",
        "continues",
        "deadline",
        "done",
        "first_try",
        "held",
        "is_unformed",
        "members",
        "needed",
        "overdue",
        "refusals",
        "relaxes_at",
        "reported",
        "request",
        "total",
    )

    def __init__(self, app: Application, total: Resource) -> None:
        self.app = app
        self.relaxes_at: int | None = None
        """Time at which a preferred level is given up, and the gang is tried again (ns)."""
        self.continues = False
        """True if further domains are tried soon that the latest attempt has left."""
        self.first_try: int | None = None
        """Time of the first attempt to place the members (ns), from which preferred levels count."""
        self.total = total
        """Size of the gang: the gang is whole when its members add up to at least this amount."""
        self.asks: list[Ask] = []
        """Waiting asks of the task groups, in order."""
        self.arrived: Tally = {}
        """Sum of the pending replicas of `asks`."""
        self.needed: dict[str, int] = {}
        """Number of replicas that are members, by ask key."""
        self.is_unformed = False
        """True if a member was lost and the members must be chosen again."""
        self.alone = False
        """True if the gang has an ask class of its own, because predicates refused its own members."""
        self.members: Members = []
        """Chosen members; replicas beyond the size of the gang are scheduled after the members are placed."""
        self.request: Ask | None = None
        """The request that represents the waiting members; None while the gang is not whole."""
        self.done = False
        """True after placement, or if a member was found running; the asks are ordinary asks from then on."""
        self.held = False
        """True while a permit policy holds the placed members; the rest of the asks waits meanwhile."""
        self.refusals = 0
        """Number of consecutive placements that permit policies refused; nodes have room then."""
        self.deadline: Timer | None = None
        """Timer from the first failed attempt on, until the gang is overdue or placed."""
        self.overdue = False
        """True if the gang waited for the whole `Timeouts.gang_patience`, so that later requests are held
        back."""
        self.reported = False
        """True if the lack of room was reported."""

    @property
    def is_whole(self) -> bool:
        """True if all members have arrived."""
        return fits(self.arrived, self.total)

    @property
    def size(self) -> int:
        """Number of members."""
        return sum(self.needed.values())

    @property
    def is_too_large(self) -> bool:
        """True if the gang has more members than `MOST_MEMBERS`."""
        return self.size > MOST_MEMBERS

    @property
    def too_large(self) -> str:
        """Message that explains why a gang of this size is never placed."""
        return f"its gang has {self.size} members, and at most {MOST_MEMBERS} can be placed at once"

    def sort_again(self) -> None:
        """Sort the asks by their present orders; the request keeps its members, and follows the first one."""
        self.asks.sort(key=_ORDER)
        if self.request is not None:
            self.request.sort_key = min((ask for ask, _ in self.members), key=_ORDER).sort_key

    def choose(self) -> tuple[Members, Resource]:
        """Return the members and their sum; each ask, in order, adds replicas that supply missing types."""
        chosen: Members = []
        amount: Tally = {}
        for ask in self.asks:
            if fits(amount, self.total):
                break
            count = _replicas_needed(ask, self.total, amount)
            if count:
                chosen.append((ask, count))
                grow(amount, ask.resource, count)
        if amount and max(amount.values()) > INT64_MAX:
            amount = {name: saturate(value) for name, value in amount.items()}
        return chosen, Resource(amount)

    def classes(self) -> tuple[object, ...]:
        """Return the identity of the ask class of this gang: the members by ask class."""
        counts: dict[object, int] = {}
        topology = self.app.topology
        for ask, count in self.members:
            # Requirements on the topology are those of task groups.
            kind = ask.ask_class.key if topology is None else (ask.task_group, ask.ask_class.key)
            counts[kind] = counts.get(kind, 0) + count
        alone = self.alone or (topology is not None and topology.is_timed)
        return ("gang", tuple(counts.items()), topology, self.app.id if alone else "")

    @property
    def force_visit(self) -> bool:
        """True if the gang must be tried even if similar gangs found no room.

        A failed attempt applies to all gangs of the same ask class and owner, so that only one of them is
        tried. But the patience of each gang starts with its own first attempt, and each overdue gang holds
        back later requests. Both cases need an attempt of their own. A gang that a permit policy refused has
        an ask class of its own, and waits for a change.
        """
        return (self.deadline is None or self.overdue) and not self.refusals


def _replicas_needed(ask: Ask, total: Mapping[str, int], chosen: Mapping[str, int]) -> int:
    """Return the fewest replicas of an ask that supply as much as possible of `total` less `chosen`."""
    count, most, resource = 0, ask.pending, ask.resource
    for name, value in total.items():
        lacking = value - chosen.get(name, 0)
        if lacking > count * (amount := resource.get(name, 0)) and amount:
            count = -(-lacking // amount)
            if count >= most:
                return most
    return count
