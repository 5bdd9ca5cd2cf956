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
class Fault:
    """One kind of misdeed of one plugin."""

    plugin: str
    """Name, distribution and version."""
    deed: str
    """What it was doing."""
    message: str
    """What went wrong the first time."""
    count: int = 1
    last: str = ""
    """What the plugin told last of it by `context.report`; empty for what it did wrong itself."""

    def marks(self) -> dict[str, object]:
        """What a structured log entry about it says beside the text."""
        return {"plugin": self.plugin, "deed": self.deed, "times": self.count}


class FaultLog:
    """All misdeeds of plugins since the start."""

    def __init__(self) -> None:
        self._faults: dict[tuple[str, str], Fault] = {}
        self._listeners: list[Callable[[Fault], None]] = []
        self._told: deque[tuple[str, str, BaseException | str]] = deque()
        """What plugins said of themselves, perhaps in threads of their own, and nobody has noted yet."""

    def __iter__(self) -> Iterator[Fault]:
        self._note_told()
        return iter(self._faults.values())

    def __len__(self) -> int:
        self._note_told()
        return len(self._faults)

    def since(self, count: int) -> list[Fault]:
        """The kinds of misdeed that came after the first `count` of them."""
        return list(islice(self._faults.values(), count, None)) if len(self) > count else []

    def sum_up(self) -> None:
        """Log how often each kind of misdeed came again; the first time was logged when it was."""
        for fault in self:
            if fault.count > 1:
                _log.warning("%d times: %s", fault.count, fault.message, extra=fault.marks())

    def context_of(self, plugin: str, context: Context) -> Context:
        """The context as this plugin is given it: what it reports there is noted under its name."""
        return attrs.evolve(context, report=partial(self._tell, plugin))

    def _tell(self, plugin: str, deed: str, cause: BaseException | str) -> None:
        self._told.append((plugin, deed, cause))

    def _note_told(self) -> None:
        while self._told:
            plugin, deed, cause = self._told.popleft()
            text = str(self.report(plugin, deed, cause))
            fault = self._faults[plugin, deed]
            if fault.count > 1 and text != fault.last:
                # The plugin chose to say something new: unlike errors, which differ by the object they hit.
                _log.error("%s", text, extra=fault.marks())
            fault.last = text

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
