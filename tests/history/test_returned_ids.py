"""Ids of applications that are submitted again after a restart: the same application, or another one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.history.recorded_core import START, RecordedCore
from tests.history.test_recording import BEGIN, end_recovery, restarted, work
from yunikorn.clock import SECOND
from yunikorn.interface.messages import Allocation
from yunikorn.model.gang import CREATION_TAG
from yunikorn.resources import Resource
from yunikorn_history.history_tables import ESTIMATED_END

APP = "etl-2026-11-27"


@pytest.fixture
def core(tmp_path: Path) -> Iterator[RecordedCore]:
    made = RecordedCore(str(tmp_path / "history.db"))
    yield made
    made.close()


def later(core: RecordedCore, seconds: float) -> None:
    core.clock.set(core.clock.now() + round(seconds * SECOND))


def seen(core: RecordedCore) -> None:
    """Start an application, whose tasks have been running for a while when the core is killed."""
    work(core)
    later(core, 10)
    core.write()


def submit(
    core: RecordedCore, key: str = "task", tasks: int = 1, user: str = "ann", created: str = ""
) -> None:
    core.rm.app_tagged(
        APP, "root.a", {"team": "red", CREATION_TAG: created}, user=user, groups=["dev", "all"]
    )
    core.rm.ask(APP, key, tasks, vcore=500)
    core.rm.schedule()


def outline(core: RecordedCore) -> list[tuple[object, ...]]:
    """Return user, team, state, end, number of tasks and service of each application."""
    return [
        (
            one["user"],
            one["tags"]["team"],
            one["state"],
            one["ended"] and one["ended"] - BEGIN,
            one["tasks"],
            one["service"] and one["service"]["vcore"],
        )
        for one in core.rows("applications")
    ]


def tasks(core: RecordedCore) -> list[tuple[object, ...]]:
    """Return application, key, end and flags of each allocation."""
    return [
        (one["app"], one["key"], one["ended"] and one["ended"] - BEGIN, one["flags"])
        for one in core.rows("allocations")
    ]


OLD = ("ann", "blue", "Removed", 10_000, 2, 20_000_000)


def test_another_user_is_another_application_at_once(core: RecordedCore) -> None:
    seen(core)
    after = restarted(core)
    after.rm.node("n1", vcore=10_000)
    submit(after, user="bob")
    after.write()
    assert outline(after) == [OLD, ("bob", "red", "Starting", None, 1, None)]
    assert tasks(after) == [
        (1, "task", 10_000, ESTIMATED_END),
        (1, "task", 10_000, ESTIMATED_END),
        (2, "task", None, 0),
    ]
    after.close()


def test_a_day_after_the_estimated_end(core: RecordedCore) -> None:
    seen(core)
    after = restarted(core)
    after.rm.node("n1", vcore=10_000)
    after.rm.schedule(0)
    end_recovery(after)
    later(after, 86_400)
    submit(after)
    after.write()
    assert outline(after) == [OLD, ("ann", "red", "Starting", None, 1, None)]
    assert after.rows("applications")[1]["submitted"] == after.clock.now() // 1_000_000
    after.close()


def test_an_rm_that_has_forgotten_what_ran(core: RecordedCore) -> None:
    """As that of `serve --demo`: the same ids come again at once, and no allocation exists."""
    seen(core)
    after = restarted(core)
    after.rm.node("n1", vcore=10_000)
    submit(after, tasks=3)
    ended, *_ = after.rm.running
    later(after, 5)
    after.rm.release(APP, ended)
    after.rm.schedule(0)
    after.write()
    assert len(after.rows("applications")) == 1
    end_recovery(after)
    after.write(ends=True)
    assert outline(after) == [OLD, ("ann", "red", "Running", None, 3, 2_500_000)]
    first, second = after.rows("applications")
    assert [state for _, state, _ in second["states"]] == ["New", "Accepted", "Starting", "Running"]
    assert (first["started"], second["started"]) == (BEGIN, BEGIN + 70_000)
    assert [app for app, *_ in tasks(after)] == [1, 1, 2, 2, 2]
    usage = sum(one["data"]["service"]["vcore"] for one in after.rows("usage") if one["level"] == 3)
    now = after.clock.now() // 1_000_000
    assert usage == 20_000_000 + 2_500_000 + 2 * 500 * (now - BEGIN - 70_000)
    after.close()


def test_one_that_ends_before_the_recovery_is_over(core: RecordedCore) -> None:
    seen(core)
    after = restarted(core)
    after.rm.node("n1", vcore=10_000)
    submit(after)
    after.rm.remove_app(APP)
    after.rm.schedule(0)
    after.write()
    assert outline(after) == [OLD, ("ann", "red", "Removed", 70_000, 1, None)]
    after.close()


def test_an_rm_that_registers_again_and_has_forgotten_what_ran(core: RecordedCore) -> None:
    seen(core)
    core.register()
    core.rm.node("n1", vcore=10_000)
    submit(core)
    end_recovery(core)
    assert outline(core) == [OLD, ("ann", "red", "Starting", None, 1, None)]


def test_one_that_was_completing_is_another_one(core: RecordedCore) -> None:
    seen(core)
    for uuid in [*core.rm.running]:
        core.rm.release(APP, uuid)
    core.rm.schedule(0)
    core.write()
    after = restarted(core)
    after.rm.node("n1", vcore=10_000)
    submit(after)
    end_recovery(after)
    assert outline(after) == [OLD, ("ann", "red", "Starting", None, 1, None)]
    after.close()


def test_one_that_waited_continues(core: RecordedCore) -> None:
    core.rm.app(APP, user="ann", team="blue")
    core.rm.ask(APP, "task", vcore=1000)
    core.rm.schedule(0)
    core.write()
    after = restarted(core)
    after.rm.node("n1", vcore=10_000)
    submit(after)
    end_recovery(after)
    assert outline(after) == [("ann", "red", "Starting", None, 1, None)]
    assert after.rows("applications")[0]["submitted"] == BEGIN
    after.close()


@pytest.mark.parametrize(("seconds", "rows"), [(-5, 1), (30, 2)])
def test_the_time_of_creation_tells(core: RecordedCore, seconds: int, rows: int) -> None:
    seen(core)
    after = restarted(core)
    after.rm.node("n1", vcore=10_000)
    submit(after, created=str(START // SECOND + seconds))
    after.write()
    assert len(after.rows("applications")) == rows
    end_recovery(after)
    assert len(after.rows("applications")) == rows
    after.close()


def test_existing_allocations_tell_although_others_were_placed_before(core: RecordedCore) -> None:
    seen(core)
    kept, _ = core.rm.running
    after = restarted(core)
    after.rm.node("n2", vcore=10_000)
    submit(after, "more")
    existing = [Allocation("task", APP, kept, "n1", Resource(vcore=1000))]
    after.rm.node("n1", vcore=10_000, existing=existing)
    end_recovery(after)
    (app,) = after.rows("applications")
    assert (app["submitted"], app["tasks"]) == (BEGIN, 3)
    assert tasks(after) == [
        (1, "task", None, 0),
        (1, "task", 10_000, ESTIMATED_END),
        (1, "more", None, 0),
    ]
    after.close()


def test_ids_that_are_in_doubt_make_no_recovery_longer(core: RecordedCore) -> None:
    seen(core)
    after = restarted(core)
    after.rm.node("n1", vcore=10_000)
    after.rm.schedule(0)
    after.record()
    later(after, 8)
    submit(after)
    after.write()
    later(after, 3)
    after.write()
    assert outline(after) == [OLD, ("ann", "red", "Starting", None, 1, None)]
    after.close()


def test_the_end_of_the_session_decides(core: RecordedCore) -> None:
    seen(core)
    after = restarted(core)
    after.rm.node("n1", vcore=10_000)
    submit(after)
    after.scheduler.stop("rm")
    after.write()
    assert len(after.rows("applications")) == 2
    assert [app for app, *_ in tasks(after)] == [1, 1, 2]
    after.close()


def test_an_estimated_end_stays_if_the_id_comes_soon_after(core: RecordedCore) -> None:
    seen(core)
    after = restarted(core)
    after.rm.node("n1", vcore=10_000)
    after.rm.schedule(0)
    end_recovery(after)
    submit(after)
    after.write()
    assert len(after.rows("applications")) == 1
    later(after, 11)
    after.write()
    assert outline(after) == [OLD, ("ann", "red", "Starting", None, 1, None)]
    assert [app for app, *_ in tasks(after)] == [1, 1, 2]
    after.close()


# -- kills while an id is in doubt ---------------------------------------------------------------------------


def in_doubt(core: RecordedCore, key: str = "task") -> RecordedCore:
    """Submit the id again after a restart; of its 3 tasks, one ends, and then the scheduler is killed."""
    seen(core)
    after = restarted(core)
    after.rm.node("n1", vcore=10_000)
    submit(after, key, 3)
    ended, *_ = after.rm.running
    later(after, 5)
    after.rm.release(APP, ended)
    after.rm.schedule(0)
    after.write(ends=True)
    assert len(after.rows("applications")) == 1
    return after


def again(core: RecordedCore, *uuids: str, key: str = "task", amount: int = 500) -> RecordedCore:
    """Start another scheduler, to which the resource manager reports these allocations."""
    after = restarted(core, 1)
    after.rm.app_tagged(APP, "root.a", {"team": "red"}, user="ann", groups=["dev", "all"])
    existing = [Allocation(key, APP, uuid, "n1", Resource(vcore=amount)) for uuid in uuids]
    after.rm.node("n1", vcore=10_000, existing=existing)
    after.rm.schedule(0)
    return after


def check_usage(core: RecordedCore) -> None:
    """Compare the usage with the rows."""
    core.write(ends=True)
    now = core.clock.now() // 1_000_000
    found = core.rows("allocations")
    service = sum((one["ended"] or now) - one["placed"] for one in found if one["shape"]["vcore"] == 500)
    service = 500 * service + 20_000_000
    days = [one["data"] for one in core.rows("usage") if one["level"] == 3]
    assert sum(one["service"]["vcore"] for one in days) == service
    counts = [sum(one.get(name, 0) for one in days) for name in ("started", "ended")]
    assert counts == [len(found), sum(one["ended"] is not None for one in found)]


def test_after_a_kill_in_doubt_what_ran_before_and_since_are_told_apart(core: RecordedCore) -> None:
    before = in_doubt(core)
    _, kept = before.rm.running
    after = again(before, kept)
    end_recovery(after)
    check_usage(after)
    service = 2_500_000 + 2_500_000  # of the one that was released, and of the one that is gone
    assert outline(after) == [OLD, ("ann", "red", "Running", None, 3, service)]
    assert [one["submitted"] - BEGIN for one in after.rows("applications")] == [0, 70_000]
    old, new = (1, "task", 10_000, ESTIMATED_END), (2, "task", None, 0)
    assert tasks(after)[:2] == [old, old]
    assert sorted(tasks(after)[2:], key=str) == [(2, "task", 75_000, 0), (2, "task", 75_000, 16), new]
    after.close()


def test_after_a_kill_in_doubt_an_allocation_from_before_tells_that_all_was_one(core: RecordedCore) -> None:
    before = in_doubt(core, "more")
    after = again(before, "first", amount=1000)
    end_recovery(after)
    (app,) = outline(after)
    assert app[:5] == ("ann", "red", "Running", None, 5)
    assert {row for row, *_ in tasks(after)} == {1}
    assert [end for _, key, end, _ in tasks(after) if key == "task"] == [None, 10_000]
    after.close()


def test_an_id_that_comes_again_after_each_of_two_kills(core: RecordedCore) -> None:
    before = in_doubt(core)
    after = again(before)
    after.rm.ask(APP, "task", 2, vcore=500)
    after.rm.schedule()
    later(after, 3)
    after.write()
    # Killed once more, in doubt about two submissions.
    last = again(after)
    last.rm.ask(APP, "task", 1, vcore=500)
    last.rm.schedule()
    end_recovery(last)
    check_usage(last)
    found = [(state, end, tasks) for _, _, state, end, tasks, _ in outline(last)]
    assert found == [
        ("Removed", 10_000, 2),
        ("Removed", 75_000, 3),
        ("Removed", 79_000, 2),
        ("Starting", None, 1),
    ]
    assert [row for row, *_ in tasks(last)] == [1, 1, 2, 2, 2, 3, 3, 4]
    last.close()


def test_an_id_in_doubt_that_does_not_come_again(core: RecordedCore) -> None:
    after = restarted(in_doubt(core), 1)
    after.rm.node("n1", vcore=10_000)
    after.rm.schedule(0)
    end_recovery(after)
    check_usage(after)
    assert outline(after) == [OLD, ("ann", "red", "Removed", 75_000, 3, 7_500_000)]
    after.close()
