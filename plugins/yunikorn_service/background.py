"""Tasks of an event loop that nothing awaits at once, and whose ends are seen all the same.

asyncio forgets the end of a task: an error appears at most when the garbage collector finds the task, and the
work of the task is not done from then on. Every task therefore begins here or in an `asyncio.TaskGroup`;
`tests/test_background.py` finds all others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from typing import Any, TypeVar

from yunikorn.containment import describe_error
from yunikorn.errors import CONTAINED, YunikornError

T = TypeVar("T")
Failed = Callable[[BaseException], object]
"""Function that is called with the error of a task."""


def begin_watched(
    work: Coroutine[Any, Any, T],
    what: str,
    log: logging.Logger,
    *,
    failed: Failed | None = None,
    expected: tuple[type[BaseException], ...] = (),
) -> asyncio.Task[T]:
    """Begin work in a task of the running loop; an error is logged, and passed to `failed`.

    `what` names the work in the log. Errors of the types `expected` are ignored. The caller keeps the task,
    because the loop itself has no lasting reference to it.
    """

    def ended(task: asyncio.Task[T]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is None or isinstance(error, expected):
            return
        log.error("bug: %s failed: %s: %s", what, type(error).__name__, error, exc_info=error)
        if failed is not None:
            try:
                failed(error)
            except CONTAINED:
                log.exception("bug: %s failed, and so did what follows", what)

    task = asyncio.get_running_loop().create_task(work, name=what)
    task.add_done_callback(ended)
    return task


def begin_shared(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Begin work whose result, or error, is that of every caller who awaits the task.

    A caller that goes before the end misses an error, which then concerns no one.
    """
    task = asyncio.get_running_loop().create_task(work)
    task.add_done_callback(lambda _: task.cancelled() or task.exception())
    return task


async def repeat_until_done(
    attempt: Callable[[], Awaitable[object]],
    failing: str,
    log: logging.Logger,
    pause: float,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> None:
    """Repeat an attempt, `pause` seconds after each failure, until it succeeds.

    `failing` says in the log what did not succeed; an error that is none of ours is logged as a bug.
    """
    while True:
        try:
            await attempt()
        except CONTAINED as error:
            is_bug = not isinstance(error, YunikornError)
            level = logging.ERROR if is_bug else logging.WARNING
            why = f"bug: {describe_error(error)}" if is_bug else error
            log.log(level, "%s, next attempt in %g s: %s", failing, pause, why, exc_info=is_bug)
            await sleep(pause)
        else:
            return


class BackgroundTasks:
    """Watched tasks of one object, by key.

    A task may call all methods about its own key: no task cancels itself.
    """

    def __init__(self, log: logging.Logger) -> None:
        """Create without tasks; `log` gets their errors."""
        self._log = log
        self._tasks: dict[Hashable, set[asyncio.Task[Any]]] = {}

    def begin(
        self,
        work: Coroutine[Any, Any, None],
        what: str,
        *,
        key: Hashable = None,
        failed: Failed | None = None,
        expected: tuple[type[BaseException], ...] = (),
    ) -> None:
        """Begin work in a task; see `begin_watched`."""
        task = begin_watched(work, what, self._log, failed=failed, expected=expected)
        self._tasks.setdefault(key, set()).add(task)
        task.add_done_callback(lambda _: self._drop(key, task))

    def _drop(self, key: Hashable, task: asyncio.Task[Any]) -> None:
        tasks = self._tasks.get(key)
        if tasks is not None:
            tasks.discard(task)
            if not tasks:
                del self._tasks[key]

    def __contains__(self, key: Hashable) -> bool:
        """Return True if a task of this key runs."""
        return key in self._tasks

    def cancel(self, key: Hashable = None) -> bool:
        """Cancel the tasks of a key, and forget them; return True if there was one."""
        tasks = self._tasks.pop(key, set())
        for task in tasks - {asyncio.current_task()}:
            task.cancel()
        return bool(tasks)

    def cancel_all(self) -> None:
        """Cancel all tasks, and forget them."""
        for key in [*self._tasks]:
            self.cancel(key)

    async def close(self) -> None:
        """Cancel all tasks, and wait for their ends."""
        tasks = [task for tasks in self._tasks.values() for task in tasks]
        self.cancel_all()
        await asyncio.gather(*tasks, return_exceptions=True)
