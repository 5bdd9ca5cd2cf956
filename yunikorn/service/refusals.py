"""What a client hears: our errors as a status of gRPC with a text."""

from __future__ import annotations

import attrs
import grpc

from yunikorn.errors import ConfigError, UsageError, YunikornError, printable
from yunikorn.interface.threaded import CoreStopped

LONGEST = 4000
"""Characters of a text; a status travels in a header, which has little room (8 KiB is usual)."""


@attrs.frozen
class Refusal(Exception):
    """A call ends with this status and text."""

    code: grpc.StatusCode
    text: str

    @property
    def details(self) -> str:
        """The text as it may travel."""
        text = "\n".join(printable(line) for line in self.text.splitlines())
        return text if len(text) <= LONGEST else f"{text[:LONGEST]} ... ({len(text)} characters in all)"


def refusal_of(error: YunikornError) -> Refusal:
    """The status for an error of ours."""
    if isinstance(error, CoreStopped):
        return Refusal(grpc.StatusCode.UNAVAILABLE, str(error))
    if isinstance(error, ConfigError):
        return Refusal(grpc.StatusCode.INVALID_ARGUMENT, f"the configuration cannot be used:\n{error}")
    if isinstance(error, UsageError):
        return Refusal(grpc.StatusCode.FAILED_PRECONDITION, str(error))
    return Refusal(grpc.StatusCode.INVALID_ARGUMENT, str(error))


def not_registered(rm_id: str) -> Refusal:
    """Said to a stream that comes too early, or too late."""
    return Refusal(
        grpc.StatusCode.FAILED_PRECONDITION,
        f"resource manager '{rm_id}' is not registered: call RegisterResourceManager, then open the stream",
    )
