"""What plugins did wrong while scheduling: contained, named, counted, and reported once."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

import attrs

from yunikorn.api import Context
from yunikorn.errors import CONTAINED, CallbackError, PluginError

_log = logging.getLogger("yunikorn.plugins")


@attrs.define
class PluginFailure:
    """One kind of failure of one plugin."""

    plugin: str
    """Name, distribution and version."""
    operation: str
    """What it was doing."""
    message: str
    """What went wrong the first time."""
    count: int = 1
    last: str = ""
    """What the plugin told last of it by `context.report`; empty for what it did wrong itself."""

    def marks(self) -> dict[str, object]:
        """What a structured log entry about it says beside the text."""
        return {"plugin": self.plugin, "operation": self.operation, "times": self.count}


class PluginFailures:
    """All failures of plugins since the start."""

    def __init__(self) -> None:
        self._failures: dict[tuple[str, str], PluginFailure] = {}
        self._listeners: list[Callable[[PluginFailure], None]] = []
        self._told: deque[tuple[str, str, BaseException | str]] = deque()
        """What plugins said of themselves, perhaps in threads of their own, and nobody has noted yet."""

    def __iter__(self) -> Iterator[PluginFailure]:
        self._note_told()
        return iter(self._failures.values())

    def __len__(self) -> int:
        self._note_told()
        return len(self._failures)

    def since(self, count: int) -> list[PluginFailure]:
        """The kinds of failure that came after the first `count` of them."""
        return list(islice(self._failures.values(), count, None)) if len(self) > count else []

    def sum_up(self) -> None:
        """Log how often each kind of failure came again; the first time was logged when it was."""
        for failure in self:
            if failure.count > 1:
                _log.warning("%d times: %s", failure.count, failure.message, extra=failure.marks())

    def context_of(self, plugin: str, context: Context) -> Context:
        """The context as this plugin is given it: what it reports there is noted under its name."""
        return attrs.evolve(context, report=partial(self._tell, plugin))

    def _tell(self, plugin: str, operation: str, cause: BaseException | str) -> None:
        self._told.append((plugin, operation, cause))

    def _note_told(self) -> None:
        while self._told:
            plugin, operation, cause = self._told.popleft()
            text = str(self.report(plugin, operation, cause))
            failure = self._failures[plugin, operation]
            if failure.count > 1 and text != failure.last:
                # The plugin chose to say something new: unlike errors, which differ by the object they hit.
                _log.error("%s", text, extra=failure.marks())
            failure.last = text

    def listen(self, listener: Callable[[PluginFailure], None]) -> None:
        """Have `listener` called with each new kind of failure."""
        self._listeners.append(listener)

    def report(self, plugin: str, operation: str, cause: BaseException | str, where: str = "") -> PluginError:
        """Note what `plugin` did while `operation` (on the object `where`); the first time it is logged too.

        Where the plugin only passed on what a callback did, the `cause` says whose.
        """
        if isinstance(cause, CallbackError):
            plugin, operation = cause.plugin, cause.operation
            error: PluginError = CallbackError(plugin, f"{operation} {where}".rstrip(), cause.cause)
        else:
            error = PluginError(plugin, f"{operation} {where}".rstrip(), cause)
        failure = self._failures.get((plugin, operation))
        if failure is not None:
            failure.count += 1
            return error
        failure = self._failures[plugin, operation] = PluginFailure(plugin, operation, str(error))
        _log.error("%s", error, extra=failure.marks())
        for listener in self._listeners:
            listener(failure)
        return error

    def call_guarded(
        self, plugin: str, operation: str, call: Callable[..., object], *arguments: object
    ) -> bool:
        """Make a call that nothing depends on; what it raises is reported. Returns whether it went well."""
        try:
            call(*arguments)
        except CONTAINED as error:
            self.report(plugin, operation, error)
            return False
        return True
