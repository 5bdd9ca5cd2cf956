"""Output folder of a run, in which an incomplete file is never mistaken for a complete one.

Files are written as `NAME.part` and are renamed together when the output is complete. Files of an earlier run
stay unchanged until then. A remaining `.part` file shows that a run was interrupted.

From `prepare` to the end of the context no other process writes there. The file `.yunikorn` in the folder
names the command, and the process while it runs. The operating system locks the file and releases the lock
when the process ends, however it ends. The file stays in the folder, because it marks the other files as
results, which the next run may replace.

Output files of a simulation: every decision, every node change and the outcome of every application.

Each file contains one JSON object per line, written as the simulation proceeds:

- `decisions.jsonl`: `time` (seconds), `event` (`allocation` or `release`), `application`, `ask`,
  `allocation`, `queue`, `node`, `partition`, `resources`; a release also has its `reason`. The lines are in
  the order of the decisions.
- `nodes.jsonl`: `time`, `event` (`add`, `drain`, `resume`, `remove`, `capacity`), `node`, `partition`,
  `resources` (capacity after the event), and `after`, the number of preceding lines in decisions.jsonl.
- `applications.jsonl`: times of submission, start and end of an application that ended, and its outcome.

The first two files suffice to reconstruct the usage of every node and every queue.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from yunikorn.clock import SECOND
from yunikorn.errors import UsageError
from yunikorn.interface.messages import Allocation
from yunikorn_lab.simulation.recorder import Recorder
from yunikorn_lab.simulation.rm_state import Submitted, partition_name
from yunikorn_lab.simulation.statistics import seconds
from yunikorn_lab.simulation.workload import NodeEvent, NodeEventKind

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


DECISIONS = "decisions.jsonl"
NODES = "nodes.jsonl"
APPLICATIONS = "applications.jsonl"
REPORT = "report.json"

_quote = json.encoder.encode_basestring_ascii


class FolderRecorder(Recorder):
    """A recorder that writes to an output folder line by line."""

    def __init__(self, folder: OutFolder) -> None:
        self._folder = folder
        self._lines = 0
        self._amounts: dict[int, tuple[Mapping[str, int], str]] = {}

    def begin(self) -> None:
        """Create the folder and open the files; raises `UsageError` if the folder cannot be written."""
        self._folder.prepare()
        names = (DECISIONS, NODES, APPLICATIONS)
        self._decisions, self._nodes, self._applications = (self._folder.open(name) for name in names)

    def allocated(self, moment: int, allocation: Allocation) -> None:
        """Write a line to decisions.jsonl."""
        self._decide(moment, "allocation", allocation, "")

    def released(self, moment: int, allocation: Allocation, reason: str) -> None:
        """Write a line to decisions.jsonl."""
        self._decide(moment, "release", allocation, f', "reason": {_quote(reason)}')

    def _decide(self, moment: int, event: str, allocation: Allocation, more: str) -> None:
        # A long trace has millions of these lines, and json.dumps is five times slower.
        self._lines += 1
        self._decisions.write(
            f'{{"time": {_time(moment)}, "event": "{event}"'
            f', "application": {_quote(allocation.application_id)}'
            f', "ask": {_quote(allocation.allocation_key)}, "allocation": {_quote(allocation.uuid)}'
            f', "queue": {_quote(allocation.queue_name)}, "node": {_quote(allocation.node_id)}'
            f', "partition": {_quote(partition_name(allocation.partition_name))}'
            f', "resources": {self._amount(allocation.resource_per_alloc)}{more}}}\n'
        )

    def _amount(self, amount: Mapping[str, int]) -> str:
        # The cache entry keeps a reference to the amount, so that its id is not reused for another amount.
        known = self._amounts.get(id(amount))
        if known is None:
            if len(self._amounts) > 10_000:
                self._amounts.clear()
            known = self._amounts[id(amount)] = (amount, json.dumps(dict(sorted(amount.items()))))
        return known[1]

    def node_changed(self, event: NodeEvent) -> None:
        """Write a line to nodes.jsonl."""
        capacity = event.resources if event.change is NodeEventKind.CAPACITY else event.node.resources
        self._write(
            self._nodes,
            {
                "time": seconds(event.at),
                "event": event.change.value,
                "node": event.node.name,
                "partition": partition_name(event.node.partition),
                "resources": {} if event.change is NodeEventKind.REMOVE else dict(sorted(capacity.items())),
                "after": self._lines,
            },
        )

    def application_ended(self, moment: int, record: Submitted, outcome: str, reason: str) -> None:
        """Write a line to applications.jsonl."""
        start = record.first_start
        self._write(
            self._applications,
            {
                "application": record.plan.id,
                "user": record.plan.user,
                "queue": record.queue,
                "submitted": seconds(record.plan.submit),
                "started": None if start is None else seconds(start),
                "ended": seconds(moment),
                "outcome": outcome,
                "reason": reason,
                "tasks": record.plan.size,
                "restarts": record.restarts,
            },
        )

    @staticmethod
    def _write(file: IO[str], line: dict[str, Any]) -> None:
        file.write(json.dumps(line) + "\n")


def _time(moment: int) -> str:
    whole, rest = divmod(moment, SECOND)
    return f"{whole}.{rest:09}".rstrip("0") if rest else str(whole)
