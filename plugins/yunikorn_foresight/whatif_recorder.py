"""Starts and preemptions of tasks in one continuation of a scheduler, by application."""

from __future__ import annotations

import re
from collections.abc import Collection

import attrs

from yunikorn.interface.messages import Allocation
from yunikorn_lab.reporting.decision_log import DecisionLog
from yunikorn_lab.simulation.rm_state import PREEMPTIONS, Running, Submitted

_AGAIN = re.compile(r"~\d+\Z")
"""End of the key of a task that was asked for again."""
Start = tuple[int, str]
"""Time (ns) and node."""


@attrs.frozen
class AppOwner:
    """User and queue of an application."""

    user: str
    queue: str


@attrs.frozen
class ContinuedRun:
    """Events of one continuation."""

    starts: dict[tuple[str, str], list[Start]]
    """Starts of tasks in order of time, by application and request."""
    owners: dict[str, AppOwner]
    """Users and queues of all applications."""
    preempted: dict[str, int]
    """Numbers of preempted tasks by application."""
    decisions: bytes
    """Log of the decisions."""
    refusals: tuple[str, ...]
    """Changes that the core has refused, with its reasons."""
    waiting: int
    """Number of tasks that wait at the end."""
    remark: str
    """Remark on unknown run times; empty for none."""

    @property
    def placed(self) -> int:
        """Number of starts."""
        return sum(map(len, self.starts.values()))


class RunRecorder(DecisionLog):
    """Recorder of one continuation; what ran before is no decision of it."""

    def __init__(self, known: frozenset[str], asks: Collection[tuple[str, str]] = ()) -> None:
        """Record what comes after the allocations with these uuids.

        `asks` are the applications and keys of the requests that wait at the beginning.
        """
        super().__init__()
        self._known, self._asks = known, asks
        self.starts: dict[tuple[str, str], list[Start]] = {}
        self.owners: dict[str, AppOwner] = {}
        self.preempted: dict[str, int] = {}

    def submitted(self, moment: int, record: Submitted) -> None:
        """Note the owner of an application."""
        self.owners.setdefault(record.plan.id, AppOwner(record.plan.user, record.plan.queue.lower()))

    def allocated(self, moment: int, allocation: Allocation) -> None:
        """Add a placement, and note the queue in which the application really is."""
        if allocation.uuid in self._known:
            return
        super().allocated(moment, allocation)
        owner = self.owners.get(allocation.application_id)
        if owner is not None and allocation.queue_name and owner.queue != allocation.queue_name:
            self.owners[allocation.application_id] = AppOwner(owner.user, allocation.queue_name)

    def started(self, moment: int, task: Running) -> None:
        """Add the start of a task, unless it starts again after a loss."""
        key = task.owner.plan.id, task.ask.key
        is_again = key not in self._asks and _AGAIN.search(task.ask.key)
        if task.allocation.uuid not in self._known and not is_again:
            self.starts.setdefault(key, []).append((moment, task.allocation.node_id))

    def left(self, moment: int, task: Running, reason: str) -> None:
        """Count a preempted task."""
        if reason in PREEMPTIONS:
            app = task.owner.plan.id
            self.preempted[app] = self.preempted.get(app, 0) + 1
