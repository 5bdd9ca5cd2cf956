"""How a client finds its scheduler, and how patient it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import grpc

from yunikorn.errors import UsageError
from yunikorn.interface.client.layouts import ONE_STREAM, Layout

FIRST_DELAY = 0.1
LONGEST_DELAY = 10.0


def doubling() -> Iterator[float]:
    """Delays in seconds: a tenth, and twice as much each time, up to ten."""
    delay = FIRST_DELAY
    while True:
        yield delay
        delay = min(2 * delay, LONGEST_DELAY)


@attrs.frozen
class ClientTls:
    """Encryption, by files in PEM form.

    `authority` is the certificate by which the scheduler is known (without it, those of the system);
    `certificate` and `key` are the client's own, where the scheduler asks for one. `name` is the name in the
    scheduler's certificate, where it is not the one in the address.
    """

    authority: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    name: str = ""

    def credentials(self) -> grpc.ChannelCredentials:
        """What gRPC needs; raises `UsageError` for a file that cannot be read, or half a pair."""
        if (self.certificate is None) != (self.key is None):
            raise UsageError("Tls: certificate and key belong together: give both, or neither")
        return grpc.ssl_channel_credentials(
            _pem("authority", self.authority), _pem("key", self.key), _pem("certificate", self.certificate)
        )


def _pem(field: str, path: Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"Tls.{field}: {path} cannot be read: {error.strerror or error}") from error
    if b"-----BEGIN" not in data:
        raise UsageError(f"Tls.{field}: {path} is not in PEM form (-----BEGIN ...)")
    return data


@attrs.frozen(kw_only=True)
class ClientOptions:
    """What a client can be told."""

    tls: ClientTls | None = None
    layout: Layout = ONE_STREAM
    """`ONE_STREAM` (release v0.11.0), which can say everything, or `BY_SUBJECT`, as newer shims speak."""
    delays: Callable[[], Iterator[float]] = doubling
    """Seconds between attempts to reach the scheduler; asked for anew after a session that lasted."""
    lasting: float = 10.0
    """Seconds after which a session counts as one that lasted."""
    patience: float = 30.0
    """Seconds for an answer of the scheduler to a registration or a call, and for it to end a stream."""
    waiting: int = 64
    """Updates that may wait to be sent before `update` waits, and responses that wait to be read."""
    message_bytes: int = 64 << 20
    """The largest update; the scheduler takes no larger ones."""
