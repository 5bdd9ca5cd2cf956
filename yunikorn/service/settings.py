"""How a service is to run: where it listens, how much it keeps, how long it waits."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import attrs

from yunikorn.clock import SECOND
from yunikorn.errors import UsageError
from yunikorn.suggestions import suggest

DEFAULT_ADDRESS = "127.0.0.1:3333"
NONE = "none"
"""Written for a limit that is not there."""


@attrs.frozen
class ServerTls:
    """Certificates; with those of the clients' authority only clients that have one of its are let in."""

    certificate: Path
    key: Path
    client_authority: Path | None = None


@attrs.frozen
class RMLimits:
    """How much one resource manager may have; None is any number."""

    applications: int | None = 100_000
    """Applications that have not ended."""
    asks: int | None = 1_000_000
    """Asks that wait, and those whose allocations run."""
    tags: int | None = 1_000
    """Tags of one application, ask or allocation."""
    resource_types: int | None = 1_000
    """Names of resources, over all that it reports and asks for."""

    @classmethod
    def parse(cls, texts: Iterable[str]) -> RMLimits:
        """Limits from `NAME=NUMBER` and `NAME=none`; raises `UsageError`."""
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
"""The fields by their names on the command line."""


@attrs.frozen
class Limits:
    """How much a service takes and keeps. What is beyond is refused with a status that says so."""

    message_bytes: int = 64 << 20
    """Largest message that is taken."""
    rms: int = 1000
    """Resource managers that are registered."""
    streams: int = 4000
    """Streams at the same time, of all resource managers: of each up to three, and callbacks."""
    connection: int = 400
    """Streams at the same time of one connection."""
    in_flight: int = 16
    """Messages of one stream that are decoded and wait for the core; the rest waits at the sender."""
    waiting: int = 100_000
    """Entries of responses that wait for an RM to read them; an RM that is further behind is cut off."""
    entries: int = 2_000
    """Entries of a response that are sent in one message, so that clients with small limits can take it."""
    notices: int = 10_000
    """Messages that wait on the stream of callbacks."""
    per_rm: RMLimits = RMLimits()
    """How much of each thing one resource manager may have in the core."""


@attrs.frozen
class Patience:
    """How long a service waits, in seconds."""

    session: float | None = 300.0
    """For a paused RM to register again before everything of it is removed; None is for ever."""
    message: float = 30.0
    """For the first message of a stream."""
    stream: float = 60.0
    """For the first stream of an RM that has registered."""
    callback: float = 5.0
    """For the answer to a callback, such as whether a node may take a request."""
    silence: float = 30.0
    """For which an RM that did not answer is not asked again, unless it answers meanwhile."""
    keepalive: float = 20.0
    """Without a sign of life before a connection is tried, and half of that for the answer."""
    stop: float = 10.0
    """For streams to take what is left when the service stops."""
    hang: float = 10.0
    """After which a core that does not move is reported, with the plugin that is at work."""

    @property
    def session_ns(self) -> int | None:
        """The session's, in nanoseconds."""
        return None if self.session is None else round(self.session * SECOND)


@attrs.frozen
class Budget:
    """How much of the core's time a plugin may have; more is reported with its name, and decides nothing."""

    call: float | None = 1.0
    """Seconds that one call may take; None is any."""
    share: float = 0.5
    """Of the looks at the core, those that may find the plugin at work."""
    looks: int = 600
    """After so many the share is counted."""
    interval: float = 0.1
    """Seconds between two looks."""


@attrs.frozen
class Settings:
    """Everything that the network side of a service can be told."""

    address: str = DEFAULT_ADDRESS
    """`HOST:PORT`, port 0 for any that is free, or `unix:PATH`."""
    tls: ServerTls | None = None
    insecure: bool = False
    """Whether to listen to other machines without TLS."""
    accept_unanswered: bool = False
    """Whether a node that an RM did not answer for in time may take the request; otherwise it may not."""
    limits: Limits = Limits()
    patience: Patience = Patience()
    budget: Budget = Budget()
    identity: str = ""
    """The part of a client's certificate that names its resource manager, `cn` or `san`; empty for none."""
