"""Report of waits: time to the first task of applications, and waits of tasks, by groups.

Waits of applications are exact. Of tasks there can be ten times as many, which the history has counted in
classes whose upper bounds are powers of the square root of two; their quantiles are such bounds.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from heapq import nlargest

import attrs
import msgspec

from yunikorn_history.history_tables import (
    PARTITION_SERIES,
    PLACEHOLDER,
    QUEUE_SERIES,
    RECOVERED,
    USER_SERIES,
)
from yunikorn_history.sampled_series import wait_bound
from yunikorn_lab.history_reports.history_result import (
    HistoryReport,
    ResultTable,
    Row,
    ShownColumn,
    seconds_of,
    share,
)
from yunikorn_lab.history_reports.report_source import ReportSource
from yunikorn_lab.history_reports.report_window import Grouping, ReportFilter, period_name, spell_time
from yunikorn_lab.reporting.run_figures import Curves
from yunikorn_lab.reporting.section import Picture
from yunikorn_lab.reporting.tables import count, duration, percent

QUANTILES = {"p50": 50, "p90": 90, "p95": 95, "p99": 99, "max": 100}
LONGEST = 20
"""Number of applications in the list of the longest waits."""
CURVE = 200
"""Maximum number of points of a curve."""
_CAUSES = msgspec.json.Decoder(dict[str, int])
Key = tuple[str, str]
"""Name of a group, and period."""


@attrs.define
class GroupWaits:
    """Waits of a group (ms)."""

    submitted: int = 0
    waits: array[int] = attrs.Factory(lambda: array("q"))
    """Times to the first task of the applications that started."""
    tasks: Counter[int] = attrs.Factory(Counter)
    """Tasks by the upper bound of their wait."""
    causes: Counter[str] = attrs.Factory(Counter)
    """Time for which requests waited, by cause."""
    longest: Counter[str] = attrs.Factory(Counter)
    """Applications by the cause of their longest wait."""


LongWait = tuple[int, str, int, int, int, bool, int]
"""Wait (ms), application, ids of queue and user, submission, whether it started, and id of the cause."""


def series_of_waits(grouping: Grouping, wanted: ReportFilter) -> str:
    """Return the kind of the series that count the tasks of the groups; empty without one."""
    if wanted.user or (wanted.queue and grouping.subject != "queue"):
        return ""
    return {"queue": "queues", "user": "users", "": "partition"}.get(grouping.subject, "")


class WaitSums:
    """Waits of all groups."""

    def __init__(self, source: ReportSource, grouping: Grouping) -> None:
        self._source, self._grouping = source, grouping
        self.groups: dict[Key, GroupWaits] = {}
        self.longest = nlargest(LONGEST, self._read_applications())
        wanted = source.wanted
        kinds = {"queue": QUEUE_SERIES, "user": USER_SERIES, "": PARTITION_SERIES}
        if series_of_waits(grouping, wanted) and not source.is_partial:
            self._read_series(kinds[grouping.subject])
        else:
            self._read_tasks()

    def _key(self, subject: str, time: int) -> Key:
        return subject, period_name(self._grouping.period, time) if self._grouping.period else ""

    def _group(self, subject: str, time: int) -> GroupWaits:
        key = self._key(subject, time)
        found = self.groups.get(key)
        if found is None:
            found = self.groups[key] = GroupWaits()
        return found

    def _read_applications(self) -> Iterator[LongWait]:
        source, end = self._source, self._source.window.until
        columns = ("submitted", "started", "ended", "waits", "longest_wait", "app_id", "queue", "user")
        for *fields, value in source.applications(*columns, self._grouping.column, submitted=True):
            submitted, started, ended, causes, longest, app_id, queue, user = fields
            group = self._group(source.subject(self._grouping, value), submitted)
            group.submitted += 1
            if started is not None:
                group.waits.append(started - submitted)
            if causes:
                group.causes.update(_CAUSES.decode(causes))
            if longest:
                group.longest[source.name(longest)] += 1
            wait = (started or ended or end) - submitted
            yield wait, app_id, queue, user, submitted, started is not None, longest

    def _read_series(self, kind: int) -> None:
        for name, time, data in self._source.series(kind):
            subject = self._source.name(name)
            if data.waits:
                tasks = self._group(subject, time).tasks
                for bound, number in data.waits.items():
                    tasks[int(bound)] += number
        parents = {subject.rpartition(".")[0] for subject, _ in self.groups} if kind == QUEUE_SERIES else ()
        for key in [key for key, group in self.groups.items() if key[0] in parents and not group.submitted]:
            del self.groups[key]

    def _read_tasks(self) -> None:
        for placed, requested, flags, value in self._source.placements(self._grouping.column):
            if flags & PLACEHOLDER or (flags & RECOVERED and requested >= placed):
                continue
            subject = self._source.subject(self._grouping, value)
            self._group(subject, placed).tasks[int(wait_bound(placed - requested))] += 1


def nearest_ranks(ordered: Sequence[int]) -> dict[str, float | None]:
    """Return the quantiles of sorted waits (ms) by nearest rank, in seconds."""
    size = len(ordered)
    return {
        name: seconds_of(ordered[max(-(-part * size // 100), 1) - 1]) if size else None
        for name, part in QUANTILES.items()
    }


def counted_ranks(tasks: Counter[int]) -> dict[str, float | None]:
    """Return the quantiles of counted waits (ms) by nearest rank, in seconds."""
    total, below = tasks.total(), 0
    ranks = {name: max(-(-part * total // 100), 1) for name, part in QUANTILES.items()}
    found: dict[str, float | None] = dict.fromkeys(QUANTILES)
    for bound in sorted(tasks):
        for name, rank in ranks.items():
            if below < rank <= below + tasks[bound]:
                found[name] = seconds_of(bound)
        below += tasks[bound]
    return found


def report_waits(source: ReportSource, grouping: Grouping) -> HistoryReport:
    """Return the report of waits."""
    sums = WaitSums(source, grouping)
    rows: list[Row] = []
    causes: list[Row] = []
    ranks = {key: sorted(group.waits) for key, group in sums.groups.items()}
    for (subject, period), group in sums.groups.items():
        named = grouping.named(subject, period)
        rows.append(
            {
                **named,
                "applications": group.submitted,
                "started": len(group.waits),
                "wait": nearest_ranks(ranks[subject, period]),
                "tasks": group.tasks.total(),
                "task_wait": counted_ranks(group.tasks),
            }
        )
        causes += [{**named, **row} for row in _cause_rows(group)]
    order = _order(grouping)
    rows.sort(key=lambda row: (row.get(grouping.period, ""), -(row["wait"]["p95"] or 0), *order(row)))
    causes.sort(key=lambda row: (row.get(grouping.period, ""), *order(row), -row["seconds"], row["cause"]))
    return HistoryReport(
        kind="waits",
        window=source.window,
        by=grouping.by,
        wanted=source.wanted,
        verdict=list(_verdict(grouping, sums, rows)),
        tables=[
            _waits_table(grouping, rows),
            _causes_table(grouping, causes),
            _longest_table([_long_row(source, one) for one in sums.longest if one[0] > 0]),
        ],
        pictures=_picture(grouping, ranks),
    )


def _order(grouping: Grouping) -> Callable[[Row], list[str]]:
    return lambda row: [row[part] for part in grouping.by]


def _cause_rows(group: GroupWaits) -> Iterator[Row]:
    total = group.causes.total()
    for cause, milliseconds in group.causes.items():
        yield {
            "cause": cause,
            "seconds": seconds_of(milliseconds),
            "share": share(milliseconds, total),
            "longest_of": group.longest[cause],
        }


def _long_row(source: ReportSource, one: LongWait) -> Row:
    wait, app_id, queue, user, submitted, is_started, cause = one
    names = {"queue": source.name(queue), "user": source.name(user), "cause": source.name(cause)}
    return {
        "application": app_id,
        "wait": seconds_of(wait),
        "started": is_started,
        "submitted": submitted,
        **names,
        "text": f"{'' if is_started else 'never started; '}{names['queue']}, {names['user'] or 'no user'}, "
        f"submitted {spell_time(submitted)}{', waited for: ' if cause else ''}{names['cause']}",
    }


def _waits_table(grouping: Grouping, rows: list[Row]) -> ResultTable:
    columns = [
        *(ShownColumn(part, (part,)) for part in grouping.by),
        ShownColumn("apps", ("applications",), count),
        ShownColumn("started", ("started",), count),
        *(ShownColumn(name, ("wait", name), duration) for name in QUANTILES),
        ShownColumn("tasks", ("tasks",), count),
        *(ShownColumn(f"tasks {name}", ("task_wait", name), duration) for name in QUANTILES),
    ]
    note = (
        "Applications by their submission: time to the first task. Tasks by their placement: upper bounds of "
        "classes that are √2 apart."
    )
    return ResultTable("waits", "Waits", rows, columns, note, has_queues=grouping.by[0] == "queue")


def _causes_table(grouping: Grouping, rows: list[Row]) -> ResultTable:
    columns = [
        *(ShownColumn(part, (part,)) for part in grouping.by),
        ShownColumn("cause", ("cause",)),
        ShownColumn("time", ("seconds",), duration),
        ShownColumn("part", ("share",), percent),
        ShownColumn("longest of", ("longest_of",), count),
    ]
    note = "Time for which applications had a waiting request, by what it waited for."
    return ResultTable("causes", "What applications waited for", rows, columns, note)


def _longest_table(rows: list[Row]) -> ResultTable:
    columns = [
        ShownColumn("application", ("application",)),
        ShownColumn("wait", ("wait",), duration),
        ShownColumn("", ("text",)),
    ]
    return ResultTable("longest", "Longest waits for the first task", rows, columns, has_examples=True)


def _verdict(grouping: Grouping, sums: WaitSums, rows: list[Row]) -> Iterator[str]:
    waits = sorted(wait for group in sums.groups.values() for wait in group.waits)
    submitted = sum(group.submitted for group in sums.groups.values())
    if not submitted:
        yield "No application was submitted."
        return
    ranks = {name: duration(wait) for name, wait in nearest_ranks(waits).items()}
    if waits:
        yield (
            f"Of {submitted:,} applications {len(waits):,} started: half within {ranks['p50']}, 95% within "
            f"{ranks['p95']}, all within {ranks['max']}."
        )
    else:
        yield f"None of {submitted:,} applications started."
    if grouping.subject and len(rows) > 1:
        worst = max(rows, key=lambda row: row["wait"]["p95"] or 0)
        name = " in ".join(worst[part] or f"no {part}" for part in grouping.by)
        yield f"{name} waited longest: 95% within {duration(worst['wait']['p95'])}."
    causes: Counter[str] = Counter()
    for group in sums.groups.values():
        causes.update(group.causes)
    if causes:
        ((cause, most),) = causes.most_common(1)
        yield f"Most of the time was waited for: {cause} ({most / causes.total():.0%})."


def _picture(grouping: Grouping, ranks: dict[Key, list[int]]) -> list[Picture]:
    curves = {
        " ".join(part or "(none)" for part in grouping.named(*key).values()): [
            value / 1000 for value in ordered[:: max(len(ordered) // CURVE, 1)] + ordered[-1:]
        ]
        for key, ordered in ranks.items()
        if ordered
    }
    if not curves:
        return []
    drawn = Curves(curves, {}, [], [])
    caption = "Share of the applications that waited no longer for their first task than the value below."
    of = f"{grouping.by[0]}s"
    return [
        Picture("waits.png", caption, lambda plots, _: plots.plot_distributions(drawn, None, of, "first"))
    ]
