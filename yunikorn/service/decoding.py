"""Decoding of messages: small ones at once, large ones in threads beside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

LARGE = 64 << 10
"""Bytes of a message that takes some five milliseconds to decode."""
THREADS = 2
"""Large messages that are decoded at the same time: they share one processor, and take memory."""


class Decoding:
    """Decodes messages without holding up the event loop for long."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="yunikorn-decoding")

    async def decode(self, decode: Callable[[bytes], T], data: bytes) -> T:
        """Return the message; raises what `decode` raises."""
        if len(data) < LARGE:
            return decode(data)
        return await asyncio.get_running_loop().run_in_executor(self._threads, decode, data)

    def close(self) -> None:
        """Decode nothing more; a message that is being decoded is not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)
