"""Status of a session, and the state of a session whose resource manager is lost or out of step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from yunikorn.accounting.changes import Changes
from yunikorn.clock import Timer


@attrs.frozen
class SessionStatus:
    """Status of a session at one moment."""

    rm_id: str
    state: str
    """`Running` or `Paused`."""
    reason: str
    """Reason of the pause; empty while the session runs."""
    version: str
    """Version of the interface, as stated by the RM; not interpreted."""
    policy_group: str | None
    """Policy group of the configuration; None if the RM brought its own."""
    build_info: Mapping[str, str]
    extra_config: Mapping[str, str]
    """Further settings of the registration; those of events are interpreted, others only kept."""
    partitions: tuple[str, ...]
    """Names of the partitions as the RM spells them."""
    checksum: str
    """Checksum of the configuration in use."""


KEPT = 10_000
"""Maximum number of response entries that are kept for a paused RM.

The RM's report at its next registration makes up for everything it missed, so more entries are not worth the
memory.
"""


@attrs.define
class PausedState:
    """State of a session from the loss of its RM, or a RESYNC, to the next registration.

    See `docs/decisions/0031`.
    """

    reason: str
    reachable: bool
    """True if the connection behind the RM's callback is intact."""
    resync_due: bool = True
    """True until the RM was notified that it must register again."""
    sending_resync: bool = False
    """True during the delivery of RESYNC: an update from within that call requires no further RESYNC."""
    overflowed: bool = False
    """True after more than `KEPT` entries were pending; then no entries are kept."""
    timer: Timer | None = None
    """Timer that ends the session."""

    def keep(self, changes: Sequence[Changes]) -> None:
        """Keep the entries of these outboxes up to the limit, and drop all of them beyond it."""
        self.overflowed = self.overflowed or sum(one.outbox.size for one in changes) > KEPT
        if self.overflowed:
            for one in changes:
                one.clear_outbox()

    def end(self) -> None:
        """Cancel the timer: the RM registered again, or its session ended."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
