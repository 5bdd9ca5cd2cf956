"""A socket of the file system as the property of one service, as long as the service runs."""

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
"""Ending of the file that a service locks beside its socket."""
PATIENCE = 1.0
"""Seconds for a listener to take a connection."""


class SocketLock:
    """The right to listen at a path.

    gRPC removes a socket that it finds, whether or not another process listens there. So a service locks a
    file beside the socket before it listens, and keeps that lock until it ends. Other programs are found by
    connecting.
    """

    def __init__(self, path: str) -> None:
        """Raises `UsageError` if another process listens at the path, or if the path cannot be used."""
        self._path = Path(path)
        self._lock = self._path.with_name(self._path.name + LOCK)
        self._file: int | None = self._take()
        try:
            self._check()
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Give the path up."""
        if self._file is not None:
            # Removed while it is locked: a process that waits for this file sees that it is another's.
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
            raise UsageError(f"cannot listen at unix:{self._path}: {self._lock} is there, and is no lock")
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
            raise UsageError(f"cannot listen at unix:{self._path}: the file is there, and is no socket")
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(PATIENCE)
            try:
                probe.connect(str(self._path))
            except (ConnectionRefusedError, FileNotFoundError):
                return  # left by a process that is gone
            except (BlockingIOError, TimeoutError) as error:
                raise self._taken_by("") from error
            except OSError as error:
                reason = f"its socket cannot be tried: {error.strerror or error}"
                raise UsageError(f"cannot listen at unix:{self._path}: {reason}") from error
            raise self._taken_by(_listener(probe))

    def _taken_by(self, pid: str) -> UsageError:
        holder = f"process {pid}" if pid else "another process"
        text = f"{holder} listens there: end it, or choose another address with --grpc"
        return UsageError(f"cannot listen at unix:{self._path}: {text}")


def _written_in(lock: Path) -> str:
    try:
        text = lock.read_text("ascii").strip()
    except (OSError, ValueError):
        return ""
    return text if text.isdigit() else ""


def _listener(connected: socket.socket) -> str:
    """The process that listens at the other end, where the system says so."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return ""
    pid, _, _ = struct.unpack("3i", connected.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i")))
    return str(pid) if pid > 0 else ""
