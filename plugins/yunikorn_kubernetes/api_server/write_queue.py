"""Queue of writes: a few workers, the most urgent job first, and jobs that wait before their next attempt."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from enum import IntEnum
from itertools import count
from typing import Protocol

from yunikorn.errors import CONTAINED

_log = logging.getLogger("yunikorn.kubernetes")

WORKERS = 6
"""Simultaneous writes; more of them make the API server slower, not faster."""


class Priority(IntEnum):
    """Order of writes; a lower value goes first."""

    BIND = 0
    DELETE = 1
    CREATE = 2
    STATUS = 3


class WriteJob(Protocol):
    """Write that may take several attempts."""

    async def attempt(self) -> float | None:
        """Try once; return None if the job is complete, else the seconds until its next attempt."""
        ...

    def abandon(self, why: str) -> None:
        """Give up, because the queue stops or the job has a bug."""
        ...


class WriteQueue:
    """Jobs by priority, executed by `workers` tasks while `run` runs.

    `permitted` is asked before each attempt: a process that has lost its lease abandons its jobs.
    """

    def __init__(self, *, workers: int = WORKERS, permitted: Callable[[], bool] = lambda: True) -> None:
        self._workers = workers
        self._permitted = permitted
        self._numbers = count()
        self._ready: asyncio.PriorityQueue[tuple[Priority, int, WriteJob]] = asyncio.PriorityQueue()
        self._sleeping: dict[WriteJob, tuple[Priority, asyncio.TimerHandle]] = {}
        self._active: set[WriteJob] = set()
        self._changed = asyncio.Event()
        """Set when a job is complete."""
        self._closed = False
        self.waiting: Counter[Priority] = Counter()
        """Numbers of incomplete jobs."""

    def put(self, priority: Priority, job: WriteJob, delay: float = 0.0) -> None:
        """Add a job, to be tried after `delay` seconds; a closed queue abandons it."""
        if self._closed:
            job.abandon("the process ends")
            return
        self.waiting[priority] += 1
        self._schedule(priority, job, delay)

    def _schedule(self, priority: Priority, job: WriteJob, delay: float) -> None:
        if delay > 0.0:
            loop = asyncio.get_running_loop()
            self._sleeping[job] = priority, loop.call_later(delay, self._wake, priority, job)
        else:
            self._ready.put_nowait((priority, next(self._numbers), job))

    def _wake(self, priority: Priority, job: WriteJob) -> None:
        del self._sleeping[job]
        self._ready.put_nowait((priority, next(self._numbers), job))

    async def run(self) -> None:
        """Execute jobs until cancelled; jobs that are left then are abandoned."""
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._workers):
                    group.create_task(self._work())
        finally:
            self._abandon_all()

    async def _work(self) -> None:
        while True:
            priority, _, job = await self._ready.get()
            self._active.add(job)
            delay = await self._attempt(job)
            self._active.discard(job)
            if delay is None:
                self._complete(priority)
            elif self._closed:
                # While the queue drains, a job has one attempt only.
                job.abandon("the process ends")
                self._complete(priority)
            else:
                self._schedule(priority, job, delay)

    async def _attempt(self, job: WriteJob) -> float | None:
        if not self._permitted():
            job.abandon("this process does not hold the lease")
            return None
        try:
            return await job.attempt()
        except CONTAINED:
            _log.exception("bug: a write to the API server failed")
            job.abandon("bug of the scheduler, see its log")
            return None

    def _complete(self, priority: Priority) -> None:
        self.waiting[priority] -= 1
        self._changed.set()

    async def drain(self, seconds: float) -> bool:
        """Accept no more jobs, and give the others one more attempt.

        Return True if all ended within `seconds`. Jobs that write states are abandoned at once: a process
        that takes over writes them again.
        """
        self._closed = True
        for priority, job in self._take_all():
            if priority is Priority.STATUS:
                job.abandon("the process ends")
                self._complete(priority)
            else:
                self._schedule(priority, job, 0.0)
        try:
            async with asyncio.timeout(seconds):
                while self._ready.qsize() or self._active:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def _take_all(self) -> list[tuple[Priority, WriteJob]]:
        """Remove and return the jobs that no worker executes, in their order."""
        taken = []
        while not self._ready.empty():
            priority, _, job = self._ready.get_nowait()
            taken.append((priority, job))
        for job, (priority, timer) in self._sleeping.items():
            timer.cancel()
            taken.append((priority, job))
        self._sleeping.clear()
        return taken

    def _abandon_all(self) -> None:
        self._closed = True
        left = [*self._active, *(job for _, job in self._take_all())]
        self._active.clear()
        self.waiting.clear()
        for job in left:
            job.abandon("the process ends")
