"""Limits on open streams of RMs, in total and per connection, and on the wait for a first message.

gRPC passes on such a call only when its message has arrived, without a timeout. On the wire, a call with a
single message looks like a stream of one message, so the service handles such calls as streams.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, TypeVar

import grpc

from yunikorn_service.call_endings import CallRefusal, Context, refuse
from yunikorn_service.service_settings import Patience, ServiceLimits

M = TypeVar("M")

UNIX = "unix:"
RM_MISSING = ": the first message must name the resource manager"
"""Purpose of the first message of an RM's stream, for texts."""


class OpenStreams:
    """Counter of the open streams of RMs; registrations, health and reflection are not counted."""

    def __init__(self, limits: ServiceLimits) -> None:
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


T = TypeVar("T")

MISSING = CallRefusal(grpc.StatusCode.INVALID_ARGUMENT, "the call ended without its message")


def with_message(
    serve: Callable[[M, Context], Awaitable[T]], name: str, patience: Patience
) -> Callable[[AsyncIterator[M], Context], Awaitable[T]]:
    """Return a handler of streams that calls `serve` with the single message of a call."""

    async def served(messages: AsyncIterator[M], context: Context) -> T:
        what = f"a call of {name} from {context.peer()}"
        try:
            message = await first_message(messages, patience)
        except CallRefusal as refusal:
            await refuse(context, refusal, what)
            raise
        if message is None:
            await refuse(context, MISSING, what)
            raise MISSING
        return await serve(message, context)

    return served


def answered(
    serve: Callable[[bytes, Context], Awaitable[bytes]], name: str, patience: Patience
) -> grpc.RpcMethodHandler[Any, Any]:
    """Return the handler of a call with one message and one answer."""
    return grpc.stream_unary_rpc_method_handler(with_message(serve, name, patience))
