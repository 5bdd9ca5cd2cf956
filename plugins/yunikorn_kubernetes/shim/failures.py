"""Pods whose application has failed: their status becomes `Failed`, with the reason, by a patch."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from yunikorn.errors import YunikornError
from yunikorn_kubernetes.objects import Json
from yunikorn_kubernetes.shim.ports import Notices, Writes
from yunikorn_kubernetes.shim.tasks import Task

_log = logging.getLogger("yunikorn.kubernetes.pods")

TIMED_OUT = "ResourceReservationTimeout"
REJECTION = "ApplicationRejected: "
RETRY = 5.0
"""Seconds after which a patch that has failed is repeated."""


def failed_status(reason: str) -> Json:
    """Return the status of a pod whose application has failed for this reason."""
    if reason == TIMED_OUT:
        message = "Scheduling has timed out due to insufficient resources"
        return {"phase": "Failed", "reason": TIMED_OUT, "message": message}
    if reason.startswith(REJECTION):
        name, message = "ApplicationRejected", reason.removeprefix(REJECTION)
    else:
        name, message = "ApplicationFailed", reason
    return {"phase": "Failed", "reason": name, "message": message}


class PodFailures:
    """Fails pods in the background."""

    def __init__(
        self, writes: Writes, notices: Notices, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    ) -> None:
        """Write by `writes`; `sleep` waits for a number of seconds."""
        self._writes, self._notices, self._sleep = writes, notices, sleep
        self._running: set[asyncio.Task[None]] = set()

    def fail(self, task: Task, reason: str) -> None:
        """Fail the pod of a task once."""
        if task.deleting:
            return
        task.deleting = True
        status = failed_status(reason)
        note = f"Application {task.app_id} scheduling failed, reason: {reason}"
        self._notices.pod(task.pod, "ApplicationFailed", "ApplicationFailed", note, warning=True)
        work = asyncio.get_running_loop().create_task(self._fail(task, status))
        self._running.add(work)
        work.add_done_callback(self._running.discard)

    async def _fail(self, task: Task, status: Json) -> None:
        while not task.is_terminated:
            try:
                await self._writes.set_status(task.pod, status)
            except YunikornError as error:
                _log.warning("the status of %s cannot be set to Failed: %s", task.label, error)
                await self._sleep(RETRY)
            else:
                return

    def close(self) -> None:
        """Stop the patches."""
        for work in [*self._running]:
            work.cancel()
