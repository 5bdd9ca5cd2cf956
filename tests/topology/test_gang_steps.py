"""Gangs with slices lose what is beyond their size slice by slice, and no other gang ends before."""

from __future__ import annotations

import json

import pytest

from tests.core.gangs import GangRM
from tests.core.kit import configuration, queue
from tests.topology.racks import GPUS, TAG, gang, placed, reason_of
from tests.topology.test_domain_preemption import DISRUPTION, cluster, ended, running
from yunikorn.interface.messages import Allocation as Reported
from yunikorn.resources import Resource

REQUIRED = "yunikorn.apache.org/requiredNode"
STEP = 4
SLICES = json.dumps({"slices": [{"size": STEP, "level": "rack"}]})


def grow(rm: GangRM, *numbers: int, app_id: str = "low") -> None:
    """Add a member `x0`, `x1` and so on for each number, and have it placed."""
    before = len(rm.running)
    for number in numbers:
        rm.task(app_id, f"x{number}", "workers", gpu=1)
    rm.schedule()
    assert len(rm.running) == before + len(numbers)


def low(
    rm: GangRM, size: int, more: int, *, where: str = "root.b", app_id: str = "low", tag: str = SLICES
) -> None:
    """Run a gang of `size`, members `m0` and so on, with as many more, `x0` and so on."""
    rm.gang(app_id, "Atomic", where, tags={TAG: tag}, gpu=size)
    for number in range(size):
        rm.task(app_id, f"m{number}", "workers", gpu=1)
    assert len(placed(rm, app_id)) == size
    grow(rm, *range(more), app_id=app_id)


def full(size: int, more: int, nodes: int = 2, **keys: object) -> GangRM:
    """Return one rack in which such a gang runs."""
    rm = cluster(per_block=1, nodes=nodes, **keys)
    low(rm, size, more)
    return rm


def wanted(rm: GangRM, gpu: int, *, node: str = "") -> list[str]:
    """Return the victims of a request."""
    rm.app("high")
    rm.ask("high", "h", gpu=gpu, tags={REQUIRED: node} if node else {})
    return ended(rm)


def names(*numbers: int) -> list[str]:
    return sorted(f"x{number}" for number in numbers)


@pytest.mark.parametrize(
    ("gpu", "victims"), [(1, names(4, 5, 6, 7)), (4, names(4, 5, 6, 7)), (5, names(*range(8)))]
)
def test_request_ends_whole_steps_the_youngest_first(gpu: int, victims: list[str]) -> None:
    rm = full(8, 8)
    assert wanted(rm, gpu) == victims
    rm.confirm()
    assert [app_id for app_id, *_ in rm.schedule()] == ["high"]


def test_gang_ends_whole_steps_and_no_more_than_it_needs() -> None:
    rm = full(4, 12)
    gang(rm, "g", 6, "rack")
    assert ended(rm) == names(*range(4, 12))


def test_gang_ends_steps_before_whole_gangs() -> None:
    rm = full(4, 4, nodes=1)
    rm.node("b1-r2-n1", {"block": "b1", "rack": "r2"}, gpu=GPUS)
    low(rm, 4, 0, app_id="other")
    running(rm, "b1-r2-n1", 1, 1, 1, 1)
    gang(rm, "g", 4, "rack")
    assert ended(rm) == names(0, 1, 2, 3)


def test_incomplete_step_ends_with_what_it_has() -> None:
    rm = full(8, 8)
    for key in ("x6", "x7"):
        rm.release("low", key=key)
    running(rm, "b1-r1-n2", 2)
    assert wanted(rm, 4) == ["b1-r1-n2-0", *names(4, 5)]


def test_one_step_suffices_where_its_other_members_are_on_the_same_node() -> None:
    rm = full(8, 4)
    running(rm, "b1-r1-n2", 1, 1, 1, 1, priority=-1)
    # The youngest go first, but what ends with them makes the older ones unneeded.
    rm.app("high")
    rm.ask("high", "h", gpu=5)
    assert ended(rm)[-4:] == names(0, 1, 2, 3)
    assert len(rm.evicted) == 5


@pytest.mark.parametrize("size", [1, 4])
def test_required_node_ends_whole_steps(size: int) -> None:
    rm = full(8, 8)
    assert wanted(rm, size, node="b1-r1-n2") == names(4, 5, 6, 7)


def test_member_that_replaced_another_before_any_preemption_belongs_to_its_step() -> None:
    rm = full(8, 8)
    rm.release("low", key="x1")
    grow(rm, 8)
    # The youngest goes first, with the step that it completes.
    assert wanted(rm, 4) == names(0, 2, 3, 8)


def test_member_that_replaces_another_belongs_to_its_step() -> None:
    rm = full(8, 8)
    assert wanted(rm, 2) == names(4, 5, 6, 7)
    rm.confirm()
    rm.schedule()
    running(rm, "b1-r1-n2", 1)
    rm.release("low", key="x1")
    grow(rm, 8)
    running(rm, "b1-r1-n2", 1, app_id="other")
    rm.ask("high", "more", gpu=4)
    assert ended(rm) == names(0, 2, 3, 8)


@pytest.mark.parametrize("replaced", [False, True])
def test_step_stands_in_for_a_member_of_the_minimum_until_that_is_replaced(replaced: bool) -> None:
    rm = full(8, 8)
    assert wanted(rm, 2) == names(4, 5, 6, 7)
    rm.confirm()
    rm.schedule()
    rm.release("low", key="m0")
    if replaced:
        grow(rm, 8)
    rm.ask("high", "more", gpu=5)
    assert ended(rm) == (
        names(0, 1, 2, 3) if replaced else [f"m{n}" for n in range(1, 8)] + names(0, 1, 2, 3)
    )


def with_room_elsewhere() -> GangRM:
    """Return a gang of 4 with 2 more on a node, beside a second node."""
    rm = cluster(per_block=1, nodes=1)
    low(rm, 4, 2, tag="rack")
    rm.node("other", {}, gpu=GPUS)
    rm.app("high")
    return rm


def look_for_victims(rm: GangRM, key: str) -> None:
    """Preempt a single task on the second node for a request."""
    running(rm, "other", GPUS, app_id=key)
    rm.ask("high", key, gpu=GPUS)
    assert ended(rm) == ["other-0"]
    rm.confirm()
    assert rm.schedule() == [("high", key, "other")]


def test_minimum_has_fewer_members_when_they_have_become_larger() -> None:
    rm = with_room_elsewhere()
    look_for_victims(rm, "first")
    for key in ("m0", "m1"):
        resized(rm, key, 2)
    rm.ask("high", "more", gpu=4)
    assert ended(rm) == ["m2", "m3", "x0", "x1"]


def test_minimum_has_more_members_when_they_have_become_smaller() -> None:
    rm = with_room_elsewhere()
    for key in ("m0", "m1"):
        resized(rm, key, 2)
    look_for_victims(rm, "first")
    for key in ("m0", "m1"):
        resized(rm, key, 1)
    running(rm, "b1-r1-n1", 1, 1)
    rm.ask("high", "more", gpu=5)
    assert ended(rm) == ["m0", "m1", "m2", "m3", "x0", "x1"]


def resized(rm: GangRM, key: str, gpu: int) -> None:
    known = next(one for one in rm.running.values() if one.allocation_key == key)
    rm.update(
        allocations=[
            Reported(
                known.allocation_key, "low", node_id=known.node_id, resource_per_alloc=Resource({"gpu": gpu})
            )
        ]
    )


def test_all_members_end_together_where_the_gang_says_so() -> None:
    rm = cluster(per_block=1)
    rm.gang("low", "Atomic", "root.b", tags={TAG: SLICES, DISRUPTION: "PodGroup"}, gpu=8)
    rm.task("low", "m", "workers", 8, gpu=1)
    assert len(placed(rm, "low")) == 8
    grow(rm, *range(8))
    assert len(wanted(rm, 1)) == 16


@pytest.mark.parametrize(("most", "victims"), [(14, 0), (12, 4), (11, 4), (8, 8), (7, 8)])
def test_lowered_quota_ends_whole_steps(most: int, victims: int) -> None:
    def text(gpu: int) -> str:
        properties = {"quota.preemption.delay": "1s"}
        of_b = queue("b", resources={"max": {"gpu": gpu}}, properties=properties)
        return configuration(of_b, topology=["rack"], preemption={"quotapreemptionenabled": True})

    rm = GangRM(text(16))
    rm.node("n", {"rack": "r"}, gpu=16)
    low(rm, 8, 8)
    rm.reload(text(most))
    rm.pass_time(2)
    rm.schedule()
    assert len(rm.evicted) == victims


def shrunk(guaranteed: int, to: int, *, more: int = 4) -> GangRM:
    """Return a cluster with a node that became smaller; on another one, other members of its gang run."""
    of_b = queue("b", resources={"guaranteed": {"gpu": guaranteed}})
    rm = GangRM(configuration(of_b, topology=["rack"], preemption={"shrunknodes": True}))
    rm.node("n1", {"rack": "r"}, gpu=6)
    rm.node("n2", {"rack": "r"}, gpu=6)
    low(rm, 12 - more, more)
    rm.change_node("n2", gpu=to)
    return rm


def test_shrunk_node_ends_whole_steps() -> None:
    rm = shrunk(0, 5)
    assert sorted(one.allocation_key for one in rm.evicted.values()) == names(0, 1, 2, 3)


@pytest.mark.parametrize(("guaranteed", "victims"), [(0, 12), (1, 0)])
def test_shrunk_node_does_not_take_a_gang_from_a_guarantee(guaranteed: int, victims: int) -> None:
    assert len(shrunk(guaranteed, 5, more=0).evicted) == victims


def test_step_whose_queue_would_fall_below_its_guarantee_stays() -> None:
    assert not shrunk(9, 5).evicted


def in_first_rack(*, step: str, gpu: int) -> GangRM:
    """Return two full racks; a gang of 2 runs in the first, and requests `gpu` beyond its size."""
    rm = cluster(per_block=2, nodes=1)
    rm.gang("g", "Atomic", tags={TAG: "rack", "yunikorn.apache.org/gang-step": step}, gpu=2)
    rm.task("g", "m", "workers", 2, gpu=1)
    assert placed(rm, "g") == ["b1-r1-n1"] * 2
    running(rm, "b1-r1-n1", *[1] * 6, priority=-1)
    running(rm, "b1-r2-n1", 8, priority=-5)
    rm.task("g", "x", "workers", gpu, gpu=1)
    return rm


def test_step_preempts_only_where_its_gang_runs() -> None:
    assert ended(in_first_rack(step="2", gpu=2)) == ["b1-r1-n1-4", "b1-r1-n1-5"]


def test_gang_of_the_same_round_preempts_in_another_domain_than_a_step() -> None:
    rm = in_first_rack(step="2", gpu=2)
    gang(rm, "other", 8, "rack")
    assert ended(rm) == ["b1-r1-n1-4", "b1-r1-n1-5", "b1-r2-n1-0"]


def test_domain_stays_kept_for_a_replacement_while_another_task_group_grows() -> None:
    rm = cluster(per_block=10)
    rm.gang("g", "Atomic", tags={TAG: "rack", "yunikorn.apache.org/gang-step": "2"}, gpu=4)
    for group in ("a", "b"):
        rm.task("g", group, group, 2, gpu=1)
    assert placed(rm, "g") == ["b1-r1-n1"] * 4
    running(rm, "b1-r1-n1", 4, priority=100)
    running(rm, "b1-r1-n2", 7, priority=100)
    rm.release("g", uuid="a#1")
    rm.task("g", "again", "a", gpu=4)
    rm.schedule()
    rm.pass_time(601)
    rm.schedule()
    waits = "rack b1/r1 is kept free for it while work there ends"
    assert waits in reason_of(rm, "g", "again")
    rm.task("g", "half", "b", gpu=1)
    rm.node("b1-r1-n3", {"block": "b1", "rack": "r1"}, gpu=1)
    rm.task("g", "other half", "b", gpu=1)
    rm.release("g", uuid="b#1")
    rm.schedule()
    assert waits in reason_of(rm, "g", "again")
