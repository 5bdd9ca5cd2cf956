"""The folder that a run leaves its files in, so that no part of a file ever looks like the whole.

Files are written as `NAME.part` and get their names, all of them, when everything is written. Until then the
files of an earlier run stay as they are; whoever finds a `.part` knows that its run was cut short.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import IO

from yunikorn.errors import UsageError

PART = ".part"


class OutFolder:
    """Files that are written together; a context manager, which names them when nothing went wrong."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._files: list[IO[str]] = []
        self._names: dict[str, None] = {}
        self._named: dict[str, None] = {}

    def prepare(self) -> None:
        """Make the folder if it is missing; raises `UsageError` when nothing can be written there."""
        probe = self.path / f"probe{PART}"
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            try:
                probe.write_bytes(b"\n")
            finally:
                probe.unlink(missing_ok=True)
        except OSError as error:
            raise UsageError(f"cannot write to {self.path}: {error.strerror or error}") from error

    def open(self, name: str) -> IO[str]:
        """A text file that will be called `name`; it is closed for you."""
        file = self.part(name).open("w", encoding="utf-8", newline="\n")
        self._files.append(file)
        return file

    def part(self, name: str) -> Path:
        """Where to write what will be called `name`."""
        self._names[name] = None
        return self.path / f"{name}{PART}"

    def finish(self) -> None:
        """Close all files and give them their names."""
        for file in self._files:
            file.close()
        for name in self._names:
            (self.path / f"{name}{PART}").replace(self.path / name)
        self._named.update(self._names)
        self._files.clear()
        self._names.clear()

    def remove(self, names: Iterable[str]) -> None:
        """What an earlier run left under these names goes: it would be taken for a result of this one."""
        for name in names:
            if name not in self._named:
                (self.path / name).unlink(missing_ok=True)
                (self.path / f"{name}{PART}").unlink(missing_ok=True)

    def abandon(self) -> None:
        """Close all files as they are; they stay parts."""
        for file in self._files:
            try:
                file.close()
            except OSError:
                continue  # the disk is full: what is lost stays lost, and the file a part
        self._files.clear()
        self._names.clear()

    def __enter__(self) -> OutFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        """Name the files, or leave them parts; a full disk becomes a `UsageError`."""
        try:
            if kind is None:
                self.finish()
        except OSError as failure:
            error = failure
        if error is not None:
            self.abandon()
        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            reason = error.strerror or str(error)
            what = f"cannot write to {self.path}: {reason}; files that end in {PART} are not complete"
            raise UsageError(what) from error
