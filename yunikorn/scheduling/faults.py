"""What plugins did wrong while scheduling: contained, named, counted, and reported once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from itertools import islice

import attrs

from yunikorn.errors import CONTAINED, CallbackError, PluginError

_log = logging.getLogger("yunikorn.plugins")


@attrs.define
class Fault:
    """One kind of misdeed of one plugin."""

    plugin: str
    """Name, distribution and version."""
    deed: str
    """What it was doing."""
    message: str
    """What went wrong the first time."""
    count: int = 1

    def marks(self) -> dict[str, object]:
        """What a structured log entry about it says beside the text."""
        return {"plugin": self.plugin, "deed": self.deed, "times": self.count}


class FaultLog:
    """All misdeeds of plugins since the start."""

    def __init__(self) -> None:
        self._faults: dict[tuple[str, str], Fault] = {}
        self._listeners: list[Callable[[Fault], None]] = []

    def __iter__(self) -> Iterator[Fault]:
        return iter(self._faults.values())

    def __len__(self) -> int:
        return len(self._faults)

    def since(self, count: int) -> list[Fault]:
        """The kinds of misdeed that came after the first `count` of them."""
        return list(islice(self._faults.values(), count, None)) if len(self._faults) > count else []

    def sum_up(self) -> None:
        """Log how often each kind of misdeed came again; the first time was logged when it was."""
        for fault in self:
            if fault.count > 1:
                _log.warning("%d times: %s", fault.count, fault.message, extra=fault.marks())

    def listen(self, listener: Callable[[Fault], None]) -> None:
        """Have `listener` called with each new kind of misdeed."""
        self._listeners.append(listener)

    def report(self, plugin: str, deed: str, cause: BaseException | str, where: str = "") -> PluginError:
        """Note what `plugin` did while `deed` (on the object `where`); the first time it is logged too.

        Where the plugin only passed on what a callback did, the `cause` says whose.
        """
        if isinstance(cause, CallbackError):
            plugin, deed = cause.plugin, cause.deed
            error: PluginError = CallbackError(plugin, f"{deed} {where}".rstrip(), cause.cause)
        else:
            error = PluginError(plugin, f"{deed} {where}".rstrip(), cause)
        fault = self._faults.get((plugin, deed))
        if fault is not None:
            fault.count += 1
            return error
        fault = self._faults[plugin, deed] = Fault(plugin, deed, str(error))
        _log.error("%s", error, extra=fault.marks())
        for listener in self._listeners:
            listener(fault)
        return error

    def guard(self, plugin: str, deed: str, call: Callable[..., object], *arguments: object) -> bool:
        """Make a call that nothing depends on; what it raises is reported. Returns whether it went well."""
        try:
            call(*arguments)
        except CONTAINED as error:
            self.report(plugin, deed, error)
            return False
        return True
