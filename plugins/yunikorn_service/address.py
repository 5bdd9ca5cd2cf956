"""Binding of the gRPC server to its address, and exclusive use of a Unix socket."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
from pathlib import Path

import grpc.aio

from yunikorn.errors import UsageError
from yunikorn_service.certificates import ServerCertificates
from yunikorn_service.host_address import UNIX
from yunikorn_service.host_address import HostAddress as HostAddress
from yunikorn_service.recording.recording_writer import FileIsLocked, open_locked
from yunikorn_service.service_settings import ServerSettings


def socket_lock(settings: ServerSettings) -> SocketLock | None:
    """Return the lock of a Unix socket, or None for other addresses; raises `UsageError`."""
    address = HostAddress.parse(settings.address)
    return None if address.host else SocketLock(address.target.removeprefix(UNIX))


def bind(server: grpc.aio.Server, settings: ServerSettings, certificates: ServerCertificates | None) -> str:
    """Bind a server to the address of the settings; returns the address with the bound port.

    Raises `UsageError` if the address is taken, or if other machines could reach the server without TLS and
    the settings do not allow that.
    """
    address = HostAddress.parse(settings.address)
    if settings.tls is None and not address.is_local and not settings.insecure:
        raise UsageError(
            f"{address.target} can be reached by other machines, without encryption and authentication:"
            " give --tls-cert and --tls-key (and --tls-client-ca), listen on 127.0.0.1, or give"
            " --insecure-bind if this is intended"
        )
    try:
        if certificates is None:
            port = server.add_insecure_port(address.target)
        else:
            port = server.add_secure_port(address.target, certificates.credentials())
    except RuntimeError as error:
        raise _unbound(address, certificates) from error
    if not port:
        raise _unbound(address, certificates)
    return address.at_port(port)


def _unbound(address: HostAddress, certificates: ServerCertificates | None) -> UsageError:
    what = "the address is in use, or is not an address of this machine"
    if certificates is not None:
        # gRPC raises the same error for all of these causes.
        what += ", or gRPC refuses the certificates (GRPC_VERBOSITY=ERROR shows why)"
    return UsageError(f"cannot listen at {address.target}: {what}. Choose another with --grpc")


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
