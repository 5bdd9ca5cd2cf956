"""Run-time estimators: which one counts, what they learn, and the times that the default ones read."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import attrs
import pytest

from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn.api import Allocation, Predicate, RunTime, RunTimeEstimator, Task
from yunikorn.errors import ConfigError
from yunikorn.interface.messages import NodeAction, TerminationType
from yunikorn_plugins.run_time_estimators import (
    LIMIT_TAG,
    LearnedRunTimes,
    RequestedRunTime,
    RunTimesOfFile,
    parse_seconds,
)
from yunikorn_testing import allocation, application, ask, node


class Tenfold(RunTimeEstimator):
    """Ten times the truth of every task here."""

    name = "tenfold"
    seen: ClassVar[list[tuple[str, float]]] = []

    def estimate(self, task: Task, age: float) -> RunTime | None:
        return RunTime(1.0, 1000.0, 2000.0)

    def observe(self, task: Allocation, seconds: float) -> None:
        self.seen.append((task.key, seconds))


class Reader(Predicate):
    """Notes the run time of each request that is placed."""

    name = "reader"
    found: ClassVar[list[RunTime | None]] = []

    def opened(self, context: object) -> None:
        self.context = context

    def check(self, ask: Task, node: object) -> str | None:
        self.found.append(self.context.run_time(ask, 0.0))  # type: ignore[attr-defined]
        return None


@pytest.fixture
def rm() -> RM:
    Tenfold.seen.clear()
    Reader.found.clear()
    registry = with_plugins(run_time_estimators=[Tenfold], predicates=[Reader])
    text = configuration(
        queue("a"),
        queue("b"),
        estimators=["tenfold", {"name": "learned", "fewest": 1}],
        predicates=["reader"],
    )
    made = RM(text, registry)
    made.node("n1", vcore=100)
    return made


def run_once(rm: RM, app: str, queue_name: str, seconds: int) -> None:
    """Let a task of a new application run, and end by itself."""
    rm.app(app, queue_name)
    rm.ask(app, vcore=1)
    rm.schedule()
    (uuid,) = (uuid for uuid, one in rm.running.items() if one.application_id == app)
    rm.pass_time(seconds)
    rm.release(app, uuid)


def test_estimator_with_the_smallest_running_error_of_the_queue_counts(rm: RM) -> None:
    for number in range(4):
        run_once(rm, f"job-{number}", "root.a", 100)
    run_once(rm, "job-9", "root.b", 1000)
    assert Reader.found[0] == RunTime(1.0, 1000.0, 2000.0)
    learned = Reader.found[3]
    assert learned is not None
    assert learned.median == pytest.approx(100, rel=0.07)
    # In the other queue no error is known yet, so that the order of the configuration decides.
    assert Reader.found[4] == RunTime(1.0, 1000.0, 2000.0)
    assert [seconds for _, seconds in Tenfold.seen] == [100, 100, 100, 100, 1000]


def test_running_errors_and_what_was_learned_outlive_a_reload(rm: RM) -> None:
    for number in range(3):
        run_once(rm, f"job-{number}", "root.a", 100)
    text = configuration(
        queue("a"),
        queue("c"),
        estimators=["tenfold", {"name": "learned", "fewest": 1}],
        predicates=["reader"],
    )
    rm.reload(text)
    run_once(rm, "job-3", "root.a", 100)
    assert Reader.found[-1] is not None
    assert Reader.found[-1].median == pytest.approx(100, rel=0.07)


def test_only_tasks_that_end_by_themselves_are_observed(rm: RM) -> None:
    rm.app("gang", "root.a")
    rm.ask("gang", count=3, vcore=1)
    rm.ask("gang", "limited", vcore=1, execution_timeout_ms=5000)
    rm.schedule()
    rm.pass_time(60)
    for uuid, one in list(rm.running.items()):
        if one.application_id == "gang":
            rm.release("gang", uuid)
    # Three equal tasks that end together are one observation.
    assert [seconds for _, seconds in Tenfold.seen] == [60]


def test_withdrawn_failed_and_lost_tasks_are_not_observed(rm: RM) -> None:
    rm.node("n2", vcore=1)
    for name, node_id in (("withdrawn", "n1"), ("unstarted", "n1"), ("lost", "n2")):
        rm.app(name, "root.a")
        rm.ask(name, name, vcore=1, tags={"yunikorn.apache.org/requiredNode": node_id})
    rm.schedule()
    rm.pass_time(60)
    rm.remove_app("withdrawn")
    (uuid,) = (uuid for uuid, one in rm.running.items() if one.application_id == "unstarted")
    rm.release("unstarted", uuid, termination=TerminationType.SCHEDULING_FAILED_ON_RM)
    rm.change_node("n2", NodeAction.DECOMMISSION)
    assert not rm.running
    assert not Tenfold.seen


def test_limits_of_requests_are_read_in_the_forms_of_slurm_and_ours() -> None:
    texts = {
        **{"90": 90.0, "1h30m": 5400.0, "1.5h": 5400.0, "1d": 86_400.0, "250ms": 0.25},
        **{
            "30:00": 1800.0,
            "02:30:00": 9000.0,
            "1-02:30:00": 95_400.0,
            "2-3": 183_600.0,
            "1-02:30": 95_400.0,
        },
        **{
            "0": None,
            "": None,
            "UNLIMITED": None,
            "1:2:3:4": None,
            "-5": None,
            "1h 30m": None,
            "9" * 12: None,
        },
    }
    assert {text: parse_seconds(text) for text in texts} == texts
    app = application("app", tags={LIMIT_TAG: "2h"})
    limited = attrs.evolve(ask(app=app, vcore=1), execution_timeout=60_000_000_000)
    estimator = RequestedRunTime()
    assert estimator.estimate(ask(app=app, vcore=1, tags={LIMIT_TAG: "1h"}), 0) == RunTime(3600, 3600, 3600)
    assert estimator.estimate(ask(app=app, vcore=1), 0) == RunTime(7200, 7200, 7200)
    assert estimator.estimate(limited, 0) == RunTime(60, 60, 60)
    assert estimator.estimate(ask(vcore=1), 0) is None


def test_learned_run_times_back_off_to_coarser_groups_and_forget() -> None:
    estimator = LearnedRunTimes(fewest=4, recent=8)
    of = {name: ask(app=application(f"{name}-{name}1", user=name), vcore=1) for name in ("ann", "bob")}
    host = node("n1")
    for number in range(4):
        estimator.observe(allocation(of["ann"], host, f"a{number}"), 100)
    unknown = estimator.estimate(of["bob"], 0)
    assert unknown is not None, "all tasks together"
    assert unknown.median == pytest.approx(100, rel=0.07)
    for number in range(40):
        estimator.observe(allocation(of["ann"], host, f"b{number}"), 10)
    recent = estimator.estimate(of["ann"], 0)
    assert recent is not None
    assert recent.high == pytest.approx(10, rel=0.15), "earlier tasks count less and less"
    assert estimator.estimate(of["ann"], 5000) is None, "no task ran as long"
    other = LearnedRunTimes(fewest=4, recent=8)
    other.restored(estimator.saved())
    assert other.estimate(of["ann"], 0) == recent


def test_file_is_refused_with_all_its_problems(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(
        "user,queue,application,seconds\nann,root.a,etl-1,x\nann,root.a\nann,root.a,etl-1,-3\n", "utf-8"
    )
    text = configuration(queue("a"), estimators=[{"name": "file", "path": str(path)}])
    with pytest.raises(ConfigError) as caught:
        RM(text)
    message = str(caught.value)
    path.write_text(f"user,queue,application,seconds\n{'x' * 200_000},root.a,etl-1,3\n", "utf-8")
    with pytest.raises(ConfigError, match="it is no CSV file with texts of at most 131,072 characters"):
        RM(text)
    assert "line 2: 'x' is no number of seconds" in message
    assert "line 3: 2 columns instead of 4" in message
    assert "line 4: '-3' is no number of seconds" in message


def test_file_of_past_runs_counts_from_the_first_task_on(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("seconds,user,queue,application\n60,ann,root.a,etl-1\n60,ann,root.a,etl-2\n", "utf-8")
    estimator = RunTimesOfFile(path=str(path), fewest=2)
    estimator.opened(None)  # type: ignore[arg-type]
    found = estimator.estimate(ask(app=application("etl-7", user="ann"), vcore=4), 0)
    assert found is not None
    assert found.median == pytest.approx(60, rel=0.07)
