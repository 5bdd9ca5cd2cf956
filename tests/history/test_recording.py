"""Rows of applications and allocations from the events of a core: life, preemption, restarts, lost events."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.core.kit import configuration, queue
from tests.history.recorded_core import START, RecordedCore, read_rows
from yunikorn.clock import MILLISECOND, SECOND, ManualClock
from yunikorn.interface.messages import Allocation, TerminationType
from yunikorn.resources import Resource
from yunikorn_history.database import HistoryAway, HistoryLocation
from yunikorn_history.database_thread import DatabaseThread
from yunikorn_history.history_tables import ESTIMATED_END, PREEMPTED, RECOVERED
from yunikorn_history.rows import RowBatch
from yunikorn_history.session_recovery import ABSENT, LONGEST, QUIET
from yunikorn_plugins.application_template import template_of

BEGIN = START // MILLISECOND


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "history.db")


@pytest.fixture
def core(place: str) -> Iterator[RecordedCore]:
    made = RecordedCore(place)
    yield made
    made.close()


def work(core: RecordedCore, tasks: int = 2) -> None:
    """Start an application with some tasks."""
    core.rm.node("n1", vcore=10_000)
    core.rm.app("etl-2026-11-27", user="ann", groups=["dev", "all"], team="blue", other="x")
    core.rm.ask("etl-2026-11-27", "task", tasks, vcore=1000)
    core.rm.schedule()


def restarted(core: RecordedCore, seconds: float = 60, **keys: Any) -> RecordedCore:
    """Kill a core, and start another one some seconds later."""
    core.close()
    return RecordedCore(core.location, now=core.clock.now() + round(seconds * SECOND), **keys)


def report(core: RecordedCore, *uuids: str, app: str = "etl-2026-11-27", node: str = "n1") -> None:
    """Report an application, and a node with allocations that exist."""
    core.rm.app(app, user="ann", groups=["dev", "all"], team="blue")
    existing = [Allocation("task", app, uuid, node, Resource(vcore=1000)) for uuid in uuids]
    core.rm.node(node, vcore=10_000, existing=existing)
    core.rm.schedule(0)


def end_recovery(core: RecordedCore) -> None:
    core.write()
    core.clock.set(core.clock.now() + (QUIET + 1) * MILLISECOND)
    core.write()


def test_life_of_an_application(core: RecordedCore) -> None:
    work(core)
    core.clock.set(START + 10 * SECOND)
    first, second = core.rm.running
    core.rm.release("etl-2026-11-27", first)
    core.clock.set(START + 15 * SECOND)
    core.rm.release("etl-2026-11-27", second)
    core.rm.pass_time(100)
    core.rm.schedule()
    core.write()
    (app,) = core.rows("applications")
    states = [(time - BEGIN, state) for time, state, _ in app.pop("states")]
    assert states == [
        (0, "New"),
        (0, "Accepted"),
        (0, "Starting"),
        (0, "Running"),
        (15_000, "Completing"),
        (45_000, "Completed"),
    ]
    assert app == {
        "id": 1,
        "rm": "rm",
        "partition": "default",
        "app_id": "etl-2026-11-27",
        "queue": "root.a",
        "user": "ann",
        "groups": ["dev", "all"],
        "template": "etl",
        "tags": {"team": "blue"},
        "gang": "",
        "gang_timeout": None,
        "submitted": BEGIN,
        "started": BEGIN,
        "ended": BEGIN + 45_000,
        "state": "Completed",
        "reason": "completing timed out",
        "waits": None,
        "longest_wait": "",
        "tasks": 2,
        "preempted": 0,
        "service": {"vcore": 25_000_000},
        "lost_service": None,
        "placeholder_service": None,
        "doubts": None,
    }
    ended = [(one["key"], one["node"], one["ended"] - BEGIN, one["exit"]) for one in core.rows("allocations")]
    assert ended == [("task", "n1", 10_000, "STOPPED_BY_RM"), ("task", "n1", 15_000, "STOPPED_BY_RM")]


def test_a_task_that_waited_and_one_that_the_rm_could_not_start(core: RecordedCore) -> None:
    core.rm.app("etl-2026-11-27")
    core.rm.ask("etl-2026-11-27", "task", vcore=1000)
    core.clock.set(START + 7 * SECOND)
    core.rm.node("n1", vcore=10_000)
    core.rm.schedule()
    (uuid,) = core.rm.running
    core.rm.release("etl-2026-11-27", uuid, termination=TerminationType.SCHEDULING_FAILED_ON_RM)
    core.rm.schedule(0)
    core.write()
    failed = core.rows("allocations")[0]
    assert (failed["requested"], failed["placed"]) == (BEGIN, BEGIN + 7_000)
    assert failed["exit"] == "SCHEDULING_FAILED_ON_RM"


def test_a_rejected_application_and_one_whose_id_is_taken(core: RecordedCore) -> None:
    work(core)
    core.rm.app("etl-2026-11-27", user="eve")
    core.rm.app("nowhere", "root.nowhere")
    core.rm.schedule(0)
    core.write()
    running, duplicate, nowhere = core.rows("applications")
    assert (running["user"], running["state"], running["ended"]) == ("ann", "Running", None)
    assert (duplicate["user"], duplicate["state"], duplicate["ended"]) == ("eve", "Rejected", BEGIN)
    assert "exists already" in duplicate["reason"]
    assert (nowhere["app_id"], nowhere["state"], nowhere["started"]) == ("nowhere", "Rejected", None)


def test_an_id_that_comes_again_has_another_row(core: RecordedCore) -> None:
    work(core)
    core.rm.remove_app("etl-2026-11-27")
    core.rm.app("etl-2026-11-27", user="bob")
    core.rm.schedule(0)
    core.write()
    first, second = core.rows("applications")
    assert (first["user"], first["state"], first["ended"]) == ("ann", "Removed", BEGIN)
    assert (second["user"], second["ended"]) == ("bob", None)


def test_preempted_by_whom(place: str) -> None:
    quota = {"guaranteed": {"vcore": "5"}}
    core = RecordedCore(place, configuration(queue("a", resources=quota), queue("b", resources=quota)))
    core.rm.node("n1", vcore=10_000)
    core.rm.app("greedy", "root.a")
    core.rm.ask("greedy", "victim", 10, vcore=1000)
    core.rm.schedule()
    core.rm.app("urgent", "root.b")
    core.rm.ask("urgent", "needed", vcore=1000)
    core.rm.schedule()
    core.rm.pass_time(60)
    core.rm.schedule()
    core.rm.confirm()
    core.rm.schedule()
    core.write()
    victims = [one for one in core.rows("allocations") if one["flags"] & PREEMPTED]
    (victim,) = victims
    assert victim["exit"] == "PREEMPTED_BY_SCHEDULER"
    assert victim["preemptor"] == '["urgent","needed"]'
    greedy = core.rows("applications")[0]
    lost = (victim["ended"] - victim["placed"]) * 1000
    assert (greedy["preempted"], greedy["service"], greedy["lost_service"]) == (1, None, {"vcore": lost})
    core.close()


# -- restarts ------------------------------------------------------------------------------------------------


def test_what_runs_on_after_a_kill_continues_its_row(core: RecordedCore) -> None:
    work(core)
    core.write()
    kept = [*core.rm.running]
    after = restarted(core)
    report(after, *kept)
    end_recovery(after)
    for uuid in kept:
        after.rm.release("etl-2026-11-27", uuid)
    after.rm.schedule(0)
    after.write()
    (app,) = after.rows("applications")
    assert [state for _, state, _ in app["states"]].count("Running") == 1
    assert app["tasks"] == 2
    first, second = after.rows("allocations")
    assert {first["flags"], second["flags"]} == {0}
    assert first["placed"] == BEGIN
    assert first["ended"] == second["ended"] == after.clock.now() // MILLISECOND
    assert app["service"] == {"vcore": 2000 * (first["ended"] - BEGIN)}
    after.close()


def test_what_ended_meanwhile_gets_an_estimated_end(core: RecordedCore) -> None:
    work(core)
    core.clock.set(START + 5 * SECOND)
    core.write()
    kept, _ = core.rm.running
    after = restarted(core)
    report(after, kept)
    end_recovery(after)
    running, gone = after.rows("allocations")
    assert (running["ended"], running["flags"]) == (None, 0)
    assert (gone["ended"], gone["flags"]) == (BEGIN + 5_000, ESTIMATED_END)
    assert after.rows("applications")[0]["service"] == {"vcore": 5_000_000}
    usage = {
        one["level"]: one["data"]["service"]["vcore"] for one in after.rows("usage") if one["level"] == 3
    }
    after.write(ends=True)
    now = after.clock.now() // MILLISECOND
    total = sum(one["data"]["service"]["vcore"] for one in after.rows("usage") if one["level"] == 3)
    assert usage
    assert total == 1000 * (now - BEGIN) + 5_000_000
    after.close()


def test_an_application_that_is_gone_ends_with_its_allocations(core: RecordedCore) -> None:
    work(core)
    core.write()
    after = restarted(core)
    after.rm.node("n1", vcore=1000)
    after.rm.schedule(0)
    end_recovery(after)
    (app,) = after.rows("applications")
    assert (app["state"], app["ended"]) == ("Removed", BEGIN)
    assert {one["flags"] for one in after.rows("allocations")} == {ESTIMATED_END}
    after.close()


def test_a_late_report_continues_a_row_that_had_an_estimated_end(core: RecordedCore) -> None:
    work(core, 1)
    core.write()
    (kept,) = core.rm.running
    after = restarted(core)
    after.rm.node("n2", vcore=1000)
    after.rm.schedule(0)
    end_recovery(after)
    assert after.rows("allocations")[0]["ended"] == BEGIN
    report(after, kept)
    after.write()
    (again,) = after.rows("allocations")
    (app,) = after.rows("applications")
    assert (again["ended"], again["exit"], again["flags"]) == (None, "", 0)
    assert (app["state"], app["ended"], app["tasks"], app["service"]) == ("Starting", None, 1, None)
    after.close()


def test_without_a_node_a_recovery_has_a_time_limit(core: RecordedCore) -> None:
    work(core)
    core.write()
    after = restarted(core)
    after.clock.set(after.clock.now() + (LONGEST - 1) * MILLISECOND)
    after.write()
    assert {one["ended"] for one in after.rows("allocations")} == {None}
    after.clock.set(after.clock.now() + MILLISECOND)
    after.write()
    assert {one["ended"] for one in after.rows("allocations")} == {BEGIN}
    after.close()


def test_an_rm_that_does_not_come_back(core: RecordedCore) -> None:
    work(core)
    core.write()
    after = restarted(core, rm_id="other")
    after.clock.set(after.clock.now() + ABSENT * MILLISECOND)
    after.write()
    assert {one["ended"] for one in after.rows("allocations")} == {BEGIN}
    after.scheduler.stop("other")
    after.close()


def test_what_was_not_written_before_the_kill_is_recorded_as_recovered(core: RecordedCore) -> None:
    work(core, 1)
    core.write()
    core.rm.ask("etl-2026-11-27", "task", vcore=1000)
    core.rm.schedule()
    after = restarted(core)
    report(after, *core.rm.running)
    end_recovery(after)
    first, second = after.rows("allocations")
    assert (first["flags"], second["flags"]) == (0, RECOVERED)
    assert after.rows("applications")[0]["tasks"] == 2
    after.close()


def test_an_rm_that_registers_again_continues_too(core: RecordedCore) -> None:
    work(core)
    kept, _ = core.rm.running
    core.clock.set(START + 5 * SECOND)
    core.register()
    report(core, kept)
    end_recovery(core)
    running, gone = core.rows("allocations")
    assert (running["ended"], gone["ended"]) == (None, BEGIN + 5_000)


def test_several_kills_during_one_recovery(core: RecordedCore) -> None:
    work(core)
    core.write()
    kept = [*core.rm.running]
    after = restarted(core)
    after.write()
    again = restarted(after, 1)
    report(again, *kept)
    end_recovery(again)
    assert [one["ended"] for one in again.rows("allocations")] == [None, None]
    again.close()


def test_a_clock_that_goes_back_makes_no_time_negative(core: RecordedCore) -> None:
    work(core)
    core.write()
    kept, _ = core.rm.running
    after = restarted(core, -3600)
    report(after, kept)
    end_recovery(after)
    after.rm.release("etl-2026-11-27", kept)
    after.rm.schedule(0)
    after.rm.remove_app("etl-2026-11-27")
    after.rm.schedule(0)
    after.write()
    (app,) = after.rows("applications")
    times = [time for time, *_ in app["states"]]
    assert times == sorted(times)
    assert app["ended"] >= app["submitted"]
    for one in after.rows("allocations"):
        assert one["requested"] <= one["placed"] <= one["ended"]
    after.close()


def test_a_placement_that_never_arrived_counts_once(core: RecordedCore) -> None:
    work(core)
    core.write()
    core.clock.set(START + SECOND)
    core.write(ends=True)
    after = restarted(core)
    after.rm.node("n1", vcore=10_000)
    after.rm.app("etl-2026-11-27", user="ann", groups=["dev", "all"], team="blue")
    after.rm.ask("etl-2026-11-27", "task", 2, vcore=1000)
    after.rm.schedule()
    end_recovery(after)
    after.write(ends=True)
    assert len(after.rows("allocations")) == 2
    (usage,) = [one["data"] for one in after.rows("usage") if one["level"] == 3]
    assert usage == {"started": 2, "service": {"vcore": 2000 * (QUIET + 1)}}
    after.close()


def test_a_size_that_changed_meanwhile_counts_from_the_report_on(core: RecordedCore) -> None:
    work(core, 1)
    core.write()
    (uuid,) = core.rm.running
    after = restarted(core)
    grown = Allocation("task", "etl-2026-11-27", uuid, "n1", Resource(vcore=4000))
    after.rm.app("etl-2026-11-27", user="ann", groups=["dev", "all"], team="blue")
    after.rm.node("n1", vcore=10_000, existing=[grown])
    after.rm.schedule(0)
    end_recovery(after)
    after.write(ends=True)
    (one,) = after.rows("allocations")
    assert (one["shape"], one["sizes"]) == ({"vcore": 4000}, [[BEGIN + 60_000, {"vcore": 1000}]])
    usage = sum(one["data"]["service"]["vcore"] for one in after.rows("usage") if one["level"] == 3)
    assert usage == 1000 * 60_000 + 4000 * (QUIET + 1)
    after.close()


def test_a_second_registration_moves_no_end_of_an_earlier_run(core: RecordedCore) -> None:
    work(core)
    core.write()
    after = restarted(core, 7200)
    after.rm.node("n1", vcore=10_000)
    after.rm.schedule(0)
    after.record()
    after.register()
    after.rm.node("n1", vcore=10_000)
    after.rm.schedule(0)
    end_recovery(after)
    assert {one["ended"] for one in after.rows("allocations")} == {BEGIN}
    assert {one["ended"] for one in after.rows("applications")} == {BEGIN}
    after.close()


def test_a_preemption_in_progress_outlasts_a_kill(place: str) -> None:
    quota = {"guaranteed": {"vcore": "5"}}
    config = configuration(queue("a", resources=quota), queue("b", resources=quota))
    core = RecordedCore(place, config)
    core.rm.node("n1", vcore=10_000)
    core.rm.app("greedy", "root.a")
    core.rm.ask("greedy", "victim", 10, vcore=1000)
    core.rm.schedule()
    core.rm.app("urgent", "root.b")
    core.rm.ask("urgent", "needed", vcore=1000)
    core.rm.schedule()
    core.rm.pass_time(60)
    core.rm.schedule()
    core.write()
    (running,) = [one for one in core.rows("allocations") if one["preemptor"]]
    assert (running["ended"], running["flags"], running["preemptor"]) == (None, 0, '["urgent","needed"]')
    gone = [*core.rm.evicted]
    kept = [uuid for uuid in core.rm.running if uuid not in gone]
    after = restarted(core, config=config)
    after.rm.app("greedy", "root.a")
    existing = [Allocation("victim", "greedy", uuid, "n1", Resource(vcore=1000)) for uuid in kept]
    after.rm.node("n1", vcore=10_000, existing=existing)
    after.rm.schedule(0)
    end_recovery(after)
    (victim,) = [one for one in after.rows("allocations") if one["ended"]]
    assert victim["exit"] == "PREEMPTED_BY_SCHEDULER"
    assert (victim["flags"], victim["preemptor"]) == (PREEMPTED | ESTIMATED_END, '["urgent","needed"]')
    assert after.rows("applications")[0]["preempted"] == 1
    after.close()


def test_a_recovered_application_that_was_completing_is_not_accepted_again(core: RecordedCore) -> None:
    work(core, 1)
    (uuid,) = core.rm.running
    core.rm.release("etl-2026-11-27", uuid)
    core.rm.schedule(0)
    core.write()
    core.rm.ask("etl-2026-11-27", "task", vcore=1000)
    core.rm.schedule()
    (kept,) = core.rm.running
    after = restarted(core)
    report(after, kept)
    end_recovery(after)
    (app,) = after.rows("applications")
    states = [state for _, state, _ in app["states"]]
    assert states[:4] == ["New", "Accepted", "Starting", "Completing"]
    assert "Accepted" not in states[4:]
    after.close()


# -- lost events ---------------------------------------------------------------------------------------------


def test_ends_that_were_lost_are_found(place: str) -> None:
    core = RecordedCore(place)
    work(core)
    core.record()
    first, second = core.rm.running
    core.events.most = 0
    core.rm.release("etl-2026-11-27", first)
    core.rm.schedule(0)
    core.events.most = 1_000
    core.clock.set(START + 2 * SECOND)
    core.rm.release("etl-2026-11-27", second)
    core.rm.schedule(0)
    core.write()
    tasks = core.rows("allocations")
    assert [(one["ended"] - BEGIN, one["flags"]) for one in tasks] == [(2_000, ESTIMATED_END), (2_000, 0)]
    core.close()


def test_tasks_that_were_placed_while_lost_events_waited_are_recorded_once(core: RecordedCore) -> None:
    work(core)
    core.write()
    core.events.most = 0
    core.rm.ask("etl-2026-11-27", "lost", vcore=1000)
    core.rm.schedule()
    core.events.most = 1_000
    core.clock.set(START + SECOND)
    core.rm.ask("etl-2026-11-27", "after", 3, vcore=1000)
    core.rm.schedule()
    core.write()
    assert len(core.rm.running) == 6
    tasks = core.rows("allocations")
    assert sorted(one["key"] for one in tasks) == ["after"] * 3 + ["lost"] + ["task"] * 2
    assert core.rows("applications")[0]["tasks"] == 6
    for uuid in [*core.rm.running]:
        core.rm.release("etl-2026-11-27", uuid)
    core.rm.schedule(0)
    core.write()
    assert {one["exit"] for one in core.rows("allocations")} == {"STOPPED_BY_RM"}


def test_an_application_that_ran_and_ended_after_lost_events_has_one_row(core: RecordedCore) -> None:
    work(core)
    core.write()
    core.events.most = 0
    core.rm.ask("etl-2026-11-27", "lost", vcore=1000)
    core.rm.schedule()
    core.events.most = 1_000
    core.clock.set(START + SECOND)
    core.rm.ask("etl-2026-11-27", "after", vcore=1000)
    core.rm.schedule()
    core.rm.remove_app("etl-2026-11-27")
    core.rm.schedule(0)
    core.write()
    (app,) = core.rows("applications")
    assert (app["state"], app["ended"]) == ("Removed", BEGIN + 1_000)
    tasks = {one["key"]: one["ended"] for one in core.rows("allocations")}
    assert len(core.rows("allocations")) == 4
    assert set(tasks.values()) == {BEGIN + 1_000}


def test_a_report_that_was_lost_continues_the_row(core: RecordedCore) -> None:
    work(core)
    core.write()
    kept = [*core.rm.running]
    after = restarted(core)
    after.record()
    after.rm.app("etl-2026-11-27", user="ann", groups=["dev", "all"], team="blue")
    after.record()
    after.events.most = 0
    existing = [Allocation("task", "etl-2026-11-27", uuid, "n1", Resource(vcore=1000)) for uuid in kept]
    after.rm.node("n1", vcore=10_000, existing=existing)
    after.events.most = 1_000
    after.rm.node("n2", vcore=10_000)
    after.rm.schedule(0)
    end_recovery(after)
    assert [(one["ended"], one["flags"]) for one in after.rows("allocations")] == [(None, 0)] * 2
    after.close()


def test_resized_tasks(core: RecordedCore) -> None:
    work(core, 1)
    core.write()
    (uuid,) = core.rm.running
    core.clock.set(START + 10 * SECOND)
    grown = Allocation("task", "etl-2026-11-27", uuid, "n1", Resource(vcore=3000))
    core.rm.update(allocations=[grown])
    core.rm.schedule(0)
    core.clock.set(START + 20 * SECOND)
    core.rm.release("etl-2026-11-27", uuid)
    core.rm.schedule(0)
    core.write()
    (one,) = core.rows("allocations")
    assert (one["shape"], one["sizes"]) == ({"vcore": 3000}, [[BEGIN + 10_000, {"vcore": 1000}]])
    assert core.rows("applications")[0]["service"] == {"vcore": 40_000_000}


# -- templates -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("app_id", "template"),
    [
        ("etl-daily-2026-11-27-x7k2p", "etl-daily"),
        ("spark-0a1b2c3d4e5f", "spark"),
        ("application_1700000000000_0042", "application"),
        ("train12", "train"),
        ("nightly", "nightly"),
        ("job-bcdfg", "job"),
        ("3f2504e0-4f89-11d3-9a0c-0305e82c3301", ""),
        ("20261127", ""),
        ("", ""),
        ("٣٣٣", ""),
        ("web.v2/front", "web-v-front"),
    ],
)
def test_template_of_an_application(app_id: str, template: str) -> None:
    assert template_of(app_id) == template


def test_a_first_write_that_fails_is_repeated(place: str) -> None:
    location = HistoryLocation.parse(place)
    database = DatabaseThread(location, ManualClock(START))
    loaded = database.load().result()
    batch = RowBatch()
    batch.add("runs", (loaded.ids.new("runs"), BEGIN, BEGIN, None, "1", "host"))

    def fails(_: RowBatch) -> None:
        raise HistoryAway("the disk is full")

    with pytest.raises(HistoryAway):
        database.write(batch, fails).result()
    # Nothing is gone, because nothing was written before.
    database.write(batch, lambda _: None).result()
    database.close().result()
    assert [one["id"] for one in read_rows(place, "runs")] == [1]
