"""Service that applications have received, and their ended tasks: exact, and independent of who reads it."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import pytest

from tests.core.gangs import GangRM, ready
from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn.api import Application, AppSortPolicy
from yunikorn.clock import SECOND
from yunikorn.interface.messages import Allocation, NodeAction, TerminationType
from yunikorn.resources import Resource


@attrs.frozen
class LeastRecent(AppSortPolicy):
    """Orders applications by decayed usage."""

    name = "least-recent"
    gangs = True
    seconds: float = 9e8

    @property
    def half_life(self) -> float:
        return self.seconds

    @property
    def refresh_every(self) -> float:
        return 60.0

    def key(self, app: Application) -> float:
        return app.past.recent.get("vcore", 0.0)


def decaying(seconds: float = 9e8, *others: str) -> str:
    properties = {
        "application.sort.policy": "least-recent",
        "application.sort.policy.seconds": str(seconds),
    }
    return configuration(queue("a", properties=properties), *map(queue, others))


def rm_with_history(seconds: float = 9e8) -> GangRM:
    rm = GangRM(decaying(seconds), with_plugins(app_sort_policies=[LeastRecent]))
    rm.node(vcore=8)
    return rm


def recent(rm: RM, app_id: str = "app") -> float:
    return rm.find_app(app_id).past.recent.get("vcore", 0.0)


def served(rm: RM, app_id: str = "app") -> Mapping[str, float]:
    return rm.find_app(app_id).past.served


def rm_with_tasks(count: int = 2) -> RM:
    rm = RM()
    rm.node(vcore=8, memory=100)
    rm.app()
    rm.ask(count=count, vcore=1, memory=10)
    rm.schedule()
    return rm


def test_running_and_ended_tasks_count() -> None:
    rm = rm_with_tasks()
    assert served(rm) == {}
    rm.pass_time(10)
    assert served(rm) == {"vcore": 20.0, "memory": 200.0}
    rm.release(uuid=next(iter(rm.running)))
    rm.pass_time(0.5)
    assert served(rm) == {"vcore": 20.5, "memory": 205.0}
    past = rm.find_app().past
    assert (past.ended, past.completed, past.completed_time) == (1, 1, 10 * SECOND)


@pytest.mark.parametrize(
    ("termination", "counts"),
    [
        (TerminationType.STOPPED_BY_RM, (1, 1)),
        (TerminationType.PREEMPTED_BY_SCHEDULER, (1, 0)),
        (TerminationType.TIMEOUT, (1, 0)),
        (TerminationType.SCHEDULING_FAILED_ON_RM, (0, 0)),
    ],
)
def test_only_tasks_that_the_resource_manager_ends_are_completed(
    termination: TerminationType, counts: tuple[int, int]
) -> None:
    rm = rm_with_tasks()
    rm.pass_time(10)
    rm.release(uuid=next(iter(rm.running)), termination=termination)
    past = rm.find_app().past
    assert (past.ended, past.completed) == counts
    assert past.served["vcore"] == 20


def test_tasks_that_are_lost_with_their_node_are_not_completed() -> None:
    rm = rm_with_tasks()
    rm.pass_time(10)
    rm.change_node("n1", NodeAction.DECOMMISSION)
    past = rm.find_app().past
    assert (past.ended, past.completed, past.served["vcore"]) == (2, 0, 20)


@pytest.mark.parametrize("read_before", [False, True])
def test_a_new_size_counts_from_its_time(read_before: bool) -> None:
    rm = rm_with_tasks(1)
    rm.pass_time(10)
    if read_before:
        assert served(rm)["vcore"] == 10
    (one,) = rm.running.values()
    rm.update(allocations=[Allocation(one.allocation_key, "app", one.uuid, "n1", Resource({"vcore": 5}))])
    assert served(rm)["vcore"] == 10
    rm.pass_time(10)
    assert served(rm) == {"vcore": 60.0, "memory": 100.0}
    rm.release(uuid=one.uuid)
    rm.pass_time(10)
    assert served(rm) == {"vcore": 60.0, "memory": 100.0}


def test_a_recovered_task_counts_from_its_creation() -> None:
    rm = RM()
    rm.pass_time(100)
    rm.app()
    tags = {"creationTime": "40"}
    existing = Allocation("a", "app", "u", "n1", Resource({"vcore": 1}), allocation_tags=tags)
    rm.node("n1", vcore=4, existing=[existing])
    assert served(rm) == {"vcore": 60.0}


def test_a_replaced_placeholder_hands_over_without_a_gap_or_an_overlap() -> None:
    rm = ready(2)
    rm.pass_time(10)
    rm.task("app", "real", "workers", vcore=2)
    rm.schedule()
    rm.pass_time(5)
    assert served(rm) == {"vcore": 60.0}
    rm.confirmed()
    rm.pass_time(10)
    assert served(rm) == {"vcore": 100.0}
    past = rm.find_app().past
    assert (past.ended, past.completed) == (0, 0)


def test_service_survives_a_reload() -> None:
    rm = rm_with_tasks()
    rm.pass_time(10)
    rm.release(uuid=next(iter(rm.running)))
    rm.reload(configuration(queue("a", properties={"application.sort.policy": "fair"})))
    rm.pass_time(10)
    assert served(rm)["vcore"] == 30


def test_usage_of_applications_halves_every_half_life() -> None:
    rm = rm_with_history(10)
    rm.app()
    rm.ask(count=4, vcore=1)
    rm.schedule()
    rm.pass_time(1000)
    full = recent(rm)
    assert full == pytest.approx(4 * 10 / 0.6931471805599453)
    rm.ask(key="keeps-it-running", vcore=100)
    for uuid in list(rm.running):
        rm.release(uuid=uuid)
    rm.pass_time(20)
    assert recent(rm) == pytest.approx(full / 4)


def test_a_further_decision_does_not_count_for_the_time_before_it() -> None:
    rm = rm_with_history()
    rm.app()
    rm.ask(vcore=1)
    rm.schedule()
    rm.pass_time(10)
    rm.ask(key="later", vcore=4)
    rm.schedule()
    assert recent(rm) == pytest.approx(served(rm)["vcore"]) == 10


def test_an_endless_half_life_counts_what_was_received() -> None:
    rm = rm_with_history()
    rm.gang("app", vcore=4)
    rm.task("app", "ph", "workers", 2, placeholder=True, vcore=2)
    rm.schedule()
    rm.pass_time(10)
    rm.task("app", "real", "workers", vcore=2)
    rm.schedule()
    rm.pass_time(5)
    rm.confirmed()
    rm.pass_time(10)
    (real,) = [one for one in rm.running.values() if not one.placeholder]
    rm.update(allocations=[Allocation("real", "app", real.uuid, "n1", Resource({"vcore": 5}))])
    rm.pass_time(10)
    rm.release(uuid=real.uuid)
    rm.node(
        "n2",
        vcore=4,
        existing=[
            Allocation("old", "app", "u", "n2", Resource({"vcore": 1}), allocation_tags={"creationTime": "5"})
        ],
    )
    rm.pass_time(10)
    assert recent(rm) == pytest.approx(served(rm)["vcore"], rel=1e-6)


def test_the_history_of_a_new_policy_has_what_runs_and_a_reload_keeps_it() -> None:
    rm = rm_with_history()
    plain = configuration(queue("a", properties={"application.sort.policy": "fair"}))
    rm.reload(plain)
    rm.app()
    rm.ask(count=2, vcore=1)
    rm.schedule()
    rm.pass_time(10)
    assert rm.find_app().past.recent == {}
    rm.reload(decaying())
    assert recent(rm) == pytest.approx(20, rel=1e-6)
    rm.release(uuid=next(iter(rm.running)))
    rm.pass_time(10)
    assert rm.reload(decaying(9e8, "b"))
    assert recent(rm) == pytest.approx(30, rel=1e-6)
    rm.reload(decaying(8e8))
    assert recent(rm) == pytest.approx(20, rel=1e-6), "with another half-life only what runs is known"
    rm.reload(plain)
    assert rm.find_app().past.recent == {}


def test_applications_are_served_by_recent_usage() -> None:
    rm = rm_with_history(100)
    for app_id in ("first", "second"):
        rm.app(app_id)
    rm.ask("first", count=8, vcore=1)
    rm.schedule()
    rm.pass_time(50)
    for app_id in ("first", "second"):
        rm.ask(app_id, "more", 2, vcore=1)
    for uuid in list(rm.running)[:3]:
        rm.release("first", uuid=uuid)
    assert [app_id for app_id, _, _ in rm.schedule()] == ["second", "second", "first"]


NOW = 1_700_000_000
"""Present of the tests with bad creation times, in Unix seconds."""


def rm_at_present(policy: str = "multifactor", half_life: float | None = None) -> RM:
    properties = {"application.sort.policy": policy}
    if half_life is not None:
        properties["application.sort.policy.usage_half_life"] = str(half_life)
    rm = RM(configuration(queue("a", properties=properties)))
    rm.clock.set(NOW * SECOND)
    rm.app()
    return rm


def recover(rm: RM, created: str) -> None:
    tags = {"creationTime": created}
    found = Allocation("old", "app", "u", "n1", Resource({"vcore": 3}), allocation_tags=tags)
    rm.node("n1", vcore=4, existing=[found])


@pytest.mark.parametrize("half_life", [None, 1.0, 60.0])
@pytest.mark.parametrize("created", [str(NOW + 600), str(NOW * 1000), str(2**63 - 1), "9" * 18])
def test_a_start_in_the_future_counts_as_the_present(created: str, half_life: float | None) -> None:
    rm = rm_at_present(half_life=half_life)
    recover(rm, created)
    past = rm.find_app().past
    assert (past.served.get("vcore", 0.0), past.recent.get("vcore", 0.0)) == (0.0, 0.0)
    rm.ask(key="next", count=2, vcore=1)
    assert len(rm.schedule()) == 1
    rm.pass_time(5)
    rm.release("app", "u")
    assert rm.failures() == []
    assert served(rm)["vcore"] == 3 * 5 + 5
    assert rm.find_app().past.completed_time == 5 * SECOND


@pytest.mark.parametrize("half_life", [None, 1e-9, 60.0, 9e8])
def test_a_start_at_the_epoch_counts(half_life: float | None) -> None:
    rm = rm_at_present(half_life=half_life)
    recover(rm, "0")
    assert served(rm) == {"vcore": 3 * NOW}
    assert 0.0 <= recent(rm) <= 3 * NOW
    rm.ask(key="next", vcore=1)
    assert len(rm.schedule()) == 1
    assert rm.failures() == []


def test_a_history_that_begins_with_a_reload_is_never_negative() -> None:
    rm = rm_at_present("fifo")
    recover(rm, str(NOW + 600))
    assert rm.reload(configuration(queue("a", properties={"application.sort.policy": "multifactor"})))
    assert recent(rm) == 0.0
    rm.pass_time(5)
    rm.release("app", "u")
    assert rm.find_app().past.completed_time == 5 * SECOND
