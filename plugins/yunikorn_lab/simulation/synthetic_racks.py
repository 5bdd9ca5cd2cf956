"""Synthetic racks for workloads whose nodes have none, and gangs that ask for them.

Nodes get racks, and blocks of racks, in their order. A part of the applications become gangs, each with the
closest level that could host it if the cluster were empty.
"""

from __future__ import annotations

import json
import re
from fractions import Fraction

import attrs

from yunikorn.errors import UsageError
from yunikorn.interface.constants import GANG_TOPOLOGY_TAG
from yunikorn.model.gang import ATOMIC
from yunikorn.resources import Resource
from yunikorn.text import number_of
from yunikorn_lab.simulation.arrivals import Changed
from yunikorn_lab.simulation.rm_state import partition_name
from yunikorn_lab.simulation.rng import streams
from yunikorn_lab.simulation.survey import fit_count
from yunikorn_lab.simulation.workload import Workload, WorkloadApplication, WorkloadNode

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
