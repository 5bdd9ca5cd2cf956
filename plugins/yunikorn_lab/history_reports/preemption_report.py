"""Report of preemption: who lost what to whom, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import msgspec

from yunikorn.resources import Tally, grow
from yunikorn_history.history_tables import PLACEHOLDER
from yunikorn_history.service_usage import periods_of
from yunikorn_lab.history_reports.history_result import (
    HistoryReport,
    ResultTable,
    Row,
    ShownColumn,
    hours,
    seconds_of,
    sort_types,
    unit_of,
)
from yunikorn_lab.history_reports.report_source import ReportSource
from yunikorn_lab.history_reports.report_window import Grouping, period_name
from yunikorn_lab.history_reports.time_pictures import GroupSeries, loss_picture
from yunikorn_lab.history_reports.usage_report import (
    MOST_TYPES,
    busiest,
    capacity_service,
    spell_hours,
)
from yunikorn_lab.reporting.tables import count, duration, ratio

MOST_APPLICATIONS = 20
"""Number of applications in the list of those that lost most often."""
UNKNOWN = "unknown"
"""Preemptor whose application the history does not have."""


@attrs.define
class Losses:
    """Losses of a group, or of an application."""

    tasks: int = 0
    placeholders: int = 0
    applications: set[int] = attrs.Factory(set)
    ran: int = 0
    """Sum of the run times of tasks (ms)."""
    service: Tally = attrs.Factory(dict)
    cost: float | None = None

    def figures(self) -> Row:
        """Return the figures of a row."""
        cost = {} if self.cost is None else {"cost": round(self.cost, 2)}
        return {
            "tasks": self.tasks,
            "placeholders": self.placeholders,
            "applications": len(self.applications),
            "mean_seconds": seconds_of(self.ran / self.tasks) if self.tasks else None,
            "lost_hours": hours(self.service),
            **cost,
        }


class PreemptionSums:
    """Losses by victim and preemptor, by reason and by application."""

    def __init__(self, source: ReportSource, grouping: Grouping) -> None:
        self._source, self._grouping = source, grouping
        self.pairs: dict[tuple[str, str, str], Losses] = {}
        self.reasons: dict[str, Losses] = {}
        self.applications: dict[int, tuple[Losses, str, str, str]] = {}
        self.over_time = GroupSeries(source.window)
        tasks = list(source.preemptions(grouping.column))
        preemptors = self._preemptors({source.name(task[6]) for task in tasks})
        for task in tasks:
            self._add(task, preemptors[source.name(task[6])])

    def _preemptors(self, texts: set[str]) -> Mapping[str, list[tuple[int, str]]]:
        """Return the groups of preemptors with the times from which on they are meant, by their texts."""
        grouping, source = self._grouping, self._source
        if not grouping.subject:
            return {text: [(0, "")] for text in texts}
        ids = {text: msgspec.json.decode(text, type=list[str])[0] for text in texts if text.startswith("[")}
        known: dict[str, list[tuple[int, str]]] = {}
        for app_id, submitted, value in source.applications_named(set(ids.values()), grouping.column):
            known.setdefault(app_id, []).append((submitted, source.subject(grouping, value)))
        return {
            text: known.get(ids[text], [(0, UNKNOWN)]) if text in ids else [(0, text or UNKNOWN)]
            for text in texts
        }

    def _add(self, task: Any, preemptors: list[tuple[int, str]]) -> None:
        placed, ended, flags, shape, sizes, reason, _, number, app_id, in_queue, of_user, value = task
        taker = next((name for since, name in reversed(preemptors) if since <= ended), preemptors[0][1])
        victim = self._source.subject(self._grouping, value)
        period = period_name(self._grouping.period, ended) if self._grouping.period else ""
        queue, user = self._source.name(in_queue), self._source.name(of_user)
        own = self.applications.setdefault(number, (Losses(), app_id, queue, user))[0]
        pair = self.pairs.setdefault((victim, taker, period), Losses())
        of_reason = self.reasons.setdefault(self._source.name(reason), Losses())
        lost: Tally = {}
        if not flags & PLACEHOLDER:
            for since, until, size in periods_of(placed, ended, self._source.shape(shape), sizes):
                grow(lost, size, until - since)
            window = self._source.window
            self.over_time.add(victim, ended - (ended - window.since) % window.length, lost)
        prices = self._source.prices
        cost = None if prices is None else prices.cost(queue, lost)
        for losses in (own, pair, of_reason):
            losses.cost = None if cost is None else (losses.cost or 0.0) + cost
            losses.applications.add(number)
            if flags & PLACEHOLDER:
                losses.placeholders += 1
            else:
                losses.tasks += 1
                losses.ran += ended - placed
                grow(losses.service, lost)


def report_preemption(source: ReportSource, grouping: Grouping) -> HistoryReport:
    """Return the report of preemption."""
    sums = PreemptionSums(source, grouping)
    total: Tally = {}
    for one in sums.pairs.values():
        grow(total, one.service)
    main = busiest(total, capacity_service(source))
    taker = f"for_{grouping.subject}" if grouping.subject else ""
    rows = [
        {**grouping.named(victim, period), **({taker: to} if taker else {}), **losses.figures()}
        for (victim, to, period), losses in sums.pairs.items()
    ]
    rows.sort(key=lambda row: (row.get(grouping.period, ""), -row["lost_hours"].get(main, 0), *_texts(row)))
    reasons = [{"reason": reason, **losses.figures()} for reason, losses in sums.reasons.items()]
    reasons.sort(key=lambda row: (-row["tasks"], row["reason"]))
    pictures = loss_picture(source, sums.over_time, main, grouping.subject)
    return HistoryReport(
        kind="preemption",
        window=source.window,
        by=grouping.by,
        wanted=source.wanted,
        verdict=list(_verdict(sums, total, main)),
        tables=[
            _pairs_table(grouping, rows, taker, total),
            ResultTable("reasons", "Reasons", reasons, [ShownColumn("reason", ("reason",)), *_columns(main)]),
            _applications_table(sums, main),
        ],
        pictures=pictures,
        resource=main,
        currency=source.currency,
    )


def _texts(row: Row) -> list[str]:
    return [value for value in row.values() if isinstance(value, str)]


def _columns(main: str) -> list[ShownColumn]:
    return [
        ShownColumn("tasks", ("tasks",), count),
        ShownColumn("placeholders", ("placeholders",), count),
        ShownColumn("apps", ("applications",), count),
        ShownColumn("ran for", ("mean_seconds",), duration),
        *([ShownColumn(f"lost {unit_of(main)[1]}-hours", ("lost_hours", main), ratio)] if main else []),
    ]


def _pairs_table(grouping: Grouping, rows: list[Row], taker: str, total: Tally) -> ResultTable:
    types = sort_types(total)[:MOST_TYPES]
    columns = [
        *(ShownColumn(part, (part,)) for part in grouping.by),
        *([ShownColumn(f"for {grouping.subject}", (taker,))] if taker else []),
        *_columns(""),
        *(ShownColumn(f"lost {unit_of(name)[1]}-hours", ("lost_hours", name), ratio) for name in types),
    ]
    note = "Tasks that were preempted in the time, with all that they had used. Ran for: mean of the tasks."
    is_by_queue = grouping.by[0] == "queue"
    return ResultTable("preemption", "Who lost to whom", rows, columns, note, has_queues=is_by_queue)


def _applications_table(sums: PreemptionSums, main: str) -> ResultTable:
    rows: list[Row] = []
    for losses, app_id, queue, user in sums.applications.values():
        figures = losses.figures()
        del figures["applications"]
        rows.append(
            {"application": app_id, **figures, "queue": queue, "user": user, "text": f"{queue}, {user}"}
        )
    rows.sort(key=lambda row: (-row["tasks"], -row["lost_hours"].get(main, 0), row["application"]))
    columns = [column for column in _columns(main) if column.title != "apps"]
    shown = [ShownColumn("application", ("application",)), *columns, ShownColumn("", ("text",))]
    title = "Applications that lost most tasks"
    return ResultTable("applications", title, rows[:MOST_APPLICATIONS], shown, has_examples=True)


def _verdict(sums: PreemptionSums, total: Tally, main: str) -> Iterator[str]:
    tasks = sum(one.tasks for one in sums.pairs.values())
    places = sum(one.placeholders for one in sums.pairs.values())
    if not tasks and not places:
        yield "Nothing was preempted."
        return
    applications = {number for one in sums.pairs.values() for number in one.applications}
    lost = f", which had used {spell_hours(main, total[main])}" if main and total.get(main) else ""
    also = f" and {places:,} placeholders" if places else ""
    yield f"{tasks:,} tasks{also} of {len(applications):,} applications were preempted{lost}."
    pairs: Counter[tuple[str, str]] = Counter()
    for (victim, taker, _), one in sums.pairs.items():
        pairs[victim, taker] += one.service.get(main, 0)
    (((victim, taker), _),) = pairs.most_common(1)
    if len(pairs) > 1:  # never without groups
        yield f"{victim or '(none)'} lost most, to {taker or '(none)'}."
    most = max((losses.tasks for losses, *_ in sums.applications.values()), default=0)
    if most > 1:
        yield f"One application lost {most:,} tasks."
