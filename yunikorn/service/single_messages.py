"""Calls with a single message, with a timeout for that message.

gRPC passes on such a call only when its message has arrived, without a timeout. On the wire, a call with a
single message looks like a stream of one message, so the service handles such calls as streams.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import grpc

from yunikorn.service.call_refusals import CallRefusal
from yunikorn.service.endings import Context, refuse
from yunikorn.service.open_streams import first_message
from yunikorn.service.settings import Patience

M = TypeVar("M")
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
