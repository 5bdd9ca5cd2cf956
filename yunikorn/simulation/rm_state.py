"""State of the simulated resource manager: submitted applications, waiting asks and running tasks."""

from __future__ import annotations

import attrs

from yunikorn.errors import YunikornError
from yunikorn.interface.messages import Allocation
from yunikorn.simulation.workload import WorkloadApplication, WorkloadTaskGroup


class ProtocolError(YunikornError):
    """An impossible response of the core: an allocation without an ask, or an identifier used twice."""


@attrs.define(eq=False)
class SentAsk:
    """An ask for tasks of one group, as sent to the core."""

    key: str
    group: WorkloadTaskGroup
    waiting: int
    """Number of tasks or placeholders that are not allocated yet."""
    asked: int
    """Time at which the ask was sent (ns)."""


@attrs.define(eq=False)
class Submitted:
    """A submitted application that has not ended."""

    plan: WorkloadApplication
    unfinished: int
    """Number of tasks that have neither ended nor been refused."""
    asks: dict[str, SentAsk] = attrs.Factory(dict)
    places: dict[str, SentAsk] = attrs.Factory(dict)
    """Asks for the placeholders of a gang, by key."""
    running: int = 0
    kept: int = 0
    """Number of allocated placeholders."""
    ended: int = 0
    failed: int = 0
    """Number of tasks that were preempted and are not restarted."""
    restarts: int = 0
    places_lost: int = 0
    """Number of placeholders that lost their allocation and were asked for again."""
    whole: bool = False
    """True if all members of a gang have been allocated at one time, or if the gang was given up."""
    started: bool = False
    """True if a task or a placeholder has been allocated at any time."""
    first_start: int | None = None
    """Start time of the first task (ns)."""
    failing: bool = False
    """True once the core fails the application; lost tasks are not asked for again."""
    queue: str = ""
    """Queue assigned by the core; known from the first allocation on."""

    @property
    def waiting(self) -> int:
        """Number of tasks that are not allocated."""
        return self.unfinished - self.running

    def ask(self, key: str, group: WorkloadTaskGroup, count: int, moment: int) -> SentAsk:
        """Note an ask for `count` tasks of `group`."""
        self.asks[key] = SentAsk(key, group, count, moment)
        return self.asks[key]


@attrs.define(eq=False)
class Running:
    """A running task."""

    owner: Submitted
    ask: SentAsk
    allocation: Allocation
    started: int

    @property
    def end(self) -> int:
        """Time at which the task has completed its run time (ns)."""
        return self.started + self.ask.group.runtime
