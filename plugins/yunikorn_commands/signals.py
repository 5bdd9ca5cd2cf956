"""Signals that end a long command early, with the results so far: Ctrl-C, SIGTERM and SIGHUP."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

from yunikorn.clock import SECOND, stopwatch
from yunikorn_commands.interrupts import Interrupts
from yunikorn_commands.output import echo

SIGNALLED = 128
"""Exit status after a signal, to which its number is added."""
ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that end a command."""
ECHO = SECOND
"""Time (ns) after the first signal in which the same one, if no key sends it, is a copy of it."""


@contextlib.contextmanager
def ending_early(message: str, then: Callable[[], object] = lambda: None) -> Iterator[Interrupts]:
    """Yield the handler of all signals of `ENDING`; the first one prints `message` and calls `then`.

    The second signal raises `Interruption`, which removes unfinished files and restores the terminal. The
    third kills the process. Signals that the process ignores, as SIGHUP after `nohup`, stay ignored.

    A closed terminal and its shell both send SIGHUP, and `timeout` sends its signal to the process and to its
    group: copies of the first signal do not count.
    """
    terminals = [number for number in (1, 2) if _is_terminal(number)]

    def first(number: int) -> None:
        if number != signal.SIGINT:
            _leave(terminals)
        with contextlib.suppress(OSError):
            echo(message, err=True)
        then()

    handler = _WithoutCopies(first)
    if threading.current_thread() is not threading.main_thread():
        yield handler
        return
    numbers = [
        number
        for number in ENDING
        if number == signal.SIGINT or signal.getsignal(number) is not signal.SIG_IGN
    ]
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield handler
    finally:
        for number, other in before.items():
            signal.signal(number, other)


class _WithoutCopies(Interrupts):
    """Handler that takes a signal and its copies as one."""

    def __init__(self, first: Callable[[int], object]) -> None:
        super().__init__(first)
        self._since = 0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        if not self.number:
            self._since = stopwatch()
        elif number == self.number != signal.SIGINT and stopwatch() - self._since <= ECHO:
            return
        super().__call__(number, frame)


def status_of(handler: Interrupts) -> int:
    """Return the exit status of a command that a signal has ended early."""
    return SIGNALLED + (handler.number or signal.SIGINT)


def _is_terminal(number: int) -> bool:
    try:
        return os.isatty(number)
    except OSError:
        return False


def _leave(terminals: list[int]) -> None:
    """Replace a terminal that was closed, so that printing does not fail before the files are written."""
    for number in terminals:
        if not _is_terminal(number):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, number)
            os.close(null)
