"""Adjustments that turn a recorded workload into a test of policies.

The cluster can be filled up, arrivals can be compressed in time, and nodes can be removed or copied.

Clusters of another size with the same kinds of nodes, and the capacity of nodes over time.

Synthetic racks for workloads whose nodes have none, and gangs that ask for them.

Nodes get racks, and blocks of racks, in their order. A part of the applications become gangs, each with the
closest level that could host it if the cluster were empty.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction

import attrs

from yunikorn.errors import UsageError
from yunikorn.interface.constants import GANG_TOPOLOGY_TAG
from yunikorn.model.gang import ATOMIC
from yunikorn.resources import Resource, Tally, grow
from yunikorn.text import number_of
from yunikorn_lab.simulation.arrivals import Changed
from yunikorn_lab.simulation.distributions import DrawnAmounts
from yunikorn_lab.simulation.machines import MAX_NODES
from yunikorn_lab.simulation.rm_state import partition_name
from yunikorn_lab.simulation.rng import streams
from yunikorn_lab.simulation.survey import fit_count, node_changes
from yunikorn_lab.simulation.workload import (
    FOREVER,
    NodeEvent,
    NodeEventKind,
    StartUp,
    Workload,
    WorkloadApplication,
    WorkloadNode,
)

Kind = tuple[str, Resource, frozenset[tuple[str, str]], float, frozenset[tuple[str, int]]]
"""Partition, resources, attributes, speed and devices of equal nodes."""


def thin_out(nodes: Sequence[WorkloadNode], fraction: Fraction) -> list[WorkloadNode]:
    """Return the first `fraction` of the nodes of each kind, in order; at least one node in total."""
    kinds = _by_kind(nodes)
    kept = _shares(kinds, max(round(len(nodes) * fraction), min(len(nodes), 1)), fraction)
    chosen = {node.name for kind, alike in kinds.items() for node in alike[: kept[kind]]}
    return [node for node in nodes if node.name in chosen]


def with_copies(
    nodes: Sequence[WorkloadNode], fraction: Fraction, taken: Collection[str] = ()
) -> list[WorkloadNode]:
    """Return the nodes, followed by copies, so that there are `fraction` (at least 1) times as many.

    Nodes of a kind are copied in turn. A copy is called `NAME-copy-2` and so on, or gets a higher number if
    the name occurs among the nodes or is `taken`. An attribute whose value is the name of the node has the
    name of the copy. Raises `UsageError` for too many nodes.
    """
    wanted = round(len(nodes) * fraction)
    if wanted > MAX_NODES:
        raise UsageError(f"{wanted} nodes are too many; the maximum is {MAX_NODES}")
    kinds = _by_kind(nodes)
    names = {node.name for node in nodes} | set(taken)
    copies: list[WorkloadNode] = []
    for kind, count in _shares(kinds, wanted, fraction).items():
        alike = kinds[kind]
        copies += (
            _copy(alike[index % len(alike)], index // len(alike) + 1, names)
            for index in range(len(alike), count)
        )
    return [*nodes, *copies]


def _copy(node: WorkloadNode, number: int, names: set[str]) -> WorkloadNode:
    while (name := f"{node.name}-copy-{number}") in names:
        number += 1
    names.add(name)
    attributes = {key: name if value == node.name else value for key, value in node.attributes.items()}
    return attrs.evolve(node, name=name, attributes=attributes)


def _by_kind(nodes: Sequence[WorkloadNode]) -> dict[Kind, list[WorkloadNode]]:
    kinds: dict[Kind, list[WorkloadNode]] = {}
    for node in nodes:
        attributes = frozenset((key, value) for key, value in node.attributes.items() if value != node.name)
        devices = frozenset(node.devices.items())
        kinds.setdefault((node.partition, node.resources, attributes, node.speed, devices), []).append(node)
    return kinds


def _shares(kinds: dict[Kind, list[WorkloadNode]], wanted: int, fraction: Fraction) -> dict[Kind, int]:
    """Return the number of nodes of each kind, `wanted` in total.

    Each kind has the whole part of its share. The kinds with the largest remainders have one more node each
    until there are enough; of equal remainders the kind that occurs first is served first.
    """
    shares = {kind: divmod(len(alike) * fraction, 1) for kind, alike in kinds.items()}
    found = {kind: int(whole) for kind, (whole, _) in shares.items()}
    rest = sorted(kinds, key=lambda kind: -shares[kind][1])
    for kind in rest[: max(wanted - sum(found.values()), 0)]:
        found[kind] += 1
    return found


def largest_capacities(nodes: Iterable[WorkloadNode], events: Iterable[NodeEvent]) -> dict[str, Tally]:
    """Return for each partition and resource type the most that all nodes have at any time."""
    largest: dict[str, Tally] = {}
    current: dict[str, Tally] = {}
    for _, node, sign in node_changes(nodes, events):
        partition = partition_name(node.partition)
        now, most = current.setdefault(partition, {}), largest.setdefault(partition, {})
        grow(now, node.resources, sign)
        for name in node.resources:
            most[name] = max(most.get(name, 0), now.get(name, 0))
    return largest


RACK, BLOCK = "rack", "block"
SMALLEST, LARGEST = 1, 9
"""Powers of two of the smallest and the largest gang that is made of a single task."""


@attrs.frozen
class SyntheticRacks:
    """Racks of equal numbers of nodes, and the part of the applications that are gangs."""

    nodes: int
    """Nodes of a rack."""
    racks: int = 0
    """Racks of a block; 0 for no blocks."""
    gangs: Fraction = Fraction(0)

    @classmethod
    def of(cls, text: str, gangs: Fraction) -> SyntheticRacks:
        """Parse nodes per rack and racks per block, such as `16` or `16x8`; raises `UsageError`."""
        sizes = re.fullmatch(r"([1-9]\d{0,5})(?:x([1-9]\d{0,5}))?", text)
        if sizes is None:
            raise UsageError(
                f"--racks {text[:40]}: expected nodes per rack, or also racks per block: 16 or 16x8"
            )
        if not 0 <= gangs <= 1:
            raise UsageError(f"--gangs {float(gangs):g}: expected a part of the applications, from 0 to 1")
        return cls(int(sizes[1]), int(sizes[2] or 0), gangs)

    def apply(self, workload: Workload) -> Workload:
        """Return the workload with racks and gangs; raises `UsageError` if nodes have racks already."""
        taken = next((node for node in workload.all_nodes() if RACK in node.attributes), None)
        if taken is not None:
            raise UsageError(
                f"--racks: node {taken.name} has the attribute {RACK} already: leave out --racks"
            )
        numbers: dict[str, int] = {}
        placed: dict[str, WorkloadNode] = {}
        for node in workload.all_nodes():
            if node.name not in placed:
                partition = partition_name(node.partition)
                number = numbers[partition] = numbers.get(partition, -1) + 1
                placed[node.name] = attrs.evolve(node, attributes={**node.attributes, **self._place(number)})
        found = attrs.evolve(
            workload,
            nodes=[placed[node.name] for node in workload.nodes],
            events=[
                attrs.evolve(
                    event,
                    node=attrs.evolve(event.node, attributes=placed[event.node.name].attributes),
                )
                for event in workload.events
            ],
            remarks=list(workload.remarks),
        )
        made = ", ".join(f"{number_of(-(-(last + 1) // self.nodes), RACK)}" for last in numbers.values())
        found.remarks.append(f"{made} of {number_of(self.nodes, 'node')} each were made up")
        if self.gangs:
            found.applications = Changed(found.applications, _Gangs(self, [*placed.values()]).change)
        return found

    def _place(self, number: int) -> dict[str, str]:
        rack = number // self.nodes
        block = {BLOCK: f"b{rack // self.racks + 1}"} if self.racks else {}
        return {**block, RACK: f"r{rack + 1}"}


class _Gangs:
    """Makes gangs of applications."""

    def __init__(self, racks: SyntheticRacks, nodes: list[WorkloadNode]) -> None:
        self._share, self._nodes = float(racks.gangs), nodes
        self._levels = (RACK, BLOCK) if racks.racks else (RACK,)
        self._largest: dict[tuple[str, Resource], dict[str, int]] = {}
        self._streams = streams(0)

    def change(self, application: WorkloadApplication) -> WorkloadApplication:
        """Return the application, or a gang in its place, which depends on its id only."""
        rng = self._streams(f"gang {application.id}")
        if rng() >= self._share or GANG_TOPOLOGY_TAG in application.tags:
            return application
        if application.size == 1:
            size = 1 << SMALLEST + int(rng() * (LARGEST - SMALLEST + 1))
            (group,) = application.tasks
            most = self._room(application, group.resources)[""]
            if size <= most:
                application = attrs.evolve(application, tasks=(attrs.evolve(group, count=size),))
        level = self._closest(application)
        wanted = {"required": level} if level else {"preferred": [self._levels[-1]]}
        tags = {**application.tags, GANG_TOPOLOGY_TAG: json.dumps(wanted)}
        return attrs.evolve(application, gang=application.gang or ATOMIC, tags=tags)

    def _closest(self, application: WorkloadApplication) -> str:
        """Return the closest level of which one empty domain has room; empty if there is none."""
        for level in self._levels:
            rooms = [self._room(application, group.resources)[level] for group in application.tasks]
            if (
                all(rooms)
                and sum(
                    Fraction(group.count, room) for group, room in zip(application.tasks, rooms, strict=True)
                )
                <= 1
            ):
                return level
        return ""

    def _room(self, application: WorkloadApplication, size: Resource) -> dict[str, int]:
        """Return for how many tasks the largest empty domain has room, by level; "" is the whole cluster."""
        key = partition_name(application.partition), size
        found = self._largest.get(key)
        if found is None:
            rooms: dict[tuple[str, str], int] = {}
            for node in self._nodes:
                if partition_name(node.partition) == key[0]:
                    for level in ("", *self._levels):
                        domain = level, node.attributes.get(level, "")
                        rooms[domain] = rooms.get(domain, 0) + fit_count(node.resources, size)
            found = self._largest[key] = dict.fromkeys(("", *self._levels), 0)
            for (level, _), room in rooms.items():
                found[level] = max(found[level], room)
        return found


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
