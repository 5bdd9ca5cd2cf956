"""Reading of recordings, with checks of every line; all problems are reported at once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs

from yunikorn.errors import Problem, UsageError, YunikornError, printable
from yunikorn.interface.commands import RegisterResourceManager, Update
from yunikorn_commands.input_files import name_of, read_input
from yunikorn_service.recording.recorded_commands import addressed
from yunikorn_service.recording.recorded_entry import OF_NONE, Part, RecordedEntry, read_line

SHOWN = 20
"""Maximum number of problems in an error's text; the number of further problems is added."""


class RecordingError(YunikornError):
    """Error for a recording that cannot be played, with every problem and its line."""

    def __init__(self, file: str, problems: Iterable[Problem]) -> None:
        self.file = file
        self.problems = tuple(problems)
        lines = [f"{file}: {one}" for one in self.problems[:SHOWN]]
        if len(self.problems) > SHOWN:
            lines.append(f"{file}: and {len(self.problems) - SHOWN} more")
        super().__init__("\n".join(printable(line) for line in lines))


@attrs.frozen
class Recording:
    """Lines of a recording in order, with their times."""

    lines: list[RecordedEntry]
    remarks: list[str]
    """Remarks for the user, such as a truncated line."""


def read_recording(*paths: Path) -> Recording:
    """Read the recording in a file, or in several consecutive files.

    Raises `RecordingError`, or `UnreadableInput` if a file cannot be read.
    """
    reader = _Reader(has_parts=len(paths) > 1)
    _check_named_once(paths)
    for path in paths:
        reader.read(read_input(path), name_of(path))
    return reader.finished()


def parse_recording(data: bytes, file: str) -> Recording:
    """Parse the recording in `data`; `file` is its name in messages. Raises `RecordingError`."""
    reader = _Reader(has_parts=False)
    reader.read(data, file)
    return reader.finished()


def _check_named_once(paths: Iterable[Path]) -> None:
    """Raise `UsageError` if two of these paths are the same file."""
    named: dict[Path, Path] = {}
    for path in paths:
        real = path.resolve()
        if real in named:
            other = "" if named[real] == path else f", also as {named[real]}"
            raise UsageError(f"{path}: is given twice{other}: give each file of a recording once")
        named[real] = path


class _Duplicate(Exception):
    """Error for a key that occurs twice in an object."""


class _Reader:
    def __init__(self, *, has_parts: bool) -> None:
        self._has_parts = has_parts
        """True if the recording has several files."""
        self._file = ""
        self._lines: list[RecordedEntry] = []
        self._problems: list[Problem] = []
        self._remarks: list[str] = []
        self._at = 0
        self._rm_id = ""
        """RM of lines that name no RM: the RM that registered last."""
        self._part: Part | None = None
        """Part of a core's recording that is being read; None before the first core starts."""
        self._former: tuple[Part, int] | None = None
        """Part, and its line, of an earlier core at the beginning of the first file, until a core starts."""
        self._cut_off = ""
        """File whose last line was truncated, if nothing has been read since."""

    def read(self, data: bytes, file: str) -> None:
        """Read the next file; raises `RecordingError` with all of its problems."""
        self._file = file
        texts = data.split(b"\n")
        for number, text in enumerate(texts, 1):
            if not text.strip() or text.lstrip().startswith(b"#"):
                continue
            document, failure = _parse(text)
            if failure and self._was_cut_off(number, texts):
                self._remarks.append(f"{file}: line {number}: the line is cut off and was ignored")
                self._cut_off = file
            elif failure:
                self._problems.append(Problem("", failure, number))
            else:
                self._take(document, number)
                self._cut_off = ""
        if self._former is not None:
            self._problems.append(_orphan(*self._former))
        if self._problems:
            raise RecordingError(file, self._problems)

    def finished(self) -> Recording:
        """Return the recording; raises `UsageError` if no line was read."""
        if not self._lines:
            text = f"{self._file}: is empty: a recording has at least one line, which registers an RM"
            raise UsageError(text)
        return Recording(self._lines, self._remarks)

    def _was_cut_off(self, number: int, texts: list[bytes]) -> bool:
        """Return True if a line is invalid because the recording process was killed while writing."""
        if number < len(texts):
            return texts[number].startswith(b'{"at": 0, "recording"')
        return any(line.kind == "recording" for line in self._lines)

    def _take(self, document: object, number: int) -> None:
        def report(problem: Problem) -> None:
            self._problems.append(problem._replace(line=number))

        line = read_line(document, number, report)
        if line is None:
            return
        line.file = self._file if self._has_parts else ""
        if self._former is not None:
            if line.kind != "recording":
                return
            self._leave_out(self._former[0], number)
        if line.kind == "recording":
            self._at = 0
            self._part = None if line.content is None else Part(1, line.content.start)
        self._set_time(line, report)
        if line.kind == "part":
            if line.content is not None and not self._lines:
                self._former = (line.content, number)
            else:
                self._follow(line.content, report)
            return
        self._set_rm(line, report)
        self._lines.append(line)

    def _leave_out(self, part: Part, number: int) -> None:
        """Report that the previous lines are ignored, because their core starts in no file."""
        text = f"the lines above were ignored: they belong to the core that started at {part.start}"
        self._remarks.append(f"{self._file}: line {number}: {text}, whose first file is missing")
        self._former = None

    def _follow(self, part: Part | None, report: Any) -> None:
        """Check that a part follows the previous part."""
        before = self._part
        if part is None:
            return
        if before is None or before.start != part.start:
            report(_orphan(part, 0))
        elif part.number != before.number + 1:
            text = f"is part {part.number} of the core that started at {part.start}:"
            text += f" expected part {before.number + 1}"
            report(Problem("part", text))
        elif self._cut_off:
            report(Problem("part", f"follows an incomplete file: {self._cut_off} is cut off"))
        self._part = part

    def _set_time(self, line: RecordedEntry, report: Any) -> None:
        if line.at < 0:
            line.at = self._at
        elif line.at < self._at:
            report(Problem("at", "is earlier than the line above: times must not decrease"))
        self._at = max(self._at, line.at)
        if line.kind == "advance":
            self._at += line.content

    def _set_rm(self, line: RecordedEntry, report: Any) -> None:
        inside = list(_named(line))
        for name in inside:
            if line.rm_id and name and name != line.rm_id:
                report(Problem("rm", f"is '{line.rm_id}', but the message is from '{name}'"))
        named = next(filter(None, inside), "")
        line.rm_id = line.rm_id or named
        if line.kind == "register":
            self._rm_id = line.rm_id
        elif line.kind not in OF_NONE:
            line.rm_id = line.rm_id or self._rm_id
            if not line.rm_id:
                report(Problem("", f'{line.kind} names no RM: add "rm", or register an RM before'))
        line.commands = [addressed(command, line.rm_id) for command in line.commands]


def _orphan(part: Part, number: int) -> Problem:
    """Return the problem of a part in this line whose core starts in no file."""
    text = f"is part {part.number} of a recording that started at {part.start}:"
    return Problem("part", f"{text} give the earlier files too, oldest first", number)


def _named(line: RecordedEntry) -> Iterator[str]:
    for command in line.commands:
        if isinstance(command, (RegisterResourceManager, Update)):
            yield command.rm_id


def _parse(text: bytes) -> tuple[object, str]:
    """Parse a JSON document; returns the document, or the reason why the text is not JSON."""
    try:
        return json.loads(text, parse_float=Decimal, object_pairs_hook=_once), ""
    except _Duplicate as error:
        return None, str(error)
    except json.JSONDecodeError as error:
        return None, f"is not valid JSON: {error.msg} at column {error.colno}"
    except (UnicodeDecodeError, RecursionError, ValueError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        return None, f"is not valid JSON: {reason}"


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Duplicate(f"the key '{twice}' occurs twice in one object")
    return found
