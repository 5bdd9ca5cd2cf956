"""Options of a client: layout of the interface, encryption, delays and limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import attrs
import grpc

from yunikorn.errors import UsageError
from yunikorn.interface.messages import UpdateRequest, UpdateResponse
from yunikorn_service.wire import current, v0_11
from yunikorn_service.wire.generated import si_current_pb2 as wire
from yunikorn_service.wire.protocol import UPDATE, UPDATE_ALLOCATION, UPDATE_APPLICATION, UPDATE_NODE


@attrs.frozen(eq=False)
class Layout:
    """A layout: its streams, and the encoding of messages on them."""

    name: str
    decode: Mapping[str, Callable[[bytes], UpdateResponse]]
    """Decoder of responses, by stream."""
    encode: Callable[[UpdateRequest], list[tuple[str, bytes]]]
    """Encoder of updates, as bytes with their stream; raises `MalformedMessage`."""
    greet: Mapping[str, Callable[[str], bytes]]
    """Encoder of the first message of a stream, which has the RM's id only, by stream."""
    after_answers: str = ""
    """Stream whose messages wait for the answers to new nodes and applications on the other streams."""


def _whole(request: UpdateRequest) -> list[tuple[str, bytes]]:
    return [(UPDATE, v0_11.UPDATE_REQUEST.encode(request))]


def _by_subject(request: UpdateRequest) -> list[tuple[str, bytes]]:
    parts = (
        (UPDATE_NODE, current.to_node_request(request)),
        (UPDATE_APPLICATION, current.to_application_request(request)),
        (UPDATE_ALLOCATION, current.to_allocation_request(request)),
    )
    return [(kind, message.SerializeToString()) for kind, message in parts if message is not None]


ONE_STREAM = Layout(
    "Update",
    {UPDATE: v0_11.UPDATE_RESPONSE.decode},
    _whole,
    {UPDATE: lambda rm_id: v0_11.UPDATE_REQUEST.encode(UpdateRequest(rm_id))},
)
"""Release v0.11.0: everything in one stream."""

BY_SUBJECT = Layout(
    "UpdateAllocation, UpdateApplication, UpdateNode",
    {
        UPDATE_ALLOCATION: current.ALLOCATION_RESPONSE.decode,
        UPDATE_APPLICATION: current.APPLICATION_RESPONSE.decode,
        UPDATE_NODE: current.NODE_RESPONSE.decode,
    },
    _by_subject,
    {
        UPDATE_ALLOCATION: lambda rm_id: wire.AllocationRequest(rmID=rm_id).SerializeToString(),
        UPDATE_APPLICATION: lambda rm_id: wire.ApplicationRequest(rmID=rm_id).SerializeToString(),
        UPDATE_NODE: lambda rm_id: wire.NodeRequest(rmID=rm_id).SerializeToString(),
    },
    after_answers=UPDATE_ALLOCATION,
)
"""The newer layout: a stream per subject. Has no UUIDs, and each ask is for one allocation."""

FIRST_DELAY = 0.1
LONGEST_DELAY = 10.0


def doubling() -> Iterator[float]:
    """Yield delays in seconds: `FIRST_DELAY`, and twice the previous one each time, up to `LONGEST_DELAY`."""
    delay = FIRST_DELAY
    while True:
        yield delay
        delay = min(2 * delay, LONGEST_DELAY)


@attrs.frozen
class ClientTls:
    """TLS settings, as files in PEM form.

    `authority` is the CA certificate for the scheduler's certificate (the system's ones by default).
    `certificate` and `key` are the client's own, if the scheduler requires them. `name` is the name in the
    scheduler's certificate, if it differs from the one in the address.
    """

    authority: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    name: str = ""

    def credentials(self) -> grpc.ChannelCredentials:
        """Return the credentials for gRPC; raise `UsageError` for an unreadable file, or half a key pair."""
        if (self.certificate is None) != (self.key is None):
            raise UsageError("ClientTls: certificate and key belong together: give both, or neither")
        return grpc.ssl_channel_credentials(
            _pem("authority", self.authority), _pem("key", self.key), _pem("certificate", self.certificate)
        )


def _pem(field: str, path: Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"ClientTls.{field}: {path} cannot be read: {error.strerror or error}") from error
    if b"-----BEGIN" not in data:
        raise UsageError(f"ClientTls.{field}: {path} is not in PEM form (-----BEGIN ...)")
    return data


@attrs.frozen(kw_only=True)
class ClientOptions:
    """Options of a client."""

    tls: ClientTls | None = None
    layout: Layout = ONE_STREAM
    """`ONE_STREAM` (release v0.11.0), which supports all messages, or `BY_SUBJECT`, as in newer shims."""
    delays: Callable[[], Iterator[float]] = doubling
    """Seconds between attempts to reach the scheduler; starts over after a session of `lasting` seconds."""
    lasting: float = 10.0
    """Minimum seconds of a session after which the delays start over."""
    patience: float = 30.0
    """Seconds for the scheduler to answer a registration or call, and to end a stream."""
    waiting: int = 64
    """Maximum number of queued updates before `update` waits, and of unread responses."""
    message_bytes: int = 64 << 20
    """Maximum bytes of an update; the scheduler accepts no larger ones."""
