"""Problems in the input of a command, collected from all of its parts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from yunikorn.errors import UsageError
from yunikorn_commands.input_source import InputError


class InputChecks:
    """Collector of input problems, which reports all problems in one message."""

    def __init__(self) -> None:
        self._found: list[InputError | UsageError] = []

    def __bool__(self) -> bool:
        """Return True if there are problems."""
        return bool(self._found)

    @contextlib.contextmanager
    def part(self) -> Iterator[None]:
        """Collect the problems of one part of the input, and continue with the next part."""
        try:
            yield
        except (InputError, UsageError) as error:
            self._found.append(error)

    def check(self) -> None:
        """Raise the collected problems, if there are any."""
        if len(self._found) == 1:
            raise self._found[0]
        if self._found:
            raise UsageError("\n".join(map(str, self._found)))
