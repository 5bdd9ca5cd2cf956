"""Measurements of a scheduler for metrics: numbers of changes, and durations of decisions.

A scheduler measures only if it is given an object of this class; no decision depends on one. Changes are
counted where they are booked, allocations once per response. The durations come from a stopwatch that is
passed in (docs/decisions/archive/0090-metrics.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from yunikorn.states import ACCEPTED, COMPLETED, FAILED, REJECTED
from yunikorn_service.measured_decisions import MeasuredCycle, MeasuredNodeOrders, SampledTurns
from yunikorn_service.sampling import Sampling

if TYPE_CHECKING:
    from yunikorn.accounting.outbox import Outbox
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.application import Application
    from yunikorn.model.core_meter import Decide

REMEMBERED = 1000
"""Number of removed queues whose counts are kept: those that were counted last."""
_ERRORS = ("failed to find ", "ask contains ", "allocation contains ")
"""Beginnings of the reasons for which YuniKorn 1.9 counts a scheduling error."""

_queue_name = attrgetter("queue_name")


class QueueCounts:
    """Changes in a queue since the start; queues of several partitions with one path are counted together."""

    __slots__ = ("allocated", "ended", "released")

    def __init__(self) -> None:
        self.allocated = 0
        """Allocations, including those that a resource manager reported."""
        self.released = 0
        """Allocations that have ended."""
        self.ended: Counter[str] = Counter()
        """Applications that have ended, by their last state."""


class Measurements(Sampling):
    """Numbers of changes since the start of a scheduler, over all its partitions, and durations.

    Used in the core's thread only, like all objects of the model.
    """

    def __init__(self, stopwatch: Callable[[], int]) -> None:
        """Create without counts; `stopwatch` returns a time in nanoseconds that never goes back."""
        super().__init__(stopwatch)
        self.queues: dict[str, QueueCounts] = {}
        """Changes by path of the queue, in the order of their first change."""
        self.allocated = 0
        """Allocations that were decided or confirmed, without those that a resource manager only reported."""
        self.released = 0
        """Allocations that have ended."""
        self.submitted = 0
        """Applications that were placed in a queue."""
        self.accepted = 0
        """Applications that were accepted for the first time."""
        self.ended: Counter[str] = Counter()
        """Applications that have ended, by their last state."""
        self.refused: Counter[str] = Counter()
        """Entries of updates that were refused, by kind."""
        self.errors = 0
        """Requests that were refused because they are wrong in themselves."""
        self.removed_nodes = 0
        """Nodes that were removed by their resource manager."""
        self.decisions = 0
        """Allocations made by rounds of decisions."""
        self.steps = 0
        """Steps of the core's thread that had something to do."""
        self.busy = 0
        """Time of these steps (ns)."""

    def of_queue(self, path: str) -> QueueCounts:
        """Return the counts of a queue."""
        found = self.queues.get(path)
        if found is None:
            found = self.queues[path] = QueueCounts()
        return found

    def forget_queues(self, existing: Collection[str]) -> None:
        """Forget the counts of queues that do not exist any more, except for the last `REMEMBERED`."""
        gone = [path for path in self.queues if path not in existing]
        for path in islice(gone, max(0, len(gone) - REMEMBERED)):
            del self.queues[path]

    # -- changes --------------------------------------------------------------------------------------

    def count_response(self, outbox: Outbox) -> None:
        """Count the entries of a response."""
        if outbox.allocations:
            self.allocated += len(outbox.allocations)
            for path, times in Counter(map(_queue_name, outbox.allocations)).items():
                self.of_queue(path).allocated += times
        self.submitted += len(outbox.accepted_applications)
        for kind, entries in (
            ("application", outbox.rejected_applications),
            ("ask", outbox.rejected_asks),
            ("node", outbox.rejected_nodes),
            ("node update", outbox.failed_node_updates),
            ("release", outbox.unknown_releases),
        ):
            if entries:
                self.refused[kind] += len(entries)
        if outbox.rejected_asks:
            self.errors += sum(one.reason.startswith(_ERRORS) for one in outbox.rejected_asks)

    def count_removed_node(self) -> None:
        """Count a node that its resource manager has removed."""
        self.removed_nodes += 1

    def count_recovery(self, allocation: Allocation) -> None:
        """Count an allocation that a resource manager reported."""
        self.of_queue(allocation.queue_name).allocated += 1

    def count_release(self, allocation: Allocation) -> None:
        """Count the end of an allocation."""
        self.released += 1
        self.of_queue(allocation.queue_name).released += 1

    def count_state(self, app: Application, path: str) -> None:
        """Count a state that an application has entered; `path` names its queue, empty if there is none."""
        state = app.state
        if state == ACCEPTED:
            # An application that resumes after its gang has timed out is accepted again.
            self.accepted += sum(entry.state == ACCEPTED for entry in app.state_log) == 1
        elif state in (COMPLETED, FAILED, REJECTED):
            self.ended[state] += 1
            if path:
                self.of_queue(path).ended[state] += 1

    # -- durations ------------------------------------------------------------------------------------

    def make_orders(self, *arguments: Any) -> MeasuredNodeOrders:
        """Return node orders that measure searches."""
        orders = MeasuredNodeOrders(*arguments)
        orders.measurements = self
        return orders

    def make_cycle(self, *arguments: Any) -> MeasuredCycle:
        """Return a cycle that measures sorts."""
        cycle = MeasuredCycle(*arguments)
        cycle.measurements = self
        return cycle

    def measure(self, decide: Decide, then: Decide) -> SampledTurns:
        """Return decisions of which some are measured."""
        return SampledTurns(decide, then, self)

    def note_preemption(self, duration: int) -> None:
        """Add a search for victims (ns)."""
        self.durations.preemption.observe(duration)

    def note_round(self, duration: int, decisions: int) -> None:
        """Add a round of decisions (ns)."""
        self.durations.round.observe(duration)
        self.decisions += decisions

    def note_step(self, duration: int) -> None:
        """Add a step of the core's thread (ns)."""
        self.steps += 1
        self.busy += duration
