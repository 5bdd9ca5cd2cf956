"""Routes of nodes."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping

from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.node import Node
from yunikorn.rest import shapes
from yunikorn.rest.answers import Answer, Refused
from yunikorn.rest.endpoints import Call, Endpoint, Query
from yunikorn.rest.gathering import Gathering
from yunikorn.rest.lists import PAGES, Page, listed
from yunikorn.rest.lookup import find_partition, known_state
from yunikorn.rest.nodes import read_node, read_utilization
from yunikorn.rest.routes.partitions import PARTITION
from yunikorn.runtime.sliced_reads import Reading, Slices
from yunikorn.states import NODE_DRAINING, SCHEDULABLE

STATES = (SCHEDULABLE, NODE_DRAINING)
STATE = Query(
    "state",
    f"only nodes in this state (`{'` or `'.join(STATES)}`), in any case",
    NODE_DRAINING.lower(),
    {"enum": tuple(state.lower() for state in STATES)},
)


async def nodes(call: Call) -> Answer:
    """Answer with the nodes of a partition."""
    name, page = call.text("partition"), Page.of(call)
    state = known_state(call.query("state"), STATES)

    def reading(gathering: Gathering) -> Reading[str]:
        def read(scheduler: Scheduler) -> Slices[str]:
            known = find_partition(scheduler, name)[1].partition.nodes
            chosen, last = yield from page.select(
                list(known.values()), lambda node: node.id, lambda node: state in ("", node.state.lower())
            )
            yield from put_nodes(chosen, known, gathering)
            return last

        return read

    last, gathering = await call.gather(reading)
    return await listed(call, page, gathering.list(), last)


def put_nodes(
    chosen: Iterable[Node], known: Mapping[str, Node], gathering: Gathering, into: str = ""
) -> Slices[None]:
    """Pass nodes on; those that are no longer `known` are left out."""
    for one in chosen:
        if known.get(one.id) is one:
            part = yield from read_node(one)
            yield from gathering.put(part, into, 1 + len(part.allocations))


async def node(call: Call) -> Answer:
    """Answer with one node."""
    name, node_id = call.text("partition"), call.text("node")

    def read(scheduler: Scheduler) -> Generator[None, None, shapes.Node]:
        found = find_partition(scheduler, name)[1].partition.nodes.get(node_id)
        if found is None:
            raise Refused(404, "Node not found")
        return (yield from read_node(found))

    return await call.json(await call.read(read))


def read_utilizations(scheduler: Scheduler) -> Generator[None, None, list[shapes.NodeUtilization]]:
    """Read the use of the nodes of all partitions."""
    found = []
    for rm_id, at in scheduler.all_partitions():
        ranges = yield from read_utilization(list(at.partition.nodes.values()))
        found.append(shapes.NodeUtilization(cluster_id=rm_id, partition=at.name, utilizations=ranges))
    return found


async def utilizations(call: Call) -> Answer:
    """Answer with the use of the nodes of all partitions."""
    return await call.json(await call.read(read_utilizations))


ENDPOINTS = (
    Endpoint(
        path=PARTITION + "/nodes",
        answer=nodes,
        summary="Nodes with their allocations",
        result=list[shapes.Node],
        queries=(STATE, *PAGES),
        errors=(400, 404),
    ),
    Endpoint(
        path=PARTITION + "/node/{node}",
        answer=node,
        summary="One node with its allocations",
        result=shapes.Node,
        errors=(404,),
    ),
    Endpoint(
        path="/ws/v1/scheduler/node-utilizations",
        answer=utilizations,
        summary="Nodes by their use of each resource type",
        result=list[shapes.NodeUtilization],
    ),
)
