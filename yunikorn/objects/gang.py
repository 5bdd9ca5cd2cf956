"""Gangs with placeholders: task groups, their placeholders, and counts of replacements.

Placeholders are asks made by the resource manager. A real request of a task group replaces one of the group's
placeholders, as in YuniKorn 1.9. An all-or-nothing gang without placeholders is an `AtomicGang`. See
docs/decisions/0024.
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
"""Gang scheduling styles; unknown names mean Soft."""
_BY_NAME = {"": SOFT} | {style.lower(): style for style in STYLES}

CREATION_TAG = "yunikorn.apache.org/creationTime"
TIME_DIGITS = 18
"""Maximum number of digits of a creation time (seconds); Python also refuses to convert very long numbers."""
DEFAULT_TIMEOUT = 900 * SECOND


class TaskGroup:
    """Task group of an application with its placeholders."""

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
        """Size of the first placeholder."""
        self.count = 0
        """Number of placeholders ever requested."""
        self.replaced = 0
        """Number of placeholders replaced by real allocations."""
        self.timed_out = 0
        """Number of placeholders that ended, or were dropped, for any other reason."""
        self.placeholders: dict[str, Allocation] = {}
        """Replaceable placeholders by uuid, in order of placement."""
        self.is_ready = False
        """True if the group is in `PartitionGangs.ready`."""
        self._heap: list[tuple[tuple[int, int, int], int, Ask]] = []
        self._pushed = 0

    @property
    def is_replaceable(self) -> bool:
        """True if the group has allocated or pending placeholders for its real requests to replace."""
        return self.count > self.replaced + self.timed_out

    def add(self, ask: Ask) -> None:
        """Add a real request that waits to replace a placeholder."""
        self._pushed += 1
        heapq.heappush(self._heap, (ask.order, self._pushed, ask))

    def next(self) -> Ask | None:
        """Return the first real request that waits to replace a placeholder."""
        heap = self._heap
        while heap:
            ask = heap[0][2]
            if ask.gang_blocked and ask.pending:
                return ask
            heapq.heappop(heap)
        return None

    def put_aside(self) -> None:
        """Skip the first request until it is added again."""
        heapq.heappop(self._heap)


class Gang:
    """Gang of an application: its task groups and the resources held by placeholders."""

    __slots__ = ("groups", "placed", "placeholders", "style", "timeout", "timer", "total", "worked")

    def __init__(self, total: Resource, style: str, timeout: int) -> None:
        self.total = total
        """Sum of all announced placeholders; empty if the resource manager gave none."""
        self.style = style
        self.timeout = timeout
        """Time limit of placeholders, counted from the first placement (ns)."""
        self.groups: dict[str, TaskGroup] = {}
        self.placed: Tally = {}
        """Resources of the allocated placeholders."""
        self.placeholders = 0
        """Number of allocated placeholders."""
        self.timer: Timer | None = None
        self.worked = False
        """True if a real allocation of the application has ended."""

    def group(self, name: str, size: Resource) -> TaskGroup:
        """Return the task group of this name; create the group if it is new."""
        group = self.groups.get(name)
        if group is None:
            group = self.groups[name] = TaskGroup(name, size)
        return group

    @property
    def is_complete(self) -> bool:
        """True if all announced placeholders are allocated."""
        return fits(self.placed, self.total)

    @property
    def pending(self) -> int:
        """Number of pending placeholders."""
        alive = sum(group.count - group.replaced - group.timed_out for group in self.groups.values())
        return alive - self.placeholders

    def stop_timer(self) -> None:
        """Cancel the time limit of the placeholders."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


def style_named(name: str) -> str | None:
    """Return the style of this name, ignoring case; Soft for an empty name, None for an unknown name."""
    return _BY_NAME.get(name.lower())


def placeholder_timeout(wanted: int, tags: Mapping[str, str], now: int) -> int:
    """Return the timeout of placeholders (ns), less the age of the application, as in YuniKorn 1.9."""
    timeout = wanted if wanted > 0 else DEFAULT_TIMEOUT
    created = tags.get(CREATION_TAG, "")
    if created.isdecimal() and len(created) <= TIME_DIGITS:
        timeout = max(MILLISECOND, int(created) * SECOND + timeout - now)
    return timeout
