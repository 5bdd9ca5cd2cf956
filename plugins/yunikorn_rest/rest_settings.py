"""Settings of the REST interface of a service, and of its events."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import attrs

from yunikorn.errors import UsageError
from yunikorn.text import suggest

DEFAULT_REST = "127.0.0.1:9080"


@attrs.frozen
class EventLimits:
    """Limits of the store of events and of its readers, for resource managers that set none."""

    stored: int = 100_000
    """Number of events that are kept."""
    decisions: int = 100_000
    """Number of decisions that are kept."""
    streams: int = 100
    """Number of streams."""
    streams_per_host: int = 15
    """Number of streams of clients with the same address."""
    answer: int = 10_000
    """Number of events in one answer."""

    @classmethod
    def parse(cls, texts: Iterable[str]) -> EventLimits:
        """Parse `NAME=NUMBER`; raises `UsageError` with all problems."""
        given: dict[str, int] = {}
        problems: list[str] = []
        for text in texts:
            name, _, number = text.partition("=")
            if name not in EVENT_LIMITS:
                hint = f"{suggest(name, EVENT_LIMITS)}; known: {', '.join(EVENT_LIMITS)}"
                problems.append(f"--event-limit {text}: no limit is called '{name}'{hint}")
            elif not (number.isascii() and number.isdigit() and 0 < int(number[:20]) <= MOST_EVENTS):
                problems.append(
                    f"--event-limit {text}: give NAME=NUMBER from 1 to {MOST_EVENTS}, such as stored=500000"
                )
            else:
                given[EVENT_LIMITS[name]] = int(number)
        if problems:
            raise UsageError("\n".join(problems))
        return cls(**given)


MOST_EVENTS = 10_000_000
"""Largest limit of events."""
EVENT_LIMITS = {field.name.replace("_", "-"): field.name for field in attrs.fields(EventLimits)}
"""Fields of `EventLimits` by their names on the command line."""


@attrs.frozen
class RestSettings:
    """Settings of the REST interface."""

    address: str = DEFAULT_REST
    """`HOST:PORT`, with port 0 for any free port."""
    is_default: bool = False
    """True if the address was not given; then the service also runs if the address is in use."""
    hosts: tuple[str, ...] = ()
    """Names of this machine in requests, besides those of the loopback interface."""
    is_open: bool = False
    """True to let other machines read without a certificate."""
    credentials: Path | None = None
    """File with the credentials of operators; None if nothing may be changed."""
    audit_log: Path | None = None
    """File of the audit log; None for the log of the service only."""
    events: EventLimits = EventLimits()
