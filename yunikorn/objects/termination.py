"""Reasons for the end of allocations and asks."""

from __future__ import annotations

import enum


class TerminationType(enum.IntEnum):
    """Reason for the end of an allocation or ask, numbered as in the current scheduler interface."""

    UNKNOWN = 0
    STOPPED_BY_RM = 1
    TIMEOUT = 2
    PREEMPTED_BY_SCHEDULER = 3
    PLACEHOLDER_REPLACED = 4


ALLOCATION_EVENT = {
    TerminationType.UNKNOWN: "stop",
    TerminationType.STOPPED_BY_RM: "stop",
    TerminationType.TIMEOUT: "timeout",
    TerminationType.PREEMPTED_BY_SCHEDULER: "preempt",
    TerminationType.PLACEHOLDER_REPLACED: "stop",
}
"""Event of the allocation's state machine for each termination type."""


def is_own(termination: TerminationType) -> bool:
    """Return True if a release of this type is the RM's own decision rather than a confirmation."""
    return termination in (TerminationType.STOPPED_BY_RM, TerminationType.UNKNOWN)
