"""Files that one process at a time may write, by an advisory lock that ends with the process."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

try:
    import fcntl as _fcntl
except ModuleNotFoundError:
    # Windows has no such locks: there a file is shared, as before.
    _fcntl = None  # type: ignore[assignment]

OWNER_ONLY = 0o600
fcntl: Any = _fcntl


class FileIsLocked(Exception):
    """Another process holds the lock of a file."""


def open_locked(path: Path) -> int:
    """Open a file for reading and appending, make it if it is not there, and lock it.

    The lock belongs to the descriptor, and ends when the descriptor is closed or the process ends. A file
    that is made here is for its owner only. Raises `FileIsLocked`, and `OSError`. What is not an ordinary
    file, such as a terminal, is not locked.
    """
    while True:
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), OWNER_ONLY)
        try:
            if not _is_ordinary(file):
                return file
            _lock(file)
            if is_at(file, path):
                return file
        except BaseException:
            os.close(file)
            raise
        # The holder renamed or removed the file before it closed it: the name belongs to another file now.
        os.close(file)


def is_at(file: int, path: Path) -> bool:
    """Return whether an open file is the one that has this name."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False


def keep_to_owner(file: int) -> None:
    """Close an ordinary file to all but its owner; raises `OSError`, such as for a file of another user."""
    if _is_ordinary(file) and stat.S_IMODE(os.fstat(file).st_mode) != OWNER_ONLY and hasattr(os, "fchmod"):
        os.fchmod(file, OWNER_ONLY)


def _is_ordinary(file: int) -> bool:
    return stat.S_ISREG(os.fstat(file).st_mode)


def _lock(file: int) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise FileIsLocked from error
