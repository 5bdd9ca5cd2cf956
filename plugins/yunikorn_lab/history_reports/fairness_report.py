"""Report of fairness: shares of queues or users, and guarantees that were not met while work waited.

Means of hours or days say how long a queue was below its guarantee: of such a time, all in which a scheduler
ran counts if the mean use was below the guarantee and something was pending.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

import attrs

from yunikorn.resources import Tally, grow
from yunikorn_history.history_tables import QUEUE_SERIES
from yunikorn_lab.history_reports.history_result import (
    HistoryReport,
    ResultTable,
    Row,
    ShownColumn,
    hours,
    hours_of,
    seconds_of,
    share,
    sort_types,
    unit_of,
)
from yunikorn_lab.history_reports.report_source import ReportSource
from yunikorn_lab.history_reports.report_window import Grouping, period_name
from yunikorn_lab.history_reports.time_pictures import queue_histories, run_history
from yunikorn_lab.history_reports.usage_report import (
    Guarantees,
    UsageSums,
    busiest,
    capacity_service,
)
from yunikorn_lab.reporting.metrics import jain_index
from yunikorn_lab.reporting.section import Picture
from yunikorn_lab.reporting.tables import count, duration, index, percent, ratio


@attrs.define
class GuaranteeSums:
    """Guarantee of a queue in a period, and how much of it was met (amounts times ms)."""

    owed: dict[str, float] = attrs.Factory(lambda: defaultdict(float))
    """Guarantee, or use and pending amount if those are less."""
    had: dict[str, float] = attrs.Factory(lambda: defaultdict(float))
    """Used part of what was owed."""
    below: int = 0
    """Time with less than the guarantee while work waited (ms)."""


def gini_index(numbers: list[float]) -> float | None:
    """Return the Gini coefficient of non-negative numbers: 0 if all are equal; None without any but 0."""
    ordered = sorted(numbers)
    total, size = sum(ordered), len(ordered)
    if not total:
        return None
    weighted = sum(rank * number for rank, number in enumerate(ordered, 1))
    return round(2 * weighted / (size * total) - (size + 1) / size, 6)


class FairnessSums:
    """Service of groups and of the queues above them, and guarantees, by period."""

    def __init__(self, source: ReportSource, grouping: Grouping) -> None:
        self.grouping = grouping
        self.service: dict[tuple[str, str], Tally] = {}
        self.leaves: set[str] = set()
        self.guaranteed: dict[tuple[str, str], Tally] = {}
        self.met: dict[tuple[str, str], GuaranteeSums] = {}
        self.costs: dict[tuple[str, str], float] = defaultdict(float)
        usage = UsageSums(source, grouping)
        for (subject, period, queue), one in usage.groups.items():
            self.leaves.add(subject)
            cost = source.prices.cost(source.name(queue), one.service) if source.prices else 0.0
            while True:
                grow(self.service.setdefault((subject, period), {}), one.service)
                self.costs[subject, period] += cost
                if grouping.subject != "queue" or "." not in subject:
                    break
                subject = subject.rpartition(".")[0]
        if grouping.subject == "queue":
            self._read_guarantees(source)

    def _read_guarantees(self, source: ReportSource) -> None:
        guarantees, period = Guarantees(source.window), self.grouping.period
        for name, time, data in source.series(QUEUE_SERIES):
            guarantees.add(name, time, data)
            if not data.mean_guarantee:
                continue
            key = source.name(name), period_name(period, time) if period else ""
            sums = self.met.setdefault(key, GuaranteeSums())
            length, is_below = source.window.observed(time), False
            for kind, amount in data.mean_guarantee.items():
                used, pending = data.used.get(kind, 0), data.pending.get(kind, 0)
                owed = min(amount, used + pending)
                sums.owed[kind] += owed * length
                sums.had[kind] += min(used, owed) * length
                is_below = is_below or (pending > 0 and used < amount)
            sums.below += length if is_below else 0
        periods = source.window.periods(period)
        for name in guarantees.queues():
            path = source.name(name)
            for at, tally in guarantees.service(name, periods).items():
                self.guaranteed[path, at] = tally
                self.service.setdefault((path, at), {})


def report_fairness(source: ReportSource, grouping: Grouping) -> HistoryReport:
    """Return the report of fairness."""
    sums = FairnessSums(source, grouping)
    total: Tally = {}
    for (subject, _), service in sums.service.items():
        if subject in sums.leaves:
            grow(total, service)
    guaranteed = {name for tally in sums.guaranteed.values() for name in tally} & total.keys()
    comparable = {name: total[name] for name in guaranteed or total}
    main = busiest(comparable, capacity_service(source))
    among = _sums_of_siblings(sums)
    rows = [
        {
            **grouping.named(*key),
            **_figures(sums, key, main, among),
            **({"cost": round(sums.costs[key], 2)} if source.prices else {}),
        }
        for key in sorted(sums.service, key=lambda key: (key[1], key[0]))
    ]
    even = list(_evenness(sums, main))
    tables = [_shares_table(grouping, rows, main), _evenness_table(grouping, even, main)]
    pictures, queues = [], list[str]()
    if grouping.subject == "queue" and rows and source.has_pictures:
        histories = queue_histories(source)
        history = run_history(source, queues=histories)
        queues = [one.queue for one in histories if one.is_leaf]
        caption = "Mean use of queues, with their guarantees and limits."
        pictures = [
            Picture(
                "queue-use.png", caption, lambda plots, colours: plots.plot_queues(history, colours, main)
            )
        ]
    return HistoryReport(
        kind="fairness",
        window=source.window,
        by=grouping.by,
        wanted=source.wanted,
        verdict=list(_verdict(grouping, rows, even, main)),
        tables=tables,
        pictures=pictures,
        resource=main,
        currency=source.currency,
        queues=queues,
    )


def _parent(grouping: Grouping, subject: str) -> str:
    return subject.rpartition(".")[0] if grouping.subject == "queue" else ""


def _sums_of_siblings(sums: FairnessSums) -> Mapping[tuple[str, str], tuple[Tally, Tally]]:
    """Return service and guarantees of all groups with the same parent, by parent and period."""
    found: dict[tuple[str, str], tuple[Tally, Tally]] = {}
    for (subject, period), service in sums.service.items():
        if sums.grouping.subject == "queue" and "." not in subject:
            continue
        used, guaranteed = found.setdefault((_parent(sums.grouping, subject), period), ({}, {}))
        grow(used, service)
        grow(guaranteed, sums.guaranteed.get((subject, period), {}))
    return found


def _figures(
    sums: FairnessSums,
    key: tuple[str, str],
    main: str,
    among: Mapping[tuple[str, str], tuple[Tally, Tally]],
) -> Row:
    service, guaranteed = sums.service[key], sums.guaranteed.get(key, {})
    used, owed = among.get((_parent(sums.grouping, key[0]), key[1]), ({}, {}))
    row: Row = {
        "hours": hours(service),
        "share": {name: share(service.get(name, 0), used[name]) for name in sort_types(used)},
    }
    if sums.grouping.subject != "queue":
        return row
    met = sums.met.get(key, GuaranteeSums())
    types = sort_types(guaranteed)
    parts = {name: share(service.get(name, 0), guaranteed[name]) for name in types}
    kept = {name: share(met.had[name], met.owed[name]) for name in sort_types(met.owed)}
    row |= {
        "guaranteed_share": {name: share(guaranteed.get(name, 0), owed[name]) for name in sort_types(owed)},
        "guarantee_hours": hours(guaranteed),
        "use_of_guarantee": parts,
        "guarantee_met": kept,
        "missing_hours": {name: hours_of(name, met.owed[name] - met.had[name]) for name in kept},
        "below_seconds": seconds_of(met.below),
        "is_leaf": key[0] in sums.leaves,
        "of_guarantee": max((part for part in parts.values() if part is not None), default=None),
        "met": min((part for part in kept.values() if part is not None), default=None),
    }
    return row


def _evenness(sums: FairnessSums, main: str) -> Iterator[Row]:
    for period in sorted({period for _, period in sums.service}):
        used, parts = [], []
        for key, service in sums.service.items():
            if key[1] == period and key[0] in sums.leaves and service.get(main):
                used.append(hours_of(main, service[main]))
                if owed := sums.guaranteed.get(key, {}).get(main, 0):
                    parts.append(service[main] / owed)
        row: Row = {sums.grouping.period: period} if period else {}
        yield row | {
            "groups": len(used),
            "jain_of_use": jain_index(used),
            "gini_of_use": gini_index(used),
            "jain_of_guarantee_use": jain_index(parts),
            "gini_of_guarantee_use": gini_index(parts),
        }


def _shares_table(grouping: Grouping, rows: list[Row], main: str) -> ResultTable:
    columns = [
        *(ShownColumn(part, (part,)) for part in grouping.by),
        ShownColumn(f"{unit_of(main)[1]}-hours", ("hours", main), ratio),
        ShownColumn("share", ("share", main), percent),
    ]
    note = f"Shares of {main}, among all {grouping.members}." if main else ""
    if grouping.subject == "queue":
        columns += [
            ShownColumn("guaranteed share", ("guaranteed_share", main), percent),
            ShownColumn("use of guarantee", ("of_guarantee",), percent),
            ShownColumn("guarantee met", ("met",), percent),
            ShownColumn("below it", ("below_seconds",), duration),
        ]
        note = (
            f"Shares of {main} among the queues with the same parent. Guarantee met: the used part of what "
            "the queue was owed, which is its guarantee, or its use and pending amount if those are less. "
            "Below it: time in which it used less than its guarantee while it had pending requests."
        )
    is_by_queue = grouping.by[0] == "queue"
    return ResultTable("fairness", "Shares", rows, columns, note, has_queues=is_by_queue)


def _evenness_table(grouping: Grouping, rows: list[Row], main: str) -> ResultTable:
    columns = [
        ShownColumn(
            grouping.period or "groups",
            (grouping.period,) if grouping.period else ("groups",),
            None if grouping.period else count,
        ),
        ShownColumn("Jain of use", ("jain_of_use",), index),
        ShownColumn("Gini of use", ("gini_of_use",), index),
        ShownColumn("Jain of use of guarantee", ("jain_of_guarantee_use",), index),
        ShownColumn("Gini of use of guarantee", ("gini_of_guarantee_use",), index),
    ]
    note = (
        f"Of {main}, over {grouping.members} that used any. Jain is 1 and Gini 0 if all are equal."
        if main
        else ""
    )
    return ResultTable("evenness", "Evenness", rows, columns, note)


def _verdict(grouping: Grouping, rows: list[Row], even: list[Row], main: str) -> Iterator[str]:
    if not main:
        yield "Nothing was used."
        return
    below: dict[str, float] = defaultdict(float)
    for row in rows:
        if row.get("is_leaf"):
            below[row["queue"]] += row["below_seconds"]
    missed = {queue: seconds for queue, seconds in below.items() if seconds}
    if missed:
        queue = max(missed, key=lambda queue: missed[queue])
        yield (
            f"{queue} was below its guarantee for {duration(missed[queue])} while it had pending requests"
            f"{f'; {len(missed) - 1} more leaf queues were, too' if len(missed) > 1 else ''}."
        )
    elif any(row.get("guarantee_hours") for row in rows):
        yield "No leaf queue was below its guarantee while it had pending requests."
    values = [row["jain_of_use"] for row in even if row["jain_of_use"] is not None]
    if values:
        spread = " to ".join(dict.fromkeys((index(min(values)), index(max(values)))))
        yield f"Jain's index of the use of {main} by {grouping.members} was {spread}."
