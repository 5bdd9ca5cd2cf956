"""Calls with a single message: they end if it does not come.

gRPC waits for the message of such a call before it hands the call over, for as long as the client likes. To
the other end a call with a single message is like a stream of one, so the service takes it for a stream.
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
    """What serves a call of this name as a stream, of which `serve` is given the message."""

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
    """The handler of a call with one message and one answer."""
    return grpc.stream_unary_rpc_method_handler(with_message(serve, name, patience))
