"""Deletion of pods: placeholders, and pods whose end the core requests; repeated until the pods are gone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from yunikorn_kubernetes.api_server.pod_binding import PodRef
from yunikorn_kubernetes.api_server.writes import QueuedWrites
from yunikorn_kubernetes.shim.tasks import Task
from yunikorn_service.background import BackgroundTasks, repeat_until_done

_log = logging.getLogger("yunikorn.kubernetes.pods")

RETRY = 5.0
"""Seconds after which a deletion that has failed is repeated."""


class Deletions:
    """Deletions under way; each is repeated until it succeeds or the pod is gone."""

    def __init__(
        self, writes: QueuedWrites, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    ) -> None:
        """Delete by `writes`; `sleep` waits for a number of seconds."""
        self._writes, self._sleep = writes, sleep
        self._running = BackgroundTasks(_log)
        """Deletions by uid of the pod."""

    def delete(self, task: Task) -> None:
        """Delete the pod of a task once; the uid guards a later pod of the same name."""
        if task.uid not in self._running:
            task.deleting = True
            failing = f"{task.label} cannot be deleted"
            work = repeat_until_done(
                lambda: self._writes.delete_pod(PodRef.of(task.pod)), failing, _log, RETRY, self._sleep
            )
            self._running.begin(work, f"the deletion of {task.label}", key=task.uid)

    def forget(self, uid: str) -> None:
        """End the deletion of a pod that is gone."""
        self._running.cancel(uid)

    def close(self) -> None:
        """End all deletions."""
        self._running.cancel_all()
