"""Many waiting gangs of different sizes: each is tried, and none makes the others more expensive."""

from __future__ import annotations

from benchmarks.steps import steps_of
from tests.core.gangs import GangRM
from tests.core.kit import configuration, queue
from tests.topology.racks import TAG, gang, placed, reason


def waiting(gangs: int) -> GangRM:
    """Return a cluster in which no rack is large enough for any of these gangs, whose members differ."""
    rm = GangRM(configuration(queue("a"), queue("b"), topology=["block", "rack"]))
    for number in range(50):
        rm.node(f"n{number}", {"block": f"b{number // 5}", "rack": f"r{number}"}, gpu=8, memory=1 << 30)
    rm.app("more", "root.b")
    rm.ask("more", "more-t", 1, gpu=1)
    rm.schedule()
    for number in range(gangs):
        rm.gang(f"g{number}", "Atomic", tags={TAG: "rack"}, gpu=9)
        rm.task(f"g{number}", f"g{number}-m", "workers", 9, gpu=1, memory=number + 1)
    assert rm.schedule() == []
    return rm


def cost_of_a_change(gangs: int) -> int:
    """Return the number of steps after the release of a task, when every gang is tried and fails again."""
    rm = waiting(gangs)
    (uuid,) = [uuid for uuid, one in rm.running.items() if one.application_id == "more"]

    def change() -> None:
        rm.release("more", uuid)
        rm.schedule()

    return steps_of(change).total()


def test_gang_among_many_of_other_sizes_costs_no_more_than_among_few() -> None:
    few, many = cost_of_a_change(20), cost_of_a_change(200)
    assert many / 200 < 1.5 * few / 20


def test_a_thousand_gangs_of_other_sizes_wait_and_one_that_fits_is_placed() -> None:
    rm = waiting(1000)
    assert "; rack b0/r1, the best, has room for 8 of 9 members" in reason(rm, "g999")
    gang(rm, "fits", 7, "rack")
    assert placed(rm, "fits") == ["n0"] * 7
