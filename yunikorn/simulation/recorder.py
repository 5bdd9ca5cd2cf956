"""Interface for observers of a simulation; the base class records nothing.

All outputs are recorders: files, figures and plots. Calls arrive in the order of the events. The arguments
`Running` and `Submitted` are internal objects of the simulation. A recorder reads them during the call and
keeps only numbers and names of them, so that memory does not grow with the workload.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.interface.messages import Allocation
from yunikorn.simulation.rm_state import Running, Submitted
from yunikorn.simulation.workload import NodeEvent

if TYPE_CHECKING:
    from yunikorn.simulation.config_events import Reloaded


class Recorder:
    """Receives all events in order; subclasses override the methods they need. Times are nanoseconds."""

    def begin(self) -> None:
        """Begin recording; the core has accepted the configuration."""

    def submitted(self, moment: int, record: Submitted) -> None:
        """Record the submission of an application with all its tasks; the core may still reject it."""

    def allocated(self, moment: int, allocation: Allocation) -> None:
        """Record the allocation of a task or a placeholder."""

    def released(self, moment: int, allocation: Allocation, reason: str) -> None:
        """Record the release of a task's or a placeholder's allocation."""

    def started(self, moment: int, task: Running) -> None:
        """Record the start of a task (not of a placeholder); the task has waited since `task.ask.asked`.

        The call follows `allocated` for the same allocation.
        """

    def left(self, moment: int, task: Running, reason: str) -> None:
        """Record the end of a task that has run since `task.started`; `reason` is as for `released`.

        The call follows `released` for the same allocation, and precedes `application_ended` for the last
        task.
        """

    def refused(self, moment: int, record: Submitted, tasks: int, reason: str) -> None:
        """Record tasks that will never be allocated; the application may continue with its other tasks."""

    def settled(self, moment: int) -> None:
        """Record that the core has made all possible decisions at `moment`; further rounds may follow."""

    def node_changed(self, event: NodeEvent) -> None:
        """Record a node change that the core has accepted."""

    def reloaded(self, event: Reloaded) -> None:
        """Record a configuration that was loaded or refused by the core."""

    def application_ended(self, moment: int, record: Submitted, outcome: str, reason: str) -> None:
        """Record that an application finished, failed or was rejected."""


class Recorders(Recorder):
    """A recorder that forwards all calls to several recorders in order."""

    def __init__(self, *recorders: Recorder) -> None:
        self._all = recorders

    def begin(self) -> None:
        """Forward to all recorders."""
        for recorder in self._all:
            recorder.begin()

    def submitted(self, moment: int, record: Submitted) -> None:
        """Forward to all recorders."""
        for recorder in self._all:
            recorder.submitted(moment, record)

    def allocated(self, moment: int, allocation: Allocation) -> None:
        """Forward to all recorders."""
        for recorder in self._all:
            recorder.allocated(moment, allocation)

    def released(self, moment: int, allocation: Allocation, reason: str) -> None:
        """Forward to all recorders."""
        for recorder in self._all:
            recorder.released(moment, allocation, reason)

    def started(self, moment: int, task: Running) -> None:
        """Forward to all recorders."""
        for recorder in self._all:
            recorder.started(moment, task)

    def left(self, moment: int, task: Running, reason: str) -> None:
        """Forward to all recorders."""
        for recorder in self._all:
            recorder.left(moment, task, reason)

    def refused(self, moment: int, record: Submitted, tasks: int, reason: str) -> None:
        """Forward to all recorders."""
        for recorder in self._all:
            recorder.refused(moment, record, tasks, reason)

    def settled(self, moment: int) -> None:
        """Forward to all recorders."""
        for recorder in self._all:
            recorder.settled(moment)

    def node_changed(self, event: NodeEvent) -> None:
        """Forward to all recorders."""
        for recorder in self._all:
            recorder.node_changed(event)

    def reloaded(self, event: Reloaded) -> None:
        """Forward to all recorders."""
        for recorder in self._all:
            recorder.reloaded(event)

    def application_ended(self, moment: int, record: Submitted, outcome: str, reason: str) -> None:
        """Forward to all recorders."""
        for recorder in self._all:
            recorder.application_ended(moment, record, outcome, reason)
