"""Adjustments that turn a recorded workload into a test of policies.

The cluster can be filled up, arrivals can be compressed in time, and nodes can be removed or copied.
"""

from __future__ import annotations

from fractions import Fraction

import attrs

from yunikorn.errors import UsageError
from yunikorn_lab.simulation.arrivals import Changed
from yunikorn_lab.simulation.cluster_size import thin_out, with_copies
from yunikorn_lab.simulation.distributions import DrawnAmounts
from yunikorn_lab.simulation.synthetic_racks import SyntheticRacks
from yunikorn_lab.simulation.workload import FOREVER, NodeEventKind, StartUp, Workload, WorkloadApplication


@attrs.frozen
class Adjustments:
    """Changes to a workload of any format."""

    hold: bool = False
    """Tasks never end."""
    speed_up: Fraction = Fraction(1)
    """Divisor of the times of submissions, node events and reloads; run times stay the same."""
    nodes_fraction: Fraction = Fraction(1)
    """Part of the initial nodes that is kept, the same for every kind of node; above 1 nodes are copied."""

    startup: DrawnAmounts | None = None
    """Start-up times of tasks that have no time of their own; None for those of the workload."""

    racks: SyntheticRacks | None = None
    """Synthetic racks; None for none."""

    def check(self) -> None:
        """Raise `UsageError` for a number out of range."""
        if self.speed_up <= 0:
            raise UsageError(f"--speed-up {float(self.speed_up):g}: expected a number above 0")
        if self.nodes_fraction <= 0:
            raise UsageError(
                f"--nodes-fraction {float(self.nodes_fraction):g}: expected a number above 0, as 0.25 or 2"
            )

    def apply(self, workload: Workload) -> Workload:
        """Return the adjusted workload, or `workload` itself without adjustments; raises `UsageError`."""
        self.check()
        if self == Adjustments():
            return workload
        # The recorded placements are those of the recorded arrivals, run times and nodes.
        found = attrs.evolve(workload, remarks=list(workload.remarks), recorded=None)
        if self.nodes_fraction < 1:
            self._thin_out(found)
        elif self.nodes_fraction > 1:
            self._copy(found)
        if self.speed_up != 1:
            self._crowd(found)
        if self.startup is not None:
            found.startup = StartUp(self.startup, workload.startup.seed)
        if self.hold or self.speed_up != 1:
            found.applications = Changed(workload.applications, self._change)
        return found if self.racks is None else self.racks.apply(found)

    def _thin_out(self, workload: Workload) -> None:
        before = len(workload.nodes)
        kept = thin_out(workload.nodes, self.nodes_fraction)
        gone = {node.name for node in workload.nodes} - {node.name for node in kept}
        events = []
        for event in workload.events:
            if event.change is NodeEventKind.ADD:
                gone.discard(event.node.name)
            if event.node.name not in gone:
                events.append(event)
        dropped = len(workload.events) - len(events)
        workload.nodes, workload.events = kept, events
        ignored = f"; {dropped} events of the other nodes are ignored" if dropped else ""
        workload.remarks.append(f"{len(kept)} of {before} nodes are used{ignored}")

    def _copy(self, workload: Workload) -> None:
        before = len(workload.nodes)
        taken = {event.node.name for event in workload.events}
        workload.nodes = with_copies(workload.nodes, self.nodes_fraction, taken)
        copies = len(workload.nodes) - before
        quiet = "; events are those of the original nodes only" if workload.events else ""
        workload.remarks.append(f"{len(workload.nodes)} nodes are used, {copies} of them copies{quiet}")

    def _crowd(self, workload: Workload) -> None:
        workload.began = None  # dates would pass faster than time
        workload.events = [attrs.evolve(event, at=self._sooner(event.at)) for event in workload.events]
        workload.reloads = [attrs.evolve(event, at=self._sooner(event.at)) for event in workload.reloads]

    def _change(self, application: WorkloadApplication) -> WorkloadApplication:
        tasks = application.tasks
        if self.hold:
            tasks = tuple(attrs.evolve(group, runtime=FOREVER) for group in tasks)
        return attrs.evolve(application, submit=self._sooner(application.submit), tasks=tasks)

    def _sooner(self, moment: int) -> int:
        return moment * self.speed_up.denominator // self.speed_up.numerator
