"""Exceptions of this package, all of them subclasses of `YunikornError`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from yunikorn.containment import WrongAnswer, describe_error


def printable(text: str) -> str:
    """Return `text` with non-printable characters escaped, since foreign text may contain terminal codes."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


CONTAINED = (Exception, SystemExit)
"""Exceptions to handle in a task of an event loop, where other exceptions may be those of the loop.

Elsewhere, `except contained():` handles every exception of a plugin; see `yunikorn.containment`.
"""


class YunikornError(Exception):
    """Base class of all errors that this package raises on purpose."""


class Problem(NamedTuple):
    """Problem of a configuration, with its position.

    `path` is the key (`partitions[0].queues[1].name`). `line` and `column` count from 1; they are 0 if the
    position in the text is not known.
    """

    path: str
    message: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        place = self.place
        return f"{place}: {self.message}" if place else self.message

    @property
    def place(self) -> str:
        """Place as in all messages, `PATH (line 3, column 5)`, without the parts that are unknown."""
        where = f"line {self.line}" if self.line else ""
        if self.line and self.column:
            where += f", column {self.column}"
        return f"{self.path} ({where})" if self.path and where else self.path or where


class ConfigError(YunikornError):
    """Invalid configuration; `problems` has all problems found, not only the first."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class OptionError(YunikornError):
    """Invalid options of a plugin class; `faults` has pairs of the path below the options and a message."""

    def __init__(self, faults: Iterable[tuple[str, str]]) -> None:
        self.faults: tuple[tuple[str, str], ...] = tuple(faults)
        super().__init__(
            "; ".join(f"{message} @ {path}" if path else message for path, message in self.faults)
        )


class UnknownPlugin(YunikornError):
    """Unknown plugin name; the message has suggestions, known names, and plugins that failed to load."""


class DisabledPlugin(UnknownPlugin):
    """Name of a plugin that the configuration disables."""


class PluginError(YunikornError):
    """Failure of a plugin; the message names the plugin, its distribution and version, and the operation."""

    called = "plugin "
    """Prefix of the name in the message."""

    def __init__(self, plugin: str, operation: str, cause: BaseException | str) -> None:
        # The type is asked, because `isinstance` may run code of an exception.
        is_error = issubclass(type(cause), BaseException) and type(cause) is not WrongAnswer
        what = describe_error(cause) if is_error else str(cause)  # type: ignore[arg-type]
        self.plugin = plugin
        self.operation = operation
        self.cause = cause
        super().__init__(printable(f"{self.called}{plugin}: {operation}: {what}"))


class CallbackError(PluginError):
    """Failure of a resource manager's callback: an exception or an invalid answer."""

    called = "callback of "


class StateError(YunikornError):
    """Event that is invalid in the state of an object; the message names object, state and event."""


class QuantityError(YunikornError, ValueError):
    """Resource quantity that is malformed or does not fit into 64 bits."""


class UsageError(YunikornError):
    """Invalid request of a user; the message names the cause and the correction."""
