"""Look-ups of partitions, queues and applications by the names in requests."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Mapping
from itertools import islice

from yunikorn.config.acl import is_group_name, is_queue_name, is_user_name
from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.application import Application
from yunikorn.model.queue import ROOT, Queue
from yunikorn.scheduling.partition_scheduler import PartitionScheduler
from yunikorn.text import suggest
from yunikorn_rest.answers import RequestRefused
from yunikorn_rest.decision_store import is_below
from yunikorn_rest.endpoints import Call

_LEVEL = "[a-zA-Z0-9_:#/@-]{1,64}"
QUEUE_PATTERN = rf"^{_LEVEL}(\.{_LEVEL})*$"
"""Regular expression for paths of queues, for the OpenAPI document."""
QUEUE_PATH: Mapping[str, object] = {"type": "string", "pattern": QUEUE_PATTERN}
"""JSON schema of a path of a queue."""
BAD_QUEUE = (
    "invalid queue name, max 64 characters consisting of alphanumeric characters and"
    " '-', '_', '#', '@', '/', ':' allowed"
)

NO_QUEUE = "Queue not found"
SIMILAR = 1000
"""Largest number of queues that the suggestion for an unknown one considers."""


def find_partition(scheduler: Scheduler, name: str) -> tuple[str, PartitionScheduler]:
    """Return a partition and the id of its resource manager; raises `RequestRefused`.

    Of several partitions with the same name, the one of the resource manager that registered first is found;
    the name with the id, `[RM]NAME`, finds each of them.
    """
    for rm_id, at in scheduler.all_partitions():
        if name in (at.name, at.partition.name):
            return rm_id, at
    raise RequestRefused(404, "Partition not found")


def check_queue_name(path: str) -> None:
    """Raise `RequestRefused` for a path that no queue can have."""
    if not all(is_queue_name(level) for level in path.split(".")):
        raise RequestRefused(400, BAD_QUEUE)


def check_user_name(name: str) -> None:
    """Raise `RequestRefused` for a name that no user can have."""
    if not is_user_name(name):
        raise RequestRefused(400, "Invalid user name")


def check_group_name(name: str) -> None:
    """Raise `RequestRefused` for a name that no group can have.

    `*` is all groups without a limit of their own.
    """
    if name != "*" and not is_group_name(name):
        raise RequestRefused(400, "Invalid group name")


def find_queue(at: PartitionScheduler, path: str) -> Queue:
    """Return a queue by its full path, ignoring case; raises `RequestRefused`."""
    lower = path.lower()
    queue = at.partition.queue(lower) if lower.partition(".")[0] == ROOT else None
    if queue is None:
        raise RequestRefused(404, NO_QUEUE)
    return queue


def find_application(at: PartitionScheduler, app_id: str, queue: Queue | None = None) -> Application:
    """Return an application that has not ended, in any queue or in this one; raises `RequestRefused`."""
    app = at.partition.applications.get(app_id)
    if app is None or (queue is not None and app.queue is not queue):
        raise RequestRefused(404, "Application not found")
    return app


def known_state(text: str, known: Iterable[str]) -> str:
    """Return the state of a filter in small letters, or an empty text.

    Raises `RequestRefused` if it is unknown.
    """
    states = [state.lower() for state in known]
    if text and text.lower() not in states:
        raise RequestRefused(400, f"Only following states are allowed: {', '.join(states)}")
    return text.lower()


async def refuse_unknown_queue(call: Call, partition: str, path: str) -> None:
    """Raise `RequestRefused` with the nearest name unless a queue exists, or an application waits for it."""

    def read(scheduler: Scheduler) -> Generator[None, None, list[str] | None]:
        _, at = find_partition(scheduler, partition)
        yield
        if at.partition.queue(path) is not None:
            return None
        if any(is_below(waiting.app.queue_name.lower(), path.lower()) for waiting in at.submitted):
            return None
        return [queue.path for queue in islice(find_queue(at, ROOT).walk(), SIMILAR)]

    known = await call.read(read)
    if known is not None:
        # A comparison with many names takes long, so it is not made in the core's thread.
        raise RequestRefused(404, NO_QUEUE + await asyncio.to_thread(suggest, path, known))
