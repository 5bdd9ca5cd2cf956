"""Errors between a resource manager and its scheduler."""

from __future__ import annotations

import grpc

from yunikorn.errors import YunikornError, printable


class ClientError(YunikornError):
    """Base of all errors that a client raises because of the scheduler or the connection."""


class Refused(ClientError):
    """The scheduler refuses this registration or message, and would refuse it again; see the text."""


class TakenOver(ClientError):
    """Another client has registered with the id of this resource manager, and has taken over its session."""


class ConnectionLost(ClientError):
    """The session has ended, and there is no report with which to begin another one."""


class CallFailed(ClientError):
    """A call failed, for the scheduler's reason, or because the connection was lost before its answer."""


class Interrupted(Exception):
    """A session has ended, but another one can begin; internal to the client."""


class OutOfStep(Interrupted):
    """The scheduler requests a full report, by RESYNC."""


HOPELESS = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.OUT_OF_RANGE,
}
"""Status codes with which a retry would fail again."""
RESYNC = "RESYNC"
"""Beginning of a status text that requests a full report, in the layout without a field for the action."""


def judge(code: grpc.StatusCode, text: str, what: str) -> Exception:
    """Return the error for the end of a call: `Interrupted` if a new session may begin, else one for users.


    """
    said = "\n".join(printable(line) for line in text.splitlines())
    if code is grpc.StatusCode.ABORTED:
        if text.startswith(RESYNC):
            return OutOfStep(said)
        return TakenOver(f"{what}: {said}")
    if code in HOPELESS:
        return Refused(f"{what}: {said} ({code.name})")
    return Interrupted(f"{what}: {said or 'the connection was lost'} ({code.name})")
