"""Connections to a scheduler over gRPC, and the errors with which they end."""

from __future__ import annotations

from typing import Any

import grpc
import grpc.aio

from yunikorn.errors import YunikornError, printable
from yunikorn.interface.messages import RegisterResourceManagerRequest
from yunikorn_service.client.client_options import ClientOptions
from yunikorn_service.wire import v0_11
from yunikorn_service.wire.protocol import REGISTER, SCHEDULER, path


class ClientError(YunikornError):
    """Base of all errors that a client raises because of the scheduler or the connection."""


class Refused(ClientError):
    """Refusal of a registration or message, which the scheduler would refuse again; see the text."""


class TakenOver(ClientError):
    """Loss of the session to another client, which has registered with the same resource manager id."""


class ConnectionLost(ClientError):
    """End of the session without a report with which another one could begin."""


class CallFailed(ClientError):
    """Failure of a call, for the scheduler's reason, or by a lost connection before the answer."""


class SessionInterrupted(Exception):
    """End of a session after which another one can begin; internal to the client."""


class OutOfStep(SessionInterrupted):
    """Request of the scheduler for a full report, by RESYNC."""


FINAL_CODES = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.OUT_OF_RANGE,
}
"""Status codes with which a retry would fail again."""
RESYNC = "RESYNC"
"""Beginning of a status text that requests a full report, in the layout without a field for the action."""


def judge(code: grpc.StatusCode, text: str, what: str) -> Exception:
    """Return the error for the end of a call: `SessionInterrupted` if a new session may begin."""
    said = "\n".join(printable(line) for line in text.splitlines())
    if code is grpc.StatusCode.ABORTED:
        if text.startswith(RESYNC):
            return OutOfStep(said)
        return TakenOver(f"{what}: {said}")
    if code in FINAL_CODES:
        return Refused(f"{what}: {said} ({code.name})")
    return SessionInterrupted(f"{what}: {said or 'the connection was lost'} ({code.name})")


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
        raise SessionInterrupted(f"{what}: {error}") from error
    if isinstance(data, bytes):
        return data
    code = await call.code()
    if code is grpc.StatusCode.OK:
        return None
    raise judge(code, await call.details() or "", what)
