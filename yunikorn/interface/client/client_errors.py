"""What can go wrong between a resource manager and its scheduler."""

from __future__ import annotations

import grpc

from yunikorn.errors import YunikornError, printable


class ClientError(YunikornError):
    """The base of all errors that a client raises because of the scheduler or the way to it."""


class Refused(ClientError):
    """The scheduler will not have this registration or message, however often it is tried: see the text."""


class TakenOver(ClientError):
    """Another client has registered with the id of this resource manager, and has its session now."""


class ConnectionLost(ClientError):
    """The session is over, and there is no report with which to begin another one."""


class CallFailed(ClientError):
    """A call was not carried out: the scheduler says why, or the connection was lost before it answered."""


class Interrupted(Exception):
    """A session is over for now: another one can be begun. Not for users."""


class OutOfStep(Interrupted):
    """The scheduler needs a full report: it said RESYNC."""


HOPELESS = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.OUT_OF_RANGE,
}
"""With these the next attempt would end as this one did."""
RESYNC = "RESYNC"
"""How the text of a status begins that asks for a full report, in the layout without a field for it."""


def judge(code: grpc.StatusCode, text: str, what: str) -> Exception:
    """What the end of a call means: `Interrupted` if another session may begin, else an error for users."""
    said = "\n".join(printable(line) for line in text.splitlines())
    if code is grpc.StatusCode.ABORTED:
        if text.startswith(RESYNC):
            return OutOfStep(said)
        return TakenOver(f"{what}: {said}")
    if code in HOPELESS:
        return Refused(f"{what}: {said} ({code.name})")
    return Interrupted(f"{what}: {said or 'the connection was lost'} ({code.name})")
