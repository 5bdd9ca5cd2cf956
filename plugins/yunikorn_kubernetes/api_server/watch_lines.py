"""Decoding of watch streams: lines of JSON, each with an event and its object."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from enum import Enum
from typing import Any, Generic, TypeVar

import msgspec

from yunikorn_kubernetes.objects import ObjectMeta

_log = logging.getLogger("yunikorn.kubernetes")

T = TypeVar("T")

LARGEST_LINE = 64 * 2**20
"""Bytes of a line after which a stream is refused; objects have at most a few megabytes."""


class WatchEventType(Enum):
    """Kinds of events of a watch."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class WatchEvent(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """Change of an object; the object of a deletion is its last state."""

    type: WatchEventType
    object: T


class Bookmark(msgspec.Struct, frozen=True):
    """Version up to which a watch has reported all changes."""

    resource_version: str


class StatusDetails(msgspec.Struct, rename="camel"):
    """Details of a failure."""

    retry_after_seconds: int = 0


class Status(msgspec.Struct, rename="camel"):
    """Failure of a call, as the server describes it."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: StatusDetails | None = None


class _RawEvent(msgspec.Struct):
    type: str = ""
    object: msgspec.Raw = msgspec.Raw(b"null")


class _Named(msgspec.Struct):
    metadata: ObjectMeta = ObjectMeta()


_raw_decoder = msgspec.json.Decoder(_RawEvent)
_status_decoder = msgspec.json.Decoder(Status)
_name_decoder = msgspec.json.Decoder(_Named)


def describe_object(text: bytes) -> str:
    """Return `namespace/name` of an object in JSON, or the beginning of the text."""
    try:
        metadata = _name_decoder.decode(text).metadata
        return f"{metadata.namespace}/{metadata.name}".strip("/")
    except msgspec.DecodeError:
        return repr(text[:80])


class WatchLines(Generic[T]):
    """Decoder of one watch stream; pieces of the stream may end anywhere."""

    def __init__(self, kind: str, struct: type[T]) -> None:
        self._kind = kind
        event_type: Any = WatchEvent
        self._decoder: msgspec.json.Decoder[WatchEvent[T]] = msgspec.json.Decoder(event_type[struct])
        self._rest = b""
        """Begin of a line whose end has not arrived."""

    def feed(self, piece: bytes) -> Iterator[WatchEvent[T] | Bookmark | Status]:
        """Return the events whose lines are complete with `piece`; an error of the server is a `Status`.

        A line that cannot be decoded is logged and left out, since one object must not stop all others.
        """
        if self._rest:
            piece = self._rest + piece
        *lines, self._rest = piece.split(b"\n")
        for line in lines:
            if line:
                event = self._event(line)
                if event is not None:
                    yield event
        if len(self._rest) > LARGEST_LINE:
            yield Status(500, "InternalError", f"a line of the watch has more than {LARGEST_LINE} bytes")

    def _event(self, line: bytes) -> WatchEvent[T] | Bookmark | Status | None:
        try:
            return self._decoder.decode(line)
        except msgspec.DecodeError as error:
            return self._other(line, error)

    def _other(self, line: bytes, cause: msgspec.DecodeError) -> Bookmark | Status | None:
        """Return the bookmark or error in a line; anything else is logged.

        The object of a bookmark has nulls where other objects never have them.
        """
        try:
            raw = _raw_decoder.decode(line)
            if raw.type == "ERROR":
                return _status_decoder.decode(raw.object)
            if raw.type == "BOOKMARK":
                return Bookmark(_name_decoder.decode(raw.object).metadata.resource_version)
            line = bytes(raw.object)
        except msgspec.DecodeError as error:
            cause = error
        _log.error("an event of %s %s is left out: %s", self._kind, describe_object(line), cause)
        return None
