"""`yunikorn snapshot`: files that are written, shown, or refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import httpx
import pytest

from tests.core.kit import configuration, queue
from tests.rest.commands.operator_kit import Run, answered, small_rm, through
from tests.rest.steering_kit import ADMIN, OPERATOR, Steered
from yunikorn_commands.input_source import InputError
from yunikorn_lab.simulation.reader import read_node_file
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


def test_commands_of_operators_read_a_snapshot_as_the_service(
    run: Run, asked: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "state"
    take_snapshot(small_rm().scheduler, file)
    for command in (
        ("explain", "wait", "--json"),
        ("explain", "run", "--json"),
        ("get", "apps", "--json"),
        ("get", "nodes", "--json"),
        ("describe", "queue", "root.b", "--json"),
    ):
        live = run(*command)
        asked.clear()
        assert run(*command, "--snapshot", str(file)) == live
        assert (live[0], asked) == (0, [])
    assert run("explain", "wat", "--snapshot", str(file)) == (
        1,
        "",
        "Error: there is no application 'wat', did you mean 'wait'?\n",
    )
    given = run("get", "apps", "--snapshot", str(file), "--server", "http://localhost")
    assert given == (2, "", "Error: --server and --snapshot exclude each other\n")
    file.write_bytes(file.read_bytes()[:-1])
    status, _, err = run("get", "apps", "--snapshot", str(file))
    assert (status, err.startswith(f"Error: snapshot {file} cannot be used: ")) == (2, True)


def test_nodes_are_those_of_a_snapshot(run: Run, tmp_path: Path) -> None:
    rm = small_rm()
    rm.node("n3", attributes={"rack": "r1"}, vcore=2000, occupied={"vcore": 500})
    take_snapshot(rm.scheduler, tmp_path / "state")
    found = read_node_file(tmp_path / "state").nodes
    assert [(one.name, one.partition) for one in found[2:]] == [("n2", "default"), ("n3", "default")]
    assert (found[3].resources, found[3].attributes) == ({"vcore": 1500}, {"rack": "r1"})
    (tmp_path / "queues.yaml").write_text(
        configuration(queue("a", resources={"guaranteed": {"vcore": "20"}}))
    )
    status, out, _ = run("validate", str(tmp_path / "queues.yaml"), "--nodes", str(tmp_path / "state"))
    assert (status, "but all nodes together have vcore 13500m" in out) == (0, True)
    (tmp_path / "state").write_bytes((tmp_path / "state").read_bytes()[:-1])
    with pytest.raises(InputError, match="its checksum is wrong"):
        read_node_file(tmp_path / "state")


DUMP = json.loads(gzip.decompress((Path(__file__).parent / "state_dumps" / "1.9.json.gz").read_bytes()))[
    "dump"
]


def test_state_dump_of_a_file_or_an_address_becomes_a_snapshot(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("YUNIKORN_TOKEN", ADMIN)
    (tmp_path / "dump.gz").write_bytes(gzip.compress(json.dumps(DUMP).encode()))
    file = tmp_path / "file"
    status, out, _ = run("snapshot", "--state-dump", str(tmp_path / "dump.gz"), "-o", str(file), "--json")
    shown = json.loads(out)
    assert (status, shown["sizes"]["applications"]) == (0, 14)
    assert shown["warnings"][0] == "lacks run times: a state dump does not say how long anything takes"
    # Its gangs go on, whose tasks wait beside their placeholders.
    assert run("simulate", "--snapshot", str(file), "--assume-runtime", "10m")[0] == 0
    tokens = []

    def reply(request: httpx.Request) -> httpx.Response:
        tokens.append(request.headers.get("authorization"))
        # Before 1.6.3, there was only the older route.
        is_old = request.url.path.startswith("/ws/v1/")
        return httpx.Response(200, json=DUMP) if is_old else httpx.Response(404, text="404 page not found\n")

    asked = answered(monkeypatch, reply)
    again = tmp_path / "again"
    assert run("snapshot", "--state-dump", "http://127.0.0.1:9080", "-o", str(again))[0] == 0
    assert asked == ["/debug/fullstatedump", "/ws/v1/fullstatedump"]
    assert tokens == [None, None], "the token is one for another server"
    assert again.read_bytes() == file.read_bytes()


def test_sources_that_cannot_be_used_are_refused(run: Run, tmp_path: Path) -> None:
    out, bad = tmp_path / "out", tmp_path / "bad.json"
    bad.write_text(json.dumps(DUMP)[:-9], "utf-8")
    status, _, err = run("snapshot", "--state-dump", str(bad), "-o", str(out))
    assert status == 2
    assert err.startswith(
        f"Error: state dump {bad} cannot be used: it is no complete JSON text: Input data was"
    )
    config = tmp_path / "queues.yaml"
    config.write_text("partitions: []\n", "utf-8")
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("{clusters: [], users: [], contexts: []}", "utf-8")
    for arguments, message in (
        (("--state-dump", str(bad), "--kubeconfig", str(kubeconfig)), "two sources: give one"),
        (("--context", "a"), "--context and --scheduler-name need --kubeconfig"),
        (("--config", str(config)), "--config needs --state-dump or --kubeconfig"),
        (("--kubeconfig", str(kubeconfig), "--context", "a"), "has no context 'a'"),
        (("--kubeconfig", str(kubeconfig), "--config", str(bad)), "bad.json"),
    ):
        status, _, err = run("snapshot", "-o", str(out), *arguments)
        assert (status, message in err) == (2, True), err
    assert not out.exists()
