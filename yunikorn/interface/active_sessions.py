"""Sessions with something to do, and the order in which their partitions decide."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from operator import attrgetter
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from yunikorn.interface.session import Session
    from yunikorn.scheduling.partition_scheduler import PartitionScheduler

BEGINNING = (0, 0)
"""A position before all others."""
_number = attrgetter("number")
_place = attrgetter("place")


@attrs.define(slots=True)
class PartitionRotation:
    """A partition in the round-robin order of all partitions."""

    place: tuple[int, int]
    """Number of the session, and index of the partition in its configuration."""
    session: Session
    partition: PartitionScheduler


class ActiveSessions:
    """Sessions that may have a decision to make or a message to send; no other session is visited."""

    def __init__(self) -> None:
        self._sessions: dict[Session, None] = {}
        self._last = BEGINNING
        """Position of the partition that was served last, after which `decide` continues."""

    def add(self, session: Session) -> None:
        """Visit a session from now on."""
        self._sessions[session] = None

    def remove(self, session: Session) -> None:
        """Stop visiting a session."""
        self._sessions.pop(session, None)

    def in_order(self) -> list[Session]:
        """Return the sessions in the order of their registrations."""
        sessions = self._sessions
        return sorted(sessions, key=_number) if len(sessions) > 1 else list(sessions)

    def decide(self, sessions: list[Session], most: int | None) -> int:
        """Let the partitions of these sessions take turns for up to `most` decisions; return their number.

        Sessions that cannot decide anything more are removed.
        """
        if len(sessions) == 1:
            session = sessions[0]
            if session.paused_state is None and len(session.partitions.by_name) == 1:
                return self._decide_alone(session, most)
        taken = 0
        last: PartitionRotation | None = None
        busy = self._rotation(sessions)
        while busy and (most is None or taken < most):
            turn = busy.popleft()
            if not busy:
                # The only partition left need not take turns.
                taken += turn.partition.decide_up_to(None if most is None else most - taken)
                if most is not None and taken >= most:
                    last = turn
                    busy.append(turn)
            elif turn.partition.decide() is not None:
                taken += 1
                last = turn
                busy.append(turn)
        if most != 0:
            self._last = last.place if last is not None and busy else BEGINNING
        unfinished = {turn.session for turn in busy} if busy else ()
        for session in sessions:
            if session not in unfinished and not session.may_decide_again:
                self.remove(session)
        return taken

    def _decide_alone(self, session: Session, most: int | None) -> int:
        """Let the only partition of the only session decide, which need not take turns."""
        (partition,) = session.partitions.by_name.values()
        if partition.quotas.watching:
            partition.quotas.review()
        if most == 0:
            return 0
        taken = partition.decide_up_to(most)
        if taken == most:
            self._last = (session.number, 0)
        else:
            self._last = BEGINNING
            if not session.may_decide_again:
                self.remove(session)
        return taken

    def _rotation(self, sessions: list[Session]) -> deque[PartitionRotation]:
        """Return the partitions that may have a decision to make, starting after the last one served.

        This begins a round of decisions, for which quota policies that watch others are asked.
        """
        rotation: list[PartitionRotation] = []
        for session in sessions:
            if session.paused_state is None:
                for index, partition in enumerate(session.partitions):
                    if partition.quotas.watching:
                        partition.quotas.review()
                    rotation.append(PartitionRotation((session.number, index), session, partition))
        if len(rotation) < 2:
            return deque(rotation)
        begin = bisect_right(rotation, self._last, key=_place)
        return deque(rotation[begin:] + rotation[:begin])
