"""Settings of events that a resource manager sends beside its configuration, with the names of YuniKorn 1.9.

A resource manager sends them with its registration, in `extra_config`. They concern the store of events and
its readers, and never a decision (`docs/decisions/archive/0101`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

import attrs

from yunikorn.errors import printable
from yunikorn.text import suggest

_log = logging.getLogger("yunikorn.sessions")

PREFIX = "event."
LONGEST = 40
"""Number of characters of a bad value that a message shows."""
TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))


@attrs.frozen
class EventSettings:
    """Settings of events; None where nothing is set."""

    tracking: bool | None = None
    """False to keep no events of this resource manager."""
    capacity: int | None = None
    """Number of events that the store keeps."""
    records: int | None = None
    """Number of events in one answer."""
    streams: int | None = None
    """Number of streams."""
    per_host: int | None = None
    """Number of streams of clients with the same address."""


@attrs.frozen
class _Number:
    """A key whose value is a number."""

    field: str
    """Field of `EventSettings`; empty for a key that has no effect here."""
    most: int
    zero_is_default: bool = True


_NUMBERS: Mapping[str, _Number] = {
    "event.ringBufferCapacity": _Number("capacity", 1_000_000),
    "event.RESTResponseSize": _Number("records", 100_000),
    "event.maxStreams": _Number("streams", 1_000, zero_is_default=False),
    "event.maxStreamsPerHost": _Number("per_host", 1_000, zero_is_default=False),
    "event.requestCapacity": _Number("", 2**64 - 1),
}
TRACKING = "event.trackingEnabled"
KEYS = (TRACKING, *_NUMBERS)
"""Known keys. `event.requestCapacity` has no effect: events for the resource manager are not stored."""


def read_event_settings(extra_config: Mapping[str, str]) -> tuple[EventSettings, list[str]]:
    """Return the settings among these entries, and all problems; the default applies to a bad value."""
    found: dict[str, int] = {}
    tracking: bool | None = None
    problems: list[str] = []
    for key in sorted(extra_config):
        text = extra_config[key].strip()
        shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
        if key == TRACKING:
            if text in TRUE or text in FALSE:
                tracking = text in TRUE
            else:
                problems.append(f"{key}: {shown!r} is neither true nor false; events are kept")
        elif key in _NUMBERS:
            number = _NUMBERS[key]
            amount = _amount(text)
            if amount is None or amount > number.most:
                problems.append(
                    f"{key}: {shown!r} is not a number from 0 to {number.most}; the default applies"
                )
            elif number.field and (amount or not number.zero_is_default):
                found[number.field] = amount
        elif key.startswith(PREFIX):
            problems.append(f"{key}: unknown and ignored{suggest(key, KEYS)}")
    return EventSettings(tracking, **found), problems


def event_settings_of(label: str, extra_config: Mapping[str, str]) -> EventSettings:
    """Return the settings of a resource manager, and log all problems together."""
    settings, problems = read_event_settings(extra_config)
    if problems:
        _log.warning("%s", printable(f"{label}: settings of events: {'; '.join(problems)}"))
    return settings


def _amount(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else None


def combined(several: Iterable[EventSettings]) -> EventSettings:
    """Return settings for all resource managers together: the largest of each number.

    Events are tracked unless each resource manager has switched them off.
    """
    known = list(several)

    def largest(field: str) -> int | None:
        return max((value for one in known if (value := getattr(one, field)) is not None), default=None)

    return EventSettings(
        tracking=any(one.tracking is not False for one in known) if known else None,
        capacity=largest("capacity"),
        records=largest("records"),
        streams=largest("streams"),
        per_host=largest("per_host"),
    )
