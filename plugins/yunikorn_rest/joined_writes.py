"""A transport that sends the header of an answer and its body together.

The HTTP server writes both one after the other. Two writes are two system calls, and in a process with a busy
thread the event loop may lose the interpreter's lock for some milliseconds at each.
"""

from __future__ import annotations

import asyncio
from typing import Any

ENOUGH = 64 << 10
"""Number of bytes from which data are sent at once."""


class JoinedWrites(asyncio.Transport):
    """Transport that collects what is written in one turn of the event loop."""

    def __init__(self, inner: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._inner, self._loop = inner, loop
        self._parts: list[bytes | bytearray | memoryview] = []
        self._size = 0
        self.sent = 0
        """Number of bytes that were passed on."""
        self.lingers = False
        """True while a body arrives that is not complete."""
        self.is_lingering = False
        """True if only the rest of a body is awaited."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send data at the end of this turn of the event loop, or now if they are large."""
        if not self._parts:
            self._loop.call_soon(self.flush)
        self._parts.append(data)
        self._size += len(data)
        if self._size >= ENOUGH:
            self.flush()

    def flush(self) -> None:
        """Send everything that was collected."""
        parts, size, self._parts, self._size = self._parts, self._size, [], 0
        self.sent += size
        if parts and not self._inner.is_closing():
            self._inner.write(parts[0] if len(parts) == 1 else b"".join(parts))

    def close(self) -> None:
        """Send everything, and close the connection.

        If `lingers` is set, the first call only ends what is sent. A connection that is closed while data
        arrive is reset, and the client then loses what it has not read yet.
        """
        self.flush()
        if not self.lingers or self.is_lingering or self._inner.is_closing():
            self._inner.close()
            return
        self.is_lingering = True
        self._inner.resume_reading()
        if self._inner.can_write_eof():
            self._inner.write_eof()

    def abort(self) -> None:
        """Close the connection without sending anything more."""
        self._parts.clear()
        self._inner.abort()

    def is_closing(self) -> bool:
        """Return True after `close` or `abort`."""
        return self.is_lingering or self._inner.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return a property of the connection."""
        return self._inner.get_extra_info(name, default)

    def pause_reading(self) -> None:
        """Stop to read."""
        self._inner.pause_reading()

    def resume_reading(self) -> None:
        """Continue to read."""
        self._inner.resume_reading()
