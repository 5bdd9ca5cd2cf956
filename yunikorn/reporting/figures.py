"""The figures of the full report, and their making from what was observed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from yunikorn.reporting.fairness import jain_index
from yunikorn.reporting.group_counts import GroupCounts, GroupReport
from yunikorn.reporting.history import History, NodeHistory, PartitionHistory, QueueHistory
from yunikorn.reporting.intervals import Series
from yunikorn.reporting.observer import Observer
from yunikorn.reporting.partition_observation import Fragmentation, PartitionObservation
from yunikorn.reporting.queue_observation import QueueObservation
from yunikorn.reporting.sample import Summary
from yunikorn.reporting.size_classes import NAMES
from yunikorn.simulation.statistics import seconds

CURVE = 400
"""So many points of a distribution are kept for pictures."""


@attrs.frozen
class Fairness:
    """Jain's index over the mean bounded slowdowns, and over the uses, of queues and of users.

    Only those count that finished something (slowdown), or submitted something (use); None if there are none.
    """

    slowdown_of_queues: float | None
    slowdown_of_users: float | None
    use_of_queues: float | None
    use_of_users: float | None


@attrs.frozen
class Figures:
    """What the full report has beyond the plain one."""

    wait: Summary | None
    """Of applications, from submission to the start of the first task, in seconds."""
    whole_wait: Summary | None
    """Of applications, from submission to the start of the last task, in seconds."""
    slowdown: Summary | None
    """Bounded slowdown of the applications that finished."""
    fairness: Fairness
    fragmentation: dict[str, dict[str, Fragmentation]]
    """By partition and resource type."""
    queues: list[GroupReport]
    """Leaf queues that ever had an application."""
    users: list[GroupReport]
    sizes: list[GroupReport]
    """Size classes that occur, small ones first."""


@attrs.frozen
class Curves:
    """Distributions for pictures: numbers in rising order."""

    waits: dict[str, list[float]]
    """By queue, seconds until the start of the last task."""
    slowdowns: dict[str, list[float]]
    all_waits: list[float]
    """Of all queues together."""
    all_slowdowns: list[float]


@attrs.frozen
class Account:
    """Everything an observer saw of a simulation that is over."""

    figures: Figures
    history: History
    curves: Curves


def make_account(observer: Observer) -> Account:
    """What an observer saw; it was closed before."""
    capacities = observer.cluster.capacities()
    several = len({partition for partition, _ in observer.by_queue}) > 1
    named = {
        (f"{partition}: {path}" if several else path): group
        for (partition, path), group in sorted(observer.by_queue.items())
    }
    return Account(
        figures=_figures(observer, capacities),
        history=_history(observer),
        curves=Curves(
            waits={name: group.whole_waits.curve(CURVE) for name, group in named.items()},
            slowdowns={name: group.slowdowns.curve(CURVE) for name, group in named.items()},
            all_waits=observer.everything.whole_waits.curve(CURVE),
            all_slowdowns=observer.everything.slowdowns.curve(CURVE),
        ),
    )


def _figures(observer: Observer, capacities: Mapping[str, Mapping[str, int]]) -> Figures:
    guarantees = {
        (partition, path): observation.guarantees() for partition, path, observation in observer.queues
    }
    queues = [
        group.report(path, capacities, partition, guarantees.get((partition, path)))
        for (partition, path), group in sorted(observer.by_queue.items())
    ]
    users = [group.report(name, capacities) for name, group in sorted(observer.by_user.items())]
    sizes = [observer.by_size[name].report(name, capacities) for name in NAMES if name in observer.by_size]
    return Figures(
        wait=observer.everything.waits.summary(),
        whole_wait=observer.everything.whole_waits.summary(),
        slowdown=observer.everything.slowdowns.summary(),
        fairness=Fairness(
            slowdown_of_queues=jain_index(_slowdowns(observer.by_queue.values())),
            slowdown_of_users=jain_index(_slowdowns(observer.by_user.values())),
            use_of_queues=jain_index(queue.use for queue in queues),
            use_of_users=jain_index(user.use for user in users),
        ),
        fragmentation={
            name: observation.fragmentation()
            for name, observation in sorted(observer.cluster.partitions.items())
        },
        queues=queues,
        users=users,
        sizes=sizes,
    )


def _slowdowns(groups: Iterable[GroupCounts]) -> list[float]:
    return [mean for group in groups if (mean := group.slowdowns.mean()) is not None]


def _history(observer: Observer) -> History:
    timeline = observer.timeline
    start = timeline.start or 0
    end = max(observer.last, start)
    lengths = timeline.lengths(end)
    rows = observer.cluster.rows
    return History(
        start=seconds(start),
        width=seconds(timeline.width),
        end=seconds(end),
        partitions=[
            _partition(name, observation, lengths)
            for name, observation in sorted(observer.cluster.partitions.items())
        ],
        queues=[
            _queue(partition, path, observation, lengths) for partition, path, observation in observer.queues
        ],
        nodes=NodeHistory(rows.nodes, rows.per_row, rows.shares(len(lengths))),
    )


def _partition(name: str, observation: PartitionObservation, lengths: list[int]) -> PartitionHistory:
    return PartitionHistory(
        partition=name,
        capacity=_means(observation.had, lengths),
        used=_means(observation.used, lengths),
        unusable=_means(observation.unusable, lengths),
        waiting=observation.waits.means(lengths),
        running=observation.runs.means(lengths),
    )


def _queue(partition: str, path: str, observation: QueueObservation, lengths: list[int]) -> QueueHistory:
    return QueueHistory(
        partition=partition,
        queue=path,
        is_leaf=observation.is_leaf,
        used=_means(observation.used, lengths),
        wanted=_means(observation.wanted, lengths),
        waiting=observation.waits.means(lengths),
        running=observation.runs.means(lengths),
        quotas=observation.steps,
    )


def _means(books: Mapping[str, Series], lengths: list[int]) -> dict[str, list[float]]:
    return {name: series.means(lengths) for name, series in sorted(books.items())}
