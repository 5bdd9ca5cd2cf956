"""Decoding of messages: small messages in the event loop, large messages in threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

LARGE = 64 << 10
"""Size in bytes from which a message is decoded in a thread; its decoding takes about 5 ms."""
THREADS = 2
"""Maximum number of large messages decoded concurrently; they share one processor, and take memory."""


class Decoding:
    """Decoder of messages that does not block the event loop for long."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="yunikorn-decoding")

    async def decode(self, decode: Callable[[bytes], T], data: bytes) -> T:
        """Decode `data` with `decode`; raises what `decode` raises."""
        if len(data) < LARGE:
            return decode(data)
        return await asyncio.get_running_loop().run_in_executor(self._threads, decode, data)

    def close(self) -> None:
        """Stop decoding, without waiting for messages that are being decoded."""
        self._threads.shutdown(wait=False, cancel_futures=True)
