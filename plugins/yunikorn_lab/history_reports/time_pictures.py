"""Pictures of reports over time: series of a history as those of a run, which the plots of runs draw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from yunikorn_history.history_tables import PARTITION_SERIES, QUEUE_SERIES
from yunikorn_lab.history_reports.history_result import hours_of, unit_of
from yunikorn_lab.history_reports.report_source import ReportSource
from yunikorn_lab.history_reports.report_window import ReportWindow
from yunikorn_lab.reporting.run_history import (
    NodeHistory,
    PartitionHistory,
    QueueHistory,
    QuotaStep,
    RunHistory,
    UserHistory,
)
from yunikorn_lab.reporting.section import Picture

MOST = 8
"""Maximum number of groups in a picture."""


class GroupSeries:
    """Service of groups in each bucket of a window, by resource type."""

    def __init__(self, window: ReportWindow) -> None:
        self._window = window
        self.groups: dict[str, dict[str, list[int]]] = {}

    def add(self, group: str, time: int, service: Mapping[str, int]) -> None:
        """Add a service (amounts times ms) of the bucket that begins at a time."""
        types = self.groups.setdefault(group, {})
        index = self._window.index(time)
        for name, value in service.items():
            series = types.get(name)
            if series is None:
                series = types[name] = [0] * self._window.buckets
            series[index] += value

    def means(self, group: str, name: str, *, of_time: bool = True) -> list[float]:
        """Return the mean amounts of a group, or its service without `of_time`."""
        window = self._window
        found = self.groups[group].get(name) or [0] * window.buckets
        if not of_time:
            return list(found)
        times = range(window.since, window.until, window.length)
        return [value / window.covered(time) for value, time in zip(found, times, strict=True)]


def run_history(
    source: ReportSource,
    *,
    used: GroupSeries | None = None,
    queues: Iterable[QueueHistory] = (),
    users: Iterable[UserHistory] = (),
) -> RunHistory:
    """Return the series of the partition in the window as those of a run, with those of groups."""
    window = source.window
    count = window.buckets
    capacity: dict[str, list[float]] = {}
    busy: dict[str, list[float]] = {}
    idle: dict[str, dict[str, list[float]]] = {}
    for _, time, data in source.series(PARTITION_SERIES):
        index = window.index(time)
        for name, amount in data.mean_capacity.items():
            capacity.setdefault(name, [0.0] * count)[index] += amount
        for name, mean in data.used.items():
            busy.setdefault(name, [0.0] * count)[index] += mean
        for cause, service in data.idle.items():
            for name, value in service.items():
                series = idle.setdefault(cause, {}).setdefault(name, [0.0] * count)
                series[index] += value / (window.observed(time) or window.covered(time))
    nothing = [0.0] * count
    partition = PartitionHistory("", capacity, busy, {}, idle, waiting=nothing, running=nothing)
    return RunHistory(
        start=window.since / 1000,
        width=window.length / 1000,
        end=window.until / 1000,
        partitions=[partition],
        queues=list(queues),
        nodes=NodeHistory(0, 1, [], {}),
        origin=0.0,
        users=list(users),
    )


def group_histories(
    series: GroupSeries, name: str, unnamed: str, *, of_time: bool = True
) -> list[UserHistory]:
    """Return the groups with the largest service of a resource type, and all others together."""
    ranked = ranked_groups(series, name)
    found = [
        UserHistory(group or unnamed, 1, None, {name: series.means(group, name, of_time=of_time)}, {}, [], [])
        for group in ranked[:MOST]
    ]
    if ranked[MOST:]:
        columns = zip(*(series.means(group, name, of_time=of_time) for group in ranked[MOST:]), strict=True)
        rest = {name: [sum(values) for values in columns]}
        found.append(UserHistory("", len(ranked) - MOST, None, rest, {}, [], []))
    return found


def ranked_groups(series: GroupSeries, name: str) -> list[str]:
    """Return the groups by their service of a resource type, the largest first."""
    return sorted(series.groups, key=lambda group: (-sum(series.groups[group].get(name, ())), group))


def queue_histories(source: ReportSource) -> list[QueueHistory]:
    """Return the series of the queues with their guarantees and limits."""
    window = source.window
    used: dict[str, dict[str, list[float]]] = {}
    quotas: dict[str, list[QuotaStep]] = {}
    for number, time, data in source.series(QUEUE_SERIES):
        path = source.name(number)
        types, steps = used.setdefault(path, {}), quotas.setdefault(path, [])
        for name, mean in data.used.items():
            types.setdefault(name, [0.0] * window.buckets)[window.index(time)] = mean
        if not steps or (steps[-1].guaranteed, steps[-1].max) != (data.guaranteed, data.max):
            steps.append(QuotaStep(time / 1000, data.guaranteed, data.max))
    parents = {path.rpartition(".")[0] for path in used}
    return [
        QueueHistory("", path, path not in parents, used[path], {}, [], [], quotas[path])
        for path in sorted(used)
    ]


def use_picture(source: ReportSource, series: GroupSeries, name: str, of: str) -> list[Picture]:
    """Return the picture of the use of a resource type over time by groups; empty without any."""
    if not source.has_pictures or not series.groups or not name:
        return []
    history = run_history(source, users=group_histories(series, name, "(none)" if of else "all"))
    return [_stack_picture("use.png", history, name, of, f"Mean use of {name}")]


def loss_picture(source: ReportSource, series: GroupSeries, name: str, of: str) -> list[Picture]:
    """Return the picture of what groups lost of a resource type over time; empty without any."""
    if not source.has_pictures or not series.groups or not name:
        return []
    unit = f"{unit_of(name)[1]}-hours"
    lost = GroupSeries(source.window)
    for group, types in series.groups.items():
        lost.groups[group] = {unit: types.get(name, [0] * source.window.buckets)}
    users = [
        attrs.evolve(user, used={unit: [hours_of(name, value) for value in user.used[unit]]})
        for user in group_histories(lost, unit, "(none)", of_time=False)
    ]
    history = attrs.evolve(run_history(source), users=users)
    return [_stack_picture("lost.png", history, unit, of, f"Lost {unit}")]


def _stack_picture(file: str, history: RunHistory, name: str, of: str, what: str) -> Picture:
    title = f"{what}{f' by {of}' if of else ''}"
    bucket = "hour" if history.width < 86_400 else "day"
    return Picture(
        file,
        f"{title} in each {bucket}.",
        lambda plots, colours: plots.plot_groups(history, name, of, title, colours),
    )
