"""Detection of calls that a plugin must not make: of clocks and random numbers, and too early of what opens.

The check of a configuration creates every plugin on trial. Only `opened` may take hold of anything."""

from __future__ import annotations

import asyncio
import concurrent.futures
import datetime
import io
import os
import random
import secrets
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NoReturn

import pytest

CLOCKS = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "sleep")
CALENDARS = {"gmtime": 0, "localtime": 0, "ctime": 0, "asctime": 0, "strftime": 1}
"""Functions of `time` that read the clock if called with at most this number of arguments."""
DATES = {datetime.datetime: ("now", "utcnow", "today"), datetime.date: ("today",)}
RANDOM: dict[ModuleType, tuple[str, ...]] = {
    random: tuple(
        name for name in vars(random)["__all__"] if name.islower() and not name.endswith(("seed", "state"))
    ),
    secrets: ("choice", "randbelow", "randbits", "token_bytes", "token_hex", "token_urlsafe"),
    uuid: ("uuid1", "uuid4"),
    os: ("urandom",),
}
USE_NOW = "call context.now() of the context passed to opened(), so that a simulation uses its own time"
NO_RANDOM_NUMBERS = "equal input must give equal decisions; do not use random numbers"
ALLOWED_CALLER = "logging"
"""Module that may read the clock, because log records have a time."""


class NondeterministicCall(Exception):
    """Raised in a plugin that reads the system clock or generates random numbers."""


@contextmanager
def without_clock_and_random_numbers(cls: type[Any] | None = None) -> Iterator[None]:
    """Make functions that read the clock or generate random numbers raise `NondeterministicCall`.

    Names that the package of the plugin class `cls` has imported are replaced, too.
    """
    replaced = {id(real): (real, other) for real, other in _replacements()}
    with pytest.MonkeyPatch.context() as patch:
        for module in (time, datetime, *RANDOM, *_around(cls)):
            for name, real in list(vars(module).items()):
                if id(real) in replaced:
                    patch.setattr(module, name, replaced[id(real)][1])
        yield


def _around(cls: type[Any] | None) -> list[ModuleType]:
    """Return the modules of the package that contains `cls`."""
    if cls is None:
        return []
    package = cls.__module__.partition(".")[0]
    names = [name for name in sys.modules if name == package or name.startswith(f"{package}.")]
    # The package of this file contains the whole scheduler; replace names only in the plugin's module.
    if package == __package__.partition(".")[0]:
        names = [cls.__module__]
    return [module for name in names if isinstance(module := sys.modules.get(name), ModuleType)]


def _replacements() -> Iterator[tuple[Any, Any]]:
    for name in CLOCKS:
        yield getattr(time, name), _raising(getattr(time, name), f"time.{name}() was called: {USE_NOW}")
    for name, most in CALENDARS.items():
        yield getattr(time, name), _raising(getattr(time, name), f"time.{name}() was called: {USE_NOW}", most)
    for real, names in DATES.items():
        yield real, _without_today(real, names)
    for module, found in RANDOM.items():
        for name in found:
            what = f"{module.__name__}.{name}() was called: {NO_RANDOM_NUMBERS}"
            yield getattr(module, name), _raising(getattr(module, name), what)


def _raising(real: Callable[..., Any], text: str, most: int | None = None) -> Callable[..., Any]:
    def refuse(*arguments: Any, **named: Any) -> Any:
        if most is not None and len(arguments) > most:
            return real(*arguments, **named)
        if sys._getframe(1).f_globals.get("__name__") == ALLOWED_CALLER:
            return real(*arguments, **named)
        raise NondeterministicCall(text)

    return refuse


def _without_today(real: type[Any], names: tuple[str, ...]) -> type[Any]:
    """Return a substitute of a `datetime` class, with equal `isinstance` results, that refuses `names`."""

    class Known(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, real)

        def __subclasscheck__(cls, other: type) -> bool:
            return issubclass(other, real)

    def refusing(name: str) -> Any:
        def refuse(_: type[Any], /, *__: object, **___: object) -> NoReturn:
            raise NondeterministicCall(f"datetime.{real.__name__}.{name}() was called: {USE_NOW}")

        return classmethod(refuse)

    return Known(real.__name__, (real,), {name: refusing(name) for name in names})


OPENING: tuple[tuple[Any, str, str], ...] = (
    (io, "open", "opens a file"),
    (os, "open", "opens a file"),
    (sqlite3, "connect", "opens a database"),
    (socket.socket, "connect", "connects to a server"),
    (socket.socket, "bind", "listens on a socket"),
    (subprocess.Popen, "__init__", "starts a process"),
    (threading.Thread, "start", "starts a thread"),
)
SOURCES = (".py", ".pyc", ".pyi", ".so")
"""Files that an import may open."""


class OpenedTooEarly(Exception):
    """Raised in a plugin that opens something when it is created."""


@contextmanager
def nothing_is_opened() -> Iterator[None]:
    """Make functions that open files, connections, threads and processes raise `OpenedTooEarly`."""
    with pytest.MonkeyPatch.context() as patch:
        for owner, name, does in OPENING:
            patch.setattr(owner, name, _refusing(getattr(owner, name), does))
        patch.setattr("builtins.open", _refusing(open, "opens a file"))
        yield


def _refusing(real: Any, does: str) -> Any:
    def refuse(*arguments: Any, **named: Any) -> Any:
        if arguments and str(arguments[0]).endswith(SOURCES):
            return real(*arguments, **named)
        raise OpenedTooEarly(does)

    return refuse


BLOCKING: tuple[tuple[Any, str], ...] = (
    (time, "sleep"),
    (socket, "getaddrinfo"),
    (socket, "gethostbyname"),
    (socket.socket, "connect"),
    (socket.socket, "accept"),
    (socket.socket, "recv"),
    (subprocess.Popen, "wait"),
    (subprocess.Popen, "communicate"),
    (concurrent.futures.Future, "result"),
)
"""Functions that may block a thread, and must not be called in the thread of an event loop."""


class BlockedLoop(Exception):
    """Raised in a plugin that blocks the event loop of a service."""


@contextmanager
def nothing_blocks_the_loop() -> Iterator[list[str]]:
    """Make calls that block raise `BlockedLoop` in threads with an event loop; returns the texts."""
    found: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in BLOCKING:
            title = f"{getattr(owner, '__qualname__', owner.__name__)}.{name}"
            patch.setattr(owner, name, _unless_in_loop(getattr(owner, name), title, found))
        yield found


def _unless_in_loop(real: Callable[..., Any], name: str, found: list[str]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        if asyncio._get_running_loop() is not None and _may_wait(arguments):
            found.append(f"{name}() was called")
            raise BlockedLoop(found[-1])
        return real(*arguments, **named)

    return call


def _may_wait(arguments: tuple[Any, ...]) -> bool:
    """Return False for a socket that does not block, and for a future that has a result."""
    first = arguments[0] if arguments else None
    if isinstance(first, socket.socket):
        # A connected datagram socket sends and connects without waiting.
        return first.gettimeout() != 0 and first.type == socket.SOCK_STREAM
    return not (isinstance(first, concurrent.futures.Future) and first.done())
