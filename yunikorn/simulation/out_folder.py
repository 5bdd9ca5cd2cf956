"""Output folder of a run, in which an incomplete file is never mistaken for a complete one.

Files are written as `NAME.part` and are renamed together when the output is complete. Files of an earlier run
stay unchanged until then. A remaining `.part` file shows that a run was interrupted. From `prepare` to the
end of the context no other process writes there (`FolderClaim`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from types import TracebackType
from typing import IO

from yunikorn.errors import UsageError
from yunikorn.simulation.folder_claim import FolderClaim

PART = ".part"


class OutFolder:
    """A set of files that are completed together; the context manager renames them on success."""

    def __init__(
        self,
        path: Path,
        command: str = "simulate",
        *,
        force: bool = False,
        outdated: Collection[str] = (),
        last: str = "",
        is_ours: Callable[[str], bool] = lambda name: False,
    ) -> None:
        """Name a folder for the results of a `command`.

        `outdated` are files of an earlier run, which are removed on completion if this run has not written
        them. The file `last` is removed before the others are replaced, and gets its name after them: with it
        a folder is complete, also if the process was killed meanwhile. `force` and `is_ours` are as for
        `FolderClaim`.
        """
        self.path = path
        self._outdated = outdated
        self._last = last
        self._claim = FolderClaim(path, command, force=force)
        self._is_ours = is_ours
        self._files: list[IO[str]] = []
        self._names: dict[str, None] = {}

    def prepare(self) -> None:
        """Create the folder if it is missing, and claim it until the end of the context.

        Raises `UsageError` if files cannot be written there, or must not.
        """
        probe = self.path / f"probe{PART}"
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            try:
                probe.write_bytes(b"\n")
            finally:
                probe.unlink(missing_ok=True)
            self._claim.take(lambda name: self._is_ours(name.removesuffix(PART)))
        except OSError as error:
            self._claim.release()
            raise UsageError(f"cannot write to {self.path}: {error.strerror or error}") from error

    def open(self, name: str) -> IO[str]:
        """Open a text file for writing that is named `name` on completion; `OutFolder` closes the file."""
        file = self.part(name).open("w", encoding="utf-8", newline="\n")
        self._files.append(file)
        return file

    def part(self, name: str) -> Path:
        """Return the temporary path of the file that is named `name` on completion."""
        self._names[name] = None
        return self.path / f"{name}{PART}"

    def finish(self) -> None:
        """Close all files, rename them to their final names, and remove outdated files."""
        for file in self._files:
            file.close()
        for name in self._outdated:
            if name not in self._names:
                (self.path / name).unlink(missing_ok=True)
                (self.path / f"{name}{PART}").unlink(missing_ok=True)
        if self._last:
            (self.path / self._last).unlink(missing_ok=True)
        for name in sorted(self._names, key=lambda name: name == self._last):
            (self.path / f"{name}{PART}").replace(self.path / name)
        self._files.clear()
        self._names.clear()

    def abandon(self) -> None:
        """Close all files and keep them as `.part` files."""
        for file in self._files:
            try:
                file.close()
            except OSError:
                continue  # the disk is full, and the file stays a .part file
        self._files.clear()
        self._names.clear()

    def __enter__(self) -> OutFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        """Rename the files, or keep them as `.part` files after an error; a full disk raises `UsageError`."""
        try:
            if kind is None:
                self.finish()
        except OSError as failure:
            error = failure
        if error is not None:
            self.abandon()
        self._claim.release()
        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            reason = error.strerror or str(error)
            what = f"cannot write to {self.path}: {reason}; files that end in {PART} are not complete"
            raise UsageError(what) from error
