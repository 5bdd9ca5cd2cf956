"""What can go wrong, as types: every error of ours is a `YunikornError`."""

from __future__ import annotations

from collections.abc import Iterable

import attrs


def printable(text: str) -> str:
    """The text with everything escaped that is no character: what strangers write may move a cursor."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


CONTAINED = (Exception, SystemExit)
"""What a plugin may raise while scheduling without taking anything down: `sys.exit` is no way out either."""


class YunikornError(Exception):
    """The base of all errors that this package raises on purpose."""


@attrs.frozen
class Problem:
    """One thing that is wrong in a configuration, with its place.

    `path` is the key (`partitions[0].queues[1].name`), `line` and `column` count from 1 and are 0
    where no text position is known.
    """

    path: str
    message: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        place = f" (line {self.line}, column {self.column})" if self.line else ""
        return f"{self.path}{place}: {self.message}" if self.path else f"{self.message}{place}"


class ConfigError(YunikornError):
    """A configuration that cannot be used; carries every problem found, not only the first."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class OptionError(YunikornError):
    """Options that do not fit a plugin class: a list of (path below the options, message)."""

    def __init__(self, failures: Iterable[tuple[str, str]]) -> None:
        self.failures: tuple[tuple[str, str], ...] = tuple(failures)
        super().__init__(
            "; ".join(f"{message} @ {path}" if path else message for path, message in self.failures)
        )


class UnknownPlugin(YunikornError):
    """A name that no plugin of this kind offers; the text suggests, lists, and says what failed to load."""


class PluginError(YunikornError):
    """A plugin did what it must not: the text names it, its distribution and version, and the operation."""

    called = "plugin "
    """What stands before the name in the text."""

    def __init__(self, plugin: str, operation: str, cause: BaseException | str) -> None:
        what = cause if isinstance(cause, str) else f"{type(cause).__name__}: {cause}"
        self.plugin = plugin
        self.operation = operation
        self.cause = cause
        super().__init__(printable(f"{self.called}{plugin}: {operation}: {what}"))


class CallbackError(PluginError):
    """The callback of a resource manager raised, or gave an answer of no use: the text says whose."""

    called = "callback of "


class StateError(YunikornError):
    """An event that the object's state does not allow; the text names object, state and event."""


class QuantityError(YunikornError):
    """A resource quantity that cannot be read or does not fit 64 bits."""


class UsageError(YunikornError):
    """A request that cannot be served as it is: the text says what is wrong and what to do."""
