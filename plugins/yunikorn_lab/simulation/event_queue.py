"""Queue of future events of a simulation: arrivals, node events, reloads and ends of tasks."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

from yunikorn_lab.simulation.dependencies import Dependencies
from yunikorn_lab.simulation.workload import ConfigEvent, NodeEvent, Workload, WorkloadApplication

T = TypeVar("T")
E = TypeVar("E", NodeEvent, ConfigEvent)


class EventQueue(Generic[T]):
    """Future events in order of time; all events of one instant are returned together.

    Ends of tasks (of type `T`) share one heap entry per instant, so that a job of a thousand tasks that start
    together costs one entry. Only the next application is held in memory, and those whose predecessors have
    not ended.
    """

    def __init__(self, workload: Workload, dependents: Mapping[str, int]) -> None:
        """Prepare the events; `dependents` is the number of direct dependents per predecessor."""
        self.dependencies = Dependencies(dependents)
        """Applications that are held until their predecessors have ended."""
        self._coming = iter(workload.applications)
        self._next_application = next(self._coming, None)
        self._to_arrive = len(workload.applications)
        # Reversed lists release past events with a cheap pop().
        self._events = list(reversed(workload.events))
        self._reloads = list(reversed(workload.reloads))
        self._moments: list[int] = []
        self._ends: dict[int, dict[T, None]] = {}
        self._first_of_workload = self._first()
        """Time of the next event of the workload (ns), ends of tasks excluded; None if none is left."""

    def next(self) -> int | None:
        """Return the time of the next event (ns), or None if no event is left."""
        moments, ends, first = self._moments, self._ends, self._first_of_workload
        following = self.dependencies.next()
        if following is not None and (first is None or following < first):
            first = following
        while moments and not ends[moments[0]]:
            del ends[heapq.heappop(moments)]
        if moments and (first is None or moments[0] < first):
            return moments[0]
        return first

    def _first(self) -> int | None:
        moments = [event.at for event in self._events[-1:]] + [event.at for event in self._reloads[-1:]]
        if self._next_application is not None:
            moments.append(self._next_application.submit)
        return min(moments, default=None)

    def arrivals(self, moment: int) -> list[WorkloadApplication]:
        """Remove and return the applications that arrive at `moment`, in order; dependents come last."""
        found: list[WorkloadApplication] = []
        coming = self._next_application
        while (application := self._next_application) is not None and application.submit <= moment:
            if application.after:
                self.dependencies.add(application)
            else:
                found.append(application)
            self._next_application = next(self._coming, None)
        if coming is not self._next_application:
            self._first_of_workload = self._first()
        found.extend(self.dependencies.take(moment))
        self._to_arrive -= len(found)
        return found

    @property
    def has_reloads(self) -> bool:
        """True if a configuration is still to be loaded."""
        return bool(self._reloads)

    def node_events(self, moment: int) -> list[NodeEvent]:
        """Remove and return the node events at `moment`, in order."""
        return self._pop(self._events, moment)

    def reloads(self, moment: int) -> list[ConfigEvent]:
        """Remove and return the configurations to load at `moment`, in order."""
        return self._pop(self._reloads, moment)

    def _pop(self, events: list[E], moment: int) -> list[E]:
        found: list[E] = []
        while events and events[-1].at <= moment:
            found.append(events.pop())
        if found:
            self._first_of_workload = self._first()
        return found

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
        """Number of applications that have not arrived yet, those that wait for predecessors included."""
        return self._to_arrive
