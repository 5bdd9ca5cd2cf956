"""Delays of a partition, with their keys."""

from __future__ import annotations

import attrs

from yunikorn.clock import SECOND
from yunikorn.config import values
from yunikorn.config.keys import key


@attrs.frozen
class PartitionTimeouts:
    """Delays of state changes and of other actions of the scheduler in a partition (docs/states.md)."""

    starting: int = key(values.DURATION, 300 * SECOND)
    completing: int = key(values.DURATION, 30 * SECOND)
    retention: int = key(values.DURATION, 3 * 24 * 3600 * SECOND)
    reservation: int | None = key(values.DURATION_OR_NEVER, 2 * SECOND)
    gang_patience: int = key(values.DURATION, 600 * SECOND)
    cleanup: int = key(values.DURATION, 10 * SECOND)
    policy_answer: int = key(values.DURATION, 10 * SECOND)
