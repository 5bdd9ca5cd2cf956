"""How long things take: the scheduler's own delays, all in nanoseconds, all configurable."""

from __future__ import annotations

import attrs

from yunikorn.clock import SECOND


@attrs.frozen
class Timeouts:
    """Delays of the object states (object-states seed; decisions "States"; facts §5.3)."""

    starting: int = 300 * SECOND
    """After which an application in Starting is Running."""
    completing: int = 30 * SECOND
    """After which an application in Completing is Completed."""
    retention: int = 3 * 24 * 3600 * SECOND
    """For which an ended application is remembered."""
    reservation: int | None = 2 * SECOND
    """Age from which a request that no node can take reserves one; None is never (facts §7.6)."""
    gang_patience: int = 600 * SECOND
    """For which a whole atomic gang that may run waits for room before it holds back later requests."""
    cleanup: int = 10 * SECOND
    """After which an empty queue that placement made, or that is draining, is removed."""
    session: int | None = 300 * SECOND
    """For which a paused session is kept before it is stopped; None is for ever. It belongs to the whole
    scheduler: the configuration of a partition cannot set it (decision 31)."""
