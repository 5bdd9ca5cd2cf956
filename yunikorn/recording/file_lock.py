"""Files with an advisory lock, which allows one writing process at a time and ends with that process."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

try:
    import fcntl as _fcntl
except ModuleNotFoundError:
    # Windows has no such locks, so files are not protected there.
    _fcntl = None  # type: ignore[assignment]

OWNER_ONLY = 0o600
fcntl: Any = _fcntl


class FileIsLocked(Exception):
    """Error for a file whose lock another process holds."""


def open_locked(path: Path) -> int:
    """Open a file for reading and appending, create the file if it does not exist, and lock it.

    The lock belongs to the descriptor, and ends when the descriptor is closed or the process ends. A new file
    is accessible to its owner only. Special files, such as terminals, are not locked. Raises `FileIsLocked`
    and `OSError`.
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
        # The previous holder renamed or removed the file before closing it, so the path names another file
        # now.
        os.close(file)


def is_at(file: int, path: Path) -> bool:
    """Return True if an open file is the file at this path."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False


def keep_to_owner(file: int) -> None:
    """Restrict an ordinary file to its owner; raises `OSError`, for example for a file of another user."""
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
