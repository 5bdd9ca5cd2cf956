"""Refusals of calls: the gRPC status and the text for each of our errors."""

from __future__ import annotations

from urllib.parse import quote

import attrs
import grpc

from yunikorn.errors import ConfigError, UsageError, YunikornError, printable
from yunikorn.interface.refused_configuration import places_and_kinds
from yunikorn.interface.threaded import CoreStopped

LARGEST = 6000
"""Maximum length of a percent-encoded status text in bytes; clients accept headers of 8 KiB."""

LONGEST_NAME = 256
"""Maximum length of a quoted name in characters."""


@attrs.frozen
class CallRefusal(Exception):
    """Error that ends a call with a status code and a text."""

    code: grpc.StatusCode
    text: str
    redacted: str = ""
    """Replacement of `text` in the log, where `text` quotes a secret."""

    @property
    def logged(self) -> str:
        """Text for the log."""
        return self.redacted or self.details

    @property
    def details(self) -> str:
        """Text for the client: printable, and at most `LARGEST` bytes when percent-encoded."""
        text = "\n".join(printable(line) for line in self.text.splitlines())
        if len(quote(text)) <= LARGEST:
            return text
        end = f" ... ({len(text)} characters in total)"
        size = 0
        for kept, char in enumerate(text):
            size += len(quote(char))
            if size > LARGEST - 2 * len(end):
                return text[:kept] + end
        return text


def shown(name: str) -> str:
    """Return a name from a client for use in a text: printable, on one line, and not too long."""
    # Cut before escaping, which would take long for a very long name.
    cut = name[:LONGEST_NAME]
    return printable(cut) + ("..." if len(name) > len(cut) else "")


def refusal_of(error: YunikornError) -> CallRefusal:
    """Return the refusal for an error of ours."""
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
    """Return the refusal of a stream whose RM has no session."""
    text = "is not registered: call RegisterResourceManager, then open the stream"
    return CallRefusal(grpc.StatusCode.FAILED_PRECONDITION, f"resource manager '{shown(rm_id)}' {text}")
