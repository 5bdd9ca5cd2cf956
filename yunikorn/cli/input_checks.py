"""What is wrong with the input of a command, collected from all of its parts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from yunikorn.errors import UsageError
from yunikorn.simulation.input_error import InputError


class InputChecks:
    """Checks one part of the input after the other, and says all that is wrong in one message."""

    def __init__(self) -> None:
        self._found: list[InputError | UsageError] = []

    def __bool__(self) -> bool:
        """Whether something is wrong."""
        return bool(self._found)

    @contextlib.contextmanager
    def part(self) -> Iterator[None]:
        """Goes on after a part of the input that cannot be used."""
        try:
            yield
        except (InputError, UsageError) as error:
            self._found.append(error)

    def check(self) -> None:
        """Raises what was wrong, if anything was."""
        if len(self._found) == 1:
            raise self._found[0]
        if self._found:
            raise UsageError("\n".join(map(str, self._found)))
