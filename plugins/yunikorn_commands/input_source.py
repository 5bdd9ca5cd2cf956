"""Input files of a simulation, and errors in them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence

from yunikorn.config.document import decode
from yunikorn.errors import ConfigError, Problem, UsageError, YunikornError
from yunikorn_commands.input_files import InputFile, UnreadableInput, read_input, unpacked

SHOWN = 20
"""Maximum number of problems in an error message; the number of further problems is printed."""

LINES_SHOWN = 5
"""Maximum number of skipped lines of a trace in a remark; the number of further lines is printed."""


class InputError(YunikornError):
    """A workload or node file that cannot be used; carries all problems found and their positions."""

    def __init__(self, file: str, problems: Iterable[Problem]) -> None:
        self.file = file
        self.problems: tuple[Problem, ...] = tuple(problems)
        lines = [describe(file, problem) for problem in self.problems[:SHOWN]]
        if len(self.problems) > SHOWN:
            lines.append(f"{file}: and {len(self.problems) - SHOWN} more")
        super().__init__("\n".join(lines))

    @classmethod
    def joined(cls, errors: Sequence[InputError]) -> InputError:
        """Join the errors of several files into one error that carries the name of the first file."""
        error = cls(errors[0].file, [problem for one in errors for problem in one.problems])
        error.args = ("\n".join(map(str, errors)),)
        return error


class InputChecks:
    """Collector of input problems, which reports all problems in one message."""

    def __init__(self) -> None:
        self._found: list[InputError | UsageError] = []

    def __bool__(self) -> bool:
        """Return True if there are problems."""
        return bool(self._found)

    @contextlib.contextmanager
    def part(self, prefix: str = "") -> Iterator[None]:
        """Collect the problems of one part of the input, and continue with the next part.

        With a `prefix`, which names the part in messages, a `ValueError` is a problem of the input as well.
        """
        try:
            yield
        except (InputError, UsageError, ValueError) as error:
            if prefix:
                self._found.append(UsageError(f"{prefix}{error}"))
            elif isinstance(error, (InputError, UsageError)):
                self._found.append(error)
            else:
                raise

    def check(self) -> None:
        """Raise the collected problems, if there are any."""
        if len(self._found) == 1:
            raise self._found[0]
        if self._found:
            raise UsageError("\n".join(map(str, self._found)))


class SeedWithoutEffect(UsageError):
    """A seed for a workload that draws nothing."""


def remarks_on(file: str, problems: Sequence[Problem]) -> list[str]:
    """Describe the skipped lines of a trace: the first few, and the number of further lines."""
    remarks = [describe(file, problem) for problem in problems[:LINES_SHOWN]]
    if len(problems) > LINES_SHOWN:
        remarks.append(f"{file}: {len(problems) - LINES_SHOWN} more lines like these")
    return remarks


def describe(file: str, problem: Problem) -> str:
    """Return `FILE: PATH (line 7, column 3): MESSAGE`, without the parts that are unknown."""
    return f"{file}: {problem}"


def read_content(path: InputFile) -> bytes:
    """Return the content of a file, unpacked if it is gzip; raises `InputError` if unreadable or empty."""
    try:
        content = unpacked(read_input(path), path)
    except UnreadableInput as error:
        raise InputError(error.file, [Problem("", error.reason)]) from error
    if not content.strip():
        raise InputError(str(path), [Problem("", "is empty")])
    return content


def trace_text(content: bytes, file: str) -> str:
    """Decode the text of a trace or `.machines` file; raises `InputError` for binary content.

    Bytes that are not UTF-8 (names in old headers) become replacement characters, which leaves all numbers
    intact.
    """
    if b"\0" in content:
        raise InputError(file, [Problem("", "is not text: it holds zero bytes")])
    return content.decode("utf-8-sig", errors="replace")


def yaml_text(content: bytes, file: str) -> str:
    """Decode a YAML file; raises `InputError` if it is neither UTF-8 nor UTF-16 with a byte order mark."""
    try:
        return decode(content)
    except ConfigError as error:
        raise InputError(file, error.problems) from error
