"""Gangs on small random clusters: every placement is as required, and what can be placed is.

Histories with gangs of several task groups, levels, slices, nodes that change, and reloads. A second run
of a history decides the same. `YUNIKORN_TOPOLOGIES=2000` runs more of them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import attrs
import pytest

from tests.core.kit import Decision, configuration, queue
from tests.core.partition_checks import check_partition_accounting
from tests.core.strict import StrictRM, Submitted
from tests.example_counts import examples
from tests.topology.racks import TAG
from yunikorn.clock import SECOND
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import NodeAction
from yunikorn.model.context import Timeouts
from yunikorn.resources import Resource

SEEDS = examples(8)
STEPS = 14
LEVELS = ("block", "rack", "host")
PATIENCE = 10**9 * SECOND
"""No gang is overdue, so that none holds others back."""


@attrs.frozen
class Group:
    """Equal members of a gang."""

    name: str
    count: int
    size: dict[str, Any]
    required: str = ""


@attrs.frozen
class Wanted:
    """A gang, and what it requires."""

    groups: list[Group]
    required: str
    preferred: list[tuple[str, int]]
    slices: list[tuple[int, str]]

    @property
    def tag(self) -> str:
        """Return the tag of the application."""
        found: dict[str, Any] = {"slices": [{"size": size, "level": level} for size, level in self.slices]}
        if self.required:
            found["required"] = self.required
        found["preferred"] = [{"level": level, "for": f"{wait}s"} for level, wait in self.preferred]
        found["groups"] = {
            group.name: {"required": group.required} for group in self.groups if group.required
        }
        return json.dumps(found)

    @property
    def levels(self) -> bool:
        """True if the request names a level."""
        own = any(group.required for group in self.groups)
        return bool(self.required or self.preferred or self.slices or own)


@attrs.define
class Place:
    """A node, as the test knows it."""

    names: tuple[str, str, str]
    size: dict[str, int]
    drained: bool = False

    def domain(self, level: str) -> tuple[str, ...] | None:
        """Return the domain of a level; None without one. Nodes without a block have no rack, either."""
        names = self.names[: LEVELS.index(level) + 1]
        return names if names[-1] else None


class History:
    """One random history; `decided` has all placements."""

    def __init__(self, seed: int) -> None:
        self.random = draw = Random(seed)
        self.alike = draw.random() < 0.7
        self.nodes: dict[str, Place] = {}
        self.gangs: dict[str, Wanted] = {}
        self.submitted: dict[str, int] = {}
        self.placed: dict[str, dict[str, list[str]]] = {}
        self.decided: list[Decision] = []
        self.number = 0
        self.policy = draw.choice(["best-fit", "least-free", "balanced"])
        registry, timeouts = (
            Registry.load(third_party=False),
            Timeouts(reservation=None, gang_patience=PATIENCE),
        )
        self.rm = StrictRM(self.text(), registry, timeouts)
        blocks = draw.randint(1, 3)
        for block in range(blocks):
            for rack in range(draw.randint(1, 6 // blocks)):
                for _ in range(draw.randint(1, 4)):
                    self.add_node(f"b{block}", f"r{rack}")
        if draw.random() < 0.3:
            self.add_node("b0", "")

    def text(self) -> str:
        """Return the configuration."""
        return configuration(queue("a"), queue("b"), topology=list(LEVELS), gangplacement=self.policy)

    # -- steps ----------------------------------------------------------------------------------------

    def add_node(self, block: str = "", rack: str = "") -> None:
        """Add a node."""
        self.number += 1
        node_id = f"n{self.number}"
        size: dict[str, Any] = (
            {"vcore": 8, "gpu": 4} if self.alike else {"vcore": self.random.randint(2, 8), "gpu": 2}
        )
        block = block or self.random.choice(["b0", "b1"])
        rack = rack or self.random.choice(["r0", "r1", ""])
        self.nodes[node_id] = Place((block, rack, node_id if rack else ""), size)
        self.rm.nodes[node_id] = None
        self.rm.node(node_id, self._attributes(node_id), **size)

    def _attributes(self, node_id: str) -> dict[str, str]:
        return {level: name for level, name in zip(LEVELS, self.nodes[node_id].names, strict=True) if name}

    def move_node(self) -> None:
        """Move a node that runs nothing to another rack."""
        used = {one.node_id for one in self.rm.running.values()}
        idle = [node_id for node_id in self.nodes if node_id not in used and self.nodes[node_id].names[1]]
        if idle:
            node_id = self.random.choice(idle)
            place = self.nodes[node_id]
            rack = self.random.choice(["r0", "r1", "r9"])
            place.names = (place.names[0], rack, node_id)
            self.rm.change_node(node_id, attributes=self._attributes(node_id))

    def drain(self) -> None:
        """Drain a node, or open it again."""
        node_id = self.random.choice(list(self.nodes))
        place = self.nodes[node_id]
        place.drained = not place.drained
        action = NodeAction.DRAIN_NODE if place.drained else NodeAction.DRAIN_TO_SCHEDULABLE
        self.rm.change_node(node_id, action)

    def submit(self) -> None:
        """Submit a gang."""
        self.number += 1
        app_id, wanted = f"app{self.number}", self.draw_gang()
        self.gangs[app_id], self.submitted[app_id] = wanted, self.rm.clock.now()
        total: dict[str, Any] = {}
        for group in wanted.groups:
            for name, amount in group.size.items():
                total[name] = total.get(name, 0) + amount * group.count
        self.rm.apps[app_id] = Submitted(Resource(total))
        tags = {TAG: wanted.tag} if wanted.levels else {}
        self.rm.gang(app_id, "Atomic", self.random.choice(["root.a", "root.b"]), tags=tags, **total)
        for group in wanted.groups:
            key = f"{app_id}-{group.name}"
            self.rm.wanted[app_id, key] = group.count
            self.rm.task(app_id, key, group.name, group.count, **group.size)

    def draw_gang(self) -> Wanted:
        """Draw the members and the requirements of a gang."""
        draw = self.random
        required = draw.choice(["", "block", "block", "rack", "rack", "host"])
        number = LEVELS.index(required) if required else -1
        inside = LEVELS[number + 1 :]
        preferred = []
        if inside and draw.random() < 0.4:
            preferred = [(draw.choice(inside), draw.choice([0, 0, 60]))]
        slices: list[tuple[int, str]] = []
        if inside and draw.random() < 0.4:
            slices = [(draw.choice([2, 3, 4]), draw.choice(inside))]
            closer = LEVELS[LEVELS.index(slices[0][1]) + 1 :]
            if closer and slices[0][0] == 4 and draw.random() < 0.5:
                slices.append((2, draw.choice(closer)))
        groups = []
        for group in range(draw.choice([1, 1, 1, 2, 3])):
            count = draw.randint(1, 12 if group == 0 else 4)
            if slices and draw.random() < 0.9:
                count = slices[0][0] * draw.randint(1, 4)
            size = draw.choice([{"vcore": 1}, {"vcore": 2}, {"vcore": 3}, {"gpu": 1}, {"vcore": 2, "gpu": 1}])
            own = draw.choice(inside) if inside and group and draw.random() < 0.4 else ""
            groups.append(Group(f"g{group}", count, size, own))
        return Wanted(groups, required, preferred, slices)

    def end(self) -> None:
        """Remove a gang, placed or not."""
        if self.gangs:
            app_id = self.random.choice(list(self.gangs))
            for record in (self.gangs, self.submitted, self.placed):
                record.pop(app_id, None)
            self.rm.remove_app(app_id)
            self.rm.forget(app_id)

    def reload(self) -> None:
        """Use another policy."""
        self.policy = self.random.choice(["best-fit", "least-free", "balanced"])
        self.rm.reload(self.text())

    def step(self) -> None:
        """Change something, schedule, and check everything."""
        draw = self.random.random()
        if draw < 0.55:
            self.submit()
        elif draw < 0.75:
            self.end()
        elif draw < 0.82:
            self.drain()
        elif draw < 0.88:
            self.move_node()
        elif draw < 0.92:
            self.add_node()
        elif draw < 0.96:
            self.rm.pass_time(40)
        else:
            self.reload()
        decided = self.rm.schedule()
        self.decided += decided
        for app_id in dict.fromkeys(one[0] for one in decided):
            self.check_placement(app_id, [one for one in decided if one[0] == app_id])
        check_partition_accounting(self.rm)
        for app_id in self.gangs:
            if app_id not in self.placed:
                assert not self.must_fit(app_id), f"{app_id} fits, and waits: {self.gangs[app_id]}"

    # -- placements -----------------------------------------------------------------------------------

    def check_placement(self, app_id: str, decided: list[Decision]) -> None:
        """Assert that the members of a gang are in the domains that it requires."""
        wanted = self.gangs[app_id]
        nodes: dict[str, list[str]] = {}
        for _, key, node_id in decided:
            nodes.setdefault(key.rpartition("-")[2], []).append(node_id)
        self.placed[app_id] = nodes
        assert {name: len(found) for name, found in nodes.items()} == {g.name: g.count for g in wanted.groups}
        every = [node_id for found in nodes.values() for node_id in found]
        assert not any(self.nodes[node_id].drained for node_id in every)
        self._assert_one_domain(every, wanted.required)
        waited = self.rm.clock.now() - self.submitted[app_id]
        for level, wait in wanted.preferred:
            if waited < wait * SECOND:
                self._assert_one_domain(every, level)
        for group in wanted.groups:
            self._assert_one_domain(nodes[group.name], group.required)
            for size, level in wanted.slices:
                counts = Counter(self.nodes[node_id].domain(level) for node_id in nodes[group.name])
                assert None not in counts
                assert all(count % size == 0 for count in counts.values()), (wanted, nodes)

    def _assert_one_domain(self, nodes: list[str], level: str) -> None:
        if level:
            found = {self.nodes[node_id].domain(level) for node_id in nodes}
            assert len(found) == 1, (level, nodes)
            assert None not in found

    # -- what can be placed ---------------------------------------------------------------------------

    def must_fit(self, app_id: str) -> bool:
        """Return True if a gang of one task group can be placed now, which counting decides exactly."""
        wanted = self.gangs[app_id]
        if len(wanted.groups) > 1 or any(wait for _, wait in wanted.preferred):
            return False
        (group,) = wanted.groups
        free = {node_id: dict(place.size) for node_id, place in self.nodes.items() if not place.drained}
        for one in self.rm.running.values():
            for name, amount in one.resource_per_alloc.items():
                if one.node_id in free:
                    free[one.node_id][name] -= amount
        room = {
            node_id: min(left.get(name, 0) // amount for name, amount in group.size.items())
            for node_id, left in free.items()
        }
        if group.count % wanted.slices[0][0] if wanted.slices else False:
            return False
        return any(
            self._capacity(nodes, room, wanted.slices) >= group.count
            for nodes in self._domains(list(room), wanted.required)
        )

    def _domains(self, nodes: list[str], level: str) -> Iterator[list[str]]:
        if not level:
            yield nodes
            return
        found: dict[tuple[str, ...], list[str]] = {}
        for node_id in nodes:
            domain = self.nodes[node_id].domain(level)
            if domain is not None:
                found.setdefault(domain, []).append(node_id)
        yield from found.values()

    def _capacity(self, nodes: list[str], room: dict[str, int], slices: list[tuple[int, str]]) -> int:
        """Return how many members in whole slices fit these nodes."""
        if not slices:
            return sum(room[node_id] for node_id in nodes)
        (size, level), *inner = slices
        fitting = (self._capacity(inside, room, inner) for inside in self._domains(nodes, level))
        return sum(count - count % size for count in fitting)


def play(seed: int) -> list[Decision]:
    """Run a history with all checks, and return its placements."""
    history = History(seed)
    for _ in range(STEPS):
        history.step()
    return history.decided


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_gangs_are_placed_as_required_wherever_they_fit(seed: int) -> None:
    assert play(seed) == play(seed)
