"""Executors of the runs of a comparison: worker processes, or the current process."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from multiprocessing.process import BaseProcess
from multiprocessing.util import Finalize
from typing import Any

from yunikorn_commands.plugin_threads import end_in_time

IGNORED = tuple(getattr(signal, name) for name in ("SIGINT", "SIGHUP") if hasattr(signal, name))
"""Signals that a terminal sends to all processes of a command; the parent process handles them."""


class WorkerPool(Executor):
    """Worker processes that can be ended at any time; a context manager."""

    def __init__(self, workers: int) -> None:
        # Spawned processes behave the same on every system, and share no state of this process.
        context = multiprocessing.get_context("spawn")
        with _held_back():  # starts a process that keeps track of semaphores
            self._pool = ProcessPoolExecutor(workers, context, initializer=begin_worker)
        self._stopped = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Submit a call, which starts a worker if fewer than the maximum have been started."""
        with _held_back():
            future = self._pool.submit(fn, *args, **kwargs)
        if self._stopped:
            self.stop()  # this worker started after the others were ended
        return future

    def stop(self) -> None:
        """End all workers at once; calls that have not returned raise `BrokenProcessPool`."""
        self._stopped = True
        for child in multiprocessing.active_children():
            child.terminate()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Wait until the workers have ended."""
        self._pool.shutdown(wait=wait, cancel_futures=cancel_futures)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the workers, at once after an error."""
        if kind is not None:
            self.stop()
        self.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _held_back() -> Iterator[None]:
    """Block signals of the terminal; processes that start meanwhile inherit that until `begin_worker`."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, IGNORED)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def begin_worker() -> None:
    """Initialise a worker: ignore signals of the terminal, and exit when the parent exits."""
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, IGNORED)
    Finalize(None, end_in_time, args=(0,), exitpriority=0)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: BaseProcess) -> None:
    # Workers hold both ends of their order pipe, so they never see an end of file when the parent exits.
    parent.join()
    os._exit(1)


class HereAndNow(Executor):
    """An executor that runs submitted calls immediately in the current process."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call the function, and return a completed future."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future

    def stop(self) -> None:
        """Do nothing: the run of this process ends by itself."""
