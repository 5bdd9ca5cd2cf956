"""Route of the recent decisions about applications, queues and nodes."""

from __future__ import annotations

from collections.abc import Generator, Mapping

import attrs

from yunikorn.interface.scheduler import Scheduler
from yunikorn_rest.answers import Answer, RequestRefused
from yunikorn_rest.decision_store import Decision, DecisionKind, DecisionStore, Wish
from yunikorn_rest.endpoints import COUNT, Call, Query, Route
from yunikorn_rest.lists import limit_of
from yunikorn_rest.lookup import QUEUE_PATH, check_queue_name, find_partition, refuse_unknown_queue
from yunikorn_rest.routes.event_routes import DISABLED
from yunikorn_rest.routes.partition_routes import PARTITION
from yunikorn_service.fields import NONE, always, optional

USUAL, MOST = 100, 10_000
"""Number of decisions without `limit`, and the largest number that `limit` may ask for."""


@attrs.frozen(kw_only=True)
class DecisionRecord:
    """Decision of the scheduler; fields that do not apply are absent."""

    time: int = always("time (ns since 1970)")
    decision: str = always("one of: " + ", ".join(f"`{kind}`" for kind in DecisionKind))
    rm_id: str = always("id of the resource manager", name="rmID")
    partition: str = always("name of the partition")
    application_id: str = optional("id of the application", "", name="applicationID")
    queue_name: str = optional("full path of the queue", "")
    node_id: str = optional("id of the node", "", name="nodeID")
    allocation_key: str = optional("key of the request", "")
    allocation_id: str = optional("id of the allocation", "", name="allocationID")
    message: str = optional("reason, as a phrase", "")
    resource: Mapping[str, int] = optional("size of the request or allocation", NONE)


@Route(
    PARTITION + "/decisions",
    list[DecisionRecord],
    queries=(
        Query("application", "only decisions about this application"),
        Query("queue", "only decisions in this queue and the queues below", "root.a", QUEUE_PATH),
        Query("node", "only decisions about this node"),
        Query(
            "limit", f"maximum number of decisions, {USUAL} by default and {MOST} at most", str(USUAL), COUNT
        ),
    ),
    errors=(400, 404),
)
async def decisions(call: Call) -> Answer:
    """Latest decisions, newest first."""
    name, path, limit = call.text("partition"), call.query("queue"), limit_of(call, USUAL, MOST)
    if path:
        check_queue_name(path)

    def find(scheduler: Scheduler) -> Generator[None, None, tuple[str, str]]:
        rm_id, at = find_partition(scheduler, name)
        yield
        return rm_id, at.partition.config_name

    source = await call.read(find)
    events = call.context.events
    store = None if events is None or not events.store.is_tracking else events.store.decisions
    if store is None:
        raise RequestRefused(500, DISABLED)
    wish = Wish(source, call.query("application"), path.lower(), call.query("node"))
    found = await _found(call, store, wish, limit)
    if not found and path and not await _found(call, store, Wish(source, queue=path.lower()), 1):
        await refuse_unknown_queue(call, name, path)
    return await call.json(await _records(call, found), conditional=False)


async def _found(call: Call, store: DecisionStore, wish: Wish, limit: int) -> list[Decision]:
    """Return up to `limit` wanted decisions; other requests are served meanwhile."""
    found: list[Decision] = []
    turns = call.context.turns
    until = turns.begin()
    for one in store.search(wish):
        if one is not None:
            found.append(one)
            if len(found) == limit:
                break
        if turns.is_over(until):
            until = await turns.next()
    return found


async def _records(call: Call, found: list[Decision]) -> list[DecisionRecord]:
    turns, records = call.context.turns, []
    until = turns.begin()
    for one in found:
        records.append(_record(one))
        if turns.is_over(until):
            until = await turns.next()
    return records


def _record(one: Decision) -> DecisionRecord:
    rm_id, partition = one.source
    return DecisionRecord(
        time=one.time,
        decision=one.kind,
        rm_id=rm_id,
        partition=partition,
        application_id=one.application,
        queue_name=one.queue,
        node_id=one.node,
        allocation_key=one.task,
        allocation_id=one.allocation,
        message=one.message,
        resource=one.resource or NONE,
    )


ENDPOINTS = (decisions,)
