"""Bindings under way: volumes are chosen and bound first, then the pod is bound to its node."""

from __future__ import annotations

import logging
from collections.abc import Callable

from yunikorn.containment import describe_error
from yunikorn.errors import CONTAINED, YunikornError
from yunikorn_kubernetes.api_server.pod_binding import BindOutcome, PodRef
from yunikorn_kubernetes.api_server.writes import QueuedWrites
from yunikorn_kubernetes.shim.tasks import Task
from yunikorn_kubernetes.volumes.cluster_volumes import VolumeConflict
from yunikorn_kubernetes.volumes.volume_binder import VolumeBinder
from yunikorn_service.background import BackgroundTasks

_log = logging.getLogger("yunikorn.kubernetes.binding")

FINDABLE = (BindOutcome.BOUND, BindOutcome.ELSEWHERE, BindOutcome.GONE)
"""Outcomes of which the watch reports where the pod is."""


class Binder:
    """Binds pods in the background."""

    def __init__(
        self,
        writes: QueuedWrites,
        volume_binder: VolumeBinder,
        bound: Callable[[Task], object],
        failed: Callable[[Task, str, str], object],
    ) -> None:
        """Create without bindings.

        `bound` is called with a task whose pod was bound, and `failed` with a task, a reason and a text if
        the binding has failed for good.
        """
        self._writes, self._volume_binder, self._volumes = writes, volume_binder, volume_binder.volumes
        self._bound, self._failed = bound, failed
        self._running = BackgroundTasks(_log)
        """Bindings by uid of the pod."""

    def begin(self, task: Task) -> None:
        """Begin the binding of a task to `task.node`."""
        problem = ""
        try:
            self._volumes.assume(task.uid, task.node)
        except VolumeConflict as conflict:
            problem = str(conflict) or "the volumes of the pod cannot be used on the node"
        except CONTAINED as error:
            _log.exception("bug: the volumes of %s could not be chosen", task.label)
            problem = _bug(error)
        if problem:
            self._end(task, "AssumePodError" if task.placeholder else "AssumePodFailed", problem)
            return
        self._running.begin(self._bind(task, task.node), f"the binding of {task.label}", key=task.uid)

    def cancel(self, task: Task) -> None:
        """End the binding of a task, if there is one; a call to the API server may still succeed."""
        if self._running.cancel(task.uid):
            self._writes.forget(task.uid)
        self._volumes.forget(task.uid)

    async def _bind(self, task: Task, node: str) -> None:
        reason, act = "PodVolumesBindFailure", "binding volumes"
        try:
            await self._volume_binder.bind(task.uid)
            reason, act = "PodBindFailure", f"bind to node {node} failed"
            result = await self._writes.bind(PodRef.of(task.pod), node)
        except YunikornError as error:
            self._end(task, reason, f"{act}: {error}")
            return
        except CONTAINED as error:
            _log.exception("bug: %s could not be bound", task.label)
            self._end(task, reason, f"{act}: {_bug(error)}")
            return
        if result.outcome is BindOutcome.BOUND and result.node == node:
            self._running.cancel(task.uid)
            self._volumes.forget(task.uid)
            self._bound(task)
        elif result.outcome in FINDABLE:
            # The pod is gone, or another party has bound it: the watch will report which.
            _log.info("%s was not bound to node %s: %s", task.label, node, result.message or result.node)
        else:
            self._end(task, reason, f"{act}: {result.message}")

    def _end(self, task: Task, reason: str, note: str) -> None:
        self._running.cancel(task.uid)
        self._volumes.forget(task.uid)
        self._failed(task, reason, note)

    def close(self) -> None:
        """End all bindings."""
        self._running.cancel_all()


def _bug(error: BaseException) -> str:
    return f"bug of the scheduler, see its log: {describe_error(error)}"
