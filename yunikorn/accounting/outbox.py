"""Outbox: entries of the next response to the RM, answers to unknown releases included."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import attrs

from yunikorn.model.allocation import PreemptionMode

if TYPE_CHECKING:
    from yunikorn.model.allocation import Allocation, TerminationType
    from yunikorn.states import StateLogEntry


@attrs.frozen(slots=True)
class Release:
    """An allocation that ended."""

    allocation: Allocation
    termination: TerminationType
    message: str
    mode: PreemptionMode = PreemptionMode.END


@attrs.frozen(slots=True)
class AskRelease:
    """An ask dropped by the scheduler."""

    application_id: str
    key: str
    termination: TerminationType
    message: str


@attrs.frozen(slots=True)
class Refusal:
    """A rejected application, node, or ask of an application."""

    object_id: str
    reason: str
    application_id: str = ""


@attrs.frozen(slots=True)
class SchedulingState:
    """Scheduling state of a request, reported separately from responses (`docs/decisions/archive/0037`)."""

    application_id: str
    key: str
    state: str
    reason: str


@attrs.define(slots=True)
class Outbox:
    """Unsent messages of a partition, oldest first."""

    allocations: list[Allocation] = attrs.Factory(list)
    releases: list[Release] = attrs.Factory(list)
    unknown_releases: list[UnknownRelease] = attrs.Factory(list)
    ask_releases: list[AskRelease] = attrs.Factory(list)
    rejected_asks: list[Refusal] = attrs.Factory(list)
    accepted_applications: list[str] = attrs.Factory(list)
    rejected_applications: list[Refusal] = attrs.Factory(list)
    updated_applications: list[tuple[str, StateLogEntry]] = attrs.Factory(list)
    """Application ids with the states entered."""
    accepted_nodes: list[str] = attrs.Factory(list)
    rejected_nodes: list[Refusal] = attrs.Factory(list)
    failed_node_updates: list[Refusal] = attrs.Factory(list)

    @property
    def is_empty(self) -> bool:
        """True if there are no messages."""
        return not any(lists_of(self))

    @property
    def size(self) -> int:
        """Number of messages."""
        return sum(len(getattr(self, kind)) for kind in _KINDS)


_KINDS = tuple(field.name for field in attrs.fields(Outbox))
lists_of: Callable[[Outbox], tuple[list[Any], ...]] = attrgetter(*_KINDS)
"""All lists of messages of an outbox."""


@attrs.define
class UnknownReleases:
    """Number of releases and confirmations without a matching allocation or ask."""

    releases: int = 0
    """Releases of allocations and asks that are unknown or have already ended."""
    confirmations: int = 0
    """Confirmations for allocations that had already ended."""

    def count(self, *, confirmed: bool) -> None:
        """Count one message."""
        if confirmed:
            self.confirmations += 1
        else:
            self.releases += 1


@attrs.frozen(slots=True)
class UnknownRelease:
    """Answer to a release or confirmation."""

    application_id: str
    uuid: str
    key: str
    message: str


def unknown(app_id: str, uuid: str, key: str) -> str:
    """Return the text of the answer; an ask and its allocation share one key, and therefore one text."""
    if uuid:
        what = f"allocation '{uuid}'"
    elif key:
        what = f"allocation key '{key}'"
    else:
        what = f"application '{app_id}'"
    return f"{what} is unknown or no longer exists: nothing was released"
