"""Routes of nodes."""

from __future__ import annotations

from collections.abc import Iterable

from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.node import Node
from yunikorn.scheduling.partition_scheduler import PartitionScheduler
from yunikorn.states import NODE_DRAINING, SCHEDULABLE
from yunikorn_rest import shapes
from yunikorn_rest.answers import Answer, RequestRefused
from yunikorn_rest.encoding import AnswerLists
from yunikorn_rest.endpoints import Call, Query, Route
from yunikorn_rest.lists import PAGES, Page, listed
from yunikorn_rest.lookup import find_partition, known_state
from yunikorn_rest.node_reader import read_node, read_utilization
from yunikorn_rest.routes.partition_routes import PARTITION
from yunikorn_service.runtime.sliced_reads import Slices

STATES = (SCHEDULABLE, NODE_DRAINING)
STATE = Query(
    "state",
    f"only nodes in this state (`{'` or `'.join(STATES)}`), in any case",
    NODE_DRAINING.lower(),
    {"enum": tuple(state.lower() for state in STATES)},
)


@Route(PARTITION + "/nodes", list[shapes.Node], queries=(STATE, *PAGES), errors=(400, 404))
async def nodes(call: Call) -> Answer:
    """Nodes with their allocations."""
    name, page = call.text("partition"), Page.of(call)
    state = known_state(call.query("state"), STATES)

    def read(scheduler: Scheduler, gathering: AnswerLists) -> Slices[str]:
        at = find_partition(scheduler, name)[1]
        known = at.partition.nodes
        chosen, last = yield from page.select(
            list(known.values()), lambda node: node.id, lambda node: state in ("", node.state.lower())
        )
        yield from put_nodes(chosen, at, gathering)
        return last

    return await listed(call, read)


def put_nodes(
    chosen: Iterable[Node], at: PartitionScheduler, gathering: AnswerLists, into: str = ""
) -> Slices[None]:
    """Pass nodes of a partition on; those that have left are left out."""
    for one in chosen:
        if at.partition.nodes.get(one.id) is one:
            part = yield from read_node(one, at.policies.topology)
            yield from gathering.put(part, into, 1 + len(part.allocations))


@Route(PARTITION + "/node/{node}", shapes.Node, errors=(404,)).reads
def node(call: Call, scheduler: Scheduler) -> Slices[shapes.Node]:
    """One node with its allocations."""
    at = find_partition(scheduler, call.text("partition"))[1]
    found = at.partition.nodes.get(call.text("node"))
    if found is None:
        raise RequestRefused(404, "Node not found")
    return (yield from read_node(found, at.policies.topology))


@Route("/ws/v1/scheduler/node-utilizations", list[shapes.NodeUtilization]).reads
def utilizations(call: Call, scheduler: Scheduler) -> Slices[list[shapes.NodeUtilization]]:
    """Nodes by their use of each resource type."""
    found = []
    for rm_id, at in scheduler.all_partitions():
        ranges = yield from read_utilization(list(at.partition.nodes.values()))
        found.append(shapes.NodeUtilization(cluster_id=rm_id, partition=at.name, utilizations=ranges))
    return found


ENDPOINTS = (nodes, node, utilizations)
