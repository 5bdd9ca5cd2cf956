"""Claim of a process to an output folder: which command writes there, and that no other process does.

The file `.yunikorn` in the folder names the command, and the process while it runs. The operating system
locks the file and releases the lock when the process ends, however it ends. The file stays in the folder,
because it marks the other files as results, which the next run may replace.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path

from yunikorn.errors import UsageError

CLAIM = ".yunikorn"
"""Name of the file."""
SHOWN = 3
"""Number of foreign files that a message names."""
_NOT_SUPPORTED = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL}


class FolderClaim:
    """The claim of this process to one folder; `release` ends it."""

    def __init__(self, folder: Path, command: str, *, force: bool = False) -> None:
        """Prepare the claim of a `command`; `force` takes over a folder with files of others."""
        self._folder = folder
        self._command = command
        self._force = force
        self._file: int | None = None

    def take(self, is_ours: Callable[[str], bool]) -> None:
        """Lock the folder; raises `UsageError` if another process has it, or if it has files of others.

        `is_ours` recognises the names of results, for folders without the file `.yunikorn`.
        """
        if self._file is not None:
            return
        if not self._force:
            self._check_content(is_ours)
        file = os.open(self._folder / CLAIM, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            self._lock(file)
            self._write(file, f"{self._command}\nprocess {os.getpid()}\n")
        except BaseException:
            os.close(file)
            raise
        self._file = file

    def release(self) -> None:
        """End the claim; the file then names the command only."""
        file, self._file = self._file, None
        if file is None:
            return
        try:
            self._write(file, f"{self._command}\n")
        except OSError:
            pass  # the disk is full: the number of an ended process stays in the file
        finally:
            os.close(file)

    def _check_content(self, is_ours: Callable[[str], bool]) -> None:
        what_to_do = "choose another folder for --out, or use --force"
        try:
            command = (self._folder / CLAIM).read_text("utf-8", errors="replace").partition("\n")[0]
        except FileNotFoundError:
            names = sorted(path.name for path in self._folder.iterdir())
            foreign = [name for name in names if not name.startswith(".") and not is_ours(name)]
            if foreign:
                more = f" and {len(foreign) - SHOWN} more" if len(foreign) > SHOWN else ""
                raise UsageError(
                    f"{self._folder}: is not a folder of results, it has {', '.join(foreign[:SHOWN])}{more}: "
                    f"{what_to_do}"
                ) from None
            return
        if command and command != self._command:
            raise UsageError(
                f"{self._folder}: has the results of `yunikorn {command[:40]}`, which those of "
                f"`yunikorn {self._command}` would mix with: {what_to_do}"
            )

    def _lock(self, file: int) -> None:
        try:
            lock(file)
        except OSError as error:
            if error.errno in _NOT_SUPPORTED:
                if self._force:
                    return
                raise UsageError(
                    f"{self._folder}: its file system cannot lock files ({error.strerror}): choose a folder "
                    "on another file system, or use --force to write without a lock"
                ) from error
            raise UsageError(
                f"{self._folder}: another yunikorn writes there{self._holder(file)}: wait until it ends, or "
                "choose another folder for --out"
            ) from error

    @staticmethod
    def _holder(file: int) -> str:
        try:
            process = os.pread(file, 200, 0).decode("utf-8", "replace").splitlines()[1:2]
        except (OSError, AttributeError):
            return ""
        return f" ({process[0]})" if process else ""

    @staticmethod
    def _write(file: int, text: str) -> None:
        os.ftruncate(file, 0)
        os.lseek(file, 0, os.SEEK_SET)
        os.write(file, text.encode())


if sys.platform == "win32":
    import msvcrt

    _FAR = 1 << 30

    def lock(file: int) -> None:
        """Lock an open file for this process; raises `OSError` if another process has the lock."""
        os.lseek(file, _FAR, os.SEEK_SET)  # a locked byte cannot be read, so it lies behind the text
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def lock(file: int) -> None:
        """Lock an open file for this process; raises `OSError` if another process has the lock."""
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
