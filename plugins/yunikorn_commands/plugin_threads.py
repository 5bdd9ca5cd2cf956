"""Threads of plugins: the code that a thread runs, and the end of a process that does not wait for them.

Python waits at the end of a process for all threads that are not daemons. A plugin whose thread never ends
would keep a command from ending, so the wait is limited.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
from collections.abc import Iterator
from types import FrameType

from yunikorn.errors import printable

GRACE = 2.0
"""Seconds for which the end of a process waits for threads of plugins."""
_LIBRARY = tuple(
    os.path.join(path, "") for name in ("stdlib", "platstdlib") if (path := sysconfig.get_path(name))
)
_OWN = ("yunikorn.", "yunikorn_commands.", "yunikorn_lab.", "yunikorn_rest.", "yunikorn_service.")
_PACKAGES = ("site-packages", "dist-packages")


def describe_thread(thread: threading.Thread) -> str:
    """Return the code outside of this package and of Python that a thread runs, or else its name."""
    for frame in _outermost_first(sys._current_frames().get(thread.ident or 0)):
        if _is_foreign(frame):
            return printable(f"{frame.f_code.co_filename}, line {frame.f_lineno}")
    target = getattr(thread, "_target", None)
    module = getattr(target, "__module__", None) or type(thread).__module__
    return printable(f"thread '{thread.name}', whose function is of {module}")


def _outermost_first(frame: FrameType | None) -> Iterator[FrameType]:
    frames: list[FrameType] = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return reversed(frames)


def _is_foreign(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    if file.startswith("<") or str(frame.f_globals.get("__name__")).startswith(_OWN):
        return False
    return not file.startswith(_LIBRARY) or any(name in file for name in _PACKAGES)


def end_in_time(status: int) -> None:
    """Let this process, which is about to end, end with this status even if threads of plugins do not end."""
    if any(True for _ in _threads_left()):
        threading.Thread(target=_end_after_grace, args=(status,), daemon=True).start()


def _threads_left() -> Iterator[threading.Thread]:
    main = threading.main_thread()
    return (one for one in threading.enumerate() if one is not main and not one.daemon and one.is_alive())


def _end_after_grace(status: int) -> None:
    threading.Event().wait(GRACE)
    for thread in _threads_left():
        print(
            "warning: ended without waiting for a thread that was started by a plugin and has not ended:"
            f" {describe_thread(thread)}. Make it a daemon thread, and end it in closed()",
            file=sys.stderr,
            flush=True,
        )
    os._exit(status)
