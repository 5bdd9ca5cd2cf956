"""gRPC connections to a scheduler, and the interpretation of how a call ended."""

from __future__ import annotations

from typing import Any

import grpc
import grpc.aio

from yunikorn.client.client_errors import Interrupted, judge
from yunikorn.client.options import ClientOptions
from yunikorn.interface.messages import RegisterResourceManagerRequest
from yunikorn.wire import v0_11
from yunikorn.wire.protocol import REGISTER, SCHEDULER, path

KEEPALIVE = 20_000
"""Milliseconds without traffic before a ping; half of them until the answer is overdue."""


def channel_to(address: str, options: ClientOptions) -> grpc.aio.Channel:
    """Return a new connection, made at its first use; raise `UsageError` for invalid certificates."""
    arguments: list[tuple[str, Any]] = [
        # No limit: tags make a response arbitrarily large.
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_send_message_length", -1),
        # The client decides about retries; a shared pool would apply the back-off of earlier connections.
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.keepalive_time_ms", KEEPALIVE),
        ("grpc.keepalive_timeout_ms", KEEPALIVE // 2),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        # HTTP proxies are configured for web sites, not for a scheduler.
        ("grpc.enable_http_proxy", 0),
    ]
    if options.tls is None:
        return grpc.aio.insecure_channel(address, arguments)
    if options.tls.name:
        arguments.append(("grpc.ssl_target_name_override", options.tls.name))
    return grpc.aio.secure_channel(address, options.tls.credentials(), arguments)


async def register(channel: Any, request: RegisterResourceManagerRequest, patience: float) -> None:
    """Register the resource manager; raise the errors of `judge`."""
    call = channel.unary_unary(path(SCHEDULER, REGISTER))
    try:
        await call(v0_11.REGISTER_REQUEST.encode(request), timeout=patience)
    except grpc.aio.AioRpcError as error:
        raise judge(error.code(), error.details() or "", "registering") from error


async def receive(call: Any, what: str) -> bytes | None:
    """Return the next message of a stream, or None at its regular end; raise the errors of `judge`."""
    try:
        data = await call.read()
    except grpc.aio.AioRpcError as error:
        raise judge(error.code(), error.details() or "", what) from error
    except grpc.aio.UsageError as error:
        raise Interrupted(f"{what}: {error}") from error
    if isinstance(data, bytes):
        return data
    code = await call.code()
    if code is grpc.StatusCode.OK:
        return None
    raise judge(code, await call.details() or "", what)
