"""Bindings under way: volumes are chosen and bound first, then the pod is bound to its node."""

from __future__ import annotations

import logging
from collections.abc import Callable

from yunikorn.background import BackgroundTasks
from yunikorn.containment import describe_error
from yunikorn.errors import CONTAINED, YunikornError
from yunikorn_kubernetes.api_server.calls import ApiError
from yunikorn_kubernetes.shim.ports import Volumes, Writes
from yunikorn_kubernetes.shim.tasks import Task

_log = logging.getLogger("yunikorn.kubernetes.binding")

GONE = 404
CONFLICT = 409


class Binder:
    """Binds pods in the background; `bound` and `failed` are called in the event loop."""

    def __init__(self, writes: Writes, volumes: Volumes) -> None:
        """Create without bindings; set `bound` and `failed` before use."""
        self._writes, self._volumes = writes, volumes
        self._running = BackgroundTasks(_log)
        """Bindings by uid of the pod."""
        self.bound: Callable[[Task], object] = lambda _: None
        """Called with a task whose pod was bound."""
        self.failed: Callable[[Task, str, str], object] = lambda *_: None
        """Called with a task, a reason and a text if the binding has failed for good."""

    def begin(self, task: Task) -> None:
        """Begin the binding of a task to `task.node`."""
        try:
            problem = self._volumes.assume(task.pod, task.node)
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
        try:
            await self._volumes.bind(task.pod)
        except YunikornError as error:
            self._end(task, "PodVolumesBindFailure", f"binding volumes: {error}")
            return
        except CONTAINED as error:
            _log.exception("bug: the volumes of %s could not be bound", task.label)
            self._end(task, "PodVolumesBindFailure", f"binding volumes: {_bug(error)}")
            return
        try:
            await self._writes.bind(task.pod, node)
        except ApiError as error:
            if error.status in (GONE, CONFLICT):
                # The pod is gone, or another party has bound it: the watch will report which.
                _log.info("%s was not bound to node %s: %s", task.label, node, error)
                return
            self._end(task, "PodBindFailure", f"bind to node {node} failed: {error}")
            return
        except YunikornError as error:
            self._end(task, "PodBindFailure", f"bind to node {node} failed: {error}")
            return
        except CONTAINED as error:
            _log.exception("bug: %s could not be bound", task.label)
            self._end(task, "PodBindFailure", f"bind to node {node} failed: {_bug(error)}")
            return
        self._running.cancel(task.uid)
        self._volumes.forget(task.uid)
        self.bound(task)

    def _end(self, task: Task, reason: str, note: str) -> None:
        self._running.cancel(task.uid)
        self._volumes.forget(task.uid)
        self.failed(task, reason, note)

    def close(self) -> None:
        """End all bindings."""
        self._running.cancel_all()


def _bug(error: BaseException) -> str:
    return f"bug of the scheduler, see its log: {describe_error(error)}"
