"""Policies that say what it costs to end gangs, steps of gangs and single tasks, for the room of a gang."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import pytest

from tests.core.gangs import GangRM
from tests.core.kit import configuration, queue, with_plugins
from tests.topology.racks import GPUS, TAG, gang, placed
from tests.topology.test_domain_preemption import ALL, ended, running
from yunikorn.api import Allocation, Context, PreemptionCause, PreemptionPolicy, VictimUnit

SECOND = 1_000_000_000


class LostSinceCheckpoint(PreemptionPolicy):
    """Counts the seconds since the last checkpoint, which the application says, for all that ends."""

    name = "lost-since-checkpoint"
    refresh_every = 10.0
    _now: Callable[[], int] = staticmethod(lambda: 0)
    asked: ClassVar[list[Sequence[VictimUnit]]] = []

    def opened(self, context: Context) -> None:
        """Keep the clock of the scheduler."""
        self._now = context.now

    def rank(self, victim: Allocation, cause: PreemptionCause) -> int:
        """Return the same rank for all."""
        return 0

    def cost_of_units(self, units: Sequence[VictimUnit], cause: PreemptionCause) -> tuple[float, ...]:
        """Return the highest priority, and the work that is lost."""
        self.asked.append(units)
        lost = 0.0
        for unit in units:
            for victim in unit.victims:
                saved = float(victim.tags.get("checkpoint", 0)) * SECOND
                lost += (self._now() - max(victim.placed, saved)) * victim.resource.get("gpu", 0)
        return max(victim.priority for unit in units for victim in unit.victims), lost


def cluster_with(policy: type[PreemptionPolicy], racks: int = 3, nodes: int = 1) -> GangRM:
    text = configuration(
        *(queue("a", resources=ALL), queue("b"), queue("c")),
        topology=["rack"],
        preemption={"policy": policy.name},
    )
    rm = GangRM(text, with_plugins(preemption_policies=[policy]))
    for rack in range(1, racks + 1):
        for node in range(1, nodes + 1):
            rm.node(f"r{rack}-n{node}", {"rack": f"r{rack}"}, gpu=GPUS)
    return rm


def train(
    rm: GangRM, name: str, size: int, *, more: int = 0, tags: dict[str, str] | None = None, slices: int = 1
) -> None:
    """Run a gang of this size, with more members in slices."""
    wanted = {"slices": [{"size": slices, "level": "rack"}]}
    rm.gang(name, "Atomic", "root.b", tags={TAG: json.dumps(wanted)}, gpu=size)
    rm.task(name, f"{name}-m", "workers", size, tags=tags, gpu=1)
    assert len(placed(rm, name)) == size
    if more:
        rm.task(name, f"{name}-x", "workers", more, tags=tags, gpu=1)
        assert len(placed(rm, name)) == size + more


def test_gang_with_the_least_work_since_its_checkpoint_ends() -> None:
    rm = cluster_with(LostSinceCheckpoint)
    now = rm.clock.now() // SECOND
    train(rm, "old", 8, tags={"checkpoint": str(now + 3000)})
    rm.pass_time(3600)
    train(rm, "young", 8)
    train(rm, "mid", 8, tags={"checkpoint": str(now + 3600 + 10)})
    rm.pass_time(601)
    gang(rm, "g", 8, "rack")
    assert set(ended(rm)) == {"mid-m"}


def test_policy_sees_what_ends_together_and_what_is_lost_elsewhere() -> None:
    rm = cluster_with(LostSinceCheckpoint, racks=2)
    train(rm, "wide", 10, more=4, slices=2)
    running(rm, "r2-n1", 2)
    LostSinceCheckpoint.asked.clear()
    gang(rm, "g", 8, "rack")
    ended(rm)
    seen = {
        (unit.kind, len(unit.victims), unit.outside) for units in LostSinceCheckpoint.asked for unit in units
    }
    # In the first rack, the steps of the second one end with their gang.
    assert seen == {("gang", 14, 6), ("single", 1, 0), ("step", 2, 0), ("gang", 10, 8)}


class Fixed(PreemptionPolicy):
    """Has the same answer for all units, except where only the task `best` ends."""

    name = "fixed"
    answer: ClassVar[Any] = 1

    def rank(self, victim: Allocation, cause: PreemptionCause) -> int:
        """Return the same rank for all."""
        return 0

    def cost_of_units(self, units: Sequence[VictimUnit], cause: PreemptionCause) -> Any:
        """Return the answer, or 0."""
        if [victim.key for unit in units for victim in unit.victims] == ["r2-n1-0"]:
            return 0
        if self.answer is None:
            raise ValueError("no idea")
        return self.answer


def fixed(answer: Any) -> GangRM:
    """Return racks with a task each, after a gang looked for the cheapest one."""
    Fixed.answer = answer
    rm = cluster_with(Fixed)
    for rack in (1, 2, 3):
        running(rm, f"r{rack}-n1", GPUS)
    gang(rm, "g", 8, "rack")
    ended(rm)
    return rm


@pytest.mark.parametrize("answer", [1, 0.5, (0, 1), (1,), True])
def test_numbers_and_tuples_of_numbers_are_compared(answer: Any) -> None:
    assert [one.allocation_key for one in fixed(answer).evicted.values()] == ["r2-n1-0"]


@pytest.mark.parametrize("answer", [None, "high", float("nan"), (1, float("nan")), (1, "a"), [1], (1,) * 17])
def test_nothing_ends_where_an_answer_is_not_valid(answer: Any) -> None:
    rm = fixed(answer)
    assert not rm.evicted
    (failure,) = rm.failures()
    assert "computing the cost of units" in failure
