"""Report of usage: resource-hours, tasks and cost by groups, exact to the millisecond.

Sums of days and hours are in the history. They do not say which template of application ids used them, so
that applications are added up for templates: as a whole where one began and ended within one period of the
window, else task by task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import attrs

from yunikorn.resources import Tally, grow
from yunikorn.text import listed
from yunikorn_history.history_tables import (
    DAY,
    PARTITION_SERIES,
    PLACEHOLDER,
    PREEMPTED,
    QUEUE_SERIES,
)
from yunikorn_history.service_usage import Period, periods_of
from yunikorn_lab.history_reports.history_result import (
    HistoryReport,
    ResultTable,
    Row,
    ShownColumn,
    hours,
    hours_of,
    money,
    share,
    sort_types,
    unit_of,
)
from yunikorn_lab.history_reports.price_list import PriceList
from yunikorn_lab.history_reports.report_source import ReportSource, SeriesData, amounts_of
from yunikorn_lab.history_reports.report_window import Grouping, ReportWindow, period_name
from yunikorn_lab.history_reports.time_pictures import MOST, GroupSeries, ranked_groups, use_picture
from yunikorn_lab.reporting.tables import count, percent, ratio

MOST_TYPES = 4
"""Maximum number of resource types with a column of their own in tables."""


@attrs.define
class UsageSum:
    """Service and tasks of a group."""

    service: Tally = attrs.Factory(dict)
    placeholder: Tally = attrs.Factory(dict)
    lost: Tally = attrs.Factory(dict)
    started: int = 0
    ended: int = 0
    preempted: int = 0

    def add(self, other: UsageSum) -> None:
        """Add the sums of another group."""
        grow(self.service, other.service)
        grow(self.placeholder, other.placeholder)
        grow(self.lost, other.lost)
        self.started += other.started
        self.ended += other.ended
        self.preempted += other.preempted


UsageKey = tuple[str, str, int]
"""Name of the group, period, and id of the queue."""


class UsageSums:
    """Sums of a report, and the service of groups in each bucket of its time."""

    def __init__(self, source: ReportSource, grouping: Grouping) -> None:
        self._source, self._grouping = source, grouping
        self.groups: dict[UsageKey, UsageSum] = {}
        self.over_time = GroupSeries(source.window)
        if grouping.subject == "template":
            self._read_applications()
        else:
            self._read_usage()

    def _group(self, subject: str, period: str, queue: int) -> UsageSum:
        key = subject, period, queue
        found = self.groups.get(key)
        if found is None:
            found = self.groups[key] = UsageSum()
        return found

    def _period(self, time: int) -> str:
        return period_name(self._grouping.period, time) if self._grouping.period else ""

    # -- sums of hours and days ----------------------------------------------------------------------

    def _read_usage(self) -> None:
        grouping, source = self._grouping, self._source
        for time, (queue, number), data in source.usage("queue", grouping.column):
            subject = source.subject(grouping, number)
            group = self._group(subject, self._period(time), queue)
            grow(group.service, data.service)
            if data.placeholder:
                grow(group.placeholder, data.placeholder)
            if data.lost:
                grow(group.lost, data.lost)
            group.started += data.started
            group.ended += data.ended
            group.preempted += data.preempted
            if source.has_pictures:
                self.over_time.add(subject, time, data.service)

    # -- applications and tasks ----------------------------------------------------------------------

    def _read_applications(self) -> None:
        window = self._source.window
        cut: dict[int, tuple[str, int]] = {}
        counts = ("id", "template", "queue", "submitted", "ended", "tasks", "preempted")
        services = ("service", "lost_service", "placeholder_service")
        for row in self._source.applications(*counts, *services):
            number, template, queue, submitted, ended, tasks, preempted, service, lost, placeholder = row
            name = self._source.name(template)
            is_whole = window.since <= submitted and ended is not None and ended < window.until
            if not is_whole or self._period(submitted) != self._period(ended):
                cut[number] = name, queue
                continue
            group = self._group(name, self._period(submitted), queue)
            grow(group.service, amounts_of(service))
            for text, part in ((lost, group.lost), (placeholder, group.placeholder)):
                if text:
                    amounts = amounts_of(text)
                    grow(group.service, amounts)
                    grow(part, amounts)
            group.started += tasks
            group.ended += tasks
            group.preempted += preempted
        columns = ("app", "shape", "sizes", "flags", "placed", "ended")
        for number, shape, sizes, flags, placed, ended in self._source.tasks_of(cut, *columns):
            end = self._source.window.until if ended is None else ended
            periods = periods_of(placed, max(end, placed), self._source.shape(shape), sizes)
            self._add_task(*cut[number], periods, flags, placed, ended)

    def _add_task(
        self, name: str, queue: int, periods: list[Period], flags: int, placed: int, ended: int | None
    ) -> None:
        window, is_task = self._source.window, not flags & PLACEHOLDER
        for begin, end, amounts in periods:
            for since, until in self._pieces(*window.clip(begin, end)):
                group = self._group(name, self._period(since), queue)
                grow(group.service, amounts, until - since)
                if not is_task:
                    grow(group.placeholder, amounts, until - since)
                elif flags & PREEMPTED:
                    grow(group.lost, amounts, until - since)
        if is_task and window.since <= placed < window.until:
            self._group(name, self._period(placed), queue).started += 1
        if is_task and ended is not None and window.since <= ended < window.until:
            group = self._group(name, self._period(ended), queue)
            group.ended += 1
            group.preempted += bool(flags & PREEMPTED)

    def _pieces(self, since: int, until: int) -> Iterator[tuple[int, int]]:
        """Yield the parts of a time, cut where days end if there are periods."""
        while since < until:
            end = min(until, (since // DAY + 1) * DAY) if self._grouping.period else until
            yield since, end
            since = end


class Guarantees:
    """Guarantees of queues over time: the mean of an hour or day in it, then the latest one until another.

    The first one holds before it as well.
    """

    def __init__(self, window: ReportWindow) -> None:
        self._window = window
        self._steps: dict[int, list[tuple[int, Mapping[str, float]]]] = {}

    @classmethod
    def of(cls, source: ReportSource) -> Guarantees:
        """Return the guarantees in the window of a report."""
        found = cls(source.window)
        for name, time, data in source.series(QUEUE_SERIES):
            found.add(name, time, data)
        return found

    def add(self, queue: int, time: int, data: SeriesData) -> None:
        """Add the guarantee of a queue in an hour or day, and from then on, in the order of the times."""
        steps = self._steps.setdefault(queue, [])
        for at, amounts in ((time, data.mean_guarantee), (time + self._window.length, data.guaranteed)):
            if not steps:
                steps.append((self._window.since, amounts))
            elif steps[-1][1] != amounts:
                steps.append((at, amounts))

    def queues(self) -> list[int]:
        """Return the ids of the queues with a guarantee."""
        return [queue for queue, steps in self._steps.items() if any(amounts for _, amounts in steps)]

    def service(self, queue: int, periods: Iterable[tuple[str, int, int]]) -> dict[str, Tally]:
        """Return the guarantee times ms of a queue, while a scheduler ran, in periods.

        These have a name, a begin and an end.
        """
        found: dict[str, Tally] = {}
        steps = self._steps[queue]
        ends = [*(time for time, _ in steps[1:]), self._window.until]
        for name, since, until in periods:
            tally = found[name] = {}
            for (begin, amounts), end in zip(steps, ends, strict=True):
                length = self._window.observed_between(max(begin, since), min(end, until))
                if length > 0:
                    grow(tally, {kind: round(amount * length) for kind, amount in amounts.items()})
        return found


def capacity_service(source: ReportSource) -> Tally:
    """Return the capacity times ms of the partition in the window."""
    total: Tally = {}
    for _, time, data in source.series(PARTITION_SERIES):
        length = source.window.observed(time)
        grow(total, {name: round(amount * length) for name, amount in data.mean_capacity.items()})
    return total


def busiest(service: Mapping[str, int], capacity: Mapping[str, int]) -> str:
    """Return the resource type of whose capacity the largest part was used, else the first one used."""
    shares = {name: service.get(name, 0) / capacity[name] for name in capacity if capacity[name]}
    used = {name: part for name, part in shares.items() if part}
    return max(used, key=lambda name: (used[name], name)) if used else next(iter(sort_types(service)), "")


def report_usage(source: ReportSource, grouping: Grouping) -> HistoryReport:
    """Return the report of usage."""
    sums, prices = UsageSums(source, grouping), source.prices
    groups: dict[tuple[str, str], UsageSum] = {}
    costs: dict[tuple[str, str], float] = {}
    queues: dict[str, int] = {}
    for (subject, period, queue), part in sums.groups.items():
        groups.setdefault((subject, period), UsageSum()).add(part)
        queues[subject] = queue
        if prices is not None:
            cost = prices.cost(source.name(queue), part.service)
            costs[subject, period] = costs.get((subject, period), 0.0) + cost
    guaranteed = _guaranteed(source, grouping, queues) if grouping.subject == "queue" else None
    total = UsageSum()
    for one in groups.values():
        total.add(one)
    main = busiest(total.service, capacity_service(source))
    rows = []
    for (subject, period), one in groups.items():
        row = {**grouping.named(subject, period), **_figures(one, main)}
        if guaranteed is not None:
            owed = guaranteed.get((subject, period), {})
            row["guarantee_hours"] = hours(owed)
            parts = {name: share(one.service.get(name, 0), owed[name]) for name in sort_types(owed)}
            row["use_of_guarantee"] = parts
            row["of_guarantee"] = max((part for part in parts.values() if part is not None), default=None)
        if prices is not None:
            row["cost"] = round(costs[subject, period], 2)
        rows.append(row)
    rows.sort(
        key=lambda row: (row.get(grouping.period, ""), -row["hours"].get(main, 0), *map(row.get, grouping.by))
    )
    columns = _columns(grouping, total, bool(guaranteed))
    note = "" if not main else _note(main, bool(guaranteed))
    is_by_queue = grouping.subject == "queue"
    table = ResultTable("usage", "Usage", rows, columns, note, has_queues=is_by_queue)
    picture = use_picture(source, sums.over_time, main, grouping.subject)
    return HistoryReport(
        kind="usage",
        window=source.window,
        by=grouping.by,
        wanted=source.wanted,
        verdict=list(_verdict(grouping, rows, total, main, sum(costs.values()), prices)),
        tables=[table],
        pictures=picture,
        resource=main,
        currency=source.currency,
        queues=ranked_groups(sums.over_time, main)[:MOST] if is_by_queue else (),
    )


def _guaranteed(
    source: ReportSource, grouping: Grouping, queues: Mapping[str, int]
) -> dict[tuple[str, str], Tally]:
    """Return the guarantees times ms by queue and period."""
    guarantees, periods = Guarantees.of(source), source.window.periods(grouping.period)
    known = set(guarantees.queues())
    return {
        (path, name): tally
        for path, queue in queues.items()
        if queue in known
        for name, tally in guarantees.service(queue, periods).items()
    }


def _figures(one: UsageSum, main: str) -> Row:
    return {
        "tasks": one.started,
        "ended": one.ended,
        "preempted": one.preempted,
        "hours": hours(one.service),
        "lost_hours": hours(one.lost),
        "placeholder_hours": hours(one.placeholder),
        "lost": share(one.lost.get(main, 0), one.service.get(main, 0)),
        "placeholders": share(one.placeholder.get(main, 0), one.service.get(main, 0)),
    }


def _columns(grouping: Grouping, total: UsageSum, has_guarantees: bool) -> list[ShownColumn]:
    types = sort_types(total.service)[:MOST_TYPES]
    columns = [
        *(ShownColumn(part, (part,)) for part in grouping.by),
        ShownColumn("tasks", ("tasks",), count),
        ShownColumn("preempted", ("preempted",), count),
        *(ShownColumn(f"{unit_of(name)[1]}-hours", ("hours", name), ratio) for name in types),
        ShownColumn("lost", ("lost",), percent),
        ShownColumn("placeholders", ("placeholders",), percent),
    ]
    if has_guarantees:
        columns.append(ShownColumn("of guarantee", ("of_guarantee",), percent))
    return columns


def _note(main: str, has_guarantees: bool) -> str:
    of = " Of the guarantee: the type of which the largest part was used." if has_guarantees else ""
    return f"Lost to preemption, and held by placeholders: parts of {main}.{of}"


def _verdict(
    grouping: Grouping, rows: list[Row], total: UsageSum, main: str, cost: float, prices: PriceList | None
) -> Iterator[str]:
    used = total.service.get(main, 0)
    if not used:
        yield "Nothing was used."
        return
    paid = f", for {money(cost)} {prices.currency}".rstrip() if prices is not None else ""
    types = [name for name in sort_types(total.service) if total.service[name]]
    yield f"{listed(spell_hours(name, total.service[name]) for name in types)} were used{paid}."
    if grouping.subject:
        by: dict[str, float] = {}
        for row in rows:
            by[row[grouping.subject]] = by.get(row[grouping.subject], 0) + row["hours"].get(main, 0)
        name = max(by, key=lambda name: by[name])
        part = by[name] / hours_of(main, used)
        if len(by) > 1:
            yield f"{name or 'What has no ' + grouping.subject} used {part:.0%} of {main}."
    for what, tally in (
        ("was lost to preemption", total.lost),
        ("was held by placeholders", total.placeholder),
    ):
        part = tally.get(main, 0) / used
        if part >= 0.01:
            yield f"{part:.1%} of the {main} {what}."


def spell_hours(name: str, service: float) -> str:
    """Return the service of a resource type such as `1,234 core-hours`."""
    return f"{ratio(hours_of(name, service))} {unit_of(name)[1]}-hours"
