"""Run times of the past by user, queue, template and size, for estimates and for `history runtimes`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

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
from yunikorn_plugins.run_time_groups import LADDER, RunTimes, bucket_of

WINDOW = 100_000
"""Number of allocations that are read at once."""
_APP, _TASK = APPLICATIONS.c, ALLOCATIONS.c


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
