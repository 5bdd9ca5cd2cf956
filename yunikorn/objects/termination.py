"""Why allocations and asks end."""

from __future__ import annotations

import enum


class TerminationType(enum.IntEnum):
    """Who ended it, and why (scheduler-interface seed; numbers of the newer layout)."""

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
"""What each does to the state of an allocation."""


def is_own(termination: TerminationType) -> bool:
    """Return whether an RM that says this ends something of its own accord, and confirms nothing."""
    return termination in (TerminationType.STOPPED_BY_RM, TerminationType.UNKNOWN)
