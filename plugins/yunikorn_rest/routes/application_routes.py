"""Routes of applications."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.application import Application
from yunikorn.scheduling.partition_scheduler import PartitionScheduler
from yunikorn.states import APPLICATION, REJECTED, compatible_state
from yunikorn_rest import shapes
from yunikorn_rest.answers import Answer, RequestRefused
from yunikorn_rest.application_reader import is_waiting, read_application
from yunikorn_rest.encoding import AnswerLists
from yunikorn_rest.endpoints import Call, Query, Route
from yunikorn_rest.lists import PAGES, Page, listed
from yunikorn_rest.lookup import (
    check_queue_name,
    find_application,
    find_partition,
    find_queue,
    known_state,
    refuse_unknown_queue,
)
from yunikorn_rest.partition_reader import active_applications_of
from yunikorn_rest.routes.partition_routes import PARTITION, QUEUE
from yunikorn_service.runtime.sliced_reads import Slices

STATUSES = ("new", "accepted", "running", "completing", "failing", "resuming")
"""States of applications that have not ended."""
ACTIVE, COMPLETED, REJECTION = "active", "completed", "rejected"
STATUS = Query(
    "status",
    f"only applications in this state, in any case: {', '.join(STATUSES)}",
    "running",
    {"enum": STATUSES},
)
USER = Query("user", "only applications of this user", "ann")
QUEUED = Query("queue", "only applications in this queue or below, as a full path", "root.batch")
STATE = Query(
    "state",
    "only applications in this state, in any case; `running` includes `starting`:"
    f" {', '.join(APPLICATION.states)}",
    "failed",
    {"enum": tuple(state.lower() for state in APPLICATION.states)},
)

Wanted = Callable[[Application], bool]


def _filters(call: Call) -> Wanted:
    """Return the filter by user, queue and state of a request.

    Raises `RequestRefused` for an unknown state.
    """
    user, queue = call.query("user"), call.query("queue").lower()
    state = known_state(call.query("state"), APPLICATION.states)

    def wanted(app: Application) -> bool:
        path = app.queue.path if app.queue is not None else app.queue_name
        return (
            user in ("", app.user)
            and (not queue or f"{path}.".startswith(f"{queue}."))
            and _is_in(app, state)
        )

    return wanted


def _status(call: Call) -> str:
    status = call.query("status").lower()
    if status and status not in STATUSES:
        names = ",".join(STATUSES)
        raise RequestRefused(400, f"Only following active statuses are allowed: {names}")
    return status


def _is_in(app: Application, state: str) -> bool:
    """Return True for an application in this state, in small letters; for all if it is empty."""
    return state in ("", app.state.lower(), compatible_state(app.state).lower())


def put_applications(
    chosen: Iterable[Application],
    is_known: Wanted,
    at: PartitionScheduler,
    gathering: AnswerLists,
    into: str = "",
) -> Slices[None]:
    """Pass applications of a partition on; those that are no longer known are left out."""
    for app in chosen:
        if is_known(app):
            part = yield from read_application(app, at, gathering)
            yield from gathering.put(part, into, 1 + len(part.requests) + len(part.allocations))


def is_active(app: Application, at: PartitionScheduler) -> bool:
    """Return True if an application has not ended, or waits for the answer of a policy."""
    return at.partition.applications.get(app.id) is app or is_waiting(app, at)


def _read_list(
    page: Page,
    known: Mapping[str, Application] | None,
    wanted: Wanted,
    at: PartitionScheduler,
    gathering: AnswerLists,
) -> Slices[str]:
    """Pass the wanted applications of a page on; those that are no longer known are left out.

    They are chosen among those that are `known` by id, or among all that are active.
    """
    everything = active_applications_of(at) if known is None else list(known.values())
    chosen, last = yield from page.select(everything, lambda app: app.id, wanted)

    def is_known(app: Application) -> bool:
        return is_active(app, at) if known is None else known.get(app.id) is app

    yield from put_applications(chosen, is_known, at, gathering)
    return last


@Route(
    PARTITION + "/applications/{state}",
    list[shapes.Application],
    queries=(STATUS, USER, QUEUED, STATE, *PAGES),
    errors=(400, 404),
)
async def by_state(call: Call) -> Answer:
    """Applications that are `active`, `completed` (ended) or `rejected`."""
    name, kind, page = call.text("partition"), call.text("state").lower(), Page.of(call)
    filters, queue = _filters(call), call.query("queue")
    if queue and kind == ACTIVE and not page.after:
        # Ended applications keep the names of removed queues, and a queue may be removed between two pages.
        await refuse_unknown_queue(call, name, queue)

    def read(scheduler: Scheduler, gathering: AnswerLists) -> Slices[str]:
        _, at = find_partition(scheduler, name)
        if kind not in (ACTIVE, COMPLETED, REJECTION):
            raise RequestRefused(
                400, "Only following application states are allowed: active, rejected, completed"
            )
        status = _status(call) if kind == ACTIVE else ""

        def wanted(app: Application) -> bool:
            if kind == ACTIVE:
                return _is_in(app, status) and filters(app)
            return (app.state == REJECTED) == (kind == REJECTION) and filters(app)

        known = None if kind == ACTIVE else at.partition.ended
        return (yield from _read_list(page, known, wanted, at, gathering))

    return await listed(call, read)


async def _of_queue(call: Call) -> Answer:
    """Answer with the applications of one queue, without those of queues below."""
    name, path, page = call.text("partition"), call.name("queue"), Page.of(call)
    kind = call.request.path_params.get("state")
    filters = _filters(call)

    def read(scheduler: Scheduler, gathering: AnswerLists) -> Slices[str]:
        if kind is None:
            check_queue_name(path)
        _, at = find_partition(scheduler, name)
        check_queue_name(path)
        queue = find_queue(at, path)
        if kind is not None and kind.lower() != ACTIVE:
            raise RequestRefused(400, "Only following application states are allowed: active")
        status = _status(call) if kind is not None else ""

        def wanted(app: Application) -> bool:
            return _is_in(app, status) and filters(app)

        return (yield from _read_list(page, queue.applications, wanted, at, gathering))

    return await listed(call, read)


async def _single(call: Call, find: Callable[[Scheduler], tuple[Application, PartitionScheduler]]) -> Answer:
    """Answer with one application."""
    found, _ = await call.gather(lambda core, gathering: read_application(*find(core), gathering))
    return await call.json(found)


@Route(QUEUE + "/application/{application}", shapes.Application, errors=(400, 404))
async def in_queue(call: Call) -> Answer:
    """One application of a queue."""
    name, path, app_id = call.text("partition"), call.name("queue"), call.text("application")

    def find(scheduler: Scheduler) -> tuple[Application, PartitionScheduler]:
        _, at = find_partition(scheduler, name)
        check_queue_name(path)
        return find_application(at, app_id, find_queue(at, path)), at

    return await _single(call, find)


@Route(PARTITION + "/application/{application}", shapes.Application, errors=(404,))
async def one(call: Call) -> Answer:
    """One application that has not ended."""
    name, app_id = call.text("partition"), call.text("application")

    def find(scheduler: Scheduler) -> tuple[Application, PartitionScheduler]:
        _, at = find_partition(scheduler, name)
        waiting = at.submitted.get(app_id)
        return (find_application(at, app_id) if waiting is None else waiting.app), at

    return await _single(call, find)


ENDPOINTS = (
    by_state,
    one,
    Route(
        QUEUE + "/applications", list[shapes.Application], queries=(USER, STATE, *PAGES), errors=(400, 404)
    )(_of_queue, "Applications of a queue that have not ended"),
    Route(
        QUEUE + "/applications/{state}",
        list[shapes.Application],
        queries=(STATUS, USER, STATE, *PAGES),
        errors=(400, 404),
    )(_of_queue, "Applications of a queue; the state is `active`"),
    in_queue,
)
