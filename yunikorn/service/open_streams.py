"""The streams of RMs that are open: their number is limited, in all and for each connection."""

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
WHO = ": the first one says which resource manager it is"
"""What the first message of a stream of an RM is wanted for."""


class OpenStreams:
    """Counts streams of RMs; registrations, health and reflection are not among them."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.tasks: set[asyncio.Task[None]] = set()
        """Those that serve them."""
        self._of_connection: Counter[str] = Counter()

    @contextlib.contextmanager
    def counted(self, peer: str) -> Iterator[None]:
        """Count the stream of the task at work; raises `CallRefusal` if there are too many already."""
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
            text = f"{len(self.tasks)} streams are open, which is as many as may be"
        elif self._of_connection[peer] >= self._limits.connection and not peer.startswith(UNIX):
            # All clients of a socket of the file system have the same address.
            text = (
                f"{self._of_connection[peer]} streams of this connection are open, which is as many as may be"
            )
        else:
            return
        raise CallRefusal(grpc.StatusCode.RESOURCE_EXHAUSTED, text)


async def first_message(messages: AsyncIterator[M], patience: Patience, why: str = "") -> M | None:
    """The first message of a stream; None if it was half-closed without. Raises `CallRefusal` if none comes.

    `why` tells what it was wanted for.
    """
    try:
        async with asyncio.timeout(patience.message):
            return await anext(messages, None)
    except TimeoutError:
        text = f"no message came within {patience.message:g} s{why}"
        raise CallRefusal(grpc.StatusCode.DEADLINE_EXCEEDED, text) from None
