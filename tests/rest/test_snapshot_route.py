"""Snapshots over REST: who may take one, what it has, and what is refused."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest

from tests.core.kit import RM, configuration, queue
from tests.rest.kit import DirectCore, Rest
from tests.rest.steering_kit import ADMIN, OPERATOR, Steered
from tests.snapshots.test_live import live
from yunikorn.clock import SECOND
from yunikorn_rest.taken_snapshots import SnapshotTaking
from yunikorn_snapshots.restored_snapshot import restored_scheduler
from yunikorn_snapshots.snapshot_errors import SnapshotError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_snapshot_of_the_scheduler_is_sent(folder: Path) -> None:
    rm = RM(configuration(queue("a")))
    rm.node(vcore=4)
    rm.app()
    rm.ask(vcore=1, count=6)
    rm.schedule()
    answer = Steered(rm).ask("GET", "snapshot", ADMIN)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/octet-stream")
    assert answer.headers["content-length"] == str(len(answer.content))
    assert [*folder.iterdir()] == []
    (folder / "state").write_bytes(answer.content)
    copy = restored_scheduler(folder / "state", rm.scheduler.registry, rm.clock, {"rm": rm})
    rm.scheduler = copy
    rm.node("n2", vcore=4)
    assert len(rm.schedule()) == 2


def test_only_admins_take_snapshots() -> None:
    rm = RM(configuration(queue("a")))
    rest = Steered(rm)
    assert rest.ask("GET", "snapshot").status_code == 401
    assert "the role admin is needed" in rest.ask("GET", "snapshot", OPERATOR).json()["message"]
    foreign = rest.ask("GET", "snapshot", ADMIN, headers={"sec-fetch-site": "cross-site"})
    assert (foreign.status_code, "another site" in foreign.json()["message"]) == (403, True)
    assert Rest(rm).error("snapshot") == (
        403,
        "this needs credentials: start the scheduler with --rest-credentials FILE (see `yunikorn token`)",
    )


def test_state_that_cannot_be_kept_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rm = RM(configuration(queue("a")))
    rm.app()
    rest = Steered(rm)
    rest.context.snapshots.is_busy = True
    answer = rest.ask("GET", "snapshot", ADMIN)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
    assert "one at a time" in answer.json()["message"]
    rest.context.snapshots.is_busy = False
    monkeypatch.setattr(rm.at_work().partition.applications["app"], "tags", object())
    answer = rest.ask("GET", "snapshot", ADMIN)
    assert answer.status_code == 409
    assert "no snapshot can be taken: an object of object" in answer.json()["message"]
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "gone"))
    monkeypatch.setattr("yunikorn_rest.taken_snapshots.MEMORY", str(folder / "gone"))
    answer = rest.ask("GET", "snapshot", ADMIN)
    assert (answer.status_code, "let TMPDIR of the scheduler" in answer.json()["message"]) == (500, True)


def test_snapshot_waits_for_the_answers_of_policies() -> None:
    rm, workers = live()
    rm.app("later", "root.a", user="root", groups=())
    rm.ask("later", vcore=1)
    rm.scheduler.schedule()
    times = iter(range(0, 100 * SECOND, SECOND))
    late = Steered(rm, snapshots=SnapshotTaking(lambda: next(times))).ask("GET", "snapshot", ADMIN)
    assert (late.status_code, late.headers["retry-after"]) == (503, "10")
    assert "1 questions to policies" in late.json()["message"]

    def answer() -> int:
        workers.answer(rm.scheduler)
        return 0

    assert Steered(rm, snapshots=SnapshotTaking(answer)).ask("GET", "snapshot", ADMIN).status_code == 200


def test_snapshot_that_no_one_wants_any_more_ends(folder: Path) -> None:
    rm = RM(configuration(queue("a")))

    async def cancel() -> None:
        taking = SnapshotTaking(lambda: 0)
        task = asyncio.create_task(taking.take(DirectCore(rm.scheduler)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while taking.is_busy:
            await asyncio.sleep(0)
        stopped = asyncio.create_task(taking.take(DirectCore(rm.scheduler)))
        await asyncio.sleep(0)
        taking.stop()
        with pytest.raises(SnapshotError, match="which wrote it, ended"):
            await stopped

    asyncio.run(cancel())
    assert [*folder.iterdir()] == []
