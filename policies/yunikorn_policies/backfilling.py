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

from collections.abc import Hashable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import islice

import attrs

from yunikorn.api import Ask, Context, Node, Predicate, ReservationPolicy, Resource, Task, hookimpl
from yunikorn_policies.expected_ends import (
    NEVER,
    SECOND,
    Amounts,
    ExpectedEnds,
    NodeRooms,
    RunningTask,
    end_of,
    gains_of,
    subtract,
)
from yunikorn_policies.pooled_room import PooledRoom

EPOCHS = 10**9 * SECOND
"""Time (ns) from which on a clock counts from 1970; others count from the begin of a simulation."""
MINUTE = 60 * SECOND
MOST_PASSED = 1000
"""Number of waiting requests with room that are passed in the search for the first one without."""
Members = Sequence[tuple[Ask, int]]
Gains = tuple[Amounts, list[RunningTask], list[tuple[int, int]]]
"""Amounts of a node that are free, its tasks, and the times from which on more members fit."""


@attrs.define(eq=False)
class StartPlan:
    """The times to come, which are absolute: a plan is right until something else happens than it says."""

    changes: int
    """Number of changes when the plan was made."""
    first: Ask
    """First request without room, or the first member of a gang."""
    start: int
    """Time (ns) at which there is room for it."""
    kept: dict[str, Amounts]
    """Amounts by node that the first one gets at that time."""
    starts: dict[Ask, int] = attrs.field(factory=dict)
    """Times (ns) from which requests may start, by request or member."""
    ahead: frozenset[Ask] = frozenset()
    """Requests up to the first one without room, which wait for none behind them."""
    started: set[Ask] = attrs.field(factory=set)
    """Requests with a time that have started since."""
    seen: tuple[int, Amounts] = (-1, {})
    """Version of the books, and what runs and waits in all queues, when it was seen that the others wait."""
    waiting: frozenset[Ask] = frozenset()
    """Requests that waited then, down to the depth of the plan."""
    checked: tuple[int, int] = (-1, -1)
    """Version of the books and time (ns) at which the plan was found to be right."""


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
    _ends: ExpectedEnds = attrs.field(init=False, factory=ExpectedEnds)
    _tried: dict[str, list[Task]] = attrs.field(init=False, factory=dict)
    """Members of a gang that are placed on trial, by node."""
    _gone: dict[str, RunningTask] = attrs.field(init=False, factory=dict)
    """Tasks that were removed since the latest question."""
    _plan: StartPlan | None = attrs.field(init=False, default=None)
    _judged: Judged | None = attrs.field(init=False, default=None)
    _explained: Judged | None = attrs.field(init=False, default=None)
    """Answer that explanations use, which have no influence on decisions."""
    _changes: int = attrs.field(init=False, default=0)
    """Number of changes after which a plan is made again."""
    _gains: dict[Ask, dict[str, Gains]] = attrs.field(init=False, factory=dict)
    """Times at which members of the first one fit, by node."""
    _roomy: dict[Ask, bool] = attrs.field(init=False, factory=dict)
    """True for requests with room, as of `_roomy_at`."""
    _roomy_at: int = attrs.field(init=False, default=-1)
    _times: dict[Ask, int] = attrs.field(init=False, factory=dict)
    """Estimated run times (ns) of requests in this minute."""
    _minute: int = attrs.field(init=False, default=-1)
    _decides: bool = attrs.field(init=False, default=False)
    """True during a decision, and not during an explanation."""

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
        run = self._gone.pop(uuid, None)
        if run is None or run.task is not task or run.node != node.id:
            placed: int = task.placed  # type: ignore[attr-defined]
            end = placed + self._time_of(task, 0.0)
            run = RunningTask(task, node.id, placed, end, end)
        self._ends.add(uuid, run)

    def released(self, task: Task, node: Node) -> None:
        """Remove a task; what follows is planned again."""
        uuid = getattr(task, "uuid", None)
        if uuid is not None:
            run = self._ends.remove(uuid)
            if run is not None:
                self._gone[uuid] = run
            self._changes += 1
            return
        tried = self._tried.get(node.id, [])
        if task in tried:
            tried.remove(task)
        if not tried:
            self._tried.pop(node.id, None)

    def node_added(self, node: Node) -> None:
        """Count with a node from now on."""
        self._ends.nodes[node.id] = node
        self._ends.version += 1
        self._changes += 1

    def node_removed(self, node: Node) -> None:
        """Count with a node no more."""
        self._ends.nodes.pop(node.id, None)
        self._ends.version += 1
        self._changes += 1

    # -- questions ----------------------------------------------------------------------------------

    def ask_class(self, ask: Ask) -> Hashable:
        """Return what decides about equal requests: the estimated run time, and what their order is made of.

        Of two requests with equal classes, the later one never may start if the earlier one may not.
        """
        queue = "" if ask.app.queue is None else ask.app.queue.path
        return self._time_of(ask, 0.0) // SECOND, ask.priority, queue

    def prepare(self, ask: Ask) -> Judged | None:
        """Return the plan, and if the request may start anywhere; None if there is nothing to delay."""
        if self._is_preempting():
            return None
        hypothetical = self._context.hypothetical()
        if not self._tried:
            judged = self._explain(ask) if hypothetical else self._decide(ask)
            if hypothetical:
                self._explained = judged
            else:
                self._judged = judged
        return self._explained if hypothetical else self._judged

    def _is_preempting(self) -> bool:
        """Return True if tasks that still run were removed on trial: no plan refuses preemption."""
        if any(uuid in run.task.app.allocations for uuid, run in self._gone.items()):
            return True
        self._gone.clear()
        return False

    def _decide(self, ask: Ask) -> Judged | None:
        now = self._context.now()
        if now // MINUTE != self._minute:
            self._minute, self._times = now // MINUTE, {}
        self._decides = True
        try:
            plan = self._made(now, ask, self._plan_at(now))
            # That the request itself delays none does not mean that there is no plan for others.
            self._plan = plan or self._plan
            return None if plan is None else (plan, self._may_start(ask, plan, now))
        finally:
            self._decides = False

    def _explain(self, ask: Ask) -> Judged | None:
        """Answer as `_decide` does, and leave everything as it was."""
        now, changes = self._context.now(), self._changes
        with self._ends.trial():
            known = self._plan_at(now)
            plan = self._made(now, ask, None if known is None else attrs.evolve(known))
            self._changes = changes
            return None if plan is None else (plan, self._may_start(ask, plan, now))

    def _plan_at(self, now: int) -> StartPlan | None:
        """Return the plan if it is still right: nothing ended, and nothing takes room that it counts with."""
        self._renew(now)
        plan = self._plan
        if plan is None or plan.changes != self._changes or plan.start < now:
            return None
        if plan.checked != (self._ends.version, now):
            for key, amounts in plan.kept.items():
                node = self._ends.nodes[key]
                room = self._ends.room_at(node, plan.start)
                if not self._context.usable(None, node) or any(
                    room.get(name, 0) < amount for name, amount in amounts.items()
                ):
                    return None
            plan.checked = (self._ends.version, now)
        return plan

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
        judged = self._explain(ask)
        if judged is None:
            return None
        plan, may_start = judged
        if ask.app is plan.first.app and ask in plan.starts:
            return f"is the first that waits for room, and is expected to start at {clock(plan.start)}"
        return None if may_start else self._reason(ask, plan)

    def _made(self, now: int, ask: Ask, known: StartPlan | None) -> StartPlan | None:
        """Return the plan for a request, which may be a known one; None if nothing waits for room."""
        raise NotImplementedError

    def _may_start(self, ask: Ask, plan: StartPlan, now: int) -> bool:
        return plan.starts.get(ask, NEVER) <= now

    def _is_spare(self, ask: Ask, node: Node, plan: StartPlan) -> bool:
        """Return True if the request leaves what is kept on the node; it has room now."""
        kept = plan.kept.get(node.id)
        if kept is None:
            return True
        room = self._ends.room_at(node, plan.start)
        subtract(room, kept)
        return all(room.get(name, 0) >= amount for name, amount in ask.resource.items())

    def _reason(self, ask: Ask, plan: StartPlan) -> str:
        own, first = plan.starts.get(ask, NEVER), plan.first.app.id
        if own != NEVER:
            return f"waits behind application {first}, and is expected to start at {clock(own)}"
        return f"waits behind application {first}, which is expected to start at {clock(plan.start)}"

    # -- times --------------------------------------------------------------------------------------

    def _renew(self, now: int) -> bool:
        """Expect later ends of late tasks; return True if there are any."""
        return self._ends.renew(now, self._time_of)

    def _wait_time(self, ask: Ask) -> int:
        """Return the estimated run time of a request (ns), which is asked for once a minute."""
        found = self._times.get(ask)
        if found is None:
            found = self._time_of(ask, 0.0)
            if self._decides:
                self._times[ask] = found
        return found

    def _time_of(self, task: Task, age: float) -> int:
        """Return the estimated run time of a task (ns)."""
        found = self._context.run_time(task, age)
        seconds = self.assumed if found is None else found.high if self.by == "high" else found.median
        return round(seconds * SECOND)

    def _has_room(self, members: Members) -> bool:
        """Return True if the nodes have room for all members now."""
        if self._roomy_at != self._ends.version:
            self._roomy, self._roomy_at = {}, self._ends.version
        found = self._roomy.get(members[0][0])
        if found is None:
            has_room = self._fit(members, list(self._ends.nodes.values()), NodeRooms(_available))
            found = self._roomy[members[0][0]] = has_room
        return found

    def _fit(self, members: Members, order: Sequence[Node], *rooms: NodeRooms) -> bool:
        """Take the members from nodes in this order, with room in each of `rooms`; False without room."""
        usable = self._context.usable
        found: list[tuple[Node, Resource, int]] = []
        for ask, count in sorted(members, key=lambda one: -sum(one[0].resource.values())):
            left, size = count, [(name, amount) for name, amount in ask.resource.items() if amount]
            for node in order:
                here = [room.of(node) for room in rooms]
                most = min([room.get(name, 0) // amount for room in here for name, amount in size] or [left])
                if most > 0 and usable(ask, node):
                    taken = min(most, left)
                    found.append((node, ask.resource, taken))
                    for each in rooms:
                        each.take(node, ask.resource, taken)
                    left -= taken
                    if not left:
                        break
            if left:
                for node, amounts, times in found:
                    for each in rooms:
                        each.take(node, amounts, -times)
                return False
        return True

    def _keep_room(self, members: Members, now: int) -> StartPlan | None:
        """Return the plan for the first one without room; None if there will never be room for it."""
        if members[0][0] not in self._gains:
            self._gains = {ask: {} for ask, _ in members}
        start = max(self._first_time(ask, count, now) for ask, count in members)
        if start == NEVER:
            return None
        kept = self._kept_at(start, members)
        if kept is None:  # Members of several sizes want the same room.
            times = sorted({run.end for run in self._ends.runs.values() if run.end > start})
            low, high = 0, len(times)
            while low < high:
                middle = (low + high) // 2
                if self._kept_at(times[middle], members) is None:
                    low = middle + 1
                else:
                    high = middle
            if low == len(times):
                return None
            start = times[low]
            kept = self._kept_at(start, members)
        return None if kept is None else StartPlan(self._changes, members[0][0], start, kept)

    def _first_time(self, ask: Ask, count: int, now: int) -> int:
        """Return the earliest time (ns) at which equal members have room, or `NEVER`."""
        usable, known = self._context.usable, self._gains.setdefault(ask, {})
        times: list[tuple[int, int]] = []
        for node in self._ends.nodes.values():
            if usable(ask, node):
                gains, runs = known.get(node.id), self._ends.on(node.id)
                if gains is None or gains[0] != node.available or gains[1] is not runs:
                    found = list(gains_of(self._ends, node, ask.resource, count))
                    gains = known[node.id] = dict(node.available), runs, found
                times += gains[2]
        times.sort()
        fitting = 0
        for time, more in times:
            fitting += more
            if fitting >= count:
                return max(time, now)
        return NEVER

    def _kept_at(self, time: int, members: Members) -> dict[str, Amounts] | None:
        """Return what the members get on each node at a time; None without room.

        They take the nodes that become free last, so that others find the rest now.
        """
        rooms = NodeRooms(lambda node: self._ends.room_at(node, time))
        return rooms.taken if self._fit(members, self._ends.freed_last(time), rooms) else None


@attrs.define(eq=False)
class EasyBackfilling(Backfilling):
    """Others start before the first one that waits if they do not delay it."""

    name = "easy"

    def _made(self, now: int, ask: Ask, known: StartPlan | None) -> StartPlan | None:
        allowed: dict[Ask, int] = {}
        for passed, members in enumerate(self._context.waiting()):
            allowed |= dict.fromkeys([one for one, _ in members], now)
            if known is not None and known.first is members[0][0]:
                known.starts = allowed
                return known
            if passed >= MOST_PASSED:
                break
            # One with room starts now, or waits for something else.
            has_room = self._has_room(members)
            if has_room and ask in allowed:
                return None
            if not has_room and (plan := self._keep_room(members, now)) is not None:
                plan.starts = allowed
                return plan
        return None

    def _may_start(self, ask: Ask, plan: StartPlan, now: int) -> bool:
        return ask in plan.starts or now + self._wait_time(ask) <= plan.start


@attrs.define
class RoomToCome:
    """Room of the nodes that others may use, while a start is found for one after the other."""

    now: int
    nodes: Sequence[Node]
    free: NodeRooms
    """Free amounts by node, without what starts now."""
    pool: PooledRoom
    spare: NodeRooms | None = None
    """Amounts by node that stay free when the first one without room has started."""
    begins: dict[Resource, list[tuple[int, int]]] = attrs.field(factory=dict)
    """Run times and begins of those of equal amounts: a later one that is not shorter begins no earlier."""

    def begin(self, amounts: Resource, time: int, since: int) -> int:
        """Return the earliest time (ns), not before `since`, with room for a time, or `NEVER`."""
        known = self.begins.setdefault(amounts, [])
        since = max([since, *(begin for shorter, begin in known if shorter <= time)])
        found = since if since == NEVER else self.pool.begin(amounts, time, since)
        known.append((time, found))
        return found


@attrs.define(eq=False)
class ConservativeBackfilling(Backfilling):
    """Each one that waits has a time of its own, and none may delay an earlier one.

    Times are those of all nodes together, as if they were one, and what starts now has room on nodes. The
    first one without room keeps it on nodes, as with `easy`.
    """

    name = "conservative"
    depth: int = attrs.field(default=500, validator=attrs.validators.ge(1))
    """Number of waiting requests and gangs that get a time; others wait until they are among them."""

    def placed(self, task: Task, node: Node) -> None:
        """Add a task; one that starts before its time changes those of others."""
        is_back = getattr(task, "uuid", None) in self._gone
        super().placed(task, node)
        if is_back or self._plan is None or not hasattr(task, "uuid"):
            return
        now, known = self._context.now(), self._plan.starts.items()
        due = (one for one, begin in known if begin <= now and one.key == task.key and one.app is task.app)
        ask = next(due, None)
        if ask is None:
            self._changes += 1
        else:
            self._plan.started.add(ask)

    def _renew(self, now: int) -> bool:
        is_late = super()._renew(now)
        self._changes += is_late
        return is_late

    def _made(self, now: int, ask: Ask, known: StartPlan | None) -> StartPlan | None:
        seen = (self._ends.version, _demand(ask))
        if known is not None:
            is_same = known.seen == seen
            order = islice(self._context.waiting(), 0 if is_same else self.depth)
            waiting = known.waiting if is_same else frozenset(one for each in order for one, _ in each)
            is_new = ask in waiting and ask not in known.starts
            if not is_new and (is_same or known.starts.keys() <= waiting | known.started):
                known.seen, known.waiting = seen, waiting
                return known
        plan = self._planned(now, ask)
        if plan is not None:
            plan.seen, plan.waiting = seen, frozenset(plan.starts)
        return plan

    def _planned(self, now: int, ask: Ask) -> StartPlan | None:
        """Return a new plan; None if the request may start, or none is without room."""
        waiting = islice(self._context.waiting(), self.depth)
        nodes = [node for node in self._ends.nodes.values() if self._context.usable(None, node)]
        free = NodeRooms(partial(self._room_at, now))
        starting: list[Members] = []
        for members in waiting:
            if not self._fit(members, nodes, free):
                break
            if any(one is ask for one, _ in members):
                return None
            starting.append(members)
        else:
            return None
        room = RoomToCome(now, nodes, free, self._pool(now, nodes))
        starts = {one: now for each in starting for one, _ in each}
        for each in starting:
            room.pool.take(_sum_of(each), self._longest(each), now)
        plan: StartPlan | None = None
        for each in (members, *waiting):
            begin = NEVER
            if plan is not None:
                begin = self._begin(each, room, plan)
            elif (plan := self._keep_room(each, now)) is not None:
                plan.ahead = frozenset([*starts, *(one for one, _ in each)])
                room.spare = NodeRooms(partial(self._spare_of, plan))
                begin = room.pool.begin(_sum_of(each), self._longest(each), plan.start)
            elif self._fit(each, nodes, free):
                begin = now
            if begin < NEVER:
                room.pool.take(_sum_of(each), self._longest(each), begin)
            starts |= dict.fromkeys([one for one, _ in each], begin)
        if plan is not None:
            plan.starts = starts
        return plan

    def _longest(self, members: Members) -> int:
        return max(self._wait_time(one) for one, _ in members)

    def _spare_of(self, plan: StartPlan, node: Node) -> Amounts:
        """Return what the first one leaves on a node."""
        room = self._ends.room_at(node, plan.start)
        subtract(room, plan.kept.get(node.id, {}))
        return room

    def _pool(self, now: int, nodes: Sequence[Node]) -> PooledRoom:
        """Return the room of the nodes that others may use."""
        total: Amounts = {}
        for node in nodes:
            subtract(total, {name: max(amount, 0) for name, amount in node.available.items()}, -1)
        ids = {node.id for node in nodes}
        runs = sorted((run for run in self._ends.runs.values() if run.node in ids), key=end_of)
        return PooledRoom(now, total, [(run.end, run.task.resource) for run in runs])

    def _room_at(self, time: int, node: Node) -> Amounts:
        return self._ends.room_at(node, time)

    def _begin(self, members: Members, room: RoomToCome, plan: StartPlan) -> int:
        """Return when members after the first ones without room may start."""
        amounts, time = _sum_of(members), self._longest(members)
        begin = room.begin(amounts, time, room.now)
        if begin == room.now:
            # What runs when the first one starts must leave it the room that is kept for it.
            is_short = room.spare is None or room.now + time <= plan.start
            rooms = (room.free,) if room.spare is None or is_short else (room.free, room.spare)
            if self._fit(members, room.nodes, *rooms):
                return begin
            following = room.pool.following(room.now)
            begin = NEVER if following == NEVER else room.pool.begin(amounts, time, following)
        return begin if begin < NEVER and self._fit(members, room.nodes, self._ended()) else NEVER

    def _ended(self) -> NodeRooms:
        """Return the room of the nodes when all that runs has ended."""
        return NodeRooms(partial(self._room_at, NEVER))

    def _may_start(self, ask: Ask, plan: StartPlan, now: int) -> bool:
        if plan.starts.get(ask, NEVER) > now:
            return False
        return ask in plan.ahead or now + self._wait_time(ask) <= plan.start

    def _is_spare(self, ask: Ask, node: Node, plan: StartPlan) -> bool:
        return plan.starts.get(ask, NEVER) <= self._context.now() and super()._is_spare(ask, node, plan)


def _available(node: Node) -> Mapping[str, int]:
    return node.available


def _demand(ask: Ask) -> Amounts:
    """Return what runs and waits in all queues."""
    queue = ask.app.queue
    while queue is not None and queue.parent is not None:
        queue = queue.parent
    return {} if queue is None else dict(queue.demand)


def _sum_of(members: Members) -> Resource:
    found: Amounts = {}
    for ask, count in members:
        subtract(found, ask.resource, -count)
    return Resource(found)


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
