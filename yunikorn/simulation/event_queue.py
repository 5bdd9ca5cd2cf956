"""What is still to come in a simulation: arrivals, node events and the ends of tasks, by time."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Generic, TypeVar

from yunikorn.simulation.reloads import ConfigEvent
from yunikorn.simulation.workload import NodeEvent, Workload, WorkloadApplication

T = TypeVar("T")


class EventQueue(Generic[T]):
    """The events to come; everything of one instant comes out together.

    Ends of tasks (of type `T`) share one entry of the heap per instant, so that a job of a thousand
    tasks that start together costs one entry. Of the applications to come only the next one is held.
    """

    def __init__(self, workload: Workload) -> None:
        self._coming = iter(workload.applications)
        self._next_application = next(self._coming, None)
        self._to_arrive = len(workload.applications)
        # Reversed, so that what has happened can be forgotten at once.
        self._events = list(reversed(workload.events))
        self._reloads = list(reversed(workload.reloads))
        self._moments: list[int] = []
        self._ends: dict[int, dict[T, None]] = {}

    def next(self) -> int | None:
        """When something happens next (ns), or None when nothing does any more."""
        while self._moments and not self._ends[self._moments[0]]:
            del self._ends[heapq.heappop(self._moments)]
        candidates = [
            *(event.at for event in self._events[-1:]),
            *(event.at for event in self._reloads[-1:]),
            *self._moments[:1],
        ]
        if self._next_application is not None:
            candidates.append(self._next_application.submit)
        return min(candidates, default=None)

    def arrivals(self, moment: int) -> list[WorkloadApplication]:
        """The applications that arrive at `moment`, in order; they leave the agenda."""
        found = []
        while (application := self._next_application) is not None and application.submit <= moment:
            found.append(application)
            self._next_application = next(self._coming, None)
            self._to_arrive -= 1
        return found

    def node_events(self, moment: int) -> list[NodeEvent]:
        """What happens to nodes at `moment`, in order; it leaves the agenda."""
        found = []
        while self._events and self._events[-1].at <= moment:
            found.append(self._events.pop())
        return found

    def reloads(self, moment: int) -> list[ConfigEvent]:
        """The configurations that are to be used from `moment` on, in order; they leave the agenda."""
        found = []
        while self._reloads and self._reloads[-1].at <= moment:
            found.append(self._reloads.pop())
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
        return self._to_arrive
