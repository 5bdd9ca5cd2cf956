"""Delays of a partition, with the description of their keys."""

from __future__ import annotations

import attrs

from yunikorn.clock import SECOND
from yunikorn.config import values
from yunikorn.config.keys import key


@attrs.frozen
class PartitionTimeouts:
    """Delays of state changes and of other actions of the scheduler in a partition (docs/states.md)."""

    starting: int = key(
        values.DURATION, 300 * SECOND, "time after which an application in Starting is Running", "1m"
    )
    completing: int = key(
        values.DURATION, 30 * SECOND, "time after which an application in Completing is Completed", "5s"
    )
    retention: int = key(
        values.DURATION, 3 * 24 * 3600 * SECOND, "time for which an ended application is retained", "24h"
    )
    reservation: int | None = key(
        values.DURATION_OR_NEVER,
        2 * SECOND,
        "the age from which a request that fits no node [reserves](scheduling.md#reservations) one;"
        " `never` switches reservations off",
        "30s",
    )
    gang_patience: int = key(
        values.DURATION,
        600 * SECOND,
        "time for which a complete [Atomic](scheduling.md#atomic) gang waits for capacity before later"
        " requests are blocked",
        "1h",
    )
    cleanup: int = key(
        values.DURATION,
        10 * SECOND,
        "time after which an empty queue that is dynamic or draining is removed",
        "1m",
    )
    policy_answer: int = key(
        values.DURATION,
        10 * SECOND,
        "time for a [worker's call](serve.md#slow-policies) of a resolver, a placement rule or a policy, in a"
        " service",
        "30s",
    )
