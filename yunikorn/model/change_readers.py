"""Readers of changes: functions to call at once when something changes that others keep track of.

A partition has one object of this class, made before its objects, which call the functions of a change in
the order in which they were added. What changes knows none of its readers (docs/decisions/0182).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from yunikorn.model.allocation import Allocation, PlacementHold
    from yunikorn.model.application import Application
    from yunikorn.model.ask import Ask
    from yunikorn.model.ask_class import AskClass
    from yunikorn.model.gang import AtomicGang
    from yunikorn.model.queue import Queue


class ChangeReaders:
    """Functions by the change that they read."""

    def __init__(self) -> None:
        # -- queues and applications --
        self.queue_removed: list[Callable[[Queue], None]] = []
        """A queue has left the tree."""
        self.members_left: list[Callable[[Queue], None]] = []
        """So many members have left a queue that its order should forget them now."""
        self.gang_timed_out: list[Callable[[Application], None]] = []
        """The time for the placeholders of an application is over; its requests are about to end."""
        self.gang_finished: list[Callable[[AtomicGang], None]] = []
        """The members of a gang are placed; its remaining asks are about to be ordinary ones."""
        self.gang_restarted: list[Callable[[AtomicGang], None]] = []
        """A gang that was preempted waits for all members again; its asks are no ordinary ones any more."""
        self.gang_left: list[Callable[[AtomicGang], None]] = []
        """A gang waits no more without having been placed: it lost members, or its application ended."""
        self.more_to_try: list[Callable[[], None]] = []
        """Requests may be tried now that were left out: by a gang, a back-off, or a policy of their queue."""
        self.home_changed: list[Callable[[Allocation], None]] = []
        """A task of an application with requirements on the topology is on its node now, or has left it."""
        # -- reservations and held placements --
        self.reservation_ended: list[Callable[[Ask], None]] = []
        """A request has no reservation any more."""
        self.hold_ended: list[Callable[[PlacementHold], None]] = []
        """Permit policies no longer hold a placement: it was announced, or is about to be taken back."""
        self.request_returning: list[Callable[[Ask], None]] = []
        """A request of a held placement is about to be pending again, and needs its class."""
        self.hold_refused: list[Callable[[PlacementHold, str, bool], None]] = []
        """A held placement was taken back for a reason; True if nothing has been decided since."""
        self.request_returned: list[Callable[[Ask], None]] = []
        """A request of a placement that was taken back is pending again."""
        # -- classes and their bits --
        self.ask_class_dropped: list[Callable[[AskClass], None]] = []
        """An ask class without requests was dropped."""
        self.ask_bits_dropped: list[Callable[[int], None]] = []
        """Bits of dropped ask classes; others get them next."""
        self.pending_bits_dropped: list[Callable[[int], None]] = []
        """Bits of dropped pending classes; others get them next."""
