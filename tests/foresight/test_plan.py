"""`yunikorn plan`: differences, what is affected at once, placements, a recorded time, and exit status."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from yunikorn.cli.main import main
from yunikorn.framework.registry import Registry
from yunikorn_snapshots.snapshots import take_snapshot
from yunikorn_testing import Cluster, application, ask, node

CONFIG = """
partitions:
  - name: default
    placementrules: [{name: tag, value: namespace, create: true}]
    queues:
      - name: root
        submitacl: "*"
        queues: [{name: web, resources: {max: {vcore: 8}}}, {name: old}, {name: idle}]
"""
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run `yunikorn plan` on a snapshot of a cluster with three applications; return status and outputs."""
    monkeypatch.chdir(tmp_path)
    cluster = Cluster(CONFIG, Registry.load(third_party=False))
    cluster.add(node("n1", vcore=10))
    for name, queue, user in (("a", "web", "ann"), ("b", "web", "bob"), ("c", "old", "bob")):
        cluster.submit(
            application(name, tags={"namespace": queue}, user=user), ask(f"{name}-task", 2, vcore=1)
        )
    cluster.run()
    take_snapshot(cluster.scheduler, tmp_path / "now.snapshot")

    def run(config: str, *options: str) -> tuple[int, str, str]:
        Path("new.yaml").write_text(config, "utf-8")
        status = main(["plan", "new.yaml", "--snapshot", "now.snapshot", *options])
        return status, *capsys.readouterr()

    return run


def test_equal_configuration_changes_nothing(call: Call) -> None:
    status, out, _ = call(CONFIG + "# a comment\n")
    assert (status, out) == (0, "new.yaml changes nothing in now.snapshot\n")


def test_quota_below_the_use_and_a_removed_queue_are_said(call: Call) -> None:
    changed = CONFIG.replace("{vcore: 8}", "{vcore: 3}").replace("{name: old}, ", "")
    status, out, _ = call(changed, "--json")
    found = json.loads(out)
    assert status == found["status"] == 2
    assert found["excesses"] == [
        {"partition": "default", "subject": "queue root.web", "what": "vcore", "used": 4000, "limit": 3000}
    ]
    assert found["leaving"] == [{"partition": "default", "queue": "root.old", "applications": 1}]
    assert "root.web: max vcore 8 \N{RIGHTWARDS ARROW} 3" in found["differences"]


def test_limit_of_a_user_below_the_use_is_said(call: Call) -> None:
    limit = "queues:\n      - name: root\n        limits: [{limit: few, users: [bob], maxapplications: 1}]"
    _, out, _ = call(CONFIG.replace("queues:\n      - name: root", limit), "--json")
    assert [
        (one["subject"], one["what"], one["used"], one["limit"]) for one in json.loads(out)["excesses"]
    ] == [("user bob in queue root", "applications", 2, 1)]


def test_submissions_that_go_elsewhere_or_are_rejected_are_counted(call: Call) -> None:
    _, out, _ = call(CONFIG.replace("tag, value: namespace", "user"), "--json")
    found = json.loads(out)
    assert found["submissions"] == 3
    moved = [(one["before"], one["after"], one["count"], one["users"]) for one in found["placements"]]
    assert moved == [
        ("root.old", "root.bob", 1, ["bob"]),
        ("root.web", "root.ann", 1, ["ann"]),
        ("root.web", "root.bob", 1, ["bob"]),
    ]
    _, out, _ = call(CONFIG.replace("create: true", "create: false").replace("{name: old}, ", ""), "--json")
    (rejected,) = json.loads(out)["placements"]
    assert (rejected["before"], rejected["after"], rejected["count"]) == ("root.old", "", 1)
    assert rejected["reason"]


def test_workload_of_the_past_is_run_under_both(call: Call) -> None:
    Path("week.yaml").write_text(
        """
nodes: [{name: n, count: 2, resources: {vcore: 4}}]
applications:
  - {id: x, count: 6, queue: root.web, tags: {namespace: web},
     tasks: [{count: 2, resources: {vcore: 1}, runtime: 100}]}
""",
        "utf-8",
    )
    _, out, _ = call(CONFIG.replace("{vcore: 8}", "{vcore: 1}"), "--workload", "week.yaml", "--json")
    found = json.loads(out)
    assert found["past_title"] == "With week.yaml"
    assert found["submissions"] == 6
    assert found["past"][0].startswith("planned, compared with now: ")


def test_refused_configuration_has_the_status_of_a_refusal(call: Call) -> None:
    status, out, _ = call(CONFIG.replace("{vcore: 8}", "{vcore: many}"))
    assert status == 1
    assert "new.yaml is refused: 1 problem" in out
    assert "line 8" in out or "new.yaml:8" in out


def test_bad_calls_have_the_status_of_a_refusal(call: Call, tmp_path: Path) -> None:
    assert call(CONFIG, "--rm", "other")[0] == 1
    assert call(CONFIG, "--no-such-option")[0] == 1
    (tmp_path / "now.snapshot").write_bytes(b"nothing")
    status, out, err = call(CONFIG)
    assert (status, out) == (1, "")
    assert err.startswith("Error: snapshot now.snapshot cannot be used")


def test_markdown_shows_texts_of_the_input_as_they_are(call: Call) -> None:
    status, out, _ = call(
        CONFIG.replace("{name: idle}", "{name: idle}, {name: '@everyone_x'}"), "--style", "markdown"
    )
    assert status == 2
    assert out.startswith("### new.yaml makes 1 change")
    assert "@everyone" not in out.replace("\\@", "")
