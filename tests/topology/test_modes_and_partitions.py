"""Gangs as victims that are requeued or suspended, and preemption for gangs in two partitions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.gangs import GangRM
from tests.core.kit import configuration, document, partition, queue, with_plugins
from tests.topology.racks import GPUS, TAG, gang, placed, reason
from tests.topology.test_domain_preemption import ALL, ended, kept_domains
from yunikorn.api import Allocation, PreemptionCause, PreemptionPolicy
from yunikorn.interface.messages import (
    AddApplicationRequest,
    AllocationAsk,
    NewNodeInfo,
    PreemptionMode,
    UserGroupInformation,
)
from yunikorn.resources import Resource

QUEUES = queue("a", resources=ALL), queue("b"), queue("c")
MODES = [PreemptionMode.REQUEUE, PreemptionMode.SUSPEND]


def modes_of(rm: GangRM) -> set[PreemptionMode]:
    return {one.preemption_mode for one in rm.evicted.values()}


def full(policy: object, *plugins: type[PreemptionPolicy], tags: dict[str, str] | None = None) -> GangRM:
    """Return a rack with a gang of 12 and 4 more members; the RM can requeue and suspend."""
    text = configuration(*QUEUES, topology=["rack"], preemption={"policy": policy})
    rm = GangRM(text, with_plugins(preemption_policies=plugins), modes=MODES)
    for node in (1, 2):
        rm.node(f"r1-n{node}", {"rack": "r1"}, gpu=GPUS)
    rm.gang("low", "Atomic", "root.b", tags={TAG: "rack"}, gpu=12)
    rm.task("low", "m", "workers", 12, tags=tags, gpu=1)
    assert len(placed(rm, "low")) == 12
    rm.task("low", "x", "workers", 4, gpu=1)
    assert len(placed(rm, "low")) == 16
    return rm


@pytest.mark.parametrize(("mode", "number"), [("requeue", MODES[0]), ("suspend", MODES[1])])
def test_gang_that_is_requeued_or_suspended_runs_again_as_a_whole(mode: str, number: PreemptionMode) -> None:
    rm = full({"name": "standard", "mode": mode})
    gang(rm, "g", 8, "rack")
    assert ended(rm) == ["m"] * 12 + ["x"] * 4
    assert modes_of(rm) == {number}
    # The RM asks for the work again, before and after it confirms the ends.
    rm.task("low", "m2", "workers", 11, gpu=1)
    rm.confirm()
    assert len(placed(rm, "g")) == 8
    rm.task("low", "m3", "workers", 1, gpu=1)
    assert placed(rm, "low") == []
    rm.remove_app("g")
    assert len(placed(rm, "low")) == 12


def test_members_beyond_the_size_are_suspended_alone() -> None:
    rm = full({"name": "standard", "mode": "suspend"})
    gang(rm, "g", 4, "rack")
    assert ended(rm) == ["x"] * 4
    assert modes_of(rm) == {PreemptionMode.SUSPEND}


class ModeOfTag(PreemptionPolicy):
    """Suspends or ends each victim as its tag says."""

    name = "mode-of-tag"

    def rank(self, victim: Allocation, cause: PreemptionCause) -> int:
        """Return the same rank for all."""
        return 0

    def mode_of(self, victim: Allocation, cause: PreemptionCause) -> Any:
        """Return the tag."""
        return victim.tags.get("mode", "end")


def test_each_member_of_a_gang_that_ends_has_its_own_mode() -> None:
    rm = full("mode-of-tag", ModeOfTag, tags={"mode": "suspend"})
    gang(rm, "g", 8, "rack")
    ended(rm)
    modes = sorted((one.allocation_key, one.preemption_mode.name) for one in rm.evicted.values())
    assert modes == [("m", "SUSPEND")] * 12 + [("x", "END")] * 4


def test_gang_stays_as_a_whole_where_the_mode_of_one_member_is_not_valid() -> None:
    rm = full("mode-of-tag", ModeOfTag, tags={"mode": "hibernate"})
    gang(rm, "g", 8, "rack")
    assert ended(rm) == []
    assert len(rm.failures()) == 1
    assert "preemption found no suitable victims" in reason(rm, "g")


def two() -> GangRM:
    """Return two partitions with a full rack each, of equal names."""
    parts = [partition(*QUEUES, name=name, topology=["rack"]) for name in ("default", "other")]
    rm = GangRM(document(*parts))
    for name in ("default", "other"):
        info = [
            NewNodeInfo(f"{name}-n{node}", {"rack": "r1", "si/node-partition": name}, Resource({"gpu": GPUS}))
            for node in (1, 2)
        ]
        rm.update(new_schedulable_nodes=info)
    for name in ("default", "other"):
        submit(rm, name, "low", "root.b", 16, total=0)
    rm.schedule()
    assert len(rm.running) == 32
    return rm


def submit(rm: GangRM, where: str, app_id: str, queue_name: str, count: int, *, total: int) -> None:
    user = UserGroupInformation("user", ["group"])
    of_gang = (Resource({"gpu": total}), "Atomic") if total else ()
    rm.update(
        new_applications=[AddApplicationRequest(app_id, queue_name, where, user, {TAG: "rack"}, 0, *of_gang)]
    )
    ask = AllocationAsk(f"{where}-{app_id}", app_id, where, Resource({"gpu": 1}), count)
    ask.task_group_name = "workers" if total else ""
    rm.update(asks=[ask])


def test_gang_preempts_only_in_its_own_partition() -> None:
    rm = two()
    submit(rm, "other", "g", "root.a", 8, total=8)
    assert ended(rm) == ["other-low"] * 8
    others = rm.at_work("other").cycle.atomic.domains.by_gang
    assert [one.app.id for one in others] == ["g"]
    assert kept_domains(rm) == {}
    rm.confirm()
    rm.schedule()
    assert sum(one.partition_name == "other" for one in rm.running.values()) == 16


def test_gangs_of_one_name_preempt_in_two_partitions_at_once() -> None:
    rm = two()
    for where in ("default", "other"):
        submit(rm, where, "g", "root.a", 8, total=8)
    assert ended(rm) == ["default-low"] * 8 + ["other-low"] * 8
    rm.confirm()
    rm.schedule()
    placed_now = sorted(one.allocation_key for one in rm.running.values())
    assert placed_now == [*["default-g"] * 8, *["default-low"] * 8, *["other-g"] * 8, *["other-low"] * 8]
