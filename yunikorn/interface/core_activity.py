"""Who is at work in the core's thread right now: for a watchdog that has to name a plugin (decision 45).

A plugin that hangs cannot be interrupted, but it can be named. Nothing is noted while scheduling: whoever
wants to know, in another thread, looks at the stack of the core's thread. The innermost function of a plugin,
or of what calls a resource manager, says whose turn it is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import attrs

from yunikorn.api import Plugin
from yunikorn.interface.callback import CallbackAdapter

OURSELVES = "the scheduler itself"


@attrs.frozen
class CoreActivity:
    """What a thread is doing."""

    who: str
    """`plugin NAME of ...`, `callback of resource manager ID`, or the scheduler itself."""
    operation: str
    """The method of the plugin, or what the callback is called for."""
    place: str
    """File, line and function: the innermost."""
    plugin: str = ""
    """The plugin as `PluginFailures` names it, without `plugin` before it; empty if none is at work."""
    call: object = attrs.field(default=None, eq=False, repr=False)
    """The plugin's call that is under way: the same object while it lasts. Not to be kept for long."""

    def __str__(self) -> str:
        doing = f": {self.operation}" if self.operation else ""
        return f"{self.who}{doing} ({self.place})"


def core_activity(thread_id: int, origin_of: Callable[[type[Any]], str]) -> CoreActivity | None:
    """What the thread of this identifier is doing; None if there is none.

    `origin_of` says where the class of a plugin comes from.
    """
    frame = sys._current_frames().get(thread_id)
    if frame is None:
        return None
    code = frame.f_code
    place = f"{code.co_filename}:{frame.f_lineno} in {code.co_qualname}"
    for outer in _outwards(frame):
        # Asking for the variables of a function copies them all.
        acting = outer.f_locals.get("self") if "self" in outer.f_code.co_varnames else None
        if isinstance(acting, CallbackAdapter):
            # The other thread may be making this object at the moment.
            whose = getattr(acting, "whose", "a resource manager")
            return CoreActivity(f"callback of {whose}", str(outer.f_locals.get("operation", "")), place)
        if isinstance(acting, Plugin):
            name = origin_of(type(acting))
            return CoreActivity(f"plugin {name}", outer.f_code.co_name, place, name, outer)
    return CoreActivity(OURSELVES, "", place)


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
