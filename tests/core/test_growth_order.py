"""Order of growth: the sizes of other gangs of the queue come first, where they have room."""

from __future__ import annotations

import pytest

from tests.core.gangs import GangRM
from tests.core.kit import configuration, queue
from tests.core.test_gang_steps import STEP, TOPOLOGY, cluster, keys


def crowd(step: str = "1", size: int = 4, *, priority: int = 0, queue_name: str = "root.a") -> GangRM:
    """Return a full node on which a gang of 2 runs that grows, and another one of this size, which waits."""
    rm = cluster()
    rm.node("n1", vcore=2)
    rm.gang("g", "Atomic", tags={STEP: step}, vcore=2)
    rm.task("g", "m", "workers", 10, priority=priority, vcore=1)
    assert keys(rm) == ["m", "m"]
    gang(rm, "other", size, queue_name=queue_name)
    return rm


def gang(rm: GangRM, app_id: str, size: int, *, queue_name: str = "root.a", priority: int = 0) -> None:
    """Submit a gang of this size."""
    rm.gang(app_id, "Atomic", queue_name, vcore=size)
    rm.task(app_id, app_id, "workers", size, vcore=1, priority=priority)


def served(rm: GangRM, most: int | None = None) -> list[str]:
    """Schedule, and return what was placed by application, without repetitions."""
    return list(dict.fromkeys(app_id for app_id, *_ in rm.schedule(most)))


@pytest.mark.parametrize("step", ["1", "2"])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_gangs_of_the_queue_that_have_room_precede_growth(step: str, size: int) -> None:
    rm = crowd(step, size)
    gang(rm, "third", 2)
    rm.node("n2", vcore=size + 4)
    assert served(rm) == ["other", "third", "g"]


@pytest.mark.parametrize("step", ["1", "2"])
def test_gang_that_has_no_room_does_not_stop_growth(step: str) -> None:
    rm = crowd(step)
    gang(rm, "third", 2)
    rm.node("n2", vcore=3)
    assert served(rm) == (["third", "g"] if step == "1" else ["third"])
    rm.node("n3", vcore=2)
    assert served(rm) == ["g"]


@pytest.mark.parametrize("step", ["1", "2"])
def test_growth_waits_behind_a_gang_that_has_waited_for_long(step: str) -> None:
    rm = crowd(step)
    assert served(rm) == []
    rm.pass_time(601)
    rm.node("n2", vcore=2)
    assert served(rm) == []
    rm.node("n3", vcore=4)
    assert served(rm) == ["other", "g"]


@pytest.mark.parametrize("step", ["1", "2"])
def test_gang_that_can_never_run_does_not_stop_growth(step: str) -> None:
    rm = crowd(step, 100)
    assert served(rm) == []
    rm.pass_time(601)
    rm.node("n2", vcore=2)
    assert served(rm) == ["g"]


def test_gang_that_waits_for_a_domain_does_not_stop_growth() -> None:
    rm = cluster(topology=["rack"])
    rm.node("n1", vcore=2)
    rm.gang("g", "Atomic", vcore=2)
    rm.task("g", "m", "workers", 10, vcore=1)
    rm.gang("other", "Atomic", tags={TOPOLOGY: "rack"}, vcore=2)
    rm.task("other", "o", "workers", 2, vcore=1)
    rm.schedule()
    rm.pass_time(601)
    rm.node("n2", vcore=4)
    assert served(rm) == ["g"]


@pytest.mark.parametrize("step", ["1", "2"])
@pytest.mark.parametrize(("priority", "order"), [(0, ["other", "g"]), (1, ["g"]), (-1, ["other", "g"])])
def test_growth_of_higher_priority_precedes_a_gang(step: str, priority: int, order: list[str]) -> None:
    rm = crowd(step, 2, priority=priority)
    rm.node("n2", vcore=4)
    assert served(rm) == order


def test_priorities_do_not_matter_where_they_are_disabled() -> None:
    rm = GangRM(configuration(queue("a", properties={"application.sort.priority": "disabled"})))
    rm.node("n1", vcore=2)
    rm.gang("g", "Atomic", vcore=2)
    rm.task("g", "m", "workers", 10, priority=5, vcore=1)
    assert len(keys(rm)) == 2
    gang(rm, "other", 2)
    rm.node("n2", vcore=4)
    assert served(rm) == ["other", "g"]


def test_requests_before_a_gang_precede_it() -> None:
    rm = crowd("1", 2)
    rm.app("before", groups=["x"])
    rm.ask("before", vcore=1)
    gang(rm, "third", 2)
    rm.app("after")
    rm.ask("after", vcore=1)
    rm.node("n2", vcore=2)
    assert served(rm) == ["other"]
    rm.node("n3", vcore=3)
    assert served(rm) == ["before", "third"]
    rm.node("n4", vcore=2)
    assert served(rm) == ["g"]


def test_growth_precedes_tasks_that_come_later() -> None:
    rm = crowd("2", 100)
    rm.app("after")
    rm.ask("after", count=10, vcore=1)
    rm.node("n2", vcore=4)
    assert served(rm) == ["g"]


def test_replacement_of_a_member_of_the_size_precedes_other_gangs() -> None:
    rm = cluster()
    rm.node("n1", vcore=2)
    rm.gang("g", "Atomic", vcore=2)
    rm.task("g", "m", "workers", 2, vcore=1)
    assert len(keys(rm)) == 2
    gang(rm, "other", 1)
    rm.release("g", uuid="m#1")
    rm.task("g", "again", "workers", vcore=1)
    assert keys(rm) == ["again"]


def test_queues_keep_their_order() -> None:
    rm = crowd("1", 2, queue_name="root.b")
    rm.app("much", "root.b")
    rm.ask("much", vcore=8)
    rm.node("n2", vcore=8)
    assert served(rm) == ["other", "g"]
    rm.node("n3", vcore=8)
    assert served(rm, 1) == ["much"]


def test_driver_of_a_gang_that_grows_waits_for_no_gang() -> None:
    rm = crowd("1", 1)
    rm.task("g", "driver", "", vcore=1, priority=0)
    rm.node("n2", vcore=1)
    assert keys(rm) == ["driver"]


def test_gang_over_its_quota_does_not_stop_growth_elsewhere_in_the_queue() -> None:
    limits = [{"limit": "", "users": ["small"], "maxresources": {"vcore": "1m"}}]
    rm = GangRM(configuration(queue("a", limits=limits)))
    rm.node("n1", vcore=2)
    rm.gang("g", "Atomic", vcore=2)
    rm.task("g", "m", "workers", 4, vcore=1)
    rm.schedule()
    rm.gang("other", "Atomic", user="small", vcore=2)
    rm.task("other", "o", "workers", 2, vcore=1)
    rm.node("n2", vcore=4)
    assert served(rm) == ["g"]


def test_step_preempts_for_all_its_members() -> None:
    of_a = queue("a", resources={"guaranteed": {"vcore": "8m"}})
    rm = GangRM(configuration(of_a, queue("b")))
    rm.node("n1", vcore=5)
    rm.node("n2", vcore=5)
    rm.gang("g", "Atomic", tags={STEP: "4"}, vcore=4)
    rm.task("g", "m", "workers", 4, vcore=1)
    assert len(keys(rm)) == 4
    rm.app("filler", "root.b")
    rm.ask("filler", "f", 6, vcore=1)
    assert len(keys(rm)) == 6
    rm.task("g", "more", "workers", 8, vcore=1)
    rm.pass_time(31)
    assert keys(rm) == []
    assert len(rm.evicted) == 4
    for uuid in list(rm.evicted):
        assert keys(rm) == []
        rm.confirm(uuid)
    assert keys(rm) == ["more"] * 4
    rm.pass_time(31)
    assert keys(rm) == []
    assert not rm.evicted, "a further step is beyond the guarantee"


def test_member_that_waits_replaces_one_of_the_size_before_other_gangs_start() -> None:
    rm = crowd("1", 1)
    rm.release("g", uuid="m#1")
    assert keys(rm) == ["m"]
