"""Snapshots of a scheduler that measures, counts, and lets workers call policies; written by a child."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn.api import AdmissionPolicy, Application
from yunikorn.clock import ManualClock
from yunikorn.framework.kinds import PREDICATE
from yunikorn.framework.policy_calls import PolicyAnswer
from yunikorn.interface.scheduler import Scheduler
from yunikorn.resources import Resource
from yunikorn_lab.simulation.continuation import FirstChanges, continued, restored
from yunikorn_lab.simulation.known_run_times import EstimatedRunTimes
from yunikorn_lab.simulation.workload import FOREVER, WorkloadApplication, WorkloadNode, WorkloadTaskGroup
from yunikorn_service.measurements import Measurements
from yunikorn_service.plugin_statistics import PluginStatistics
from yunikorn_snapshots.forked_snapshot import begin_snapshot
from yunikorn_snapshots.restored_snapshot import restored_scheduler
from yunikorn_snapshots.snapshot_errors import SnapshotError
from yunikorn_snapshots.snapshots import take_snapshot


class Slow(AdmissionPolicy):
    """Admits everything, and may block."""

    name = "slow"
    blocking = True

    def admit(self, app: Application) -> None:
        return None


class Waiting:
    """Workers that keep their work."""

    def __init__(self) -> None:
        self.work: dict[int, Any] = {}

    def start(self, number: int, work: Any) -> None:
        self.work[number] = work

    def abandon(self, number: int) -> str:
        return ""

    def answer(self, scheduler: Scheduler) -> None:
        """Do the work, and let the scheduler take the answers."""
        for number, work in [*self.work.items()]:
            del self.work[number]
            found = work()
            assert isinstance(found, PolicyAnswer)
            scheduler.take_policy_answer(number, found)


class Full(RM):
    """Resource manager with all methods of a callback."""

    predicates_in_force = ("taints",)
    answers = 0

    def predicates(self, args: Any) -> str | None:
        self.answers += 1
        return None

    def update_container_scheduling_state(self, request: Any) -> None:
        """Ignore it."""

    def resync_scheduler_cache(self, args: Any) -> None:
        """Ignore it."""


def live() -> tuple[Full, Waiting]:
    workers = Waiting()
    statistics = PluginStatistics(iter(range(10**9)).__next__)
    registry = with_plugins(admission_policies=[Slow]).counting(statistics)
    measured = Measurements(iter(range(10**9)).__next__)
    scheduler = Scheduler(registry, ManualClock(), measurements=measured, workers=workers)
    shares = {"application.sort.policy": "multifactor"}
    text = configuration(
        queue("a", properties=shares),
        queue("b", resources={"max": {"vcore": "6"}}),
        predicates=[{"name": "spread", "attribute": "zone", "max": 3}, "rm"],
        admission=["slow"],
    )
    rm = Full(text, scheduler=scheduler)
    for number in range(4):
        rm.node(f"n{number}", {"zone": "xy"[number % 2]}, vcore=3)
    for number in range(4):
        rm.app(f"app{number}", f"root.{'ab'[number % 2]}", user="root", groups=())
        workers.answer(scheduler)
        rm.ask(f"app{number}", vcore=1, count=4)
    rm.schedule(5)
    return rm, workers


def test_measured_scheduler_goes_on_without_measurements(tmp_path: Path) -> None:
    rm, _ = live()
    header = begin_snapshot(rm.scheduler, tmp_path / "state").wait()
    assert header.sizes["allocations"] == 5
    assert [one.name for one in tmp_path.iterdir()] == ["state"]
    registry = with_plugins(admission_policies=[Slow])
    again = Waiting()
    copy = restored_scheduler(tmp_path / "state", registry, rm.clock, {"rm": rm}, again)
    before, decided = len(rm.responses), rm.schedule()
    original = repr(rm.responses[before:])
    assert decided
    rm.running.clear()
    before = len(rm.responses)
    copy.schedule()
    assert repr(rm.responses[before:]) == original
    assert copy.measurements is None
    with pytest.raises(SnapshotError, match="give it workers"):
        restored_scheduler(tmp_path / "state", registry, rm.clock, {"rm": rm})
    silent = restored_scheduler(tmp_path / "state", registry, rm.clock, workers=again)
    assert silent.schedule() == len(decided)
    rm.scheduler.close()


def test_all_default_predicates_are_kept(tmp_path: Path) -> None:
    rm = RM()
    names = [one.name for one in rm.scheduler.registry.offers(PREDICATE) if one.name != "rm"]
    options: dict[str, dict[str, object]] = {
        "spread": {"attribute": "zone"},
        "anti-affinity": {"attribute": "zone"},
        "licences": {"counts": {"tool": 3}},
    }
    rm = RM(configuration(queue("a"), predicates=[{"name": one, **options.get(one, {})} for one in names]))
    rm.node("n0", {"zone": "x"}, vcore=3)
    rm.app()
    rm.ask(vcore=1, count=2)
    rm.schedule()
    take_snapshot(rm.scheduler, tmp_path / "state")
    rm.scheduler = restored_scheduler(tmp_path / "state", rm.scheduler.registry, rm.clock, {"rm": rm})
    rm.ask(key="more", vcore=1)
    assert rm.schedule() == [("app", "more", "n0")]


def test_question_of_a_worker_refuses_a_snapshot(tmp_path: Path) -> None:
    rm, workers = live()
    rm.app("later", "root.a", user="root", groups=())
    rm.ask("later", vcore=1)
    rm.scheduler.schedule()
    assert workers.work
    with pytest.raises(SnapshotError, match="1 questions to policies are with their workers"):
        begin_snapshot(rm.scheduler, tmp_path / "state")
    workers.answer(rm.scheduler)
    take_snapshot(rm.scheduler, tmp_path / "state")


def test_failure_of_the_child_is_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rm, _ = live()
    monkeypatch.setattr(rm.at_work().partition.applications["app0"], "tags", object())
    with pytest.raises(SnapshotError, match="an object of object"):
        begin_snapshot(rm.scheduler, tmp_path / "state").wait()
    monkeypatch.undo()
    with pytest.raises(SnapshotError, match="No such file"):
        begin_snapshot(rm.scheduler, tmp_path / "gone" / "state").wait()
    with pytest.raises(SnapshotError, match="ended or took too long"):
        begin_snapshot(rm.scheduler, tmp_path / "state").wait(0)
    assert not [*tmp_path.iterdir()]


def test_simulation_goes_on_where_workers_called_policies(tmp_path: Path) -> None:
    rm, _ = live()
    take_snapshot(rm.scheduler, tmp_path / "state")
    scheduler = restored(tmp_path / "state", with_plugins(admission_policies=[Slow]))
    group = WorkloadTaskGroup("late", 1, Resource({"vcore": 1000}), FOREVER)
    arrival = WorkloadApplication("late", 0, (group,), "root.a", "root")
    room = WorkloadNode("n9", Resource({"vcore": 12000}), {"zone": "z"})
    report = continued(scheduler, EstimatedRunTimes(), changes=FirstChanges(add=(room,), submit=(arrival,)))
    assert "late" not in [one.example for one in report.waiting]
    assert report.applications.submitted == 5
