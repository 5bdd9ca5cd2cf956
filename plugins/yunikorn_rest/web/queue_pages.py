"""Pages of queues: the tree with guarantees, quotas, use and waiting requests, and a single queue."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any

import attrs

from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.queue import Queue
from yunikorn.quantities import ordered
from yunikorn_rest import shapes
from yunikorn_rest.answers import RequestRefused
from yunikorn_rest.endpoints import Call
from yunikorn_rest.queue_reader import read_queue, read_tree
from yunikorn_rest.web.amount_bars import AmountBar, bar
from yunikorn_rest.web.application_list_page import read_rows
from yunikorn_rest.web.chart_board import ChartBoard
from yunikorn_rest.web.frame import PageFrame, read_frame_at, unknown_object
from yunikorn_rest.web.page_server import PageContent
from yunikorn_rest.web.paging import sorted_part, wanted_number

COLUMNS = 3
"""Largest number of resource types with a column of bars in the tree."""
OPEN = 80
"""Number of queues up to which the tree is shown with everything open."""
STEP = 10
"""Number of queues that are read without a pause."""

Sizes = Mapping[str, int]


@attrs.frozen(kw_only=True)
class QueueRow:
    """A queue in the tree; the rows are in the order of the page."""

    queue: shapes.Queue
    name: str
    """Last level of the path."""
    depth: int
    bars: Sequence[AmountBar | None]
    """Bars of the resource types that have columns; None for a type that the queue has nothing of."""
    is_open: bool
    is_waiting: bool
    closes: int = 0
    """Number of lists that end behind the row."""


@attrs.frozen
class _Entry:
    queue: shapes.Queue
    depth: int
    sizes: Sizes
    """Sizes within which the queue has to stay: its quotas, or those of a queue above."""


def bars_of(queue: shapes.Queue, sizes: Sizes, names: Sequence[str]) -> list[AmountBar | None]:
    """Return the bars of a queue for these resource types."""
    found: list[AmountBar | None] = []
    for name in names:
        used = queue.allocated_resource.get(name, 0)
        waiting = queue.pending_resource.get(name, 0)
        guaranteed = queue.guaranteed_resource.get(name, 0)
        quota = queue.max_resource.get(name)
        if quota is None and not (used or waiting or guaranteed):
            found.append(None)
            continue
        size = quota if quota is not None else sizes.get(name)
        inherited = "" if quota is not None else ", the limit of a queue above"
        found.append(bar(name, used, size, waiting=waiting, guaranteed=guaranteed, of_what=inherited))
    return found


def types_of(queue: shapes.Queue) -> list[str]:
    """Return the resource types that a queue uses, wants, or has a quota or guarantee of."""
    return ordered(
        {
            *queue.max_resource,
            *queue.allocated_resource,
            *queue.pending_resource,
            *queue.guaranteed_resource,
        }
    )


def _entries(top: shapes.Queue) -> Iterator[_Entry]:
    """Yield a queue and all queues below, parents first, siblings by name."""
    waiting = [_Entry(top, 0, dict(top.max_resource))]
    while waiting:
        one = waiting.pop()
        yield one
        children = sorted(one.queue.children, key=lambda child: child.queuename, reverse=True)
        waiting += [_Entry(child, one.depth + 1, {**one.sizes, **child.max_resource}) for child in children]


def rows_of(
    top: shapes.Queue, columns: Sequence[str], text: str = "", *, only_waiting: bool = False
) -> list[QueueRow]:
    """Return the rows of a tree; with a filter, only matching queues and the queues above them."""
    entries = list(_entries(top))
    is_filtered = bool(text) or only_waiting
    if is_filtered:
        entries = _matching(entries, text.lower(), only_waiting)
    is_open = is_filtered or len(entries) <= OPEN
    found: list[QueueRow] = []
    for index, one in enumerate(entries):
        following = entries[index + 1].depth if index + 1 < len(entries) else 0
        found.append(
            QueueRow(
                queue=one.queue,
                name=one.queue.queuename.rpartition(".")[2],
                depth=one.depth,
                bars=bars_of(one.queue, one.sizes, columns),
                is_open=is_open or one.depth == 0,
                is_waiting=bool(one.queue.pending_resource),
                closes=max(0, one.depth - following),
            )
        )
    return found


def _matching(entries: list[_Entry], text: str, only_waiting: bool) -> list[_Entry]:
    shown: set[str] = set()
    found: list[_Entry] = []
    for one in reversed(entries):
        queue = one.queue
        matches = text in queue.queuename.lower() and (not only_waiting or bool(queue.pending_resource))
        if matches or queue.queuename in shown:
            shown.add(queue.parent)
            found.append(one)
    return found[::-1]


def read_queues(scheduler: Scheduler, key: str) -> Generator[None, None, tuple[PageFrame, shapes.Queue]]:
    """Read all queues of a partition."""
    frame, at = read_frame_at(scheduler, key)
    tree = at.partition.queues
    return frame, (yield from read_tree(tree, tree.root, at.name))


async def tree_view(call: Call) -> PageContent:
    """Return the page with all queues."""
    text, only_waiting, key = call.query("q").strip(), call.query("waiting") == "1", call.query("partition")
    frame, root = await call.read(lambda core: read_queues(core, key))
    columns = types_of(root)[:COLUMNS]
    # The rows of a thousand queues take some ten milliseconds.
    rows = rows_of(root, columns, text, only_waiting=only_waiting)
    return PageContent(
        template="queues.html",
        title="Queues",
        section="/queues",
        frame=frame,
        content={
            "rows": rows,
            "columns": columns,
            "q": text,
            "only_waiting": only_waiting,
            "total": sum(1 for _ in _entries(root)),
        },
    )


def _read_one(
    scheduler: Scheduler, key: str, path: str, number: int
) -> Generator[None, None, tuple[PageFrame, shapes.Queue, Sequence[shapes.Queue], dict[str, Any]]]:
    """Read a queue, a part of its children, and the rest of its page."""
    frame, at = read_frame_at(scheduler, key)
    lower = path.lower()
    found = at.partition.queue(lower)
    if found is None:
        known = [one.path for one in at.partition.queues]
        raise unknown_object(
            scheduler, frame, "queue", path, known, lambda other: other.queue(lower) is not None
        )
    queue = yield from read_queue(found)
    sizes: dict[str, int] = {}
    above: Queue | None = found
    while above is not None:
        sizes = {**(above.max or {}), **sizes}
        above = above.parent
    chosen, children_part = yield from sorted_part(
        list(found.children.values()), lambda one: True, lambda one: one.path, number
    )
    children: list[shapes.Queue] = []
    for index, child in enumerate(chosen):
        if found.children.get(child.name) is child:
            children.append((yield from read_queue(child)))
        if index % STEP == STEP - 1:
            yield
    apps = found.applications
    members, part = yield from sorted_part(
        list(apps.values()), lambda one: True, lambda one: (-one.submitted, one.id), number
    )
    rows = yield from read_rows(members, lambda one: apps.get(one.id) is one, at.name)
    content = {"queue": queue, "sizes": sizes, "children_part": children_part, "rows": rows, "part": part}
    return frame, queue, children, content


async def queue_view(board: ChartBoard | None, call: Call) -> PageContent:
    """Return the page of one queue."""
    name = call.query("name")
    if not name:
        raise RequestRefused(400, "The address names no queue: /queue?name=PATH.")
    key, number = call.query("partition"), wanted_number(call)
    frame, queue, children, content = await call.read(lambda core: _read_one(core, key, name, number))
    types, sizes = types_of(queue), content["sizes"]
    columns = types[:COLUMNS]
    path = queue.queuename.split(".")
    content |= {
        "charts": board and await board.section(call, frame, "queue", queue.queuename),
        "levels": [(name, ".".join(path[: index + 1])) for index, name in enumerate(path)],
        "types": types,
        "bars": [one for one in bars_of(queue, sizes, types) if one is not None],
        "columns": columns,
        "children": [(child, bars_of(child, {**sizes, **child.max_resource}, columns)) for child in children],
    }
    return PageContent(
        template="queue.html", title=queue.queuename, section="/queues", frame=frame, content=content
    )
