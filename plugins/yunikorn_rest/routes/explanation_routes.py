"""Routes that explain why the requests of an application wait."""

from __future__ import annotations

from collections.abc import Generator

from yunikorn.explain.explanations import Reason, of_application
from yunikorn.explain.request_position import QueuePosition
from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.application import Application
from yunikorn.scheduling.partition_scheduler import PartitionScheduler
from yunikorn.states import compatible_state
from yunikorn_rest.answers import Answer
from yunikorn_rest.application_reader import design_state
from yunikorn_rest.endpoints import COUNT, Call, Endpoint, Query, Route
from yunikorn_rest.explain_shapes import QueueRank, WaitBlocker, WaitExplanation, WaitingRequests, WaitReason
from yunikorn_rest.lists import limit_of
from yunikorn_rest.lookup import check_queue_name, find_application, find_partition, find_queue
from yunikorn_rest.routes.partition_routes import PARTITION, QUEUE
from yunikorn_service.grouped_explanations import RequestGroup, explain_in_groups, explained_in_slices

USUAL, MOST = 100, 1000
"""Maximum number of explanations without `limit`, and of those that `limit` may ask for."""
WORKLOAD = "yunikorn.apache.org/workload"
"""Tag of applications in which a resource manager says what it has read of the owner of their tasks."""
LIMIT = Query(
    "limit", f"maximum number of explanations, {USUAL} by default and {MOST} at most", str(USUAL), COUNT
)


async def _explanation(call: Call) -> Answer:
    """Answer with the reasons why the requests of an application wait."""
    name, app_id, limit = call.text("partition"), call.text("application"), limit_of(call, USUAL, MOST)
    path = call.name("queue") if "queue" in call.request.path_params else None

    def read(scheduler: Scheduler) -> Generator[None, None, WaitExplanation]:
        _, at = find_partition(scheduler, name)
        if path is None and app_id in at.submitted:
            return read_awaited(at, app_id)
        if path is not None:
            check_queue_name(path)
        app = find_application(at, app_id, None if path is None else find_queue(at, path))
        return (yield from read_explanation(scheduler, at, app, limit))

    async with call.context.explaining:
        found = await call.read(read)
    return await call.json(found, conditional=False)


def read_explanation(
    scheduler: Scheduler, at: PartitionScheduler, app: Application, limit: int
) -> Generator[None, None, WaitExplanation]:
    """Explain why the requests of an application wait, in at most `limit` groups of equal requests."""
    state, queue = app.state, app.queue
    now = at.partition.clock.now()
    reasons = tuple(map(_reason, of_application(at, app)))
    awaited, unchecked = at.submitted_asks.awaited(app), app.unanswered
    found = yield from explained_in_slices(scheduler, explain_in_groups(at, app, limit))
    return WaitExplanation(
        application_id=app.id,
        partition=at.name,
        queue_name=queue.path if queue is not None else app.queue_name,
        application_state=compatible_state(state),
        design_state=design_state(state),
        workload=app.tags.get(WORKLOAD, ""),
        time=now,
        awaited=awaited,
        unchecked_count=unchecked,
        reasons=reasons,
        pending_count=found.waiting,
        omitted_count=found.omitted,
        requests=tuple(map(_requests, found.groups)),
        pending_in_queue=found.of,
        request_order=found.ordered_by,
        queue_ranks=tuple(map(_rank, found.queues)),
    )


def read_awaited(at: PartitionScheduler, app_id: str) -> WaitExplanation:
    """Return the explanation of an application that waits for the answer of a policy."""
    policy = at.submitted.awaited(app_id)
    return WaitExplanation(
        application_id=app_id, partition=at.name, time=at.partition.clock.now(), awaited=policy
    )


def _rank(one: QueuePosition) -> QueueRank:
    return QueueRank(queue_name=one.queue, rank=one.place, of=one.of, parent=one.parent)


def _requests(group: RequestGroup) -> WaitingRequests:
    return WaitingRequests(
        allocation_keys=tuple(group.keys),
        request_count=group.asks,
        pending_count=group.waiting,
        resource=group.resource,
        priority=group.priority,
        task_group_name=group.task_group,
        placed=group.placed,
        reserved_node_id=group.reserved,
        reasons=tuple(map(_reason, group.reasons)),
        suggested_fixes=group.fixes,
        first_rank=group.first,
        last_rank=group.last,
    )


def _reason(one: Reason) -> WaitReason:
    blockers = tuple(WaitBlocker(kind=each.kind, name=each.name) for each in one.blockers)
    return WaitReason(
        check=one.check, summary=one.summary, message=one.detail, policy=one.policy, blockers=blockers
    )


def _explain(above: str, summary: str) -> Endpoint:
    """Return the endpoint that explains applications of a partition or of a queue."""
    path = above + "/application/{application}/explain"
    return Route(path, WaitExplanation, queries=(LIMIT,), errors=(400, 404))(_explanation, summary)


ENDPOINTS = (
    _explain(PARTITION, "Why the requests of an application wait, and the smallest changes that would help"),
    _explain(QUEUE, "The same for an application of one queue"),
)
