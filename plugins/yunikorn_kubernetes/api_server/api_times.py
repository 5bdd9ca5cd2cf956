"""Times as the API writes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from yunikorn.clock import MICROSECOND, SECOND, Clock

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micro_time(clock: Clock) -> str:
    """Return the present time with microseconds, for leases and events."""
    return (_EPOCH + timedelta(microseconds=clock.now() // MICROSECOND)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def whole_seconds(clock: Clock) -> str:
    """Return the present time in seconds, for conditions."""
    return (_EPOCH + timedelta(seconds=clock.now() // SECOND)).strftime("%Y-%m-%dT%H:%M:%SZ")
