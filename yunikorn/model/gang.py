"""Gangs: task groups with placeholders, and Atomic gangs, which are placed as a whole."""

from __future__ import annotations

import heapq
import json
from contextlib import suppress
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


GANG_DISRUPTION_TAG = "yunikorn.apache.org/gang-disruption"
"""Tag of an application: how its gang may be preempted."""
DISRUPTION_MODES = {"pod": False, "single": False, "podgroup": True, "all": True}
"""By mode in lower case, as Kubernetes 1.36 and 1.37 name them: True if all members end together."""


GANG_STEP_TAG = "yunikorn.apache.org/gang-step"
"""Tag of an application: the number of members by which its gang grows beyond its size.

A whole number, or JSON with that of single task groups: `{"workers": 4}`.
"""


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

    is_gang = True

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
        free, home = node.is_free, self.home
        fits = any((free or member.required) and member.fits(node) for member in self.members)
        return fits and (home is None or home.has(node))


class AtomicGang:
    """Gang of an application whose members are placed together; `GangFormation` changes it."""

    noun = "gang"
    """Word for the members that are placed together, in messages."""

    __slots__ = (
        "alone", "app", "arrived", "asks", "continues", "deadline", "done", "first_try", "growth",
        "held", "is_unformed", "may_hold_back", "members", "needed", "overdue", "refusals",
        "relaxes_at", "reported", "request", "steps", "total",
    )  # fmt: skip

    def __init__(self, app: Application, total: Resource, steps: Mapping[str, int]) -> None:
        self.app = app
        self.steps = steps
        """Sizes of steps by task group, as requested; `""` for the groups that are not named."""
        self.growth: dict[str, GangGrowth] = {}
        """Members beyond the size of the gang that wait for their steps, by task group."""
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
        self.may_hold_back = True
        """True if later requests are held back once the members have waited for long; False for a step."""
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

    def part_of(self, task_group: str) -> AtomicGang:
        """Return the gang or, once it is placed, the growth of a task group that grows by steps."""
        found = self.growth.get(task_group)
        if found is None and self.done and (step := step_of(self.app, task_group)) > 1:
            found = self.growth[task_group] = GangGrowth(self, task_group, step)
        return found or self

    @property
    def too_large(self) -> str:
        """Message that explains why a gang of this size is never placed."""
        return f"its gang has {self.size} members, and at most {MOST_MEMBERS} can be placed at once"

    def sort_again(self) -> None:
        """Sort the asks by their present orders; the request keeps its members, and follows the first one."""
        self.asks.sort(key=_ORDER)
        if self.request is not None:
            self.request.sort_key = min((ask for ask, _ in self.members), key=_ORDER).sort_key
        for part in self.growth.values():
            part.sort_again()

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
        # Own tasks, such as a driver, are no other work where a gang has a domain alone.
        alone = alone or (topology is not None and bool(topology.exclusive and self.app.allocations))
        return ("gang", tuple(counts.items()), topology, self.app.id if alone else "")

    @property
    def force_visit(self) -> bool:
        """True if the gang must be tried even if similar gangs found no room.

        A failed attempt applies to all gangs of the same ask class and owner, so that only one of them is
        tried. But the patience of each gang starts with its own first attempt, and each overdue gang holds
        back later requests. Both cases need an attempt of their own. A gang that a permit policy refused has
        an ask class of its own, and waits for a change.
        """
        return self.may_hold_back and (self.deadline is None or self.overdue) and not self.refusals


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


class GangGrowth(AtomicGang):
    """Members of a task group beyond the size of its gang; each step of them is placed together."""

    noun = "step"

    __slots__ = ("step", "task_group", "waiting")

    def __init__(self, gang: AtomicGang, task_group: str, step: int) -> None:
        super().__init__(gang.app, gang.total, gang.steps)
        self.task_group, self.step = task_group, step
        self.waiting = 0
        """Number of pending replicas of `asks`."""

    @property
    def is_whole(self) -> bool:
        """True if as many members wait as are placed together next."""
        return self._next > 0

    @property
    def _next(self) -> int:
        """Number of members that are placed together next: a step, or one that a running step lacks.

        Steps are counted from the first member of the task group on. Those that wait beyond whole steps
        replace members that have ended.
        """
        if self.waiting % self.step:
            running = self.app.allocations.values()
            stay = [one.task_group for one in running if one.releasing is None and one.eviction is None]
            if stay.count(self.task_group) % self.step:
                return 1
        return self.step if self.waiting >= self.step else 0

    def choose(self) -> tuple[Members, Resource]:
        """Return the first members that wait, or the latest one as a replacement."""
        left = self._next
        self.may_hold_back = left < self.step
        chosen: Members = []
        amount: Tally = {}
        for ask in reversed(self.asks) if self.may_hold_back else self.asks:
            count = min(ask.pending, left)
            chosen.append((ask, count))
            grow(amount, ask.resource, count)
            left -= count
            if not left:
                break
        return chosen, Resource(amount)

    def classes(self) -> tuple[object, ...]:
        """Return the identity of the ask class; steps of gangs that run in domains have classes apart."""
        topology = self.app.topology
        in_domain = topology is not None and (topology.required or topology.of(self.task_group).required)
        return ("step", self.step, *super().classes(), self.app.id if in_domain else "")


class GangCore:
    """Core of the gang of an application: members of which none may be preempted without the others.

    A gang that has lost a member of its core does nothing useful, and holds its room. Members beyond its
    size, with which it runs faster, are no part of the core: they may be preempted before it, step by step.
    """

    __slots__ = ("_app", "_as_one", "_known", "_seen", "_step_of", "_total", "_units")

    def __init__(self, app: Application, total: Resource, *, as_one: bool) -> None:
        """Create for a gang of this size; with `as_one`, all members belong to the core."""
        self._app, self._total, self._as_one = app, total, as_one
        self._seen: tuple[int, str] | None = None
        """Number of allocations, and the latest one, when the core was determined."""
        self._units: list[list[str]] = [[]]
        """The core, and then each step beyond it, by uuid."""
        self._known: frozenset[str] = frozenset()
        """The core, with the steps that stand in for members of it that ended."""
        self._step_of: dict[str, list[str]] = {}

    @property
    def members(self) -> list[Allocation]:
        """All members that run, those beyond the core included."""
        return [one for one in self._app.allocations.values() if one.task_group]

    @property
    def is_ending(self) -> bool:
        """True if all members are about to end, and there will be requests for a whole gang afterwards.

        Members that were preempted are requested again. Those that end by themselves may not be.
        """
        again: Tally = {}
        for one in self.members:
            if one.releasing is None and one.eviction is None:
                return False
            if one.releasing is not None and one.eviction is not None:
                grow(again, one.resource)
        for ask in self._app.asks.values():
            if ask.task_group:
                grow(again, ask.resource, ask.pending)
        return fits(again, self._total)

    def has(self, allocation: Allocation) -> bool:
        """Return True if an allocation of the application, of which the RM knows, belongs to the core."""
        if allocation.hold is not None:
            return False
        running = self._app.allocations
        if (len(running), next(reversed(running), "")) != self._seen:
            self.assign()
        return allocation.uuid in self._known

    def ending_with(self, allocation: Allocation) -> list[Allocation]:
        """Return the members that end together with an allocation, itself included."""
        if self.has(allocation):
            return self.members
        step = [] if allocation.hold is not None else self._step_of.get(allocation.uuid, [])
        return [self._app.allocations[uuid] for uuid in step] or [allocation]

    def forget(self) -> None:
        """Determine the core again when it is asked for, because a member changed its size."""
        self._seen = None

    def assign(self) -> None:
        """Assign members to the core, in the order of their placement, until they cover the size of the gang.

        All others belong to steps. Members stay there, and new ones take the places of those that ended; so
        this is called when members are placed together, not only when it matters.
        """
        running, total, amount = self._app.allocations, self._total, Tally()
        self._seen = len(running), next(reversed(running), "")
        before, *steps = [[uuid for uuid in unit if uuid in running] for unit in self._units]
        core: list[str] = []
        known = {uuid for unit in (before, *steps) for uuid in unit}
        incomplete: dict[str, list[list[str]]] = {}
        for step in steps:
            group = running[step[0]].task_group if step else ""
            if 0 < len(step) < step_of(self._app, group):
                incomplete.setdefault(group, []).append(step)
        for uuid in (*before, *(one.uuid for one in self.members if one.uuid not in known)):
            group = running[uuid].task_group
            if self._as_one or not fits(amount, total):
                core.append(uuid)
                grow(amount, running[uuid].resource)
                continue
            waiting = incomplete.setdefault(group, [])
            if not waiting:
                waiting.append([])
                steps.append(waiting[0])
            waiting[0].append(uuid)
            if len(waiting[0]) >= step_of(self._app, group):
                del waiting[0]
        self._units = [core, *filter(None, steps)]
        self._step_of = {uuid: step for step in self._units[1:] for uuid in step}
        for step in self._units[1:]:
            if fits(amount, total):
                break
            core = core + step
            for uuid in step:
                grow(amount, running[uuid].resource)
        self._known = frozenset(core)


def read_disruption_tag(tags: Mapping[str, str]) -> tuple[bool | None, str]:
    """Return True if all members end together, None if the tag is missing; and what is wrong with it."""
    text = tags.get(GANG_DISRUPTION_TAG, "")
    found = DISRUPTION_MODES.get(text.lower())
    if not text or found is not None:
        return found, ""
    return None, f"tag {GANG_DISRUPTION_TAG}: unknown mode '{text}'; known: Pod, PodGroup, Single, All"


def step_of(app: Application, task_group: str) -> int:
    """Return the number of members of a task group that are placed together beyond the size of its gang.

    That is one, or a slice of the topology, or as many as the tag says, in whole slices.
    """
    gang, topology = app.atomic, app.topology
    if gang is None:
        return 1
    given = gang.steps.get(task_group) or gang.steps.get("", 1)
    slices = topology.of(task_group).slices if topology is not None else ()
    return -(-given // slices[0].size) * slices[0].size if slices else given


def read_step_tag(tags: Mapping[str, str]) -> tuple[Mapping[str, int], str]:
    """Return the sizes of steps by task group, `""` for those that are not named; and what is wrong."""
    with suppress(ValueError, RecursionError):
        given = json.loads(tags.get(GANG_STEP_TAG, "{}"))
        steps = given if isinstance(given, dict) else {"": given}
        if all(type(size) is int and 0 < size <= MOST_MEMBERS for size in steps.values()):
            return steps, ""
    expected = f"expected a number from 1 to {MOST_MEMBERS}, or such numbers by task group as JSON"
    return {}, f"tag {GANG_STEP_TAG}: {expected}"
