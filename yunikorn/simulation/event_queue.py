"""Queue of future events of a simulation: arrivals, node events, reloads and ends of tasks."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Generic, TypeVar

from yunikorn.simulation.workload import ConfigEvent, NodeEvent, Workload, WorkloadApplication

T = TypeVar("T")
E = TypeVar("E", NodeEvent, ConfigEvent)


class EventQueue(Generic[T]):
    """Future events in order of time; all events of one instant are returned together.

    Ends of tasks (of type `T`) share one heap entry per instant, so that a job of a thousand tasks that start
    together costs one entry. Only the next application is held in memory.
    """

    def __init__(self, workload: Workload) -> None:
        self._coming = iter(workload.applications)
        self._next_application = next(self._coming, None)
        self._to_arrive = len(workload.applications)
        # Reversed lists release past events with a cheap pop().
        self._events = list(reversed(workload.events))
        self._reloads = list(reversed(workload.reloads))
        self._moments: list[int] = []
        self._ends: dict[int, dict[T, None]] = {}

    def next(self) -> int | None:
        """Return the time of the next event (ns), or None if no event is left."""
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
        """Remove and return the applications that arrive at `moment`, in order."""
        found = []
        while (application := self._next_application) is not None and application.submit <= moment:
            found.append(application)
            self._next_application = next(self._coming, None)
            self._to_arrive -= 1
        return found

    def node_events(self, moment: int) -> list[NodeEvent]:
        """Remove and return the node events at `moment`, in order."""
        return _pop(self._events, moment)

    def reloads(self, moment: int) -> list[ConfigEvent]:
        """Remove and return the configurations to load at `moment`, in order."""
        return _pop(self._reloads, moment)

    def ends(self, moment: int) -> Iterable[T]:
        """Remove and return the tasks that end at `moment`, in the order in which they started."""
        if not self._moments or self._moments[0] > moment:
            return ()
        return self._ends.pop(heapq.heappop(self._moments))

    def add_end(self, moment: int, task: T) -> None:
        """Schedule the end of `task` at `moment`."""
        ends = self._ends.get(moment)
        if ends is None:
            self._ends[moment] = {task: None}
            heapq.heappush(self._moments, moment)
        else:
            ends[task] = None

    def drop_end(self, moment: int, task: T) -> None:
        """Cancel the end of `task` at `moment`."""
        ends = self._ends.get(moment)
        if ends is not None:
            ends.pop(task, None)

    @property
    def still_to_arrive(self) -> int:
        """Number of applications that have not arrived yet."""
        return self._to_arrive


def _pop(events: list[E], moment: int) -> list[E]:
    found = []
    while events and events[-1].at <= moment:
        found.append(events.pop())
    return found
