"""Report of waste: capacity that was idle while work waited, held by placeholders, or lost to preemption."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import attrs

from yunikorn_history.history_tables import PARTITION_SERIES
from yunikorn_lab.history_reports.history_result import (
    HistoryReport,
    ResultTable,
    Row,
    ShownColumn,
    hours_of,
    share,
    sort_types,
    unit_of,
)
from yunikorn_lab.history_reports.report_source import ReportSource
from yunikorn_lab.history_reports.report_window import Grouping, period_name
from yunikorn_lab.history_reports.time_pictures import run_history
from yunikorn_lab.history_reports.usage_report import spell_hours
from yunikorn_lab.reporting.section import Picture
from yunikorn_lab.reporting.tables import percent, ratio

PARTS = ("capacity", "used", "idle", "placeholder", "lost")


@attrs.define
class WasteSums:
    """Service of one resource type in a period (amounts times ms)."""

    parts: dict[str, float] = attrs.Factory(lambda: defaultdict(float))
    """Sums by the names of `PARTS`."""
    causes: dict[str, float] = attrs.Factory(lambda: defaultdict(float))
    """Service that was idle while work waited, by cause."""
    cost: float = 0.0
    """Cost of what was idle, held by placeholders or lost."""


def read_waste(source: ReportSource, grouping: Grouping) -> dict[tuple[str, str], WasteSums]:
    """Return the sums by period and resource type."""
    found: dict[tuple[str, str], WasteSums] = defaultdict(WasteSums)
    for _, time, data in source.series(PARTITION_SERIES):
        period, length = period_name(grouping.period, time), source.window.observed(time)
        for name, amount in data.mean_capacity.items():
            found[period, name].parts["capacity"] += amount * length
        for name, mean in data.used.items():
            found[period, name].parts["used"] += mean * length
        for cause, service in data.idle.items():
            for name, value in service.items():
                found[period, name].parts["idle"] += value
                found[period, name].causes[cause] += value
                found[period, name].cost += _cost(source, "", name, value)
    for time, (queue,), usage in source.usage("queue"):
        period = period_name(grouping.period, time)
        for part, service in (("placeholder", usage.placeholder), ("lost", usage.lost)):
            for name, value in service.items():
                found[period, name].parts[part] += value
                found[period, name].cost += _cost(source, source.name(queue), name, value)
    return found


def _cost(source: ReportSource, queue: str, name: str, service: int) -> float:
    return source.prices.cost(queue, {name: service}) if source.prices is not None else 0.0


def report_waste(source: ReportSource, grouping: Grouping) -> HistoryReport:
    """Return the report of waste."""
    sums = read_waste(source, grouping)
    types = sort_types({name for _, name in sums})
    keys = sorted(sums, key=lambda key: (key[0], types.index(key[1])))
    rows, causes = [], []
    for period, name in keys:
        one = sums[period, name]
        capacity = one.parts["capacity"]
        named = {grouping.period: period, "resource": name}
        row: Row = {**named, "unit": f"{unit_of(name)[1]}-hours"}
        row |= {f"{part}_hours": hours_of(name, one.parts[part]) for part in PARTS}
        row |= {part: share(one.parts[part], capacity) for part in PARTS[1:]}
        if source.prices is not None:
            row["cost"] = round(one.cost, 2)
        rows.append(row)
        causes += [
            {
                **named,
                "cause": cause,
                "hours": hours_of(name, value),
                "of_capacity": share(value, capacity),
                "of_idle": share(value, one.parts["idle"]),
                **({"cost": round(_cost(source, "", name, int(value)), 2)} if source.prices else {}),
            }
            for cause, value in sorted(one.causes.items(), key=lambda item: (-item[1], item[0]))
            if value
        ]
    pictures = []
    if source.has_pictures:
        history = run_history(source)
        caption = "Capacity that stood idle while work waited, as a stack of what kept the work from it."
        pictures.append(Picture("idle.png", caption, lambda plots, _: plots.plot_idle(history)))
    return HistoryReport(
        kind="waste",
        window=source.window,
        by=grouping.by,
        wanted=source.wanted,
        verdict=list(_verdict(sums)) or ["Less than 1% of the capacity was wasted."],
        tables=[_waste_table(grouping, rows), _causes_table(grouping, causes)],
        pictures=pictures,
        currency=source.currency,
    )


def _waste_table(grouping: Grouping, rows: list[Row]) -> ResultTable:
    columns = [
        ShownColumn(grouping.period, (grouping.period,)),
        ShownColumn("resource", ("resource",)),
        ShownColumn("capacity (hours)", ("capacity_hours",), ratio),
        ShownColumn("used", ("used",), percent),
        ShownColumn("idle while work waited", ("idle",), percent),
        ShownColumn("held by placeholders", ("placeholder",), percent),
        ShownColumn("lost to preemption", ("lost",), percent),
    ]
    note = "Parts of the capacity. What placeholders held and what was lost is among what was used."
    if any("cost" in row for row in rows):
        note += " Cost: of what was idle while work waited, at the prices of all queues, held or lost."
    return ResultTable("waste", "Waste", rows, columns, note)


def _causes_table(grouping: Grouping, rows: list[Row]) -> ResultTable:
    columns = [
        ShownColumn(grouping.period, (grouping.period,)),
        ShownColumn("resource", ("resource",)),
        ShownColumn("cause", ("cause",)),
        ShownColumn("hours", ("hours",), ratio),
        ShownColumn("of capacity", ("of_capacity",), percent),
        ShownColumn("of idle", ("of_idle",), percent),
    ]
    return ResultTable("causes", "Idle while work waited, by cause", rows, columns)


def _verdict(sums: dict[tuple[str, str], WasteSums]) -> Iterator[str]:
    total: dict[str, WasteSums] = defaultdict(WasteSums)
    for (_, name), one in sums.items():
        for part, value in one.parts.items():
            total[name].parts[part] += value
        for cause, value in one.causes.items():
            total[name].causes[cause] += value
    for name in sort_types(total):
        one, capacity = total[name], total[name].parts["capacity"]
        if capacity and one.parts["idle"] >= 0.01 * capacity:
            cause = max(one.causes, key=lambda cause: (one.causes[cause], cause))
            yield (
                f"{one.parts['idle'] / capacity:.1%} of {name} was idle while work waited "
                f"({spell_hours(name, one.parts['idle'])}), most of it for: {cause}."
            )
        for part, text in (("placeholder", "was held by placeholders"), ("lost", "was lost to preemption")):
            if capacity and one.parts[part] >= 0.01 * capacity:
                yield f"{one.parts[part] / capacity:.1%} of {name} {text}."
