"""What is still to come in a simulation: arrivals, node events and the ends of tasks, by time."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Generic, TypeVar

from yunikorn.simulation.workload import Application, NodeEvent, Workload

T = TypeVar("T")


class Agenda(Generic[T]):
    """The events to come; everything of one instant comes out together.

    Ends of tasks (of type `T`) share one entry of the heap per instant, so that a job of a thousand
    tasks that start together costs one entry.
    """

    def __init__(self, workload: Workload) -> None:
        # Reversed, so that what has arrived can be forgotten at once.
        self._applications = list(reversed(workload.applications))
        self._events = list(reversed(workload.events))
        self._moments: list[int] = []
        self._ends: dict[int, dict[T, None]] = {}

    def next(self) -> int | None:
        """When something happens next (ns), or None when nothing does any more."""
        while self._moments and not self._ends[self._moments[0]]:
            del self._ends[heapq.heappop(self._moments)]
        candidates = [
            *(entry.submit for entry in self._applications[-1:]),
            *(event.at for event in self._events[-1:]),
            *self._moments[:1],
        ]
        return min(candidates, default=None)

    def arrivals(self, moment: int) -> list[Application]:
        """The applications that arrive at `moment`, in order; they leave the agenda."""
        found = []
        while self._applications and self._applications[-1].submit <= moment:
            found.append(self._applications.pop())
        return found

    def node_events(self, moment: int) -> list[NodeEvent]:
        """What happens to nodes at `moment`, in order; it leaves the agenda."""
        found = []
        while self._events and self._events[-1].at <= moment:
            found.append(self._events.pop())
        return found

    def ends(self, moment: int) -> Iterable[T]:
        """The tasks that end at `moment`, in the order they were started; they leave the agenda."""
        if not self._moments or self._moments[0] > moment:
            return ()
        return self._ends.pop(heapq.heappop(self._moments))

    def add_end(self, moment: int, task: T) -> None:
        """Have `task` end at `moment`."""
        ends = self._ends.get(moment)
        if ends is None:
            self._ends[moment] = {task: None}
            heapq.heappush(self._moments, moment)
        else:
            ends[task] = None

    def drop_end(self, moment: int, task: T) -> None:
        """`task` will not end at `moment`, as it was to."""
        ends = self._ends.get(moment)
        if ends is not None:
            ends.pop(task, None)

    @property
    def still_to_arrive(self) -> int:
        """How many applications have not arrived yet."""
        return len(self._applications)
