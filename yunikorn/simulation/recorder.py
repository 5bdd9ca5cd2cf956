"""Where a simulation writes down what it sees; the base writes nothing.

This is the door for everything that keeps records: files, figures, pictures. Calls come in the order in which
things happen. What is handed over is the simulation's own (`Running`, `Submitted`): read it at once, keep
numbers and names of it, not the object, and memory grows with the records only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.interface.messages import Allocation
from yunikorn.simulation.rm_state import Running, Submitted
from yunikorn.simulation.workload import NodeEvent

if TYPE_CHECKING:
    from yunikorn.simulation.reloads import Reloaded


class Recorder:
    """Told of everything as it happens, in order; each method may be overridden. Times are nanoseconds."""

    def begin(self) -> None:
        """The core took the configuration; what follows is worth writing down."""

    def submitted(self, moment: int, record: Submitted) -> None:
        """An application arrived with all its tasks; whether the core accepts it is not known yet."""

    def allocated(self, moment: int, allocation: Allocation) -> None:
        """A task, or a placeholder, got its place."""

    def released(self, moment: int, allocation: Allocation, reason: str) -> None:
        """A task, or a placeholder, gave its place back."""

    def started(self, moment: int, task: Running) -> None:
        """A task got its place, and not a placeholder: it waited since `task.ask.asked`.

        Comes after `allocated` of the same allocation.
        """

    def left(self, moment: int, task: Running, reason: str) -> None:
        """A task gave its place back; it had run since `task.started`. The `reason` is as for `released`.

        Comes after `released` of the same allocation, and before `application_ended` if it was the last.
        """

    def refused(self, moment: int, record: Submitted, tasks: int, reason: str) -> None:
        """So many tasks of an application will never be placed; it may go on with the others."""

    def settled(self, moment: int) -> None:
        """The core has decided all that it could at `moment`; there may be another round at the same one."""

    def node_changed(self, event: NodeEvent) -> None:
        """A node joined, changed or left, and the core agreed."""

    def reloaded(self, event: Reloaded) -> None:
        """The core was given another configuration, and took or refused it."""

    def application_ended(self, moment: int, record: Submitted, outcome: str, reason: str) -> None:
        """An application came to its end: finished, rejected or failed."""


class Recorders(Recorder):
    """Passes everything on to several, one after the other."""

    def __init__(self, *recorders: Recorder) -> None:
        self._all = recorders

    def begin(self) -> None:
        """To all."""
        for recorder in self._all:
            recorder.begin()

    def submitted(self, moment: int, record: Submitted) -> None:
        """To all."""
        for recorder in self._all:
            recorder.submitted(moment, record)

    def allocated(self, moment: int, allocation: Allocation) -> None:
        """To all."""
        for recorder in self._all:
            recorder.allocated(moment, allocation)

    def released(self, moment: int, allocation: Allocation, reason: str) -> None:
        """To all."""
        for recorder in self._all:
            recorder.released(moment, allocation, reason)

    def started(self, moment: int, task: Running) -> None:
        """To all."""
        for recorder in self._all:
            recorder.started(moment, task)

    def left(self, moment: int, task: Running, reason: str) -> None:
        """To all."""
        for recorder in self._all:
            recorder.left(moment, task, reason)

    def refused(self, moment: int, record: Submitted, tasks: int, reason: str) -> None:
        """To all."""
        for recorder in self._all:
            recorder.refused(moment, record, tasks, reason)

    def settled(self, moment: int) -> None:
        """To all."""
        for recorder in self._all:
            recorder.settled(moment)

    def node_changed(self, event: NodeEvent) -> None:
        """To all."""
        for recorder in self._all:
            recorder.node_changed(event)

    def reloaded(self, event: Reloaded) -> None:
        """To all."""
        for recorder in self._all:
            recorder.reloaded(event)

    def application_ended(self, moment: int, record: Submitted, outcome: str, reason: str) -> None:
        """To all."""
        for recorder in self._all:
            recorder.application_ended(moment, record, outcome, reason)
