"""Worker threads that call policies for a core, so that a policy that blocks does not block the core.

The core decides which call may start, and for how long it may take (`docs/decisions/archive/0076`). Here are
only the threads: each call gets an idle thread or a new one, and a call that the core gives up keeps its
thread until it returns. The threads are daemons, so none of them keeps the process from ending.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue
from types import FrameType

from yunikorn.api import Plugin
from yunikorn.framework.policy_calls import PolicyAnswer

IDLE = 8
"""Maximum number of threads that are kept without work."""

Work = Callable[[], PolicyAnswer]
Post = Callable[[int, PolicyAnswer], object]
"""Function that takes the answer of a call with this number; called in the worker."""


class PolicyWorkers:
    """Threads that make calls for one core; all methods may be called from any thread."""

    def __init__(self, post: Post | None = None) -> None:
        """Create without threads; answers are passed to `post`, or to the core that `connect` names."""
        self._post = post
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._busy: dict[int, _Worker] = {}
        """Threads at work, by the number of the call."""
        self._is_closed = False
        self.given_up = 0
        """Number of calls that were given up."""
        self.stuck = 0
        """Number of calls that were given up and have not returned."""

    def connect(self, post: Post) -> None:
        """Pass answers to this function from now on."""
        self._post = post

    def close(self) -> None:
        """End the idle threads now, and the others when their calls return; answers are dropped."""
        with self._lock:
            self._is_closed = True
            self._post = None
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.work.put(None)

    def __len__(self) -> int:
        """Return the number of calls in progress, without those that were given up."""
        return len(self._busy)

    def start(self, number: int, work: Work) -> None:
        """Make a call in an idle thread, or in a new one. See `Workers.start`."""
        try:
            with self._lock:
                worker = self._busy[number] = self._idle.pop() if self._idle else _Worker(self)
        except RuntimeError as error:
            # The system permits no more threads.
            self._answer(number, PolicyAnswer(failed=f"no worker could be started: {error}"))
            return
        worker.work.put((number, work))

    def abandon(self, number: int) -> str:
        """Give a call up; its thread ends with it. Returns the place of the thread. See `Workers.abandon`."""
        with self._lock:
            worker = self._busy.pop(number, None)
            if worker is not None:
                self.given_up += 1
                self.stuck += 1
        return "" if worker is None else worker.place()

    def done(self, number: int, worker: _Worker, answer: PolicyAnswer) -> bool:
        """Pass an answer on; return True if the thread shall wait for another call."""
        with self._lock:
            awaited = self._busy.pop(number, None) is worker
            self.stuck -= not awaited
            stays = awaited and len(self._idle) < IDLE and not self._is_closed
            if stays:
                self._idle.append(worker)
        self._answer(number, answer)
        return stays

    def _answer(self, number: int, answer: PolicyAnswer) -> None:
        post = self._post
        if post is not None:
            post(number, answer)


class _Worker:
    """A thread, and its next call."""

    def __init__(self, owner: PolicyWorkers) -> None:
        self._owner = owner
        self.work: SimpleQueue[tuple[int, Work] | None] = SimpleQueue()
        """The next call; None ends the thread."""
        self._thread = threading.Thread(target=self._run, name="yunikorn-policy", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while (call := self.work.get()) is not None:
            number, work = call
            answer = work()
            del call, work
            stays = self._owner.done(number, self, answer)
            # A thread that waits keeps nothing of its last call alive.
            del answer
            if not stays:
                return

    def place(self) -> str:
        """Return the places of the plugin's method and of the innermost function of the thread."""
        innermost = frame = sys._current_frames().get(self._thread.ident or 0)
        if innermost is None:
            return ""
        while frame is not None and not _is_method(frame):
            frame = frame.f_back
        if frame is None or frame is innermost:
            return _place(innermost)
        return f"{_place(frame)}: {_place(innermost)}"


def _is_method(frame: FrameType) -> bool:
    """Return True if a frame is that of a method of a plugin."""
    if "self" not in frame.f_code.co_varnames:
        return False
    # The type is asked, because `isinstance` may run code of the object.
    return issubclass(type(frame.f_locals.get("self")), Plugin)


def _place(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_qualname}"
