"""From bytes to a message and back: what a server or client of gRPC is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import attrs
from google.protobuf.message import DecodeError, Message

from yunikorn.interface.wire.malformed import MalformedMessage

Plain = TypeVar("Plain")
Wire = TypeVar("Wire", bound=Message)


@attrs.frozen
class Decoder(Generic[Plain, Wire]):
    """From the bytes of one kind of message to what it says in process."""

    wire: type[Wire]
    from_wire: Callable[[Wire], Plain]

    def decode(self, data: bytes) -> Plain:
        """What these bytes say; raises `MalformedMessage`."""
        try:
            message = self.wire.FromString(data)
        except (DecodeError, ValueError) as error:
            # Text that is not UTF-8 is among this, as well as bytes that are no message at all.
            name = self.wire.DESCRIPTOR.name
            raise MalformedMessage("", f"these {len(data)} bytes are no {name}: {error}") from error
        return self.from_wire(message)


@attrs.frozen
class Codec(Decoder[Plain, Wire]):
    """Both ways."""

    to_wire: Callable[[Plain], Wire]

    def encode(self, plain: Plain) -> bytes:
        """The bytes that say this; raises `MalformedMessage` for what no message can say."""
        return self.to_wire(plain).SerializeToString()
