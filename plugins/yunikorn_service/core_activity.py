"""Current activity of the core's thread, by which a watchdog names a hanging plugin.

See `docs/decisions/archive/0045`.

A hanging plugin cannot be interrupted, but it can be named. Scheduling records nothing for this purpose: the
watchdog reads the stack of the core's thread from another thread. The innermost frame of a plugin or callback
adapter identifies the running one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Protocol

import attrs

from yunikorn.api import Plugin
from yunikorn.interface.callback import CallbackAdapter

OURSELVES = "the scheduler itself"


@attrs.frozen
class CoreActivity:
    """Activity of a thread at one moment."""

    actor: str
    """`plugin NAME of ...`, `callback of resource manager ID`, or the scheduler itself."""
    operation: str
    """Method of the plugin, or purpose of the callback."""
    place: str
    """File, line and function of the innermost frame."""
    plugin: str = ""
    """Name of the plugin as in `PluginFailures`, without a leading `plugin`; empty if none is running."""
    call: object = attrs.field(default=None, eq=False, repr=False)
    """Identity of the plugin's current call: the same object until the call ends. Do not keep it."""

    def __str__(self) -> str:
        doing = f": {self.operation}" if self.operation else ""
        return f"{self.actor}{doing} ({self.place})"


class AtWork(Protocol):
    """A core in a thread of its own."""

    @property
    def thread_id(self) -> int | None:
        """Identifier of the thread; None before its start."""

    def origin_of(self, cls: type[object]) -> str:
        """Return the origin of a plugin's class."""


def activity_of(core: AtWork) -> CoreActivity | None:
    """Return the current activity of the thread of a core; None if it does not run."""
    return None if core.thread_id is None else core_activity(core.thread_id, core.origin_of)


def core_activity(thread_id: int, origin_of: Callable[[type[Any]], str]) -> CoreActivity | None:
    """Return the activity of the thread with this identifier, or None if there is no such thread.

    `origin_of` returns the origin of a plugin's class.
    """
    frame = sys._current_frames().get(thread_id)
    if frame is None:
        return None
    code = frame.f_code
    place = f"{code.co_filename}:{frame.f_lineno} in {code.co_qualname}"
    for outer in _outwards(frame):
        # Reading f_locals copies all variables of a function.
        acting = outer.f_locals.get("self") if "self" in outer.f_code.co_varnames else None
        # The type is asked, because `isinstance` may run code of the object.
        if issubclass(type(acting), CallbackAdapter):
            # The other thread may not have finished the constructor of this object.
            whose = getattr(acting, "whose", "a resource manager")
            return CoreActivity(f"callback of {whose}", str(outer.f_locals.get("operation", "")), place)
        if issubclass(type(acting), Plugin):
            name = origin_of(type(acting))
            return CoreActivity(f"plugin {name}", outer.f_code.co_name, place, name, outer)
    return CoreActivity(OURSELVES, "", place)


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
