"""`yunikorn whatif`: answers about changes of a cluster, from a snapshot or a running scheduler."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.rest.commands.operator_kit import Run, answered, small_rm, through
from tests.rest.steering_kit import ADMIN, Steered
from yunikorn.cli.main import main
from yunikorn.framework.registry import Registry
from yunikorn_snapshots.snapshots import take_snapshot
from yunikorn_testing import Cluster, application, ask, node

LIMIT = "yunikorn.apache.org/run-time-limit"
Ask = Callable[..., tuple[int, Any, str]]


def configured(**batch: object) -> str:
    """Return a configuration with two queues, of which `batch` has these keys."""
    queues = [{"name": "batch", **batch}, {"name": "web", "resources": {"guaranteed": {"vcore": 2}}}]
    partition = {
        "name": "default",
        "estimators": ["request"],
        "queues": [{"name": "root", "submitacl": "*", "queues": queues}],
    }
    return yaml.safe_dump({"partitions": [partition]})


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cluster of two full nodes: one is free after 100 s, the other after 1000 s; two jobs wait."""
    nodes = [node("n1", vcore=4), node("n2", vcore=4)]
    cluster = Cluster(configured(), Registry.load(third_party=False), nodes)
    for name, seconds, cores in (("short", 100, 4), ("long", 1000, 4), ("first", 50, 4), ("second", 500, 4)):
        app = application(name, "root.batch", user=f"user-of-{name}", tags={LIMIT: str(seconds)})
        cluster.submit(app, ask("job", vcore=cores))
        cluster.run()
        cluster.advance(1)
    path = tmp_path_factory.mktemp("whatif") / "cluster.snapshot"
    take_snapshot(cluster.scheduler, path)
    return path


@pytest.fixture
def put(snapshot: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Return a function that asks about changes, and returns status, answer and errors."""

    def call(*options: str) -> tuple[int, Any, str]:
        status = main(["whatif", "--snapshot", str(snapshot), "--json", *options])
        out, err = capsys.readouterr()
        return status, json.loads(out) if out else None, err

    return call


def test_new_node_lets_both_jobs_start_earlier(put: Ask) -> None:
    status, found, _ = put("--add-nodes", "1:n1")
    assert status == 0
    first, second = sorted(found["applications"], key=lambda one: one["name"])
    # Without the node: at 96 s on the one that is free then, and when that job has ended, 50 s later.
    assert (first["earlier"], first["mean"], first["user"], first["queue"]) == (
        *(1, -96.0),
        *("user-of-first", "root.batch"),
    )
    assert (second["earlier"], second["mean"]) == (1, -96.0)
    (queue,) = found["queues"]
    assert (queue["name"], queue["earlier"], queue["later"], queue["mean"]) == ("root.batch", 2, 0, -96.0)
    assert {one["name"] for one in found["users"]} == {"user-of-first", "user-of-second"}
    assert (found["first"]["time"], found["first"]["equal"]) == (0.0, 0)
    assert "the changed cluster places job of first (root.batch) on n1-copy-2" in found["first"]["sentence"]
    assert "first is stopped by: " in found["first"]["sentence"]
    assert found["changes"] == ["--add-nodes 1:n1"]


def test_drained_node_delays_jobs_or_keeps_them_from_starting(put: Ask) -> None:
    _, found, _ = put("--drain", "n1", "--for", "1010s")
    delays = {one["name"]: (one["later"], one["mean"], one["lost"]) for one in found["applications"]}
    assert delays == {"first": (1, 901.0, 0), "second": (0, 0.0, 1)}
    assert found["placed"] == [2, 1]
    assert found["waiting"] == [0, 1]


def test_configuration_settings_and_submissions_are_combined(put: Ask, tmp_path: Path) -> None:
    submitted = tmp_path / "new.yaml"
    app = {"id": "new", "queue": "root.web", "tasks": [{"resources": {"vcore": 4}, "runtime": "10s"}]}
    later = {**app, "id": "later", "submit": "60s"}
    submitted.write_text(
        yaml.safe_dump({"nodes": [{"name": "x", "resources": {"vcore": 1}}], "applications": [app, later]}),
        "utf-8",
    )
    config = tmp_path / "other.yaml"
    config.write_text(configured(maxapplications=9), "utf-8")
    status, found, _ = put(
        *("--config", str(config), "--set", "root.batch.resources.max={vcore: 6}"),
        *("--policy", "root.batch=fifo", "--submit", str(submitted), "--drain", "n2"),
    )
    assert status == 0
    rows = {one["name"]: one for one in found["applications"]}
    assert (rows["new"]["gained"], rows["later"]["gained"], rows["new"]["queue"]) == (1, 1, "root.web")
    assert rows["first"]["lost"] + rows["first"]["later"] == 1
    assert [text.split()[0] for text in found["changes"]] == [
        *("--config", "--set", "--policy", "--drain", "--submit")
    ]


def test_change_without_effect_is_said_to_have_none(
    put: Ask, snapshot: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, found, _ = put("--set", "root.batch.maxapplications=50")
    assert (found["applications"], found["queues"], found["first"]["time"]) == ([], [], None)
    assert main(["whatif", "--snapshot", str(snapshot), "--set", "root.batch.maxapplications=50"]) == 0
    out = capsys.readouterr().out
    assert "In 24h, nothing is different" in out
    assert "makes the same decisions as the cluster as it is: all 2 are equal" in out
    assert main(["whatif", "--snapshot", str(snapshot), "--add-nodes", "1:n1"]) == 0
    out = capsys.readouterr().out
    assert "In 24h, with the changes 2 tasks would start earlier, and 0 tasks later" in out
    assert "user-of-first" in out


def test_refused_change_is_reported(put: Ask, tmp_path: Path) -> None:
    submitted = tmp_path / "new.yaml"
    app = {"id": "new", "queue": "root.wep", "tasks": [{"resources": {"vcore": 1}, "runtime": "10s"}]}
    nodes = [{"name": "x", "resources": {"vcore": 1}}]
    submitted.write_text(yaml.safe_dump({"nodes": nodes, "applications": [app]}), "utf-8")
    status, found, err = put("--submit", str(submitted))
    assert status == 1
    assert "new is rejected" in found["refusals"][0]
    assert "root.wep" in err


def test_all_problems_are_named_in_one_pass(put: Ask, snapshot: Path, tmp_path: Path) -> None:
    status, found, err = put(
        *("--drain", "n3", "--add-nodes", "2:m1", "--add-nodes", "nowhere.yaml"),
        *("--set", "root.batsh.maxapplications=2", "--set", "root.web.maxapplications=1,2"),
        *("--policy", "fifo"),
    )
    assert (status, found) == (2, None)
    for part in (
        "there is no node 'n3'",
        "--add-nodes 2:m1: there is no node 'm1'",
        "--add-nodes nowhere.yaml: expected N:NODE, such as 10:node-1, or a file with nodes",
        "--set root.web.maxapplications: give one value; `yunikorn sweep` tries several",
        "--policy fifo: expected QUEUE=NAME, such as root.batch=fifo",
    ):
        assert part in err
    _, _, err = put("--set", "root.batsh.maxapplications=2", "--policy", "root.batch=fivo")
    assert "root.batsh" in err
    assert "batch" in err
    assert put()[0] == 2
    assert put("--drain", "n1", "--server", "http://127.0.0.1:1")[0] == 2
    assert put("--drain", "n1", "--for", "0s")[0] == 2


def test_running_scheduler_is_asked_for_a_snapshot(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YUNIKORN_TOKEN", ADMIN)
    asked = answered(monkeypatch, through(Steered(small_rm())))
    status, out, err = run("whatif", "--drain", "n1", "--for", "1h", "--json")
    assert (status, asked) == (0, ["/ws/v1/snapshot"]), err
    assert json.loads(out)["changes"] == ["--drain n1"]
    assert "which are taken never to end: give --assume-runtime" in err
