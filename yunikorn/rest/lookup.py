"""Look-ups of partitions, queues and applications by the names in requests."""

from __future__ import annotations

from collections.abc import Mapping

from yunikorn.config.names import is_group_name, is_queue_name, is_user_name
from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.application import Application
from yunikorn.model.queue import ROOT, Queue
from yunikorn.rest.answers import Refused
from yunikorn.scheduling.partition_scheduler import PartitionScheduler

_LEVEL = "[a-zA-Z0-9_:#/@-]{1,64}"
QUEUE_PATTERN = rf"^{_LEVEL}(\.{_LEVEL})*$"
"""Regular expression for paths of queues, for the OpenAPI document."""
QUEUE_PATH: Mapping[str, object] = {"type": "string", "pattern": QUEUE_PATTERN}
"""JSON schema of a path of a queue."""
BAD_QUEUE = (
    "invalid queue name, max 64 characters consisting of alphanumeric characters and"
    " '-', '_', '#', '@', '/', ':' allowed"
)


def find_partition(scheduler: Scheduler, name: str) -> tuple[str, PartitionScheduler]:
    """Return a partition and the id of its resource manager; raises `Refused`.

    Of several partitions with the same name, the one of the resource manager that registered first is found;
    the name with the id, `[RM]NAME`, finds each of them.
    """
    for rm_id, at in scheduler.all_partitions():
        if name in (at.name, at.partition.name):
            return rm_id, at
    raise Refused(404, "Partition not found")


def check_queue_name(path: str) -> None:
    """Raise `Refused` for a path that no queue can have."""
    if not all(is_queue_name(level) for level in path.split(".")):
        raise Refused(400, BAD_QUEUE)


def check_user_name(name: str) -> None:
    """Raise `Refused` for a name that no user can have."""
    if not is_user_name(name):
        raise Refused(400, "Invalid user name")


def check_group_name(name: str) -> None:
    """Raise `Refused` for a name that no group can have; `*` is all groups without a limit of their own."""
    if name != "*" and not is_group_name(name):
        raise Refused(400, "Invalid group name")


def find_queue(at: PartitionScheduler, path: str) -> Queue:
    """Return a queue by its full path, ignoring case; raises `Refused`."""
    lower = path.lower()
    queue = at.partition.queue(lower) if lower.partition(".")[0] == ROOT else None
    if queue is None:
        raise Refused(404, "Queue not found")
    return queue


def find_application(at: PartitionScheduler, app_id: str, queue: Queue | None = None) -> Application:
    """Return an application that has not ended, in any queue or in this one; raises `Refused`."""
    app = at.partition.applications.get(app_id)
    if app is None or (queue is not None and app.queue is not queue):
        raise Refused(404, "Application not found")
    return app
