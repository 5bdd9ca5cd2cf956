"""Dumps for support: the whole state, and the stacks of all threads."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.application import Application
from yunikorn.scheduling.partition_scheduler import PartitionScheduler
from yunikorn_rest import shapes
from yunikorn_rest.answers import TEXT, Answer
from yunikorn_rest.app import redirect
from yunikorn_rest.config_shapes import Configuration
from yunikorn_rest.encoding import AnswerLists, EncodedList
from yunikorn_rest.endpoints import Call, Route
from yunikorn_rest.partition_reader import active_applications_of, read_partition, read_rules
from yunikorn_rest.queue_reader import read_tree
from yunikorn_rest.routes.application_routes import is_active, put_applications
from yunikorn_rest.routes.configuration_routes import read_configuration
from yunikorn_rest.routes.node_routes import put_nodes
from yunikorn_rest.routes.partition_routes import read_clusters
from yunikorn_rest.routes.scheduler_routes import app_history, container_history
from yunikorn_rest.time_texts import rfc3339
from yunikorn_service.fields import NONE, always, optional
from yunikorn_service.runtime.sliced_reads import Slices

NO_DIAGNOSTICS = {"empty": "Resource Manager did not register callback"}


@attrs.frozen(kw_only=True)
class PartitionNodes:
    """Nodes of a partition."""

    partition_name: str = always("name of the partition")
    nodes_info: tuple[shapes.Node, ...] | EncodedList = optional("nodes", ())


@attrs.frozen(kw_only=True)
class PartitionRules:
    """Placement rules of a partition."""

    partition: str = optional("name of the partition", "")
    rules: tuple[shapes.Rule, ...] = optional("placement rules", ())


@attrs.frozen(kw_only=True)
class OpenEventStream:
    """Stream of events in progress."""

    host: str = always("address of the client", name="Name")
    created: str = always("time of the begin (RFC 3339)", name="CreatedAt")


@attrs.frozen(kw_only=True)
class StateDump:
    """The whole state of the scheduler."""

    timestamp: int = optional("time of the dump (ns)", 0)
    partitions: tuple[shapes.Partition, ...] = optional("partitions", ())
    applications: tuple[shapes.Application, ...] | EncodedList = optional(
        "applications, ended ones included", ()
    )
    app_history: tuple[shapes.AppHistory, ...] = optional("running applications over time", ())
    nodes: tuple[PartitionNodes, ...] = optional("nodes by partition", ())
    cluster_info: tuple[shapes.Cluster, ...] = optional("clusters", ())
    container_history: tuple[shapes.ContainerHistory, ...] = optional("allocations over time", ())
    queues: tuple[shapes.Queue, ...] = optional("root queues", ())
    rm_diagnostics: Mapping[str, Any] = optional("state of the resource manager", NONE)
    log_level: str = optional("level of the log", "")
    config: Configuration | None = optional("configuration in use", None)
    placement_rules: tuple[PartitionRules, ...] = optional("placement rules by partition", ())
    event_streams: tuple[OpenEventStream, ...] = optional("streams of events in progress", ())


APPLICATIONS = "applications"
"""Name of the gathered list of applications."""


def read_state(scheduler: Scheduler, gathering: AnswerLists) -> Slices[StateDump]:
    """Read everything; each object is of one moment. Applications and nodes are passed on."""
    partitions, queues, rules = [], [], []
    clusters = yield from read_clusters(scheduler)
    for rm_id, at in scheduler.all_partitions():
        partition = at.partition
        partitions.append((yield from read_partition(rm_id, at)))
        queues.append((yield from read_tree(partition.queues, partition.queues.root, at.name)))
        rules.append(PartitionRules(partition=at.name, rules=read_rules(at.config.placement_rules)))
        everything = [*active_applications_of(at), *partition.ended.values()]
        yield from put_applications(everything, _known_in(at), at, gathering, APPLICATIONS)
        nodes = list(partition.nodes.values())
        yield from put_nodes(nodes, at, gathering, _list_of_nodes(rm_id, at.name))
    return StateDump(
        timestamp=scheduler.clock.now(),
        partitions=tuple(partitions),
        cluster_info=tuple(clusters),
        queues=tuple(queues),
        placement_rules=tuple(rules),
    )


def event_streams(call: Call) -> tuple[OpenEventStream, ...]:
    """Return the streams of events in progress, oldest first."""
    streams = () if call.context.events is None else call.context.events.streams
    return tuple(OpenEventStream(host=one.host, created=rfc3339(one.created)) for one in streams)


def _known_in(at: PartitionScheduler) -> Callable[[Application], bool]:
    return lambda app: is_active(app, at) or at.partition.ended.get(app.id) is app


def _list_of_nodes(rm_id: str, name: str) -> str:
    return f"nodes of [{rm_id}]{name}"


@Route("/debug/fullstatedump", StateDump)
async def full_state(call: Call) -> Answer:
    """The whole state of the scheduler."""
    async with call.context.dumping:
        found, gathering = await call.gather(read_state)
        whole = attrs.evolve(
            found,
            applications=gathering.list(APPLICATIONS),
            nodes=tuple(
                PartitionNodes(
                    partition_name=one.name,
                    nodes_info=gathering.list(_list_of_nodes(one.cluster_id, one.name)),
                )
                for one in found.partitions
            ),
            app_history=tuple(app_history(call)),
            container_history=tuple(container_history(call)),
            rm_diagnostics=NO_DIAGNOSTICS,
            log_level=logging.getLevelName(logging.getLogger("yunikorn").getEffectiveLevel()).lower(),
            config=await read_configuration(call),
            event_streams=event_streams(call),
        )
        return await call.json(whole, conditional=False)


@Route("/debug/stack", content_type="text/plain")
async def stacks(call: Call) -> Answer:
    """Stacks of all threads."""
    text = await call.apart(_stacks)
    return Answer(pieces=(text.encode("utf-8", "replace"),), content_type=TEXT)


def _stacks() -> str:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    found = []
    for ident, frame in sys._current_frames().items():
        lines = "".join(traceback.format_stack(frame))
        found.append(f"thread {names.get(ident, '?')} ({ident}):\n{lines}")
    return "\n".join(found)


async def _moved(call: Call) -> Answer:
    """Answer with a redirect to the present path of a dump."""
    name = call.request.url.path.rpartition("/")[2]
    return redirect(f"/debug/{name}", call.request.scope["query_string"], permanent=True)


ENDPOINTS = (
    full_state,
    stacks,
    Route("/ws/v1/fullstatedump", errors=(301,))(_moved, "Redirect to /debug/fullstatedump"),
    Route("/ws/v1/stack", errors=(301,))(_moved, "Redirect to /debug/stack"),
)
