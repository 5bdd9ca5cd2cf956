"""Routes of clusters, partitions, placement rules and queues."""

from __future__ import annotations

from yunikorn.interface.scheduler import Scheduler
from yunikorn_rest import shapes
from yunikorn_rest.endpoints import Call, Query, Route
from yunikorn_rest.lookup import check_queue_name, find_partition, find_queue
from yunikorn_rest.partition_reader import read_partition, read_rules
from yunikorn_rest.queue_reader import read_queue, read_tree
from yunikorn_service.runtime.sliced_reads import Slices

PARTITION = "/ws/v1/partition/{partition}"
QUEUE = PARTITION + "/queue/{queue}"


def read_clusters(scheduler: Scheduler) -> Slices[list[shapes.Cluster]]:
    """Read one entry for each partition, with the builds of all resource managers."""
    builds = tuple({**status.build_info, "rmId": status.rm_id} for status in scheduler.sessions())
    yield None
    return [
        shapes.Cluster(partition=at.name, start_time=scheduler.started, rm_build_information=builds)
        for _, at in scheduler.all_partitions()
    ]


def read_partitions(scheduler: Scheduler) -> Slices[list[shapes.Partition]]:
    """Read all partitions of all resource managers."""
    found = []
    for rm_id, at in scheduler.all_partitions():
        found.append((yield from read_partition(rm_id, at)))
        yield None
    return found


@Route("/ws/v1/clusters", list[shapes.Cluster]).reads
def clusters(_: Call, scheduler: Scheduler) -> Slices[list[shapes.Cluster]]:
    """Clusters."""
    return read_clusters(scheduler)


@Route("/ws/v1/partitions", list[shapes.Partition]).reads
def partitions(_: Call, scheduler: Scheduler) -> Slices[list[shapes.Partition]]:
    """Partitions."""
    return read_partitions(scheduler)


@Route(PARTITION + "/placementrules", list[shapes.Rule], errors=(404,)).reads
def placement_rules(call: Call, scheduler: Scheduler) -> Slices[tuple[shapes.Rule, ...]]:
    """Placement rules in the order of their evaluation."""
    yield None
    return read_rules(find_partition(scheduler, call.text("partition"))[1].config.placement_rules)


@Route(PARTITION + "/queues", shapes.Queue, errors=(404,)).reads
def queues(call: Call, scheduler: Scheduler) -> Slices[shapes.Queue]:
    """Root queue with all queues below."""
    _, at = find_partition(scheduler, call.text("partition"))
    tree = at.partition.queues
    return (yield from read_tree(tree, tree.root, at.name))


SUBTREE = Query("subtree", "with any value: include the queues below")


@Route(QUEUE, shapes.Queue, queries=(SUBTREE,), errors=(400, 404)).reads
def queue(call: Call, scheduler: Scheduler) -> Slices[shapes.Queue]:
    """One queue."""
    path = call.name("queue")
    _, at = find_partition(scheduler, call.text("partition"))
    check_queue_name(path)
    top = find_queue(at, path)
    if SUBTREE.name in call.request.query_params:
        return (yield from read_tree(at.partition.queues, top, ""))
    return (yield from read_queue(top))


ENDPOINTS = (clusters, partitions, placement_rules, queues, queue)
