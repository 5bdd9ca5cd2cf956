"""Writing of recordings: a recording sink that appends a line to a file for each event.

The file has an advisory lock, which allows one writing process at a time and ends with that process.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs

from yunikorn import __version__
from yunikorn.config.durations import spell_duration
from yunikorn.errors import UsageError
from yunikorn.interface.commands import Command, RegisterResourceManager, ReloadConfiguration
from yunikorn.interface.configurations import PolicyGroups
from yunikorn.interface.messages import (
    NodePredicatesArgs,
    PredicatesArgs,
    UpdateConfigurationRequest,
    UpdateConfigurationResponse,
    UpdateResponse,
)
from yunikorn.model.context import Timeouts
from yunikorn_service.recording.recorded_commands import Content, write_command
from yunikorn_service.recording.recorded_entry import VERSION
from yunikorn_service.recording.recorded_values import write_date, write_seconds
from yunikorn_service.wire import v0_11
from yunikorn_service.wire.codec import REFUSED, MalformedMessage
from yunikorn_service.wire.json_form import to_json

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


UNSAYABLE = (MalformedMessage, *REFUSED)
"""Errors for data of an embedding program that no message can contain; the recording has a gap there."""


class RecordingWriter:
    """`RecordingSink` that writes to a file.

    Every line is passed to the operating system at once, so a killed process loses at most its last line. An
    existing file is continued if it is a recording. Recordings contain configurations and everything that
    resource managers send, so only the owner may read them. The file is locked, because two writers would mix
    their lines.

    If the file cannot be written any more, `warn` is called once, and the core continues without a recording.

    A file of at least `largest` bytes is renamed to `PATH.1`, `PATH.2` and so on, and the recording continues
    in a new file at the path. `reopen` does the same after another program has renamed the file.
    """

    def __init__(self, path: Path, warn: Callable[[str], None], largest: int | None = None) -> None:
        self.path = path
        self.lines = 0
        """Number of lines written."""
        self.failure = ""
        """Reason why the recording has ended; empty while the recording continues."""
        self._warn = warn
        self._start = 0
        self._deferred: tuple[int, Content] | None = None
        self._texts: dict[str, Content] = {}
        self._file: int | None = _open(path)
        self._size = os.fstat(self._file).st_size
        self._largest = largest
        """Size in bytes from which the recording continues in another file; None for no limit."""
        self._part = 0
        """Number of files of the core's recording so far; 0 before a core starts."""

    def close(self) -> None:
        """Write the last call, and close the file."""
        self._release()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    # -- events of the core ---------------------------------------------------------------------------

    def on_begin(
        self,
        at: int,
        timeouts: Timeouts,
        configurations: PolicyGroups | None,
        *,
        workers: bool = False,
    ) -> None:
        """Record the start of a core."""
        self._release()
        self._start, self._texts, self._part = at, {}, 0
        content: Content = {"version": VERSION, "start": write_date(at), "yunikorn": __version__}
        if configurations is not None:
            content["groups"] = list(configurations.groups)
            content["allow_rm_config"] = configurations.allow_rm_config
        if workers:
            content["workers"] = True
        unusual = _unusual(timeouts)
        if unusual:
            content["periods"] = unusual
        self._write(at, {"recording": content})
        self._part = 1

    def reopen(self, at: int) -> None:
        """Continue in a new file at the path if the current file was renamed. For the core's thread."""
        if self._file is not None and not is_at(self._file, self.path):
            self._release()
            self._go_on(at)

    def on_call(self, at: int, command: Command[Any], *, within: bool = False) -> None:
        """Record a command that is about to be applied."""
        self._release()
        try:
            content = write_command(command)
        except UNSAYABLE as error:
            content = {"gap": f"{command.method()} with a value that no message can represent: {error}"}
        if within:
            content["within"] = True
        if isinstance(command, (RegisterResourceManager, ReloadConfiguration)):
            # These read configurations; a replay needs the configurations before the call.
            self._deferred = (at, content)
        else:
            self._write(at, content)

    def on_answer(self, at: int, rm_id: str, method: str, question: object, answer: object) -> None:
        """Record an answer that the core received."""
        if method == "configuration":
            self._configuration(at, str(question), answer)
            return
        self._release()
        content: Content = {"method": method, **_question(question)}
        if isinstance(answer, BaseException):
            content["raised"] = f"{type(answer).__name__}: {answer}"
        else:
            try:
                content.update(_answer(question, answer))
            except UNSAYABLE:
                content["useless"] = repr(answer)
        self._write(at, {"rm": rm_id, "answer": content})

    def on_response(self, at: int, rm_id: str, response: UpdateResponse) -> None:
        """Record a response to a resource manager."""
        self._release()
        try:
            self._write(at, {"rm": rm_id, "response": to_json(v0_11.UPDATE_RESPONSE.to_wire(response))})
        except UNSAYABLE as error:
            self._write(at, {"gap": f"a response with a value that no message can represent: {error}"})

    def _configuration(self, at: int, group: str, answer: object) -> None:
        content: Content = {"group": group}
        if isinstance(answer, BaseException):
            content["error"] = str(answer)
        elif isinstance(answer, bytes):
            try:
                content["text"] = answer.decode()
            except UnicodeDecodeError:
                content["hex"] = answer.hex()
        else:
            content["text"] = str(answer)
        if self._texts.get(group) != content:
            self._texts[group] = content
            self._write(at, {"configuration": content})

    # -- writing --------------------------------------------------------------------------------------

    def _release(self) -> None:
        if self._deferred is not None:
            (at, content), self._deferred = self._deferred, None
            self._write(at, content)

    def _write(self, at: int, content: Content) -> None:
        if self._file is not None and self._largest is not None and self._size >= self._largest:
            self._rotate(at)
        self._put(at, content)

    def _put(self, at: int, content: Content) -> None:
        if self._file is None:
            return
        text = json.dumps(content, ensure_ascii=False)
        line = f'{{"at": {write_seconds(at - self._start)}, {text[1:]}\n'.encode(errors="replace")
        self._size += len(line)
        try:
            while line:
                line = line[os.write(self._file, line) :]
            self.lines += 1
        except OSError as error:
            os.close(self._file)
            self._file = None
            self.failure = f"{self.path}: recording has stopped: {error.strerror or error}"
            self._warn(self.failure)

    # -- several files --------------------------------------------------------------------------------

    def _rotate(self, at: int) -> None:
        """Rename the file, and continue in a new file."""
        try:
            os.rename(self.path, self.path.with_name(f"{self.path.name}.{_next_number(self.path)}"))
        except OSError as error:
            self._largest = None
            reason = f"cannot be renamed: {error.strerror or error}"
            self._warn(f"{self.path}: {reason}; the recording continues in this file, without a limit")
            return
        if not self._go_on(at):
            self._largest = None

    def _go_on(self, at: int) -> bool:
        """Continue in a new file at the path; returns False, with a warning, if that is not possible."""
        try:
            file = _open(self.path)
        except UsageError as error:
            self._warn(f"{error}; the recording continues in the file that had this name before")
            return False
        assert self._file is not None
        os.close(self._file)
        self._file, self._size = file, os.fstat(file).st_size
        if self._part:
            self._part += 1
            content = {"version": VERSION, "number": self._part, "start": write_date(self._start)}
            self._put(at, {"part": content})
        return True


def _next_number(path: Path) -> int:
    """Return the next unused number of the recording's files, so that no file is overwritten."""
    endings = (
        name[len(path.name) + 1 :] for name in os.listdir(path.parent) if name.startswith(f"{path.name}.")
    )
    return 1 + max((int(ending) for ending in endings if ending.isascii() and ending.isdigit()), default=0)


def _open(path: Path) -> int:
    """Open and lock the file for appending; raises `UsageError` if that is not possible."""
    try:
        file = open_locked(path)
    except FileIsLocked as error:
        text = f"{path}: another process records into this file: give another file, or end that process"
        raise UsageError(text) from error
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error
    try:
        _continue(file, path)
        keep_to_owner(file)
    except OSError as error:
        os.close(file)
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error
    except BaseException:
        os.close(file)
        raise
    return file


def _continue(file: int, path: Path) -> None:
    first = os.read(file, 4096)
    if not first:
        return
    head = first.partition(b"\n")[0]
    if b'"recording"' not in head and b'"part"' not in head:
        raise UsageError(f"{path}: exists, and is not a recording: give another file, or remove this one")
    os.lseek(file, -1, os.SEEK_END)
    if os.read(file, 1) != b"\n":
        # The previous process was killed while it wrote a line.
        os.write(file, b"\n")


def _unusual(timeouts: Timeouts) -> dict[str, str | None]:
    usual = Timeouts()
    return {
        field.name: None if value is None else spell_duration(value)
        for field in attrs.fields(Timeouts)
        if (value := getattr(timeouts, field.name)) != getattr(usual, field.name)
    }


# -- questions and answers ---------------------------------------------------------------------------------


def _question(question: object) -> Content:
    if isinstance(question, PredicatesArgs):
        nodes = [question.node_id]
    elif isinstance(question, NodePredicatesArgs):
        nodes = list(question.node_ids)
    else:
        return {}
    return {
        "allocation": question.allocation_key,
        "application": question.application_id,
        "nodes": nodes,
        "allocate": question.allocate,
    }


def _answer(question: object, answer: object) -> Content:
    if isinstance(question, UpdateConfigurationRequest):
        if not isinstance(answer, UpdateConfigurationResponse):
            raise TypeError
        return {"success": answer.success, "reason": answer.reason}
    if isinstance(question, PredicatesArgs):
        answer = {} if answer is None else {question.node_id: answer}
    if not (isinstance(answer, Mapping) and all(isinstance(reason, str) for reason in answer.values())):
        raise TypeError
    return {"refused": dict(answer)} if answer else {}
