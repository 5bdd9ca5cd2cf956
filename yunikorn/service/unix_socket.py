"""Exclusive use of a Unix socket by one service."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
from pathlib import Path

from yunikorn.errors import UsageError
from yunikorn.recording.file_lock import FileIsLocked, open_locked

LOCK = ".lock"
"""Suffix of the lock file beside the socket."""
PATIENCE = 1.0
"""Seconds for a listener to accept a connection."""


class SocketLock:
    """Exclusive right to listen at a path.

    gRPC removes an existing socket even if another process listens there. Therefore a service locks a file
    beside the socket before it listens, and keeps the lock until it ends. Programs that do not use the lock
    are detected by connecting to the socket.
    """

    def __init__(self, path: str) -> None:
        """Take the lock; raises `UsageError` if another process listens at the path, or the path unusable."""
        self._path = Path(path)
        self._lock = self._path.with_name(self._path.name + LOCK)
        self._file: int | None = self._take()
        try:
            self._check()
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Release the path."""
        if self._file is not None:
            # Removed while locked: a process that waits for the lock then finds that its file has lost the
            # name.
            with contextlib.suppress(OSError):
                self._lock.unlink()
            os.close(self._file)
            self._file = None

    def _take(self) -> int:
        try:
            file = open_locked(self._lock)
        except FileIsLocked as error:
            raise self._taken_by(_written_in(self._lock)) from error
        except OSError as error:
            reason = f"{self._lock} cannot be written: {error.strerror or error}"
            raise UsageError(f"cannot listen at unix:{self._path}: {reason}") from error
        found = os.read(file, 64)
        if found.strip() and not found.strip().isdigit():
            os.close(file)
            raise UsageError(
                f"cannot listen at unix:{self._path}: {self._lock} exists, and is not a lock file"
            )
        os.ftruncate(file, 0)
        os.write(file, f"{os.getpid()}\n".encode())
        return file

    def _check(self) -> None:
        try:
            kind = self._path.lstat().st_mode
        except FileNotFoundError:
            return
        if stat.S_ISLNK(kind):
            kind = self._path.stat().st_mode if self._path.exists() else kind
        if not stat.S_ISSOCK(kind):
            raise UsageError(f"cannot listen at unix:{self._path}: the file exists, and is not a socket")
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(PATIENCE)
            try:
                probe.connect(str(self._path))
            except (ConnectionRefusedError, FileNotFoundError):
                return  # left by a process that has ended
            except (BlockingIOError, TimeoutError) as error:
                raise self._taken_by("") from error
            except OSError as error:
                reason = f"its socket cannot be checked: {error.strerror or error}"
                raise UsageError(f"cannot listen at unix:{self._path}: {reason}") from error
            raise self._taken_by(_listener(probe))

    def _taken_by(self, pid: str) -> UsageError:
        holder = f"process {pid}" if pid else "another process"
        text = f"{holder} already listens there: end it, or choose another address with --grpc"
        return UsageError(f"cannot listen at unix:{self._path}: {text}")


def _written_in(lock: Path) -> str:
    try:
        text = lock.read_text("ascii").strip()
    except (OSError, ValueError):
        return ""
    return text if text.isdigit() else ""


def _listener(connected: socket.socket) -> str:
    """Return the pid of the listening process, or "" where the system does not report it."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return ""
    pid, _, _ = struct.unpack("3i", connected.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i")))
    return str(pid) if pid > 0 else ""
