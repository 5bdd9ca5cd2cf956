"""Settings of a service: address, limits and timeouts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import attrs

from yunikorn.clock import SECOND
from yunikorn.errors import UsageError
from yunikorn.text import suggest

DEFAULT_ADDRESS = "127.0.0.1:3333"
NONE = "none"
"""Word for an absent limit on the command line."""


@attrs.frozen
class ServerTls:
    """TLS files of a server; with `client_authority`, clients need a certificate of that authority."""

    certificate: Path
    key: Path
    client_authority: Path | None = None


@attrs.frozen
class RMLimits:
    """Limits of one resource manager; None for no limit."""

    applications: int | None = 100_000
    """Number of applications that have not ended."""
    asks: int | None = 1_000_000
    """Number of pending asks and of asks with running allocations."""
    tags: int | None = 1_000
    """Number of tags of one application, ask or allocation."""
    resource_types: int | None = 1_000
    """Number of different resource names in all reports and requests."""

    @classmethod
    def parse(cls, texts: Iterable[str]) -> RMLimits:
        """Parse `NAME=NUMBER` and `NAME=none`; raises `UsageError`."""
        given: dict[str, int | None] = {}
        for text in texts:
            name, _, number = text.partition("=")
            if name not in LIMITS:
                hint = f"{suggest(name, LIMITS)}; known: {', '.join(LIMITS)}"
                raise UsageError(f"--limit {text}: no limit is called '{name}'{hint}")
            if number != NONE and not (number.isascii() and number.isdigit() and int(number) > 0):
                raise UsageError(f"--limit {text}: give NAME=NUMBER, such as asks=50000, or {name}={NONE}")
            given[LIMITS[name]] = None if number == NONE else int(number)
        return cls(**given)


LIMITS = {field.name.replace("_", "-"): field.name for field in attrs.fields(RMLimits)}
"""Fields of `RMLimits` by their names on the command line."""


@attrs.frozen
class ServiceLimits:
    """Limits of a service. Calls and messages beyond a limit are refused with a status."""

    message_bytes: int = 64 << 20
    """Maximum size of a received message in bytes."""
    rms: int = 1000
    """Number of registered resource managers."""
    streams: int = 4000
    """Number of open streams of all resource managers; each has up to three, and one for callbacks."""
    connection: int = 400
    """Number of open streams of one connection."""
    in_flight: int = 16
    """Number of decoded messages per stream that wait for the core; further messages wait at the sender."""
    waiting: int = 100_000
    """Number of response entries that wait for an RM; the streams of an RM beyond this limit are ended."""
    entries: int = 2_000
    """Number of entries per response message; larger responses are split, for clients with small limits."""
    notices: int = 10_000
    """Number of notices that wait on a callback stream."""
    per_rm: RMLimits = RMLimits()


@attrs.frozen
class Patience:
    """Waiting times of a service, in seconds."""

    session: float | None = 300.0
    """Time for a paused RM to register again before its objects are removed; None for no limit."""
    message: float = 30.0
    """Time for the first message of a stream to arrive."""
    stream: float = 60.0
    """Time for a registered RM to open its first stream."""
    callback: float = 5.0
    """Time for an RM to answer a callback, such as a predicate."""
    silence: float = 30.0
    """Time for which an RM is not asked after a missing answer, unless an answer arrives."""
    keepalive: float = 20.0
    """Idle time before a connection is probed; the peer has half of this time to respond."""
    pings: float = 5.0
    """Minimum time between two probes of a peer; one that probes more often is disconnected."""
    stop: float = 10.0
    """Time for sending the waiting responses when the service stops."""
    reading: float = 60.0
    """Time for the code of plugins that is executed while configurations are read, such as imports."""
    hang: float = 10.0
    """Time without progress after which the core is reported as hanging, with the running plugin."""
    sink: float = 60.0
    """Time that one call of an event sink may take; then the sink is reported and switched off."""

    @property
    def session_ns(self) -> int | None:
        """Session timeout in nanoseconds; None for no limit."""
        return None if self.session is None else round(self.session * SECOND)


@attrs.frozen
class Budget:
    """Limits on the core's time per plugin; plugins beyond a limit are only reported."""

    call: float | None = 1.0
    """Maximum duration of one call in seconds; None for no limit."""
    share: float = 0.5
    """Maximum fraction of samples that find the plugin running."""
    samples: int = 600
    """Number of samples from which a share is computed."""
    interval: float = 0.1
    """Seconds between two samples."""


@attrs.frozen
class ServerSettings:
    """Settings of the network side of a service."""

    address: str = DEFAULT_ADDRESS
    """`HOST:PORT`, with port 0 for any free port, or `unix:PATH`."""
    tls: ServerTls | None = None
    insecure: bool = False
    """True to allow connections from other machines without TLS."""
    accept_unanswered: bool = False
    """True if a node may take the request when the RM does not answer in time."""
    limits: ServiceLimits = ServiceLimits()
    patience: Patience = Patience()
    budget: Budget = Budget()
    identity: str = ""
    """Part of a client's certificate that names its resource manager, `cn` or `san`; empty for no check."""
