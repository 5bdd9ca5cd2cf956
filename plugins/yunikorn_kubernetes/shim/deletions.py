"""Deletion of pods: placeholders, and pods whose end the core requests; repeated until the pods are gone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import msgspec

from yunikorn.clock import Clock
from yunikorn_kubernetes.api_server.api_times import whole_seconds
from yunikorn_kubernetes.api_server.pod_binding import PodRef
from yunikorn_kubernetes.api_server.writes import QueuedWrites
from yunikorn_kubernetes.objects import Condition
from yunikorn_kubernetes.shim.tasks import Task
from yunikorn_service.background import BackgroundTasks, repeat_until_done

_log = logging.getLogger("yunikorn.kubernetes.pods")

RETRY = 5.0
"""Seconds after which a deletion that has failed is repeated."""


class Deletions:
    """Deletions under way; each is repeated until it succeeds or the pod is gone."""

    def __init__(
        self,
        writes: QueuedWrites,
        clock: Clock,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """Delete by `writes`; `sleep` waits for a number of seconds."""
        self._writes, self._clock, self._sleep = writes, clock, sleep
        self._running = BackgroundTasks(_log)
        """Deletions by uid of the pod."""

    def delete(self, task: Task, condition: Condition | None = None) -> None:
        """Delete the pod of a task once; the uid guards a later pod of the same name.

        Before that, the pod gets a condition that says why it is deleted. If the API server refuses the
        condition, the pod is deleted without it.
        """
        if task.uid not in self._running:
            task.deleting = True
            failing = f"{task.label} cannot be deleted"
            work = repeat_until_done(
                lambda: self._attempt(task, condition), failing, _log, RETRY, self._sleep
            )
            self._running.begin(work, f"the deletion of {task.label}", key=task.uid)

    async def _attempt(self, task: Task, condition: Condition | None) -> None:
        pod = PodRef.of(task.pod)
        if condition is not None and condition not in task.pod.status.conditions:
            body = {**msgspec.to_builtins(condition), "lastTransitionTime": whole_seconds(self._clock)}
            await self._writes.set_status(pod, {"conditions": [body]})
        await self._writes.delete_pod(pod)

    def forget(self, uid: str) -> None:
        """End the deletion of a pod that is gone."""
        self._running.cancel(uid)

    def close(self) -> None:
        """End all deletions."""
        self._running.cancel_all()
