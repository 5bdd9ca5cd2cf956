"""Errors between a resource manager and its scheduler."""

from __future__ import annotations

import grpc

from yunikorn.errors import YunikornError, printable


class ClientError(YunikornError):
    """Base of all errors that a client raises because of the scheduler or the connection."""


class Refused(ClientError):
    """Refusal of a registration or message, which the scheduler would refuse again; see the text."""


class TakenOver(ClientError):
    """Loss of the session to another client, which has registered with the same resource manager id."""


class ConnectionLost(ClientError):
    """End of the session without a report with which another one could begin."""


class CallFailed(ClientError):
    """Failure of a call, for the scheduler's reason, or by a lost connection before the answer."""


class Interrupted(Exception):
    """End of a session after which another one can begin; internal to the client."""


class OutOfStep(Interrupted):
    """Request of the scheduler for a full report, by RESYNC."""


FINAL_CODES = {
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
    """Return the error for the end of a call: `Interrupted` if a new session may begin, else a final one."""
    said = "\n".join(printable(line) for line in text.splitlines())
    if code is grpc.StatusCode.ABORTED:
        if text.startswith(RESYNC):
            return OutOfStep(said)
        return TakenOver(f"{what}: {said}")
    if code in FINAL_CODES:
        return Refused(f"{what}: {said} ({code.name})")
    return Interrupted(f"{what}: {said or 'the connection was lost'} ({code.name})")
