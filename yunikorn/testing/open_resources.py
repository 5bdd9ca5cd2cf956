"""Detection of a plugin that opens files, connections, threads or processes when it is created.

The check of a configuration creates every plugin on trial. Only `opened` may take hold of anything.
"""

from __future__ import annotations

import io
import os
import socket
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

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
