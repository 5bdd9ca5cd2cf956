"""Routes of clusters, partitions, placement rules and queues."""

from __future__ import annotations

from collections.abc import Generator

from yunikorn.interface.scheduler import Scheduler
from yunikorn.rest import shapes
from yunikorn.rest.answers import Answer
from yunikorn.rest.endpoints import Call, Endpoint, Query
from yunikorn.rest.lookup import (
    check_queue_name,
    find_partition,
    find_queue,
)
from yunikorn.rest.partitions import read_partition, read_rules
from yunikorn.rest.queues import read_queue, read_tree

PARTITION = "/ws/v1/partition/{partition}"
QUEUE = PARTITION + "/queue/{queue}"


def read_clusters(scheduler: Scheduler) -> Generator[None, None, list[shapes.Cluster]]:
    """Read one entry for each partition, with the builds of all resource managers."""
    builds = tuple({**status.build_info, "rmId": status.rm_id} for status in scheduler.sessions())
    yield
    return [
        shapes.Cluster(partition=at.name, start_time=scheduler.started, rm_build_information=builds)
        for _, at in scheduler.all_partitions()
    ]


def read_partitions(scheduler: Scheduler) -> Generator[None, None, list[shapes.Partition]]:
    """Read all partitions of all resource managers."""
    found = []
    for rm_id, at in scheduler.all_partitions():
        found.append((yield from read_partition(rm_id, at)))
        yield
    return found


async def clusters(call: Call) -> Answer:
    """Answer with the clusters."""
    return await call.json(await call.read(read_clusters))


async def partitions(call: Call) -> Answer:
    """Answer with the partitions."""
    return await call.json(await call.read(read_partitions))


async def placement_rules(call: Call) -> Answer:
    """Answer with the placement rules of a partition."""
    name = call.text("partition")

    def read(scheduler: Scheduler) -> Generator[None, None, tuple[shapes.Rule, ...]]:
        yield
        return read_rules(find_partition(scheduler, name)[1].config.placement_rules)

    return await call.json(await call.read(read))


async def queues(call: Call) -> Answer:
    """Answer with the root queue of a partition, and all queues below."""
    name = call.text("partition")

    def read(scheduler: Scheduler) -> Generator[None, None, shapes.Queue]:
        _, at = find_partition(scheduler, name)
        tree = at.partition.queues
        return (yield from read_tree(tree, tree.root, at.name))

    return await call.json(await call.read(read))


async def queue(call: Call) -> Answer:
    """Answer with one queue, and with the queues below if the query has `subtree`."""
    name, subtree = call.text("partition"), "subtree" in call.request.query_params
    path = call.name("queue")

    def read(scheduler: Scheduler) -> Generator[None, None, shapes.Queue]:
        _, at = find_partition(scheduler, name)
        check_queue_name(path)
        top = find_queue(at, path)
        if subtree:
            return (yield from read_tree(at.partition.queues, top, ""))
        return (yield from read_queue(top))

    return await call.json(await call.read(read))


ENDPOINTS = (
    Endpoint(path="/ws/v1/clusters", answer=clusters, summary="Clusters", result=list[shapes.Cluster]),
    Endpoint(
        path="/ws/v1/partitions", answer=partitions, summary="Partitions", result=list[shapes.Partition]
    ),
    Endpoint(
        path=PARTITION + "/placementrules",
        answer=placement_rules,
        summary="Placement rules in the order of their evaluation",
        result=list[shapes.Rule],
        errors=(404,),
    ),
    Endpoint(
        path=PARTITION + "/queues",
        answer=queues,
        summary="Root queue with all queues below",
        result=shapes.Queue,
        errors=(404,),
    ),
    Endpoint(
        path=QUEUE,
        answer=queue,
        summary="One queue",
        result=shapes.Queue,
        queries=(Query("subtree", "with any value: include the queues below"),),
        errors=(400, 404),
    ),
)
