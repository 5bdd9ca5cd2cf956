"""Backfilling policies: `easy` and `conservative`. Small work starts before what waits, without delaying it.

A partition names one of them in the place of the reservation of nodes, with estimators of run times:

    partitions:
      - name: default
        estimators: [request]
        reservations: {policy: easy}

`easy` keeps room for the first request or gang that has none: it computes the earliest time at which there is
enough, and lets others start only if they end before, or use what is left then. `conservative` does so for
all that wait, in order. Both read what runs from the books that the core keeps for predicates. See
docs/backfilling.md.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice

import attrs

from yunikorn.api import Ask, Context, Node, Predicate, ReservationPolicy, Task, hookimpl

SECOND = 1_000_000_000
NEVER = 2**62
"""Time (ns) of what is not expected to happen."""
SHORTEST_OVERRUN = 60 * SECOND
"""Shortest time by which the estimate of a task is extended that runs longer."""
EPOCHS = 10**9 * SECOND
"""Time (ns) from which on a clock counts from 1970; others count from the begin of a simulation."""
MOST_PASSED = 1000
"""Number of waiting requests with room that are passed in the search for the first one without."""
Amounts = dict[str, int]
Taken = tuple[Amounts, Mapping[str, int], int]
"""Amounts from which others were taken, a number of times."""
Members = Sequence[tuple[Ask, int]]


@attrs.define(eq=False)
class RunningTask:
    """A task that runs."""

    task: Task
    node: str
    placed: int


@attrs.define(eq=False)
class StartPlan:
    """The times to come, as they look at one moment."""

    made: tuple[int, int]
    """Number of changes, and time (ns), when the plan was made."""
    first: Ask
    """First request without room, or the first member of a gang."""
    start: int
    """Time (ns) at which there is room for it."""
    starts: dict[Ask, int]
    """Times (ns) from which requests may start, by request or member."""
    spare: dict[str, Amounts] = attrs.field(factory=dict)
    """Amounts by node that stay free when the first one has started."""
    ahead: frozenset[Ask] = frozenset()
    """Requests up to the first one without room, which wait for none behind them."""
    is_cut: bool = False
    """True if some that wait have no time yet."""


Judged = tuple[StartPlan, bool]
"""Plan for a request, and True if it may start on any node."""


@attrs.define(eq=False)
class Backfilling(ReservationPolicy, Predicate):
    """Base of both policies: the books of what runs, and estimated ends."""

    by: str = attrs.field(default="high", validator=attrs.validators.in_(("median", "high")))
    """Time of an estimate that counts: `high`, which one task in ten exceeds, or `median`."""
    assumed: float = attrs.field(default=86_400.0, validator=attrs.validators.gt(0))
    """Run time in seconds of a task that no estimator knows."""
    _context: Context = attrs.field(init=False, default=Context("", lambda: 0))
    _nodes: dict[str, Node] = attrs.field(init=False, factory=dict)
    _runs: dict[str, RunningTask] = attrs.field(init=False, factory=dict)
    _tried: dict[str, list[Task]] = attrs.field(init=False, factory=dict)
    """Members of a gang that are placed on trial, by node."""
    _gone: dict[str, Task] = attrs.field(init=False, factory=dict)
    """Tasks that were removed since the latest question."""
    _plan: StartPlan | None = attrs.field(init=False, default=None)
    _explained: StartPlan | None = attrs.field(init=False, default=None)
    """Plan that explanations use, which have no influence on decisions."""
    _judged: Judged | None = attrs.field(init=False, default=None)
    _changes: int = attrs.field(init=False, default=0)
    """Number of changes after which a plan is made again."""

    def opened(self, context: Context) -> None:
        """Keep the clock, the estimates and the list of what waits."""
        self._context = context

    def reloaded(self, context: Context) -> None:
        """Plan again."""
        self._context = context
        self._changes += 1

    def reserves_after(self, ask: Ask, delay: float | None) -> float | None:
        """Reserve no single node: room is kept for the time when there is enough of it."""
        return None

    # -- books --------------------------------------------------------------------------------------

    def placed(self, task: Task, node: Node) -> None:
        """Add a task, or a member that is tried."""
        uuid = getattr(task, "uuid", None)
        if uuid is None:
            self._tried.setdefault(node.id, []).append(task)
            return
        self._explained = None
        self._gone.pop(uuid, None)
        placed: int = task.placed  # type: ignore[attr-defined]
        self._runs[uuid] = RunningTask(task, node.id, placed)
        plan = self._plan
        if plan is None or node.id not in plan.spare:
            return
        if placed + self._time_of(task, 0.0) > plan.start:
            _subtract(plan.spare[node.id], task.resource)
            if min(plan.spare[node.id].values()) < 0:
                self._plan = None  # It took room that the first one counts with, which comes later now.

    def released(self, task: Task, node: Node) -> None:
        """Remove a task; what follows is planned again."""
        uuid = getattr(task, "uuid", None)
        if uuid is not None:
            self._runs.pop(uuid, None)
            self._gone[uuid] = task
            self._changes += 1
            return
        tried = self._tried.get(node.id, [])
        if task in tried:
            tried.remove(task)
        if not tried:
            self._tried.pop(node.id, None)

    def node_added(self, node: Node) -> None:
        """Count with a node from now on."""
        self._nodes[node.id] = node
        self._changes += 1

    def node_removed(self, node: Node) -> None:
        """Count with a node no more."""
        self._nodes.pop(node.id, None)
        self._changes += 1

    # -- questions ----------------------------------------------------------------------------------

    def ask_class(self, ask: Ask) -> Hashable:
        """Return the estimated run time: equal requests that run equally long may start equally early."""
        return self._time_of(ask, 0.0) // SECOND

    def prepare(self, ask: Ask) -> Judged | None:
        """Return the plan, and if the request may start anywhere; None if there is nothing to delay."""
        if self._is_preempting():
            return None
        now = self._context.now()
        if self._context.hypothetical():
            plan = self._explained = self._made(now, ask, self._explained)
            return None if plan is None else (plan, self._may_start(ask, plan, now))
        if not self._tried:
            plan = self._plan = self._made(now, ask, self._plan)
            self._judged = None if plan is None else (plan, self._may_start(ask, plan, now))
        return self._judged

    def _is_preempting(self) -> bool:
        """Return True if tasks that still run were removed on trial: no plan refuses preemption."""
        if any(uuid in task.app.allocations for uuid, task in self._gone.items()):
            return True
        self._gone.clear()
        return False

    def check(self, ask: Ask, node: Node, judged: Judged | None) -> str | None:
        """Return None if the request may start on the node, else for what it waits."""
        if judged is None or judged[1] or ask.required_node or self._is_spare(ask, node, judged[0]):
            return None
        if ask.task_group and any(one.placeholder for one in ask.app.allocations.values()):
            return None  # The room of its placeholder is its own.
        if getattr(ask, "reserved", None) is node:
            return None  # Its victims made this room.
        return self._reason(ask, judged[0])

    def reason(self, ask: Ask) -> str | None:
        """Return what a request waits behind, and when it or that is expected to start."""
        now = self._context.now()
        plan = self._explained = self._made(now, ask, self._explained)
        if plan is None:
            return None
        if ask.app is plan.first.app and ask in plan.starts:
            return f"is the first that waits for room, and is expected to start at {clock(plan.start)}"
        return None if self._may_start(ask, plan, now) else self._reason(ask, plan)

    def _made(self, now: int, ask: Ask, known: StartPlan | None) -> StartPlan | None:
        """Return the plan for a request, which may be a known one; None if nothing waits for room."""
        raise NotImplementedError

    def _may_start(self, ask: Ask, plan: StartPlan, now: int) -> bool:
        return plan.starts.get(ask, NEVER) <= now

    def _is_spare(self, ask: Ask, node: Node, plan: StartPlan) -> bool:
        room = dict(plan.spare.get(node.id, {}))
        for task in self._tried.get(node.id, ()):
            _subtract(room, task.resource)
        return all(room.get(name, 0) >= amount for name, amount in ask.resource.items())

    def _reason(self, ask: Ask, plan: StartPlan) -> str:
        own, first = plan.starts.get(ask, NEVER), plan.first.app.id
        if own != NEVER:
            return f"waits behind application {first}, and is expected to start at {clock(own)}"
        return f"waits behind application {first}, which is expected to start at {clock(plan.start)}"

    # -- times --------------------------------------------------------------------------------------

    def _time_of(self, task: Task, age: float) -> int:
        """Return the estimated run time of a task (ns)."""
        found = self._context.run_time(task, age)
        seconds = self.assumed if found is None else found.high if self.by == "high" else found.median
        return round(seconds * SECOND)

    def _ends(self, now: int) -> list[tuple[int, RunningTask]]:
        """Return the tasks that run with their estimated ends (ns), the first end first.

        A task that runs longer than estimated is expected to run on for as long as it is late.
        """
        found = []
        for run in self._runs.values():
            expected = end = run.placed + self._time_of(run.task, 0.0)
            if end < now:
                end = run.placed + self._time_of(run.task, (now - run.placed) / SECOND)
                if end <= now:
                    end = now + max(now - expected, SHORTEST_OVERRUN)
            found.append((end, run))
        return sorted(found, key=lambda one: one[0])

    def _has_room(self, members: Members) -> bool:
        """Return True if the nodes have room for all members now."""
        order = list(self._nodes.values())
        return self._fit(members, order, {node.id: dict(node.available) for node in order}) is not None

    def _fit(self, members: Members, order: Sequence[Node], *rooms: dict[str, Amounts]) -> list[Taken] | None:
        """Take the members from nodes in this order, with room in each of `rooms`; None without room."""
        usable = self._context.usable
        found: list[Taken] = []
        for ask, count in sorted(members, key=lambda one: -sum(one[0].resource.values())):
            left, size = count, [(name, amount) for name, amount in ask.resource.items() if amount]
            for node in order:
                here = [room[node.id] for room in rooms]
                most = min([room.get(name, 0) // amount for room in here for name, amount in size] or [left])
                if most > 0 and usable(ask, node):
                    taken = min(most, left)
                    found += [(room, ask.resource, taken) for room in here]
                    for room in here:
                        _subtract(room, ask.resource, taken)
                    left -= taken
                    if not left:
                        break
            if left:
                _give_back(found)
                return None
        return found

    def _keep_room(
        self, members: Members, allowed: dict[Ask, int], made: tuple[int, int]
    ) -> StartPlan | None:
        """Return the plan for the first one without room; None if there will never be room for it."""
        ends = self._ends(made[1])
        times = sorted({made[1], *(end for end, _ in ends)})
        low, high = 0, len(times)
        while low < high:
            middle = (low + high) // 2
            if self._spare_at(times[middle], ends, members) is None:
                low = middle + 1
            else:
                high = middle
        spare = None if low == len(times) else self._spare_at(times[low], ends, members)
        return None if spare is None else StartPlan(made, members[0][0], times[low], allowed, spare)

    def _spare_at(
        self, time: int, ends: Sequence[tuple[int, RunningTask]], members: Members
    ) -> dict[str, Amounts] | None:
        """Return what is left on each node at a time when the members have started; None without room.

        They take the nodes that become free last, so that others find the rest now.
        """
        free = {node.id: dict(node.available) for node in self._nodes.values()}
        freed = dict.fromkeys(free, -1)
        for number, (end, run) in enumerate(ends):
            if end > time:
                break
            if run.node in free:
                room = free[run.node]
                for name, amount in run.task.resource.items():
                    room[name] = room.get(name, 0) + amount
                freed[run.node] = number
        order = sorted(self._nodes.values(), key=lambda node: -freed[node.id])
        return None if self._fit(members, order, free) is None else free


@attrs.define(eq=False)
class EasyBackfilling(Backfilling):
    """Others start before the first one that waits if they do not delay it."""

    name = "easy"

    def _made(self, now: int, ask: Ask, known: StartPlan | None) -> StartPlan | None:
        made, allowed = (self._changes, now), dict[Ask, int]()
        for passed, members in enumerate(self._context.waiting()):
            if known is not None and known.made == made and known.first is members[0][0]:
                known.starts |= allowed
                return known
            if passed >= MOST_PASSED:
                break
            allowed |= dict.fromkeys([one for one, _ in members], now)
            # One with room starts now, or waits for something else.
            has_room = self._has_room(members)
            if has_room and ask in allowed:
                return None
            if not has_room and (plan := self._keep_room(members, allowed, made)) is not None:
                return plan
        return None

    def _may_start(self, ask: Ask, plan: StartPlan, now: int) -> bool:
        return ask in plan.starts or now + self._time_of(ask, 0.0) <= plan.start


class PooledRoom:
    """Free amounts of all nodes together over the times to come."""

    def __init__(self, now: int, free: Amounts) -> None:
        self.times, self.free = [now], [free]

    def release(self, time: int, amounts: Mapping[str, int]) -> None:
        """Add amounts from a time on."""
        at = self._cut(time)
        for room in self.free[at:]:
            for name, amount in amounts.items():
                room[name] = room.get(name, 0) + amount

    def begin(self, amounts: Mapping[str, int], time: int, since: int = 0) -> int:
        """Return the earliest time (ns), not before `since`, with room for a time, or `NEVER`."""
        needed = [(name, amount) for name, amount in amounts.items() if amount]
        start = self._cut(since)
        for at in range(start, len(self.free)):
            if self.times[at] >= self.times[start] + time and at > start:
                break
            if any(self.free[at].get(name, 0) < amount for name, amount in needed):
                start = at + 1
        return self.times[start] if start < len(self.times) else NEVER

    def take(self, amounts: Mapping[str, int], time: int, begin: int) -> None:
        """Take amounts from a begin on for a time (ns)."""
        first, last = self._cut(begin), self._cut(begin + time)
        for room in self.free[first:last]:
            _subtract(room, amounts)

    def _cut(self, time: int) -> int:
        """Return the place of a time, which becomes the begin of a part."""
        at = bisect_left(self.times, time)
        if at == len(self.times) or self.times[at] != time:
            if at == 0:
                return 0
            self.times.insert(at, time)
            self.free.insert(at, dict(self.free[at - 1]))
        return at


@attrs.define
class RoomToCome:
    """Room of the nodes that others may use, while a start is found for one after the other."""

    now: int
    nodes: Sequence[Node]
    free: dict[str, Amounts]
    """Free amounts by node, without what starts now."""
    later: dict[str, Amounts]
    """Free amounts by node when all that runs has ended."""
    pool: PooledRoom
    spare: dict[str, Amounts] = attrs.field(factory=dict)
    """Amounts by node that stay free when the first one without room has started."""


@attrs.define(eq=False)
class ConservativeBackfilling(Backfilling):
    """Each one that waits has a time of its own, and none may delay an earlier one.

    Times are those of all nodes together, as if they were one, and what starts now has room on nodes. The
    first one without room keeps it on nodes, as with `easy`.
    """

    name = "conservative"
    depth: int = attrs.field(default=500, validator=attrs.validators.ge(1))
    """Number of waiting requests and gangs that get a time; others wait until they are among them."""

    def _made(self, now: int, ask: Ask, known: StartPlan | None) -> StartPlan | None:
        made = (self._changes, now)
        if known is not None and known.made == made and (known.is_cut or ask in known.starts):
            return known
        room, plan, starts = self._room_from(now), None, dict[Ask, int]()
        waiting = self._context.waiting()
        for members in islice(waiting, self.depth):
            time = max(self._time_of(one, 0.0) for one, _ in members)
            begin = self._begin(members, time, room, plan)
            if now < begin < NEVER and plan is None:
                asks = [one for one, _ in members]
                plan = self._keep_room(members, dict(starts), made)
                if plan is not None:
                    plan.ahead = frozenset([*starts, *asks])
                    room.spare = {key: dict(amounts) for key, amounts in plan.spare.items()}
                    begin = room.pool.begin(_sum_of(members), time, plan.start)
                else:
                    begin = NEVER
            if begin < NEVER:
                room.pool.take(_sum_of(members), time, begin)
            starts |= dict.fromkeys([one for one, _ in members], begin)
        if plan is not None:
            plan.starts, plan.is_cut = starts, next(waiting, None) is not None
        return plan

    def _room_from(self, now: int) -> RoomToCome:
        """Return the room of the nodes that others may use."""
        nodes = [node for node in self._nodes.values() if self._context.usable(None, node)]
        free = {node.id: dict(node.available) for node in nodes}
        later = {key: dict(room) for key, room in free.items()}
        total: Amounts = {}
        for room in free.values():
            _subtract(total, {name: max(amount, 0) for name, amount in room.items()}, -1)
        pool = PooledRoom(now, total)
        for end, run in self._ends(now):
            if run.node in later:
                pool.release(end, run.task.resource)
                for rooms in (free, later) if end <= now else (later,):
                    _subtract(rooms[run.node], run.task.resource, -1)
        return RoomToCome(now, nodes, free, later, pool)

    def _begin(self, members: Members, time: int, room: RoomToCome, plan: StartPlan | None) -> int:
        """Return when the members may start; what starts now has taken its room on nodes."""
        amounts = _sum_of(members)
        begin = room.pool.begin(amounts, time)
        if begin == room.now:
            # What runs when the first one starts must leave it the room that is kept for it.
            is_short = plan is None or room.now + time <= plan.start
            rooms = (room.free,) if is_short else (room.free, room.spare)
            if self._fit(members, room.nodes, *rooms) is not None:
                return begin
            following = bisect_left(room.pool.times, room.now + 1)
            if following == len(room.pool.times):
                return NEVER
            begin = room.pool.begin(amounts, time, room.pool.times[following])
        taken = self._fit(members, room.nodes, room.later)
        if taken is None:
            return NEVER
        _give_back(taken)
        return begin

    def _may_start(self, ask: Ask, plan: StartPlan, now: int) -> bool:
        if plan.starts.get(ask, NEVER) > now:
            return False
        return ask in plan.ahead or now + self._time_of(ask, 0.0) <= plan.start

    def _is_spare(self, ask: Ask, node: Node, plan: StartPlan) -> bool:
        return plan.starts.get(ask, NEVER) <= plan.made[1] and super()._is_spare(ask, node, plan)


def _subtract(room: Amounts, amounts: Mapping[str, int], times: int = 1) -> None:
    for name, amount in amounts.items():
        room[name] = room.get(name, 0) - amount * times


def _give_back(taken: Sequence[Taken]) -> None:
    for room, amounts, times in taken:
        _subtract(room, amounts, -times)


def _sum_of(members: Members) -> Amounts:
    found: Amounts = {}
    for ask, count in members:
        for name, amount in ask.resource.items():
            found[name] = found.get(name, 0) + amount * count
    return found


def clock(time: int) -> str:
    """Return a time (ns) as a date, or as hours and minutes from the begin of a simulation."""
    seconds = time // SECOND
    if time >= EPOCHS:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    return f"{seconds // 3600}h{seconds // 60 % 60:02}m{seconds % 60:02}s"


@hookimpl
def yunikorn_reservation_policies() -> list[type[ReservationPolicy]]:
    """Return the policies."""
    return [EasyBackfilling, ConservativeBackfilling]
