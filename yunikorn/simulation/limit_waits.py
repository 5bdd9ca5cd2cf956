"""How long quotas and limits held requests, and kept applications from starting.

A request is held while, after the core has decided all that it could, a quota or limit leaves no room for
one more of it: another node would not help. The first in the order of the core's own checks is named. Held
alike are all requests of one size whose applications stand in one queue under one owner's limits: they share
a *line* with a clock of its own that runs while it is held. So what a request was held is the difference
between two readings, and a look costs as much as there are lines, however many requests wait in them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping

import attrs

from yunikorn.objects.allowance import Allowance
from yunikorn.objects.application import Application
from yunikorn.objects.gang import ATOMIC
from yunikorn.objects.queue import Queue
from yunikorn.simulation.books import Ask, Submitted
from yunikorn.simulation.misfits import partition_name
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


class Line:
    """Requests, or applications, that the same quotas and limits hold or let pass."""

    __slots__ = ("_chain", "_owner", "_pairs", "_queues", "_since", "_starting", "clock", "holder", "waiting")

    def __init__(self, app: Application, pairs: Pairs) -> None:
        self._starting = app.fresh
        self._chain = app.chain
        self._queues = app.chain[:-1]
        """All but root, whose quota is the size of the cluster."""
        self._owner = app.owner
        self._pairs = pairs
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
            if self._pairs:
                spent[self.holder] = spent.get(self.holder, 0) + passed * self.waiting
        self._since = max(moment, self._since)

    def look(self) -> str:
        """What holds it at this moment; empty when nothing does."""
        if self._starting:
            levels: list[Queue | Allowance] = [*self._chain, *self._owner]
            for level in levels:
                if level.full:
                    return f"no more applications may run: {level.label}"
        for queue in self._queues:
            if not queue.has_room(self._pairs):
                return f"over the quota of {queue.label}"
        for allowance in self._owner:
            if not allowance.has_room(self._pairs):
                return f"over the limit of {allowance.label}"
        return ""


@attrs.define(eq=False)
class _Stay:
    """Requests in a line: what they were held before, and where its clock stood when they joined."""

    line: Line
    count: int
    before: int
    mark: int

    @property
    def held(self) -> int:
        return self.before + self.line.clock - self.mark


class LimitWaits:
    """Watches what waits; it asks the core where requests stand, and how full the limits there are."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._lines: dict[Hashable, Line] = {}
        self._stays: dict[Ask | Submitted, _Stay] = {}
        self._held: dict[Ask | Submitted, int] = {}
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

    def placed(self, ask: Ask, moment: int) -> None:
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

    def gone(self, ask: Ask, moment: int) -> None:
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
        stay.line.wind(moment, self._spent)
        stay.line.waiting -= count
        stay.count -= count

    @staticmethod
    def _note(waits: Waits, held: int, count: int) -> None:
        if held:
            for _ in range(count):
                waits.add(held)

    # -- looking --------------------------------------------------------------------------------------

    def review(self, moment: int) -> None:
        """The core has decided all that it could: see what is held from now on."""
        fresh, self._new = self._new, {}
        for record in fresh:
            self._line_up(record, moment)
        idle = []
        for key, line in self._lines.items():
            if not line.waiting:
                idle.append(key)
                continue
            holder = line.look()
            if holder != line.holder:
                line.wind(moment, self._spent)
                line.holder = holder
        for key in idle:
            del self._lines[key]

    def _line_up(self, record: Submitted, moment: int) -> None:
        asks = [ask for ask in (*record.asks.values(), *record.places.values()) if ask.waiting]
        app = self._find(partition_name(record.plan.partition), record.plan.id) if asks else None
        if app is None or not _is_limited(app):
            return
        for ask in asks:
            if ask not in self._stays:
                self._join(ask, app, _wanted(record, ask), ask.waiting, moment)
        if app.fresh and record not in self._stays:
            self._join(record, app, (), 1, moment)

    def _join(self, who: Ask | Submitted, app: Application, pairs: Pairs, count: int, moment: int) -> None:
        key = (app.chain[0], app.owner, app.fresh, pairs)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = Line(app, pairs)
        line.wind(moment, self._spent)
        line.waiting += count
        self._stays[who] = _Stay(line, count, self._held.pop(who, 0), line.clock)

    # -- the report -----------------------------------------------------------------------------------

    def report(self, moment: int) -> LimitReport:
        """The figures at `moment`; what still waits counts with what it was held until then."""
        for line in self._lines.values():
            line.wind(moment, self._spent)
        waiting = [(who, stay.held, stay.count) for who, stay in self._stays.items()]
        waiting += [(who, held, _count(who)) for who, held in self._held.items()]
        tasks, applications = Waits(), Waits()
        tasks.merge(self._tasks)
        applications.merge(self._applications)
        for who, held, count in waiting:
            self._note(tasks if isinstance(who, Ask) else applications, held, count)
        return LimitReport(applications.summary(), tasks.summary(), _ranked(self._spent))


def _count(who: Ask | Submitted) -> int:
    return who.waiting if isinstance(who, Ask) else 1


def _is_limited(app: Application) -> bool:
    return bool(
        app.owner
        or any(queue.max_applications for queue in app.chain)
        or any(queue.max is not None for queue in app.chain[:-1])
    )


def _wanted(record: Submitted, ask: Ask) -> Pairs:
    """What has to fit at once: of a gang that is placed as a whole all of it, until it was placed."""
    plan = record.plan
    whole = plan.gang == ATOMIC and record.first_start is None
    return tuple((plan.total if whole else ask.group.resources).items())


def _ranked(spent: Mapping[str, int]) -> list[HeldBack]:
    ordered = sorted((item for item in spent.items() if item[1]), key=lambda item: -item[1])
    listed = [HeldBack(limit, seconds(time)) for limit, time in ordered[:MAX_LIMITS]]
    rest = sum(time for _, time in ordered[MAX_LIMITS:])
    return [*listed, HeldBack(OTHERS, seconds(rest))] if rest else listed
