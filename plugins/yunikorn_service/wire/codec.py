"""Conversion between bytes and messages, for gRPC servers and clients; errors name the invalid field."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, NoReturn, TypeVar

import attrs
from google.protobuf.message import DecodeError, Message

from yunikorn.errors import YunikornError, printable

Plain = TypeVar("Plain")
Wire = TypeVar("Wire", bound=Message)
Entry = TypeVar("Entry")

REFUSED = (ValueError, TypeError, AttributeError, LookupError)
"""Errors for a value that does not fit its field: of protobuf, or of a value with another type."""


class MalformedMessage(YunikornError):
    """A message that the interface does not allow; `path` is the invalid field (`asks[3].priority`)."""

    def __init__(self, path: str, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(printable(f"{path}: {reason}" if path else reason))


@attrs.frozen
class Decoder(Generic[Plain, Wire]):
    """Conversion from bytes to a message, for one kind of message."""

    wire: type[Wire]
    from_wire: Callable[[Wire], Plain]

    def decode(self, data: bytes) -> Plain:
        """Decode bytes; raise `MalformedMessage`."""
        try:
            message = self.wire.FromString(data)
        except (DecodeError, ValueError) as error:
            # Raised for text that is not UTF-8, and for bytes that are no message at all.
            name = self.wire.DESCRIPTOR.name
            raise MalformedMessage("", f"these {len(data)} bytes are not a valid {name}: {error}") from error
        return self.from_wire(message)


@attrs.frozen
class Codec(Decoder[Plain, Wire]):
    """Conversion between bytes and a message, in both directions."""

    fill: Callable[[Plain, Any], None]
    """Encodes a message into an empty protobuf message; raises `MalformedMessage` or one of `REFUSED`."""

    def to_wire(self, plain: Plain) -> Wire:
        """Encode a message; raise `MalformedMessage` if it cannot be expressed in this layout."""
        message = self.wire()
        fill_one("", plain, self.fill, message)
        return message

    def encode(self, plain: Plain) -> bytes:
        """Encode a message as bytes; raise `MalformedMessage` if it cannot be expressed in this layout."""
        return self.to_wire(plain).SerializeToString()


# -- encoding with errors that name the field ---------------------------------------------------------------


def fill_all(path: str, entries: Iterable[Entry], fill: Callable[[Entry, Any], None], into: Any) -> None:
    """Encode all entries; raise `MalformedMessage` with the field of the first invalid one."""
    index = 0
    entry = None
    try:
        for index, entry in enumerate(entries):  # noqa: B007
            fill(entry, into.add())
    except MalformedMessage as error:
        raise MalformedMessage(f"{path}[{index}].{error.path}", error.reason) from error
    except REFUSED as error:
        _blame(f"{path}[{index}]", entry, lambda one: fill(one, into.add()), error)


def fill_one(path: str, entry: Entry, fill: Callable[[Entry, Any], None], into: Message) -> None:
    """Encode a single entry; raise `MalformedMessage` like `fill_all`."""
    try:
        fill(entry, into)
    except MalformedMessage as error:
        if not path:
            raise
        raise MalformedMessage(f"{path}.{error.path}", error.reason) from error
    except REFUSED as error:
        _blame(path, entry, lambda one: fill(one, into), error)


def _blame(path: str, entry: Any, fill: Callable[[Any], object], error: Exception) -> NoReturn:
    """Raise `MalformedMessage` for an entry that could not be encoded, with the field if it can be found.

    `fill` encodes an entry of this class, and has raised `error`. The function tries each field alone to find
    the invalid one.
    """
    fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(type(entry)) if attrs.has(type(entry)) else ()
    empty = {field.name: "" for field in fields if field.default is attrs.NOTHING and field.init}
    for field in fields:
        value = getattr(entry, field.name)
        try:
            fill(type(entry)(**{**empty, field.name: value}))
        except REFUSED as reason:
            raise MalformedMessage(
                f"{path}.{field.name}" if path else field.name, _why(reason, value)
            ) from error
    raise MalformedMessage(path, _why(error, entry)) from error


def _why(error: Exception, value: object) -> str:
    if isinstance(error, ValueError):
        return f"{error}"
    return f"a {type(value).__name__} is not allowed here ({error})"
