"""Run times of the past by user, queue, template and size, for estimates and for `history runtimes`.

Run times are kept in histograms whose buckets are an eighth of a power of two wide, so that a quantile is
right to about 6 %. Memory depends on the number of groups, not on that of the tasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import attrs
import sqlalchemy as sa

from yunikorn_history.fetched_rows import HistoryConnections
from yunikorn_history.history_filter import HistoryFilter
from yunikorn_history.history_search import HistorySearch
from yunikorn_history.history_tables import (
    ALLOCATIONS,
    APPLICATIONS,
    ESTIMATED_END,
    NAMES,
    PLACEHOLDER,
    PREEMPTED,
    SHAPES,
)
from yunikorn_history.past_records import GROUPS

USER, QUEUE, TEMPLATE, RESOURCE = GROUPS
LADDER = (
    *((USER, TEMPLATE, RESOURCE), (USER, TEMPLATE), (TEMPLATE, RESOURCE)),
    *((TEMPLATE,), (USER, QUEUE), (QUEUE,), ()),
)
"""Groups from which an estimate is made: the first one with enough tasks."""
FEWEST = 20
"""Number of tasks from which on a group is enough for an estimate."""
MOST_GROUPS = 100_000
"""Number of groups of one kind that are kept; tasks of later ones count in the coarser groups only."""
WINDOW = 100_000
"""Number of allocations that are read at once."""
FINE = 8
"""Number of buckets in each power of two."""
_APP, _TASK = APPLICATIONS.c, ALLOCATIONS.c


def bucket_of(time: int) -> int:
    """Return the number of the bucket of a run time (ms)."""
    shift = max(time.bit_length() - FINE.bit_length(), 0)
    return FINE * shift + (time >> shift)


def lowest_of(bucket: int) -> int:
    """Return the smallest run time (ms) of a bucket."""
    shift = max(bucket // FINE - 1, 0)
    return (bucket - FINE * shift) << shift


def quantile(buckets: Mapping[int, int], share: float) -> int:
    """Return the run time (ms) that this share of the tasks did not exceed, by proportion in its bucket."""
    left = share * sum(buckets.values())
    for bucket, count in sorted(buckets.items()):
        if left <= count:
            low, high = lowest_of(bucket), lowest_of(bucket + 1) - 1
            return low + round((high - low) * left / count)
        left -= count
    return 0


@attrs.frozen
class RunTimeEstimate:
    """Run times of the tasks that are most like another one."""

    by: tuple[str, ...]
    """Properties that these tasks have in common with the other one."""
    tasks: int
    quantiles: tuple[int, ...]
    """Run times (ms)."""


class RunTimes:
    """Run times of ended tasks, by one or several kinds of groups."""

    def __init__(self, kinds: Sequence[tuple[str, ...]] = LADDER) -> None:
        """Group by these kinds, from fine to coarse."""
        self.groups: dict[tuple[str, ...], dict[tuple[str, ...], Counter[int]]] = {kind: {} for kind in kinds}
        """Numbers of tasks by bucket, by the names of each group."""
        self._places = {kind: [GROUPS.index(subject) for subject in kind] for kind in kinds}

    def add(self, names: Sequence[str], bucket: int, tasks: int = 1) -> None:
        """Add tasks with these names, in the order of `GROUPS`."""
        for kind, found in self.groups.items():
            key = tuple([names[place] for place in self._places[kind]])
            group = found.get(key)
            if group is None:
                if len(found) >= MOST_GROUPS:
                    continue
                group = found[key] = Counter()
            group[bucket] += tasks

    def estimate(self, names: Mapping[str, str], shares: Sequence[float]) -> RunTimeEstimate | None:
        """Return quantiles of the run times of a task with these names; None if nothing is known.

        The group is the first one with `FEWEST` tasks, or the largest one.
        """
        best: tuple[tuple[str, ...], int, Counter[int]] | None = None
        for kind, found in self.groups.items():
            group = found.get(tuple([names.get(subject, "") for subject in kind]), Counter())
            tasks = group.total()
            if tasks > (0 if best is None else best[1]):
                best = kind, tasks, group
            if tasks >= FEWEST:
                break
        if best is None:
            return None
        kind, tasks, group = best
        return RunTimeEstimate(kind, tasks, tuple(quantile(group, share) for share in shares))


def read_run_times(
    connections: HistoryConnections, wanted: HistoryFilter, kinds: Sequence[tuple[str, ...]] = LADDER
) -> RunTimes:
    """Return the run times of the tasks that ended in a time; raises `HistoryError`.

    Placeholders, preempted tasks and estimated ends do not count.
    """
    found = RunTimes(kinds)
    with connections.connected() as fetched:
        where = HistorySearch(fetched, wanted).visible(
            {"user": _APP.user, "queue": _APP.queue, "groups": _APP.groups}
        )
        first, last = fetched.rows(sa.select(sa.func.min(_TASK.id), sa.func.max(_TASK.id)))[0]
    where += [_TASK.ended.is_not(None), _TASK.flags.op("&")(PLACEHOLDER | PREEMPTED | ESTIMATED_END) == 0]
    where += [] if wanted.since is None else [_TASK.ended >= wanted.since]
    where += [] if wanted.until is None else [_TASK.ended < wanted.until]
    statement = (
        sa.select(_APP.user, _APP.queue, _APP.template, _TASK.shape, _TASK.ended - _TASK.placed)
        .join_from(ALLOCATIONS, APPLICATIONS, _APP.id == _TASK.app)
        .where(*where)
    )
    for begin in range(first or 0, (last or -1) + 1, WINDOW):
        with connections.connected() as fetched:
            part = statement.where(_TASK.id >= begin, _TASK.id < begin + WINDOW)
            counts = Counter((*names, bucket_of(time)) for *names, time in fetched.rows(part))
            texts = fetched.texts(NAMES, {number for *names, _, _ in counts for number in names})
            shapes = fetched.texts(SHAPES, {shape for *_, shape, _ in counts})
        for (*names, shape, bucket), tasks in counts.items():
            found.add([*(texts[number] for number in names), shapes[shape]], bucket, tasks)
    return found
