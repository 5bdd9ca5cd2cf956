"""Adjustments that turn a recorded workload into a test of policies.

The cluster can be filled up, arrivals can be compressed in time, and nodes can be removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import attrs

from yunikorn.errors import UsageError
from yunikorn.resources import Resource
from yunikorn.simulation.arrivals import Changed
from yunikorn.simulation.workload import FOREVER, NodeEventKind, Workload, WorkloadApplication, WorkloadNode

Kind = tuple[str, Resource, frozenset[tuple[str, str]]]


@attrs.frozen
class Adjustments:
    """Changes to a workload of any format."""

    hold: bool = False
    """Tasks never end."""
    speed_up: Fraction = Fraction(1)
    """Divisor of the times of submissions, node events and reloads; run times stay the same."""
    nodes_fraction: Fraction = Fraction(1)
    """Part of the initial nodes that is kept; every kind of node keeps the same part."""

    def check(self) -> None:
        """Raise `UsageError` for a number out of range."""
        if self.speed_up <= 0:
            raise UsageError(f"--speed-up {float(self.speed_up):g}: expected a number above 0")
        if not 0 < self.nodes_fraction <= 1:
            raise UsageError(
                f"--nodes-fraction {float(self.nodes_fraction):g}: expected a number above 0 and at most 1"
            )

    def apply(self, workload: Workload) -> Workload:
        """Return the adjusted workload, or `workload` itself without adjustments; raises `UsageError`."""
        self.check()
        if self == Adjustments():
            return workload
        found = attrs.evolve(workload, remarks=list(workload.remarks))
        if self.nodes_fraction != 1:
            self._thin_out(found)
        if self.speed_up != 1:
            self._crowd(found)
        if self.hold or self.speed_up != 1:
            found.applications = Changed(workload.applications, self._change)
        return found

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

    def _crowd(self, workload: Workload) -> None:
        workload.events = [attrs.evolve(event, at=self._sooner(event.at)) for event in workload.events]
        workload.reloads = [attrs.evolve(event, at=self._sooner(event.at)) for event in workload.reloads]

    def _change(self, application: WorkloadApplication) -> WorkloadApplication:
        tasks = application.tasks
        if self.hold:
            tasks = tuple(attrs.evolve(group, runtime=FOREVER) for group in tasks)
        return attrs.evolve(application, submit=self._sooner(application.submit), tasks=tasks)

    def _sooner(self, moment: int) -> int:
        return moment * self.speed_up.denominator // self.speed_up.numerator


def thin_out(nodes: Sequence[WorkloadNode], fraction: Fraction) -> list[WorkloadNode]:
    """Return the first `fraction` of the nodes of each kind, in order; at least one node in total.

    A kind is the set of nodes of one partition with equal resources and attributes. Each kind keeps the whole
    part of its share. The kinds with the largest remainders keep one more node each until `fraction` of all
    nodes is reached; of equal remainders the kind that occurs first is served first.
    """
    kinds: dict[Kind, list[WorkloadNode]] = {}
    for node in nodes:
        key = (node.partition, node.resources, frozenset(node.attributes.items()))
        kinds.setdefault(key, []).append(node)
    total = sum(map(len, kinds.values()))
    wanted = max(round(total * fraction), min(total, 1))
    shares = {kind: divmod(len(alike) * fraction, 1) for kind, alike in kinds.items()}
    kept = {kind: int(whole) for kind, (whole, _) in shares.items()}
    rest = sorted(kinds, key=lambda kind: -shares[kind][1])
    for kind in rest[: wanted - sum(kept.values())]:
        kept[kind] += 1
    chosen = {node.name for kind, alike in kinds.items() for node in alike[: kept[kind]]}
    return [node for node in nodes if node.name in chosen]
