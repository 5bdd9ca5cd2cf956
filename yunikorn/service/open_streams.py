"""Limits on the number of open streams of RMs, in total and per connection."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import TypeVar

import grpc

from yunikorn.service.call_refusals import CallRefusal
from yunikorn.service.settings import Limits, Patience

M = TypeVar("M")

UNIX = "unix:"
WHO = ": the first message must name the resource manager"
"""Purpose of the first message of an RM's stream, for texts."""


class OpenStreams:
    """Counter of the open streams of RMs; registrations, health and reflection are not counted."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.tasks: set[asyncio.Task[None]] = set()
        """Tasks that serve the open streams."""
        self._of_connection: Counter[str] = Counter()

    @contextlib.contextmanager
    def counted(self, peer: str) -> Iterator[None]:
        """Count the current task's stream while the context is active; raises `CallRefusal` at a limit."""
        task = asyncio.current_task()
        assert task is not None
        self._check(peer)
        self.tasks.add(task)
        self._of_connection[peer] += 1
        try:
            yield
        finally:
            self.tasks.discard(task)
            self._of_connection[peer] -= 1
            if not self._of_connection[peer]:
                del self._of_connection[peer]

    def _check(self, peer: str) -> None:
        if len(self.tasks) >= self._limits.streams:
            text = f"{len(self.tasks)} streams are open, which is the limit"
        elif self._of_connection[peer] >= self._limits.connection and not peer.startswith(UNIX):
            # All clients of a Unix socket have the same peer address.
            text = f"{self._of_connection[peer]} streams of this connection are open, which is the limit"
        else:
            return
        raise CallRefusal(grpc.StatusCode.RESOURCE_EXHAUSTED, text)


async def first_message(messages: AsyncIterator[M], patience: Patience, why: str = "") -> M | None:
    """Return the first message of a stream, or None if the stream is half-closed without a message.

    Raises `CallRefusal` if no message comes in time; `why` is appended to its text.
    """
    try:
        async with asyncio.timeout(patience.message):
            return await anext(messages, None)
    except TimeoutError:
        text = f"no message came within {patience.message:g} s{why}"
        raise CallRefusal(grpc.StatusCode.DEADLINE_EXCEEDED, text) from None
