"""Interface for observers of a simulation; the base class records nothing.

All outputs are recorders: files, figures and plots. Calls arrive in the order of the events. The arguments
`Running` and `Submitted` are internal objects of the simulation. A recorder reads them during the call and
keeps only numbers and names of them, so that memory does not grow with the workload.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from yunikorn.interface.messages import Allocation
from yunikorn_lab.simulation.rm_state import Running, Submitted
from yunikorn_lab.simulation.workload import NodeEvent

if TYPE_CHECKING:
    from yunikorn_lab.simulation.workload import Reloaded


class Recorder:
    """Receives all events in order; subclasses override the methods they need. Times are nanoseconds."""

    def begin(self) -> None:
        """Begin recording; the core has accepted the configuration."""

    def submitted(self, moment: int, record: Submitted) -> None:
        """Record the submission of an application with its first tasks; the core may still reject it."""

    def requested(self, moment: int, record: Submitted) -> None:
        """Record that an application has requested more tasks."""

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

    def idle(self, moment: int) -> None:
        """Record that the core has made all possible decisions at `moment`; further rounds may follow.

        Without a call, nothing has changed since the previous one but the time.
        """

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


def _forward(name: str) -> Callable[..., None]:
    def call(self: Recorders, *arguments: Any) -> None:
        for recorder in self._all:
            getattr(recorder, name)(*arguments)

    return call


for _name in [name for name in vars(Recorder) if not name.startswith("_")]:
    setattr(Recorders, _name, _forward(_name))
