"""Deletion of pods: placeholders, and pods whose end the core requests; repeated until the pods are gone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from yunikorn.errors import YunikornError
from yunikorn_kubernetes.shim.ports import Writes
from yunikorn_kubernetes.shim.tasks import Task

_log = logging.getLogger("yunikorn.kubernetes.pods")

RETRY = 5.0
"""Seconds after which a deletion that has failed is repeated."""


class Deletions:
    """Deletions under way; each is repeated until it succeeds or the pod is gone."""

    def __init__(self, writes: Writes, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep) -> None:
        """Delete by `writes`; `sleep` waits for a number of seconds."""
        self._writes, self._sleep = writes, sleep
        self._running: dict[str, asyncio.Task[None]] = {}

    def delete(self, task: Task) -> None:
        """Delete the pod of a task once; the uid guards a later pod of the same name."""
        if task.uid not in self._running:
            task.deleting = True
            work = asyncio.get_running_loop().create_task(self._delete(task))
            self._running[task.uid] = work
            work.add_done_callback(lambda _: self._drop(task.uid, work))

    def _drop(self, uid: str, work: asyncio.Task[None]) -> None:
        if self._running.get(uid) is work:
            del self._running[uid]

    def forget(self, uid: str) -> None:
        """End the deletion of a pod that is gone."""
        work = self._running.pop(uid, None)
        if work is not None:
            work.cancel()

    async def _delete(self, task: Task) -> None:
        while True:
            try:
                await self._writes.delete_pod(task.pod)
            except YunikornError as error:
                _log.warning("%s cannot be deleted, next attempt in %g s: %s", task.label, RETRY, error)
                await self._sleep(RETRY)
            else:
                return

    def close(self) -> None:
        """End all deletions."""
        for work in [*self._running.values()]:
            work.cancel()
        self._running.clear()
