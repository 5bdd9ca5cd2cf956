"""Gangs with placeholders: task groups, what keeps room for them, and how often it was used.

The placeholders of a gang are asks of their own, made by the resource manager. A real request of a task
group takes the place of one of its placeholders. Source: facts §8; an all-or-nothing gang without
placeholders is an `AtomicGang`.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from yunikorn.clock import MILLISECOND, SECOND
from yunikorn.resources import Resource, Tally, fits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from yunikorn.clock import Timer
    from yunikorn.objects.allocation import Allocation
    from yunikorn.objects.ask import Ask

SOFT, HARD, ATOMIC = "Soft", "Hard", "Atomic"
STYLES = (SOFT, HARD, ATOMIC)
"""Gang scheduling styles; any other is Soft."""
_BY_NAME = {"": SOFT} | {style.lower(): style for style in STYLES}

CREATION_TAG = "yunikorn.apache.org/creationTime"
TIME_DIGITS = 18
"""Longest time that is read: more seconds are no time, and Python refuses to read very long numbers."""
DEFAULT_TIMEOUT = 900 * SECOND


class TaskGroup:
    """Tasks of an application that belong together, with the placeholders that were made for them."""

    __slots__ = (
        "_heap",
        "_pushed",
        "count",
        "is_ready",
        "name",
        "placeholders",
        "replaced",
        "size",
        "timed_out",
    )

    def __init__(self, name: str, size: Resource) -> None:
        self.name = name
        self.size = size
        """The size of its first placeholder."""
        self.count = 0
        """Placeholders that were ever asked for."""
        self.replaced = 0
        """Those whose place a real allocation took."""
        self.timed_out = 0
        """Those that ended, or were given up, for any other reason."""
        self.placeholders: dict[str, Allocation] = {}
        """By uuid, in the order they were placed: those whose place may be taken."""
        self.is_ready = False
        """Whether it stands among the groups with something to replace."""
        self._heap: list[tuple[tuple[int, int, int], int, Ask]] = []
        self._pushed = 0

    @property
    def is_replaceable(self) -> bool:
        """Whether it has placeholders, or waits for some: then its real requests wait for those."""
        return self.count > self.replaced + self.timed_out

    def add(self, ask: Ask) -> None:
        """A real request waits for a placeholder."""
        self._pushed += 1
        heapq.heappush(self._heap, (ask.order, self._pushed, ask))

    def next(self) -> Ask | None:
        """The foremost real request that waits for a placeholder."""
        heap = self._heap
        while heap:
            ask = heap[0][2]
            if ask.gang_blocked and ask.pending:
                return ask
            heapq.heappop(heap)
        return None

    def put_aside(self) -> None:
        """The foremost request is not to be tried until it is added again."""
        heapq.heappop(self._heap)


class Gang:
    """The gang of an application: its task groups and the room its placeholders hold."""

    __slots__ = ("groups", "placed", "placeholders", "style", "timeout", "timer", "total", "worked")

    def __init__(self, total: Resource, style: str, timeout: int) -> None:
        self.total = total
        """All its placeholders together; nothing when the resource manager did not say."""
        self.style = style
        self.timeout = timeout
        """How long placeholders are held, from the first one on (ns)."""
        self.groups: dict[str, TaskGroup] = {}
        self.placed: Tally = {}
        """What its placeholders hold."""
        self.placeholders = 0
        """How many of them have a place."""
        self.timer: Timer | None = None
        self.worked = False
        """Whether a real allocation of the application has ended."""

    def group(self, name: str, size: Resource) -> TaskGroup:
        """The task group of this name, made now if it is new."""
        group = self.groups.get(name)
        if group is None:
            group = self.groups[name] = TaskGroup(name, size)
        return group

    @property
    def is_complete(self) -> bool:
        """Whether every placeholder that the application announced has its place."""
        return fits(self.placed, self.total)

    @property
    def pending(self) -> int:
        """How many placeholders wait for a place."""
        alive = sum(group.count - group.replaced - group.timed_out for group in self.groups.values())
        return alive - self.placeholders

    def stop_timer(self) -> None:
        """Placeholders are held for as long as it takes."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


def style_named(name: str) -> str | None:
    """The style of this name, in any case of letters; Soft without a name, None for an unknown one."""
    return _BY_NAME.get(name.lower())


def placeholder_timeout(wanted: int, tags: Mapping[str, str], now: int) -> int:
    """How long placeholders are held (ns), less the application's age so far (facts §8.1)."""
    timeout = wanted if wanted > 0 else DEFAULT_TIMEOUT
    created = tags.get(CREATION_TAG, "")
    if created.isdecimal() and len(created) <= TIME_DIGITS:
        timeout = max(MILLISECOND, int(created) * SECOND + timeout - now)
    return timeout
