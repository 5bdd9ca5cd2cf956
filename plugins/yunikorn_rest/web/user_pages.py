"""Pages of users and groups: their use and their limits."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

import attrs

from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.usage_tracker import GROUP, USER
from yunikorn.quantities import ordered
from yunikorn_rest import shapes
from yunikorn_rest.answers import RequestRefused
from yunikorn_rest.endpoints import Call
from yunikorn_rest.lists import Page
from yunikorn_rest.partition_reader import book_usage, read_group, read_user
from yunikorn_rest.web.amount_bars import AmountBar, bar
from yunikorn_rest.web.chart_board import ChartBoard
from yunikorn_rest.web.frame import PageFrame, Unknown, read_frame_at
from yunikorn_rest.web.page_server import PageContent
from yunikorn_rest.web.paging import PagePosition, sorted_part, wanted_number

COLUMNS = 3
"""Largest number of resource types with a column of bars."""
STEP = 20
"""Number of users that are read without a pause."""
GROUPS = 100
"""Largest number of groups on the page."""


@attrs.frozen(kw_only=True)
class UsageRow:
    """Use of a queue, with the queues below, by a user or group."""

    name: str
    usage: shapes.QueueUsage
    bars: Sequence[AmountBar | None]


def row_of(name: str, usage: shapes.QueueUsage, columns: Sequence[str], sizes: dict[str, int]) -> UsageRow:
    """Return the row of a use; bars are as long as the limit, or as the cluster."""
    bars: list[AmountBar | None] = []
    for one in columns:
        used, limit = usage.resource_usage.get(one, 0), usage.max_resources.get(one)
        if not used and limit is None:
            bars.append(None)
        elif limit is None:
            bars.append(bar(one, used, sizes.get(one), of_what=" of the cluster"))
        else:
            bars.append(bar(one, used, limit, of_what=", the limit"))
    return UsageRow(name=name, usage=usage, bars=bars)


Found = tuple[PageFrame, list[shapes.UserUsage], list[shapes.GroupUsage], PagePosition, dict[str, int]]


def _read_users(scheduler: Scheduler, key: str, text: str, number: int) -> Generator[None, None, Found]:
    """Read the users and groups of a page, and the size of the cluster."""
    frame, at = read_frame_at(scheduler, key)
    partition = at.partition
    yield from book_usage(partition)
    chosen, part = yield from sorted_part(
        list(partition.usage.names(USER)), lambda one: text in one.lower(), str, number
    )
    users = []
    for index, name in enumerate(chosen):
        if partition.usage.through(USER, name):
            users.append((yield from read_user(partition, name)))
        if index % STEP == STEP - 1:
            yield
    names, _ = yield from Page(GROUPS).select(partition.usage.names(GROUP), str, bool)
    groups = []
    for name in names:
        if partition.usage.through(GROUP, name):
            groups.append((yield from read_group(partition, name)))
    return frame, users, groups, part, dict(partition.cluster.total)


async def list_view(call: Call) -> PageContent:
    """Return the page with all users, and the groups with limits."""
    text, key, number = call.query("q").strip(), call.query("partition"), wanted_number(call)
    found = await call.read(lambda core: _read_users(core, key, text.lower(), number))
    frame, users, groups, part, sizes = found
    columns = [name for name in ordered(sizes) if sizes[name]][:COLUMNS]
    named = [[(one.user_name, one.queues) for one in users], [(one.group_name, one.queues) for one in groups]]
    of_users, of_groups = (
        [row_of(name, usage, columns, sizes) for name, usage in rows if usage is not None] for rows in named
    )
    return PageContent(
        template="users.html",
        title="Users",
        section="/users",
        frame=frame,
        content={"users": of_users, "groups": of_groups, "columns": columns, "part": part, "q": text},
    )


def _read_user(
    scheduler: Scheduler, key: str, name: str
) -> Generator[None, None, tuple[PageFrame, shapes.UserUsage, dict[str, int]]]:
    frame, at = read_frame_at(scheduler, key)
    partition = at.partition
    yield from book_usage(partition)
    if not partition.usage.through(USER, name):
        known = list(partition.usage.names(USER))
        text = f"There is no use by a user {name}."
        raise Unknown(text, frame, name, known, lambda one: frame.url("/user", name=one))
    return frame, (yield from read_user(partition, name)), dict(partition.cluster.total)


async def user_view(board: ChartBoard | None, call: Call) -> PageContent:
    """Return the page of one user."""
    name = call.query("name")
    if not name:
        raise RequestRefused(400, "The address names no user: /user?name=NAME.")
    key = call.query("partition")
    frame, user, sizes = await call.read(lambda core: _read_user(core, key, name))
    every = [] if user.queues is None else list(_through(user.queues))
    types = ordered({one for usage in every for one in (*usage.resource_usage, *usage.max_resources)})
    columns = types[:COLUMNS]
    return PageContent(
        template="user.html",
        title=name,
        section="/users",
        frame=frame,
        content={
            "user": user,
            "charts": board and await board.section(call, frame, "user", name),
            "rows": [row_of(one.queue_path, one, columns, sizes) for one in every],
            "columns": columns,
        },
    )


def _through(usage: shapes.QueueUsage) -> Iterator[shapes.QueueUsage]:
    """Yield the use of a queue and of the queues below, parents first."""
    waiting = [usage]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += reversed(one.children)
