"""Default event sinks: `log` and `jsonl`.

    events:
      sinks:
        - log                                   # Python's logging
        - name: jsonl                           # a file with one JSON object per line
          path: /var/log/yunikorn/events.jsonl
          wants: [APP, "NODE:NODE_ALLOC"]       # these events only; every sink here has this option

A sink receives events in batches, oldest first. The core calls `opened` before the first batch and `closed`
after the last. A sink that raises an exception is disabled and reported; scheduling continues.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

import attrs

from yunikorn.api import Context, Event, EventSink, hookimpl

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
# `json.dumps` makes an encoder for each call, which takes as long as encoding an event.
_ENCODER = json.JSONEncoder(ensure_ascii=False)


@attrs.frozen
class Log(EventSink):
    """Events as lines of Python's `logging`."""

    name = "log"
    level: str = attrs.field(default="INFO")
    """Log level: DEBUG, INFO, WARNING or ERROR."""
    logger: str = "yunikorn.events"
    """Name of the logger; a program that embeds the scheduler can configure this logger."""
    wants: tuple[str, ...] | None = None
    """Types of events, or types with a detail; all events by default."""

    @level.validator
    def _is_level(self, _: object, value: str) -> None:
        if value.upper() not in LEVELS:
            raise ValueError(f"level must be one of {', '.join(LEVELS)}, got '{value}'")

    def send(self, batch: Sequence[Event]) -> None:
        """Log one line per event."""
        logger, level = logging.getLogger(self.logger), logging.getLevelNamesMapping()[self.level.upper()]
        if logger.isEnabledFor(level):
            for event in batch:
                logger.log(level, "%s", line_of(event))


@attrs.define(eq=False)
class JsonLines(EventSink):
    """Events as JSON objects, one a line, appended to a file."""

    name = "jsonl"
    path: Path
    """File to append to; created if missing, but its folder must exist."""
    wants: tuple[str, ...] | None = None
    """Types of events, or types with a detail; all events by default."""
    _file: TextIO | None = attrs.field(init=False, default=None, repr=False)

    def opened(self, context: Context) -> None:
        """Open the file at once, so that an invalid path is reported at the start."""
        self._open()

    def send(self, batch: Sequence[Event]) -> None:
        """Write and flush the batch."""
        file = self._open()
        encode = _ENCODER.encode
        file.writelines(f"{encode(as_record(event))}\n" for event in batch)
        file.flush()

    def closed(self) -> None:
        """Close the file if it is open."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> TextIO:
        if self._file is None:
            self._file = self.path.open("a", encoding="utf-8", newline="\n")
        return self._file


def as_record(event: Event) -> dict[str, Any]:
    """Return the event with the field names of YuniKorn's event records, and the additional ones if set."""
    record: dict[str, Any] = {
        "timestampNano": event.timestamp,
        "type": event.type,
        "objectID": event.object_id,
        "referenceID": event.reference_id,
        "eventChangeType": event.change,
        "eventChangeDetail": event.detail,
        "message": event.message,
    }
    if event.reason:
        record["reason"] = event.reason
    # No loop over the fields: each event is written, and a loop takes twice the steps.
    if event.application_id:
        record["applicationID"] = event.application_id
    if event.queue:
        record["queueName"] = event.queue
    if event.node_id:
        record["nodeID"] = event.node_id
    if event.resource is not None:
        record["resource"] = dict(sorted(event.resource.items()))
    return record


def line_of(event: Event) -> str:
    """Return the event as text without empty fields: `APP app-1 ADD APP_ALLOC ask-7: message`."""
    words = [event.type, event.object_id, event.change, event.detail, event.reason, event.reference_id]
    text = " ".join(word for word in words if word and word not in ("NONE", "DETAILS_NONE"))
    if event.resource:
        text += " (" + ", ".join(f"{name} {amount}" for name, amount in sorted(event.resource.items())) + ")"
    return f"{text}: {event.message}" if event.message else text


@hookimpl
def yunikorn_event_sinks() -> list[type[EventSink]]:
    """Return the sinks for the log and for a file."""
    return [Log, JsonLines]
