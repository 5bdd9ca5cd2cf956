"""Work in children of the process, which have its state and lose what they change of it."""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import attrs

from yunikorn.errors import YunikornError


class ForesightError(YunikornError):
    """An estimate that cannot be made; the message says why."""


@attrs.frozen
class Child:
    """A process that works."""

    pid: int
    pipe: int

    def result(self, longest: float = 3600.0) -> Any:
        """Wait up to so many seconds for its result; raises `ForesightError` with its error."""
        content = b""
        readable = select.poll()
        readable.register(self.pipe, select.POLLIN | select.POLLHUP)
        try:
            while readable.poll(longest * 1000) and (part := os.read(self.pipe, 1 << 20)):
                content += part
        finally:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            os.close(self.pipe)
        try:
            found = json.loads(content)
        except ValueError:
            raise ForesightError(f"process {self.pid}, which replays, ended or took too long") from None
        if "error" in found:
            raise ForesightError(found["error"])
        return found["result"]


def begin(work: Callable[[], Any]) -> Child:
    """Begin work with a plain result in a child. Raises `ForesightError` where processes cannot be forked."""
    if not hasattr(os, "fork"):
        raise ForesightError("replays need processes that can be forked, which this system does not have")
    reading, writing = os.pipe()
    # A collection in the child would touch, and thereby copy, every page.
    gc.freeze()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            _work_and_leave(work, writing)
    finally:
        gc.unfreeze()
    os.close(writing)
    return Child(pid, reading)


def _work_and_leave(work: Callable[[], Any], pipe: int) -> None:
    try:
        gc.disable()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        text = json.dumps({"result": work()})
    except BaseException as error:
        text = json.dumps({"error": f"{error}" if isinstance(error, YunikornError) else repr(error)})
    try:
        sent = text.encode()
        while sent:
            sent = sent[os.write(pipe, sent) :]
    finally:
        os._exit(0)


class Children:
    """Children that work side by side, at most so many; results come in the order of the calls."""

    def __init__(self, most: int, take: Callable[[Any, Any], None]) -> None:
        """Keep up to `most` children; `take` receives each name with its result."""
        self._most, self._take = most, take
        self._working: list[tuple[Any, Child]] = []

    def begin(self, name: Any, work: Callable[[], Any]) -> None:
        """Begin work as soon as a child has ended."""
        if len(self._working) >= self._most:
            self._take_first()
        self._working.append((name, begin(work)))

    def wait(self) -> None:
        """Wait for all of them."""
        while self._working:
            self._take_first()

    def _take_first(self) -> None:
        name, child = self._working.pop(0)
        self._take(name, child.result())
