"""Pods whose application has failed: their status becomes `Failed`, with the reason, by a patch."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from yunikorn_kubernetes.api_server.pod_binding import PodRef
from yunikorn_kubernetes.api_server.pod_events import PodEvents
from yunikorn_kubernetes.api_server.writes import QueuedWrites
from yunikorn_kubernetes.objects import Json
from yunikorn_kubernetes.shim.tasks import Task
from yunikorn_service.background import BackgroundTasks, repeat_until_done

_log = logging.getLogger("yunikorn.kubernetes.pods")

TIMED_OUT = "ResourceReservationTimeout"
"""Reason with which the core fails an application whose Hard gang found no room in time."""
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
        self,
        writes: QueuedWrites,
        events: PodEvents,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """Write by `writes`; `sleep` waits for a number of seconds."""
        self._writes, self._events, self._sleep = writes, events, sleep
        self._running = BackgroundTasks(_log)

    def fail(self, task: Task, reason: str) -> None:
        """Fail the pod of a task once."""
        if task.deleting:
            return
        task.deleting = True
        status = failed_status(reason)
        note = f"Application {task.app_id} scheduling failed, reason: {reason}"
        self._events.pod(task.pod, "ApplicationFailed", "ApplicationFailed", note, warning=True)
        failing = f"the status of {task.label} cannot be set to Failed"
        work = repeat_until_done(lambda: self._write(task, status), failing, _log, RETRY, self._sleep)
        self._running.begin(work, f"the failure of {task.label}")

    async def _write(self, task: Task, status: Json) -> None:
        if not task.is_terminated:
            await self._writes.set_status(PodRef.of(task.pod), status)

    def close(self) -> None:
        """Stop the patches."""
        self._running.cancel_all()
