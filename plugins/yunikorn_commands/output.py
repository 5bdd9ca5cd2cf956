"""Standard output of a command, which contains the results of the command and nothing else.

While a command runs, whatever plugins and libraries print goes to standard error. So a plugin that prints
cannot spoil an output that a program reads.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any, TextIO

import click

from yunikorn.errors import printable

_log = logging.getLogger("yunikorn.plugins")
LONGEST_LINE = 4096
"""Characters after which a line is logged before its end."""


class _Prints:
    """Stand-in for `sys.stdout` that writes to standard error, and knows the real standard output."""

    def __init__(self, real: TextIO) -> None:
        self.results = real

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)


class _LoggedPrints(_Prints):
    """Stand-in for `sys.stdout` that logs what is written, line by line."""

    def __init__(self, real: TextIO) -> None:
        super().__init__(real)
        self._rest = ""
        self._lock = threading.Lock()

    def write(self, text: str) -> int:
        """Log the lines that a text completes."""
        with self._lock:
            *lines, self._rest = (self._rest + text).split("\n")
            if len(self._rest) > LONGEST_LINE:
                lines, self._rest = [*lines, self._rest], ""
        for line in filter(str.strip, lines):
            _log.info("printed by a plugin or a library: %s", printable(line))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Log lines."""
        for line in lines:
            self.write(line)


def results() -> TextIO:
    """Return the stream for the results of a command."""
    stream: TextIO = getattr(sys.stdout, "results", sys.stdout)
    return stream


def has_colours(stream: TextIO, environment: Mapping[str, str] | None = None) -> bool:
    """Return True if escape sequences for colours and emphasis may be written to a stream.

    https://no-color.org and https://force-color.org describe the variables `NO_COLOR` and `FORCE_COLOR`. If
    both are set and not empty, `NO_COLOR` wins. A dumb terminal, a pipe and a file get no escape sequences.
    """
    known = os.environ if environment is None else environment
    if known.get("NO_COLOR"):
        return False
    if known.get("FORCE_COLOR"):
        return True
    return known.get("TERM") not in ("dumb", "unknown") and stream.isatty()


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a result of the command, or with `err` a remark."""
    stream = sys.stderr if err else results()
    click.echo(text, file=stream, nl=nl, color=has_colours(stream))


def remark(text: str, kind: str = "note") -> None:
    """Print a remark on standard error, with its kind: `note` or `warning`."""
    echo(f"{kind}: {printable(text)}", err=True)


def notes(texts: Iterable[str]) -> None:
    """Print notes on standard error."""
    for text in texts:
        remark(text)


@contextlib.contextmanager
def results_only(*, logged: bool = False) -> Iterator[None]:
    """Reserve standard output for `echo`; all other output goes to standard error, or to the log."""
    stand_in, original = (_LoggedPrints if logged else _Prints)(results()), sys.__stdout__
    setattr(sys, "__stdout__", stand_in)  # noqa: B010
    try:
        with contextlib.redirect_stdout(stand_in):
            yield
    finally:
        setattr(sys, "__stdout__", original)  # noqa: B010


_MARK = "_yunikorn_results_only"


def is_wrapped(call: Callable[..., Any]) -> bool:
    """Return True for a result of `with_results_only`."""
    return hasattr(call, _MARK)


def with_results_only(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return `call` inside of `results_only`; the same function if that was done before."""
    if is_wrapped(call):
        return call

    @wraps(call)
    def wrapped(*arguments: Any, **named: Any) -> Any:
        with results_only():
            return call(*arguments, **named)

    setattr(wrapped, _MARK, True)
    return wrapped
