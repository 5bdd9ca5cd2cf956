"""`yunikorn snapshot`: files that are written, shown, or refused."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from tests.rest.commands.operator_kit import Run, answered, small_rm, through
from tests.rest.steering_kit import ADMIN, OPERATOR, Steered
from yunikorn_snapshots.snapshots import take_snapshot


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the command ask a small cluster as its admin; the list of requests."""
    monkeypatch.setenv("YUNIKORN_TOKEN", ADMIN)
    return answered(monkeypatch, through(Steered(small_rm())))


def test_snapshot_is_written_and_shown(run: Run, asked: list[str], tmp_path: Path) -> None:
    file = tmp_path / "monday.snapshot"
    status, out, err = run("snapshot", "-o", str(file))
    assert (status, err) == (0, "waiting for the snapshot ...\n")
    assert asked == ["/ws/v1/snapshot"]
    assert [*tmp_path.iterdir()] == [file]
    assert run("snapshot", str(file)) == (0, out, "")
    shown = dict(line.split(":", 1) for line in out.replace(" ", "").splitlines())
    assert shown["time"] == "1970-01-01T00:00:01.000Z"
    assert (shown["resourcemanagers"], shown["nodes"], shown["allocations"]) == ("rm", "3", "3")
    found = json.loads(run("snapshot", str(file), "--json")[1])
    assert found["bytes"] == file.stat().st_size
    assert found["rms"] == ["rm"]


def test_what_is_no_snapshot_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    take_snapshot(small_rm().scheduler, good)
    content = good.read_bytes()
    for damaged in (content[:3000], content[:2000] + b"X" + content[2001:]):
        bad.write_bytes(damaged)
        status, out, err = run("snapshot", str(bad))
        assert (status, out) == (2, "")
        assert err.startswith(f"Error: snapshot {bad} cannot be used: its checksum is wrong")
    answered(monkeypatch, lambda _: httpx.Response(200, content=b"<html>"))
    status, _, err = run("snapshot", "-o", str(good))
    assert (status, good.read_bytes()) == (2, content), "the file is as before"
    assert "what the server sent cannot be used: it is no snapshot: it does not begin with" in err
    assert run("snapshot")[0] == run("snapshot", str(good), "-o", str(bad))[0] == 2


def test_refusal_of_the_server_is_the_error(
    run: Run, asked: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("YUNIKORN_TOKEN", OPERATOR)
    status, _, err = run("snapshot", "-o", str(tmp_path / "file"))
    assert (status, "the role admin is needed" in err) == (2, True)
    assert [*tmp_path.iterdir()] == []
