"""Measurement of how long quotas and limits block requests, and applications from starting.

A request is blocked while a quota or limit leaves no room for one more of the same request after the core has
made all possible decisions; free nodes would not help. The first exhausted limit in the order of the core's
checks is reported.

Requests of one size whose applications share a queue and the same user and group limits are blocked alike.
They form a `LimitClass`, whose clock runs while the class is blocked. The blocked time of a request is the
difference between two clock readings, independent of the number of requests in the class. A `LimitGate` is
the set of quotas and limits that apply to some classes. Its classes are evaluated again only after a change
of the gate.

Amounts of waiting requests that a quota or limit blocks, by partition, cause and resource type.

The amounts are updated with each change of a class of requests (`limit_waits.LimitClass`), so that reading
them costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping

import attrs

from yunikorn.model.application import Application
from yunikorn.model.queue import Queue
from yunikorn.model.usage_tracker import UsageTracker
from yunikorn.resources import NOTHING, Resource, Tally, grow
from yunikorn_lab.simulation.rm_state import SentAsk, Submitted, partition_name
from yunikorn_lab.simulation.statistics import Summary, Waits, seconds

QUOTA, LIMIT, APPLICATIONS = "quota", "limit", "max applications"
"""Causes: the quota of a queue, the limit of a user or group, and a maximum number of applications."""

CAUSES = (QUOTA, LIMIT, APPLICATIONS)


class BlockedAmounts:
    """Blocked amounts of one partition."""

    __slots__ = ("atomic", "by_cause")

    def __init__(self) -> None:
        self.by_cause: dict[str, Tally] = {cause: {} for cause in CAUSES}
        self.atomic: Tally = {}
        """The part of all causes that Atomic gangs ask for."""

    def add(self, cause: str, amount: Mapping[str, int], count: int, *, atomic: bool) -> None:
        """Add `count` requests of `amount`, which are members of an Atomic gang or not."""
        grow(self.by_cause[cause], amount, count)
        if atomic:
            grow(self.atomic, amount, count)

    def total(self, name: str) -> int:
        """Return the blocked amount of a type, over all causes."""
        return sum(tally.get(name, 0) for tally in self.by_cause.values())


MAX_LIMITS = 100
"""Maximum number of listed limits; the time of further limits is summed up."""

OTHERS = "further limits"

Find = Callable[[str, str], Application | None]
"""Returns the core's application by partition and id."""

Pairs = tuple[tuple[str, int], ...]

_Found = tuple[str, str]
"""Quota or limit that blocks a class, and its cause, one of `blocked_amounts.CAUSES`; empty if none."""

_NONE: _Found = ("", "")


@attrs.frozen
class BlockedTime:
    """A quota or limit, and the time (seconds) for which it blocked requests, summed over the requests."""

    limit: str
    seconds: float


@attrs.frozen
class LimitReport:
    """Waits caused by quotas and limits; only requests and applications that were blocked count."""

    applications: Summary | None
    """Time for which applications could not start because of a maximum number of applications."""
    tasks: Summary | None
    """Time for which requests for a task or its placeholder were blocked, by any quota or limit."""
    limits: list[BlockedTime]
    """Blocking quotas and limits, the longest time first."""


class LimitClass:
    """Requests, or applications, that are subject to the same quotas and limits."""

    __slots__ = ("_amounts", "_atomic", "_cause", "_since", "_wanted", "clock", "limit", "pairs", "waiting")

    def __init__(self, pairs: Pairs, amounts: BlockedAmounts, *, atomic: bool) -> None:
        """Create a class without members; what is blocked of them is added to `amounts`."""
        self.pairs = pairs
        self.limit = ""
        """Quota or limit that blocks the class now; empty if none does."""
        self._cause = ""
        self._amounts = amounts
        self._atomic = atomic
        self._wanted: Tally = {}
        """Sum of the amounts of all waiting requests."""
        self.waiting = 0
        self.clock = 0
        """Total time (ns) for which the class has been blocked, up to the last call of `wind`."""
        self._since = 0

    @property
    def key(self) -> tuple[Pairs, bool]:
        """Key of the class in its gate."""
        return self.pairs, self._atomic

    def wind(self, moment: int, spent: dict[str, int]) -> None:
        """Advance the clock to `moment`, and add the blocked time of all requests of the class to `spent`."""
        if self.limit:
            passed = max(moment - self._since, 0)
            self.clock += passed
            if self.pairs:
                spent[self.limit] = spent.get(self.limit, 0) + passed * self.waiting
        self._since = max(moment, self._since)

    def want(self, amount: Resource, count: int) -> None:
        """Add waiting requests of this amount, or remove them if `count` is negative."""
        self.waiting += count
        grow(self._wanted, amount, count)
        if self._cause:
            self._amounts.add(self._cause, amount, count, atomic=self._atomic)

    def block(self, limit: str, cause: str) -> None:
        """Set what blocks the class from now on, and its cause; empty if nothing does."""
        self.limit = limit
        if cause != self._cause:
            for each, sign in ((self._cause, -1), (cause, 1)):
                if each:
                    self._amounts.add(each, self._wanted, sign, atomic=self._atomic)
            self._cause = cause

    def find_limit(self, gate: LimitGate) -> _Found:
        """Return the quota or limit that blocks the class now, and its cause."""
        for queue in gate.queues:
            if not queue.has_room(self.pairs):
                return f"over the quota of {queue.label}", QUOTA
        for tracker in gate.limit_trackers:
            if not tracker.has_room(self.pairs):
                return f"over the limit of {tracker.label}", LIMIT
        return _NONE


class LimitGate:
    """The quotas and limits of applications under the same limits, and the classes subject to them."""

    __slots__ = ("_levels", "_seen", "limit_classes", "limit_trackers", "not_started", "queues")

    def __init__(self, app: Application) -> None:
        self._levels: list[Queue | UsageTracker] = (
            [*app.chain, *app.limit_trackers] if app.not_started else []
        )
        """Queues and usage trackers whose maximum of applications applies; none for started applications."""
        self.queues = app.chain[:-1]
        """All queues of the chain but root, whose quota is the size of the cluster."""
        self.limit_trackers = app.limit_trackers
        self.limit_classes: dict[tuple[Pairs, bool], LimitClass] = {}
        """Classes by amounts, and whether their requests are members of Atomic gangs."""
        self.not_started: list[LimitClass] = []
        """New classes that have not been evaluated yet."""
        self._seen: list[object] = []

    def review(self, moment: int, spent: dict[str, int]) -> None:
        """Determine which classes are blocked from now on, and remove classes without waiting requests."""
        seen = self._see()
        limit_classes: Iterable[LimitClass] = self.not_started
        if seen != self._seen:
            self._seen = seen
            limit_classes = self.limit_classes.values()
        idle = []
        closed = self._closed()
        for limit_class in limit_classes:
            if not limit_class.waiting:
                idle.append(limit_class.key)
                continue
            limit, cause = (closed, APPLICATIONS) if closed else limit_class.find_limit(self)
            if limit != limit_class.limit:
                limit_class.wind(moment, spent)
                limit_class.block(limit, cause)
        self.not_started = []
        for key in idle:
            self.limit_classes.pop(key, None)

    def _see(self) -> list[object]:
        """Return the state that determines which classes are blocked."""
        seen: list[object] = []
        for queue in self.queues:
            quota, allocated = queue.max, queue.allocated
            seen.append(quota)
            if quota is not None:
                seen += [allocated.get(name) for name in quota]
        for tracker in self.limit_trackers:
            most = tracker.max_resources
            seen.append(most)
            if most is not None:
                usage = tracker.usage
                seen += [usage.get(name) for name in most]
        seen += [level.full for level in self._levels]
        return seen

    def _closed(self) -> str:
        """Return the maximum number of applications that blocks all classes, or an empty string."""
        full = next((level for level in self._levels if level.full), None)
        return "" if full is None else f"no more applications may run: {full.label}"


@attrs.define(eq=False)
class _Membership:
    """Requests in a class: their blocked time from earlier classes, and the clock reading at joining."""

    limit_class: LimitClass
    count: int
    before: int
    mark: int
    amount: Resource = NOTHING
    """Amount of each request; nothing for an application."""

    @property
    def blocked(self) -> int:
        return self.before + self.limit_class.clock - self.mark


class LimitWaits:
    """Measurement of waits caused by limits; reads positions and limits from the core's objects."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._gates: dict[Hashable, LimitGate] = {}
        self._members: dict[SentAsk | Submitted, _Membership] = {}
        self._blocked: dict[SentAsk | Submitted, int] = {}
        """Blocked time so far (ns) of requests that left a class and have not joined another."""
        self._new: dict[Submitted, None] = {}
        """Applications with requests that must be assigned to a class."""
        self._spent: dict[str, int] = {}
        self._amounts: dict[str, BlockedAmounts] = {}
        self._tasks, self._applications = Waits(), Waits()

    # -- calls of the resource manager -----------------------------------------------------------------

    def moved(self, record: Submitted, moment: int) -> None:
        """Note that an application has further asks, or that other limits may apply from now on."""
        self._new[record] = None
        for ask in [*record.asks.values(), *record.places.values()]:
            member = self._members.pop(ask, None)
            if member is not None:
                self._leave(member, member.count, moment)
                self._blocked[ask] = member.blocked

    def placed(self, ask: SentAsk, moment: int) -> None:
        """Note that one request of an ask was allocated; `ask.waiting` no longer counts the request."""
        member = self._members.get(ask)
        if member is not None:
            self._leave(member, 1, moment)
            self._note(self._tasks, member.blocked, 1)
            if not member.count:
                del self._members[ask]
        elif ask in self._blocked:
            self._note(self._tasks, self._blocked[ask], 1)
            if not ask.waiting:
                del self._blocked[ask]

    def started(self, record: Submitted, moment: int) -> None:
        """Note that an application started its first task, or will never start."""
        member = self._members.pop(record, None)
        if member is not None:
            self._leave(member, 1, moment)
        self._note(self._applications, self._blocked.pop(record, 0) if member is None else member.blocked, 1)

    def gone(self, ask: SentAsk, moment: int) -> None:
        """Note that the remaining requests of an ask will never be allocated."""
        member = self._members.pop(ask, None)
        if member is not None:
            self._leave(member, member.count, moment)
        self._note(self._tasks, self._blocked.pop(ask, 0) if member is None else member.blocked, ask.waiting)

    def closed(self, record: Submitted, moment: int) -> None:
        """Note the end of an application."""
        for ask in [*record.asks.values(), *record.places.values()]:
            self.gone(ask, moment)
        self.started(record, moment)
        self._new.pop(record, None)

    def _leave(self, member: _Membership, count: int, moment: int) -> None:
        member.limit_class.wind(moment, self._spent)
        member.limit_class.want(member.amount, -count)
        member.count -= count

    @staticmethod
    def _note(waits: Waits, blocked: int, count: int) -> None:
        if blocked:
            for _ in range(count):
                waits.add(blocked)

    def amounts(self, partition: str) -> BlockedAmounts:
        """Return the amounts of requests that are blocked now in a partition; the object stays the same."""
        return self._amounts.setdefault(partition, BlockedAmounts())

    # -- evaluation -----------------------------------------------------------------------------------

    def review(self, moment: int) -> None:
        """Determine what is blocked from now on; called when the core has made all possible decisions."""
        not_started, self._new = self._new, {}
        for record in not_started:
            self._classify(record, moment)
        idle = []
        for key, gate in self._gates.items():
            gate.review(moment, self._spent)
            if not gate.limit_classes:
                idle.append(key)
        for key in idle:
            del self._gates[key]

    def _classify(self, record: Submitted, moment: int) -> None:
        asks = [ask for ask in (*record.asks.values(), *record.places.values()) if ask.waiting]
        partition = partition_name(record.plan.partition)
        app = self._find(partition, record.plan.id) if asks else None
        if app is None or not _is_limited(app):
            return
        atomic = record.is_unplaced_gang
        for ask in asks:
            if ask not in self._members:
                one = ask.group.resources
                pairs = tuple((record.plan.total if atomic else one).items())
                limit_class = self._class(app, pairs, partition, atomic=atomic)
                self._join(ask, limit_class, ask.waiting, one, moment)
        if app.not_started and record not in self._members:
            self._join(record, self._class(app, (), partition, atomic=False), 1, NOTHING, moment)

    def _class(self, app: Application, pairs: Pairs, partition: str, *, atomic: bool) -> LimitClass:
        """Return the class of requests; those of an Atomic gang that is not placed must fit together."""
        key = (app.chain[0], app.limit_trackers, app.not_started)
        gate = self._gates.get(key)
        if gate is None:
            gate = self._gates[key] = LimitGate(app)
        limit_class = gate.limit_classes.get((pairs, atomic))
        if limit_class is None:
            limit_class = LimitClass(pairs, self.amounts(partition), atomic=atomic)
            gate.limit_classes[limit_class.key] = limit_class
            gate.not_started.append(limit_class)
        return limit_class

    def _join(
        self, who: SentAsk | Submitted, limit_class: LimitClass, count: int, amount: Resource, moment: int
    ) -> None:
        limit_class.wind(moment, self._spent)
        limit_class.want(amount, count)
        before = self._blocked.pop(who, 0)
        self._members[who] = _Membership(limit_class, count, before, limit_class.clock, amount)

    # -- the report -----------------------------------------------------------------------------------

    def report(self, moment: int) -> LimitReport:
        """Return the figures at `moment`; requests that still wait count with their blocked time so far."""
        for gate in self._gates.values():
            for limit_class in gate.limit_classes.values():
                limit_class.wind(moment, self._spent)
        waiting = [(who, member.blocked, member.count) for who, member in self._members.items()]
        waiting += [(who, blocked, _count(who)) for who, blocked in self._blocked.items()]
        tasks, applications = Waits(), Waits()
        tasks.merge(self._tasks)
        applications.merge(self._applications)
        for who, blocked, count in waiting:
            self._note(tasks if isinstance(who, SentAsk) else applications, blocked, count)
        return LimitReport(applications.summary(), tasks.summary(), _ranked(self._spent))


def _count(who: SentAsk | Submitted) -> int:
    return who.waiting if isinstance(who, SentAsk) else 1


def _is_limited(app: Application) -> bool:
    return bool(
        app.limit_trackers
        or any(queue.max_applications for queue in app.chain)
        or any(queue.max is not None for queue in app.chain[:-1])
    )


def _ranked(spent: Mapping[str, int]) -> list[BlockedTime]:
    ordered = sorted((item for item in spent.items() if item[1]), key=lambda item: -item[1])
    listed = [BlockedTime(limit, seconds(time)) for limit, time in ordered[:MAX_LIMITS]]
    rest = sum(time for _, time in ordered[MAX_LIMITS:])
    return [*listed, BlockedTime(OTHERS, seconds(rest))] if rest else listed
