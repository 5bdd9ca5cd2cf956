"""Decisions of a scheduler that measures itself: one decision in `SAMPLED`, with its parts.

Measured decisions are the same decisions. Schedulers without measurements use none of these classes, so that
their decisions cost nothing more; the others make one more call for each search for a node, and for each sort
of more than one member.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.scheduling.cycle import Cycle
from yunikorn.scheduling.node_orders import NodeOrders
from yunikorn_service.sampling import SAMPLED, Sampling

if TYPE_CHECKING:
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.ask import Ask
    from yunikorn.model.core_meter import Decide
    from yunikorn.model.node import Node
    from yunikorn.model.queue import Queue


class MeasuredNodeOrders(NodeOrders):
    """Node orders that measure searches for a node."""

    measurements: Sampling
    """Set by `Measurements.make_orders`."""

    def find(self, ask: Ask) -> Node | None:
        """As `NodeOrders.find`."""
        measurements = self.measurements
        if not measurements.sampling:
            return NodeOrders.find(self, ask)
        start = measurements.stopwatch()
        node = NodeOrders.find(self, ask)
        duration = measurements.stopwatch() - start
        measurements.durations.search.observe(duration)
        if node is not None:
            measurements.durations.fit.observe(duration)
        return node


class MeasuredCycle(Cycle):
    """Cycle that measures the sorting of queues and applications."""

    measurements: Sampling
    """Set by `Measurements.make_cycle`."""

    def reorder(self, queue: Queue) -> None:
        """As `Cycle.reorder`."""
        measurements = self.measurements
        if not measurements.sampling:
            Cycle.reorder(self, queue)
            return
        start = measurements.stopwatch()
        Cycle.reorder(self, queue)
        durations = measurements.durations
        histogram = durations.app_sort if queue.is_leaf else durations.queue_sort
        histogram.observe(measurements.stopwatch() - start)


class SampledTurns:
    """Decisions of one partition, some of which are measured."""

    def __init__(self, decide: Decide, then: Decide, measurements: Sampling) -> None:
        """Measure `decide`, and `then`, which is called when nothing can be placed."""
        self._first, self._then = decide, then
        self._measurements = measurements

    def decide(self) -> Allocation | None:
        """Place the next request; None when nothing can be placed now."""
        measurements = self._measurements
        if measurements.until_sample:
            allocation = self._first() or self._then()
            if allocation is not None:
                measurements.until_sample -= 1
            return allocation
        start = measurements.stopwatch()
        measurements.sampling = True
        try:
            allocation = self._first() or self._then()
        finally:
            measurements.sampling = False
        if allocation is not None:
            measurements.durations.decision.observe(measurements.stopwatch() - start)
            measurements.until_sample = SAMPLED - 1
        return allocation

    def decide_up_to(self, most: int | None) -> int:
        """Place up to `most` requests, or all that can be placed now; returns the number of allocations."""
        measurements, first, then = self._measurements, self._first, self._then
        taken, start = 0, measurements.stopwatch()
        while taken != most:
            plain = measurements.until_sample
            if most is not None:
                plain = min(plain, most - taken)
            placed = 0
            while placed != plain and (first() or then()):
                placed += 1
            measurements.until_sample -= placed
            taken += placed
            if placed != plain or taken == most or self.decide() is None:
                break
            taken += 1
        measurements.durations.turn.observe(measurements.stopwatch() - start)
        return taken
