"""Bindings under way: volumes are chosen and bound first, then the pod is bound to its node."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from yunikorn.errors import YunikornError
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
        self._running: dict[str, asyncio.Task[None]] = {}
        self.bound: Callable[[Task], object] = lambda _: None
        """Called with a task whose pod was bound."""
        self.failed: Callable[[Task, str, str], object] = lambda *_: None
        """Called with a task, a reason and a text if the binding has failed for good."""

    def begin(self, task: Task) -> None:
        """Begin the binding of a task to `task.node`."""
        problem = self._volumes.assume(task.pod, task.node)
        if problem:
            self.failed(task, "AssumePodError" if task.placeholder else "AssumePodFailed", problem)
            return
        work = asyncio.get_running_loop().create_task(self._bind(task, task.node))
        self._running[task.uid] = work
        work.add_done_callback(lambda _: self._drop(task.uid, work))

    def _drop(self, uid: str, work: asyncio.Task[None]) -> None:
        if self._running.get(uid) is work:
            del self._running[uid]
        if not work.cancelled() and (error := work.exception()) is not None:
            _log.error("binding failed by a bug: %s: %s", type(error).__name__, error, exc_info=error)

    def cancel(self, task: Task) -> None:
        """End the binding of a task, if there is one; a call to the API server may still succeed."""
        work = self._running.pop(task.uid, None)
        if work is not None:
            work.cancel()
            self._writes.forget(task.uid)
        self._volumes.forget(task.uid)

    async def _bind(self, task: Task, node: str) -> None:
        try:
            await self._volumes.bind(task.pod)
        except YunikornError as error:
            self._end(task, "PodVolumesBindFailure", f"binding volumes: {error}")
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
        self._running.pop(task.uid, None)
        self._volumes.forget(task.uid)
        self.bound(task)

    def _end(self, task: Task, reason: str, note: str) -> None:
        self._running.pop(task.uid, None)
        self._volumes.forget(task.uid)
        self.failed(task, reason, note)

    def close(self) -> None:
        """End all bindings."""
        for work in [*self._running.values()]:
            work.cancel()
        self._running.clear()
