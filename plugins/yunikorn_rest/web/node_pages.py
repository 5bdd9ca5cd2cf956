"""Pages of nodes: all nodes by use, and a single node."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any

import attrs

from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.node import Node
from yunikorn.quantities import ordered
from yunikorn.scheduling.partition_scheduler import PartitionScheduler
from yunikorn_rest import shapes
from yunikorn_rest.answers import RequestRefused
from yunikorn_rest.application_reader import in_steps, present, read_allocation
from yunikorn_rest.endpoints import Call
from yunikorn_rest.node_reader import BUCKETS, buckets_of, read_summary, read_utilization
from yunikorn_rest.web.amount_bars import AmountBar, bar
from yunikorn_rest.web.chart_board import ChartBoard
from yunikorn_rest.web.frame import PageFrame, read_frame_at, unknown_object
from yunikorn_rest.web.page_server import PageContent
from yunikorn_rest.web.paging import part_of, sorted_part, wanted_number

COLUMNS = 3
"""Largest number of resource types with a column of bars."""
STATES = {"schedulable": "schedulable", "draining": "draining", "reserved": "reserved"}
ORDERS = {"used": "most used first", "free": "least used first", "id": "by id"}
"""Orders, in words."""
STEP = 20
"""Number of nodes that are read without a pause."""


@attrs.frozen
class NodeFilter:
    """Nodes that a page shows, and their order."""

    state: str
    text: str
    order: str
    type: str
    """Resource type whose use must be in the range `bucket`; empty for all nodes."""
    bucket: int

    @classmethod
    def of(cls, call: Call) -> NodeFilter:
        """Return the filter of a request; unknown values are the default."""
        state, order, bucket = call.query("state"), call.query("order"), call.query("use")
        number = BUCKETS.index(bucket) if bucket in BUCKETS else -1
        return cls(
            state if state in STATES else "",
            call.query("q").strip(),
            order if order in ORDERS else "used",
            call.query("type") if number >= 0 else "",
            number,
        )

    @property
    def query(self) -> dict[str, str]:
        """Parameters of an address with the filter."""
        return {
            "state": self.state,
            "q": self.text,
            "order": self.order if self.order != "used" else "",
            "type": self.type,
            "use": BUCKETS[self.bucket] if self.type else "",
        }

    def matches(self, node: Node) -> bool:
        """Return True for a node that the page shows."""
        match self.state:
            case "reserved":
                has_state = bool(node.reservations)
            case "":
                has_state = True
            case state:
                has_state = node.state.lower() == state
        if not has_state or (self.text and self.text.lower() not in node.id.lower()):
            return False
        if not self.type:
            return True
        return buckets_of(node.capacity, present(node.allocated)).get(self.type) == self.bucket

    def key(self) -> Callable[[Node], Any]:
        """Return the function that orders nodes."""
        match self.order:
            case "id":
                return lambda node: node.id
            case "free":
                return lambda node: (use_of(node), node.id)
        return lambda node: (-use_of(node), node.id)


def use_of(node: Node) -> float:
    """Return the largest use of a resource type of a node, as a fraction."""
    used = node.allocated
    return max((used.get(name, 0) / size for name, size in node.capacity.items() if size), default=0.0)


@attrs.frozen(kw_only=True)
class NodeRow:
    """A node in the list."""

    node: shapes.Node
    tasks: int
    """Number of allocations."""


@attrs.frozen(kw_only=True)
class HistogramColumn:
    """A range of use in a histogram."""

    name: str
    count: int
    x: str
    y: str
    height: str
    url: str
    is_chosen: bool


@attrs.frozen(kw_only=True)
class UseHistogram:
    """Nodes by their use of one resource type."""

    type: str
    columns: Sequence[HistogramColumn]


def bars_of(node: shapes.Node, names: Sequence[str]) -> list[AmountBar | None]:
    """Return the bars of a node; use by foreign tasks counts, for it leaves less room."""
    found: list[AmountBar | None] = []
    for name in names:
        size = node.capacity.get(name, 0)
        foreign = node.occupied.get(name, 0)
        used = node.allocated.get(name, 0)
        found.append(bar(name, used + foreign, size) if size or used or foreign else None)
    return found


def read_node_rows(chosen: Iterable[Node], at: PartitionScheduler) -> Generator[None, None, list[NodeRow]]:
    """Read rows of nodes of a partition; those that have left are left out."""
    rows: list[NodeRow] = []
    known, topology = at.partition.nodes, at.policies.topology
    for index, node in enumerate(chosen):
        if known.get(node.id) is node:
            rows.append(NodeRow(node=read_summary(node, topology), tasks=len(node.allocations)))
        if index % STEP == STEP - 1:
            yield
    return rows


def _read_nodes(
    scheduler: Scheduler, key: str, wanted: NodeFilter, number: int
) -> Generator[None, None, tuple[PageFrame, list[NodeRow], dict[str, int], dict[str, object]]]:
    """Read the nodes of a page, the size of the cluster, and the rest of the page."""
    frame, at = read_frame_at(scheduler, key)
    every = list(at.partition.nodes.values())
    sizes = dict(at.partition.cluster.total)
    utilization = yield from read_utilization(every)
    chosen, part = yield from sorted_part(every, wanted.matches, wanted.key(), number)
    rows = yield from read_node_rows(chosen, at)
    histograms = histograms_of(frame, utilization, wanted)
    return frame, rows, sizes, {"part": part, "total": len(every), "histograms": histograms}


def histograms_of(
    frame: PageFrame, utilization: Sequence[shapes.TypeUtilization], wanted: NodeFilter
) -> list[UseHistogram]:
    """Return a histogram for each of the first resource types, in their order."""
    by_type = {one.type: one for one in utilization}
    histograms = []
    for name in ordered(by_type)[:COLUMNS]:
        buckets = by_type[name].utilization
        most = max(1, *(one.num_of_nodes for one in buckets))
        columns = []
        for index, one in enumerate(buckets):
            height = 100 * one.num_of_nodes / most
            is_chosen = wanted.type == name and wanted.bucket == index
            chosen = {"type": name, "use": one.bucket_name} if not is_chosen else {"type": "", "use": ""}
            columns.append(
                HistogramColumn(
                    name=one.bucket_name,
                    count=one.num_of_nodes,
                    x=f"{10 * index + 0.5:.1f}%",
                    y=f"{100 - height:.1f}%",
                    height=f"{height:.1f}%",
                    url=frame.url("/nodes", **{**wanted.query, **chosen}),
                    is_chosen=is_chosen,
                )
            )
        histograms.append(UseHistogram(type=name, columns=columns))
    return histograms


async def list_view(call: Call) -> PageContent:
    """Return the page with all nodes."""
    wanted, key, number = NodeFilter.of(call), call.query("partition"), wanted_number(call)
    frame, rows, sizes, content = await call.read(lambda core: _read_nodes(core, key, wanted, number))
    columns = [name for name in ordered(sizes) if sizes[name]][:COLUMNS]
    content |= {
        "columns": columns,
        "rows": [(row, bars_of(row.node, columns)) for row in rows],
        "filter": wanted,
        "states": STATES,
        "orders": ORDERS,
    }
    return PageContent(template="nodes.html", title="Nodes", section="/nodes", frame=frame, content=content)


# -- a single node ---------------------------------------------------------------------------------------


def _read_node(
    scheduler: Scheduler, key: str, node_id: str, number: int
) -> Generator[None, None, tuple[PageFrame, shapes.Node, dict[str, object]]]:
    """Read a node with a part of its allocations, and the keys and applications of its reservations."""
    frame, at = read_frame_at(scheduler, key)
    node = at.partition.nodes.get(node_id)
    if node is None:
        known = list(at.partition.nodes)
        raise unknown_object(scheduler, frame, "node", node_id, known, lambda other: node_id in other.nodes)
    every = list(node.allocations.values())
    part = part_of(len(every), number)
    shape = read_summary(node, at.policies.topology)
    reserved_by = [(ask.key, ask.app.id) for ask in node.reservations]
    chosen = every[::-1][max(0, part.first - 1) : part.last]
    allocations = yield from in_steps(chosen, read_allocation)
    content = {"node": shape, "allocations": allocations, "part": part, "reserved_by": reserved_by}
    return frame, shape, content


async def node_view(board: ChartBoard | None, call: Call) -> PageContent:
    """Return the page of one node."""
    node_id = call.query("id")
    if not node_id:
        raise RequestRefused(400, "The address names no node: /node?id=ID.")
    key, number = call.query("partition"), wanted_number(call)
    frame, node, content = await call.read(lambda core: _read_node(core, key, node_id, number))
    types = ordered({*node.capacity, *node.allocated, *node.occupied})
    content |= {
        "charts": board and await board.section(call, frame, "node", node_id),
        "types": types,
        "bars": [one for one in bars_of(node, types) if one is not None],
    }
    return PageContent(template="node.html", title=node_id, section="/nodes", frame=frame, content=content)
