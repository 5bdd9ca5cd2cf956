"""Conversion between bytes and messages, for gRPC servers and clients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import attrs
from google.protobuf.message import DecodeError, Message

from yunikorn.wire.malformed import MalformedMessage

Plain = TypeVar("Plain")
Wire = TypeVar("Wire", bound=Message)


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

    to_wire: Callable[[Plain], Wire]

    def encode(self, plain: Plain) -> bytes:
        """Encode a message; raise `MalformedMessage` if it cannot be expressed in this layout."""
        return self.to_wire(plain).SerializeToString()
