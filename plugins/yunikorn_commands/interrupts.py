"""Ctrl-C as an exception that carries its signal, and handlers that remember that one has arrived."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Interruption(KeyboardInterrupt):
    """A `KeyboardInterrupt` that carries the number of the signal."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Interrupts:
    """Handler of SIGINT and similar signals that raises `Interruption` and remembers that one has arrived.

    The signal after that ends the process at once, in case that a plugin suppresses the exception. With a
    function `first`, the first signal calls the function with its number, the second raises, and the third
    ends the process.
    """

    def __init__(self, first: Callable[[int], object] | None = None) -> None:
        self._first = first
        self.number = 0
        """Number of the first signal; 0 before."""
        self.interrupted = False
        """True after a signal that raised."""

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        first, self._first = self._first, None
        self.number = self.number or number
        if first is not None:
            first(number)
            return
        self.interrupted = True
        signal.signal(number, signal.SIG_DFL)
        raise Interruption(number)


@contextmanager
def interrupts_known() -> Iterator[None]:
    """Install `Interrupts` for the duration of the context, unless the process has a handler of its own."""
    here = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT) if here else None
    if before is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, Interrupts())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
