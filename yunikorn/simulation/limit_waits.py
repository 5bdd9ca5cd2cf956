"""How long quotas and limits held requests, and kept applications from starting.

A request is held while, after the core has decided all that it could, a quota or limit leaves no room for
one more of it: another node would not help. The first in the order of the core's own checks is named. Held
alike are all requests of one size whose applications stand in one queue under one owner's limits: they share
a *line* with a clock of its own that runs while it is held. So what a request was held is the difference
between two readings, however many requests wait in a line. Lines are looked at again only when something
changed at their *gate*, which is the quotas and limits that count for them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping

import attrs

from yunikorn.objects.application import Application
from yunikorn.objects.gang import ATOMIC
from yunikorn.objects.queue import Queue
from yunikorn.objects.usage_tracker import UsageTracker
from yunikorn.simulation.oversized import partition_name
from yunikorn.simulation.rm_state import SentAsk, Submitted
from yunikorn.simulation.statistics import Waits, WaitSummary, seconds

MAX_LIMITS = 100
"""So many limits are listed; what further ones held is counted together."""

OTHERS = "further limits"

Find = Callable[[str, str], Application | None]
"""The core's application in a partition, by id."""

Pairs = tuple[tuple[str, int], ...]


@attrs.frozen
class HeldBack:
    """A quota or limit, and for how long it held requests, summed over them, in seconds."""

    limit: str
    seconds: float


@attrs.frozen
class LimitReport:
    """What quotas and limits held; of requests and applications only those that they held at all."""

    applications: WaitSummary | None
    """How long applications were kept from starting because as many ran as may."""
    tasks: WaitSummary | None
    """How long requests for a task, or its placeholder, were held, for this reason or another."""
    limits: list[HeldBack]
    """What held them, the longest first."""


class LimitClass:
    """Requests, or applications, that the same quotas and limits hold or let pass."""

    __slots__ = ("_since", "clock", "holder", "pairs", "waiting")

    def __init__(self, pairs: Pairs) -> None:
        self.pairs = pairs
        self.holder = ""
        """What holds it now."""
        self.waiting = 0
        self.clock = 0
        """How long it has been held, up to the last `wind`."""
        self._since = 0

    def wind(self, moment: int, spent: dict[str, int]) -> None:
        """Let the clock run up to `moment`; what each of its requests was held is added to `spent`."""
        if self.holder:
            passed = max(moment - self._since, 0)
            self.clock += passed
            if self.pairs:
                spent[self.holder] = spent.get(self.holder, 0) + passed * self.waiting
        self._since = max(moment, self._since)

    def look(self, gate: Gate) -> str:
        """What holds it at this moment; empty when nothing does."""
        for queue in gate.queues:
            if not queue.has_room(self.pairs):
                return f"over the quota of {queue.label}"
        for tracker in gate.owner:
            if not tracker.has_room(self.pairs):
                return f"over the limit of {tracker.label}"
        return ""


class Gate:
    """The quotas and limits that count for applications of one queue and owner, and the lines before them."""

    __slots__ = ("_levels", "_seen", "limit_classes", "not_started", "owner", "queues")

    def __init__(self, app: Application) -> None:
        self._levels: list[Queue | UsageTracker] = [*app.chain, *app.owner] if app.not_started else []
        """Where the number of applications counts for those that have not started."""
        self.queues = app.chain[:-1]
        """All but root, whose quota is the size of the cluster."""
        self.owner = app.owner
        self.limit_classes: dict[Pairs, LimitClass] = {}
        self.not_started: list[LimitClass] = []
        """Lines that were never looked at."""
        self._seen: list[object] = []

    def review(self, moment: int, spent: dict[str, int]) -> None:
        """See which of its lines are held from now on, and forget those in which nobody waits."""
        seen = self._see()
        limit_classes: Iterable[LimitClass] = self.not_started
        if seen != self._seen:
            self._seen = seen
            limit_classes = self.limit_classes.values()
        idle = []
        closed = self._closed()
        for limit_class in limit_classes:
            if not limit_class.waiting:
                idle.append(limit_class.pairs)
                continue
            holder = closed or limit_class.look(self)
            if holder != limit_class.holder:
                limit_class.wind(moment, spent)
                limit_class.holder = holder
        self.not_started = []
        for key in idle:
            self.limit_classes.pop(key, None)

    def _see(self) -> list[object]:
        """All that decides who is held."""
        seen: list[object] = []
        for queue in self.queues:
            quota, allocated = queue.max, queue.allocated
            seen.append(quota)
            if quota is not None:
                seen += [allocated.get(name) for name in quota]
        for tracker in self.owner:
            most = tracker.max_resources
            seen.append(most)
            if most is not None:
                usage = tracker.usage
                seen += [usage.get(name) for name in most]
        seen += [level.full for level in self._levels]
        return seen

    def _closed(self) -> str:
        """Whose applications' number holds all of them."""
        full = next((level for level in self._levels if level.full), None)
        return "" if full is None else f"no more applications may run: {full.label}"


@attrs.define(eq=False)
class _Stay:
    """Requests in a line: what they were held before, and where its clock stood when they joined."""

    limit_class: LimitClass
    count: int
    before: int
    mark: int

    @property
    def held(self) -> int:
        return self.before + self.limit_class.clock - self.mark


class LimitWaits:
    """Watches what waits; it asks the core where requests stand, and how full the limits there are."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._gates: dict[Hashable, Gate] = {}
        self._stays: dict[SentAsk | Submitted, _Stay] = {}
        self._held: dict[SentAsk | Submitted, int] = {}
        """What requests that moved between lines were held so far."""
        self._new: dict[Submitted, None] = {}
        """Applications of which something has to be put in line."""
        self._spent: dict[str, int] = {}
        self._tasks, self._applications = Waits(), Waits()

    # -- what the resource manager tells --------------------------------------------------------------

    def moved(self, record: Submitted, moment: int) -> None:
        """An application asks for more, or other limits may count for it from now on."""
        self._new[record] = None
        for ask in [*record.asks.values(), *record.places.values()]:
            stay = self._stays.pop(ask, None)
            if stay is not None:
                self._leave(stay, stay.count, moment)
                self._held[ask] = stay.held

    def placed(self, ask: SentAsk, moment: int) -> None:
        """One of the requests has its place; it was counted out of `ask.waiting` already."""
        stay = self._stays.get(ask)
        if stay is not None:
            self._leave(stay, 1, moment)
            self._note(self._tasks, stay.held, 1)
            if not stay.count:
                del self._stays[ask]
        elif ask in self._held:
            self._note(self._tasks, self._held[ask], 1)
            if not ask.waiting:
                del self._held[ask]

    def started(self, record: Submitted, moment: int) -> None:
        """An application has its first place, or will never have one."""
        stay = self._stays.pop(record, None)
        if stay is not None:
            self._leave(stay, 1, moment)
        self._note(self._applications, self._held.pop(record, 0) if stay is None else stay.held, 1)

    def gone(self, ask: SentAsk, moment: int) -> None:
        """What still waits of an ask will never have its place."""
        stay = self._stays.pop(ask, None)
        if stay is not None:
            self._leave(stay, stay.count, moment)
        self._note(self._tasks, self._held.pop(ask, 0) if stay is None else stay.held, ask.waiting)

    def closed(self, record: Submitted, moment: int) -> None:
        """An application came to its end."""
        for ask in [*record.asks.values(), *record.places.values()]:
            self.gone(ask, moment)
        self.started(record, moment)
        self._new.pop(record, None)

    def _leave(self, stay: _Stay, count: int, moment: int) -> None:
        stay.limit_class.wind(moment, self._spent)
        stay.limit_class.waiting -= count
        stay.count -= count

    @staticmethod
    def _note(waits: Waits, held: int, count: int) -> None:
        if held:
            for _ in range(count):
                waits.add(held)

    # -- looking --------------------------------------------------------------------------------------

    def review(self, moment: int) -> None:
        """The core has decided all that it could: see what is held from now on."""
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
        app = self._find(partition_name(record.plan.partition), record.plan.id) if asks else None
        if app is None or not _is_limited(app):
            return
        for ask in asks:
            if ask not in self._stays:
                self._join(ask, app, _wanted(record, ask), ask.waiting, moment)
        if app.not_started and record not in self._stays:
            self._join(record, app, (), 1, moment)

    def _join(
        self, who: SentAsk | Submitted, app: Application, pairs: Pairs, count: int, moment: int
    ) -> None:
        key = (app.chain[0], app.owner, app.not_started)
        gate = self._gates.get(key)
        if gate is None:
            gate = self._gates[key] = Gate(app)
        limit_class = gate.limit_classes.get(pairs)
        if limit_class is None:
            limit_class = gate.limit_classes[pairs] = LimitClass(pairs)
            gate.not_started.append(limit_class)
        limit_class.wind(moment, self._spent)
        limit_class.waiting += count
        self._stays[who] = _Stay(limit_class, count, self._held.pop(who, 0), limit_class.clock)

    # -- the report -----------------------------------------------------------------------------------

    def report(self, moment: int) -> LimitReport:
        """The figures at `moment`; what still waits counts with what it was held until then."""
        for gate in self._gates.values():
            for limit_class in gate.limit_classes.values():
                limit_class.wind(moment, self._spent)
        waiting = [(who, stay.held, stay.count) for who, stay in self._stays.items()]
        waiting += [(who, held, _count(who)) for who, held in self._held.items()]
        tasks, applications = Waits(), Waits()
        tasks.merge(self._tasks)
        applications.merge(self._applications)
        for who, held, count in waiting:
            self._note(tasks if isinstance(who, SentAsk) else applications, held, count)
        return LimitReport(applications.summary(), tasks.summary(), _ranked(self._spent))


def _count(who: SentAsk | Submitted) -> int:
    return who.waiting if isinstance(who, SentAsk) else 1


def _is_limited(app: Application) -> bool:
    return bool(
        app.owner
        or any(queue.max_applications for queue in app.chain)
        or any(queue.max is not None for queue in app.chain[:-1])
    )


def _wanted(record: Submitted, ask: SentAsk) -> Pairs:
    """What has to fit at once: of a gang that is placed as a whole all of it, until it was placed."""
    plan = record.plan
    whole = plan.gang == ATOMIC and record.first_start is None
    return tuple((plan.total if whole else ask.group.resources).items())


def _ranked(spent: Mapping[str, int]) -> list[HeldBack]:
    ordered = sorted((item for item in spent.items() if item[1]), key=lambda item: -item[1])
    listed = [HeldBack(limit, seconds(time)) for limit, time in ordered[:MAX_LIMITS]]
    rest = sum(time for _, time in ordered[MAX_LIMITS:])
    return [*listed, HeldBack(OTHERS, seconds(rest))] if rest else listed
