"""What a client hears: our errors as a status of gRPC with a text."""

from __future__ import annotations

from urllib.parse import quote

import attrs
import grpc

from yunikorn.errors import ConfigError, UsageError, YunikornError, printable
from yunikorn.interface.refused_configuration import places_and_kinds
from yunikorn.interface.threaded import CoreStopped

LARGEST = 6000
"""Bytes of a text. A status travels in a header, of which clients take 8 KiB, escaped byte by byte."""

LONGEST_NAME = 256
"""Characters of a name that a text quotes."""


@attrs.frozen
class CallRefusal(Exception):
    """A call ends with this status and text."""

    code: grpc.StatusCode
    text: str
    redacted: str = ""
    """The text for the log, where `text` quotes a secret."""

    @property
    def logged(self) -> str:
        """The text for the log."""
        return self.redacted or self.details

    @property
    def details(self) -> str:
        """The text as it may travel."""
        text = "\n".join(printable(line) for line in self.text.splitlines())
        if len(quote(text)) <= LARGEST:
            return text
        end = f" ... ({len(text)} characters in all)"
        size = 0
        for kept, char in enumerate(text):
            size += len(quote(char))
            if size > LARGEST - 2 * len(end):
                return text[:kept] + end
        return text


def shown(name: str) -> str:
    """A name that a client gave, as texts quote it: in one line, and short."""
    # Before it is escaped, which would take long for a long one.
    cut = name[:LONGEST_NAME]
    return printable(cut) + ("..." if len(name) > len(cut) else "")


def refusal_of(error: YunikornError) -> CallRefusal:
    """The status for an error of ours."""
    if isinstance(error, CoreStopped):
        return CallRefusal(grpc.StatusCode.UNAVAILABLE, str(error))
    if isinstance(error, ConfigError):
        text = f"the configuration cannot be used:\n{error}"
        return CallRefusal(
            grpc.StatusCode.INVALID_ARGUMENT,
            text,
            f"the configuration cannot be used: {places_and_kinds(error)}",
        )
    if isinstance(error, UsageError):
        return CallRefusal(grpc.StatusCode.FAILED_PRECONDITION, str(error))
    return CallRefusal(grpc.StatusCode.INVALID_ARGUMENT, str(error))


def not_registered(rm_id: str) -> CallRefusal:
    """Said to a stream that comes too early, or too late."""
    text = "is not registered: call RegisterResourceManager, then open the stream"
    return CallRefusal(grpc.StatusCode.FAILED_PRECONDITION, f"resource manager '{shown(rm_id)}' {text}")
