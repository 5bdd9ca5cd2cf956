"""`yunikorn diff`: differences in the language of queues, and the exit status of diff."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.rest.commands.operator_kit import Run


def document(*queues: dict[str, Any], rules: list[dict[str, Any]] | None = None, **more: Any) -> str:
    """Return a configuration with these queues below root."""
    root = {"name": "root", "submitacl": "*", "queues": [{"name": "web"}, *queues]}
    partition = {"name": "default", "queues": [root], **({"placementrules": rules} if rules else {}), **more}
    return yaml.safe_dump({"partitions": [partition]})


def limit(users: list[str], applications: int, **resources: str) -> dict[str, Any]:
    """Return a limit."""
    return {
        "users": users,
        "maxapplications": applications,
        **({"maxresources": resources} if resources else {}),
    }


@pytest.fixture
def diff(run: Run, tmp_path: Path) -> Any:
    """Return a function that compares two texts, and returns the status and both outputs."""

    def call(old: str, new: str, *options: str) -> tuple[int, str, str]:
        for name, text in (("a.yaml", old), ("b.yaml", new)):
            (tmp_path / name).write_text(text)
        return run("diff", str(tmp_path / "a.yaml"), str(tmp_path / "b.yaml"), *options)

    return call


RESEARCH = {"name": "research", "resources": {"guaranteed": {"vcore": "1500m"}, "max": {"memory": "64Gi"}}}


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        (
            document(RESEARCH),
            document({"name": "research", "resources": {"guaranteed": {"vcore": 2}, "max": {"gpu": 4}}}),
            [
                "root.research: guaranteed vcore 1500m → 2",
                "root.research: max memory 64Gi removed",
                "root.research: max gpu 4 added",
            ],
        ),
        (
            document({"name": "x"}),
            document(RESEARCH),
            ["queue root.x removed", "queue root.research added (guaranteed vcore 1500m, max memory 64Gi)"],
        ),
        (
            document({"name": "y", "limits": [limit(["ann"], 2), limit(["eve"], 1), limit(["*"], 9)]}),
            document({"name": "y", "limits": [limit(["bob", "ann"], 3, memory="1Gi"), limit(["*"], 9)]}),
            [
                "limit for user ann at root.y: 2 applications → memory 1Gi, 3 applications",
                "limit for user eve at root.y removed: 1 application",
                "limit for user bob at root.y added: memory 1Gi, 3 applications",
            ],
        ),
        (
            document(rules=[{"name": "provided"}, {"name": "user", "create": True}]),
            document(
                rules=[
                    {"name": "user", "create": True},
                    {"name": "fixed", "value": "root.web", "filter": {"users": ["ann"]}},
                ]
            ),
            ["placement rule 1 removed: provided", "placement rule 2 added: fixed root.web (only user ann)"],
        ),
        (
            document(nodesortpolicy={"type": "fair"}, preemption={"enabled": True}),
            document({"name": "z", "maxapplications": 3}, nodesortpolicy={"type": "binpacking"}),
            ["node sort policy binpacking added", "queue root.z added (max applications 3)"],
        ),
    ],
)
def test_differences_are_in_the_language_of_queues(diff: Any, old: str, new: str, lines: list[str]) -> None:
    assert diff(old, new) == (1, "".join(f"{line}\n" for line in lines), "")
    status, back, _ = diff(new, old)
    assert (status, len(back.splitlines())) == (1, len(lines))


def test_equal_configurations_have_status_0(diff: Any) -> None:
    assert diff(document(RESEARCH), "# a comment\n" + document(RESEARCH)) == (0, "", "")
    assert diff(document(RESEARCH), document(RESEARCH), "--format", "json") == (0, "[]\n", "")


def test_several_partitions_are_named(diff: Any) -> None:
    def two(most: int) -> str:
        queues = [{"name": "root", "queues": [{"name": "a", "maxapplications": most}]}]
        return yaml.safe_dump({"partitions": [{"name": name, "queues": queues} for name in ("cpu", "gpu")]})

    assert diff(two(1), two(2))[1] == (
        "partition cpu: root.a: max applications 1 → 2\npartition gpu: root.a: max applications 1 → 2\n"
    )


def test_json_has_keys_and_texts(diff: Any) -> None:
    status, out, _ = diff(document(RESEARCH), document(), "--format", "json")
    assert status == 1
    assert json.loads(out) == [
        {
            "partition": "default",
            "queue": "root.research",
            "key": "",
            "change": "removed",
            "before": None,
            "after": None,
            "text": "queue root.research removed",
        }
    ]


def test_all_problems_of_both_files_have_status_2(diff: Any, tmp_path: Path) -> None:
    status, out, err = diff("partitions: 7", document({"name": "a b"}))
    assert (status, out) == (2, "")
    assert f"{tmp_path}/a.yaml: partitions (line 1, column 13): expected a list" in err
    assert f"{tmp_path}/b.yaml: partitions[0].queues[0].queues[1].name (line " in err


def test_a_missing_file_has_status_2(run: Run, tmp_path: Path) -> None:
    status, _, err = run("diff", str(tmp_path / "no"), str(tmp_path / "none"))
    assert status == 2
    assert err.count("cannot be read: No such file or directory") == 2


def test_plugins_are_compared_by_name(diff: Any) -> None:
    old = document(predicates=["taints", "node-selector"])
    old += "plugins: {load: [./old.py], disable: [app-sort:stateaware]}\n"
    new = document(predicates=["node-selector", "taints"])
    new += "plugins: {load: [./new.py]}\nevents: {sinks: [{name: jsonl, path: events.jsonl}]}\n"
    status, out, err = diff(old, new)
    assert status == 1, err
    assert sorted(out.splitlines()) == [
        "disabled plugin app-sort:stateaware removed",
        "event sink jsonl added",
        "plugin file or module ./new.py added",
        "plugin file or module ./old.py removed",
        "predicates: the order has changed",
    ]
    assert "./old.py was not loaded" in err
