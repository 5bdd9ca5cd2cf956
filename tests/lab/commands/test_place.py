"""`yunikorn place` on the command line: the queue of an application, and the outcome of each rule."""

from __future__ import annotations

import io
import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from yunikorn.cli.main import main

CONFIG = """\
events:
  sinks:
    - {name: jsonl, path: events.jsonl}
partitions:
  - name: default
    placementrules:
      - name: tag
        value: namespace
        create: true
        filter: {type: deny, groups: [guests]}
      - name: user
      - name: fixed
        value: root.last_resort
    queues:
      - name: root
        queues:
          - {name: ann, submitacl: ann}
          - {name: last_resort, submitacl: "ann,bob"}
  - name: lab
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: bench
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The configuration's file, in the working directory."""
    monkeypatch.chdir(tmp_path)
    Path("queues.yaml").write_text(CONFIG)
    return "queues.yaml"


@pytest.fixture
def place(config: str, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run `yunikorn place` with the configuration; return exit status, standard output and error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(["place", "--config", config, *arguments])
        out, err = capsys.readouterr()
        return status, out, err

    return run


def test_queue_and_result_of_each_rule_are_printed(place: Any) -> None:
    assert place("--user", "bob", "--group", "guests", "--tag", "namespace=x") == (
        0,
        "application: root.last_resort, by rule 3 (fixed)\n"
        "\n"
        "  rule                        outcome   queue or reason\n"
        "  1 tag 'namespace'           no match  its filter excludes user 'bob'\n"
        "  2 user                      no match  "
        "queue root.bob does not exist, and the rule does not create it\n"
        "  3 fixed 'root.last_resort'  match     root.last_resort\n",
        "",
    )


def test_queue_that_cannot_be_created_is_no_match(place: Any) -> None:
    status, out, _ = place("--user", "ann", "--tag", "namespace=root.ann.x")
    assert status == 0
    assert out.splitlines()[0] == "application: root.ann, by rule 2 (user)"
    made = "queue root.ann.x cannot be created: root.ann is a leaf queue"
    assert f"  1 tag 'namespace'  no match  {made}" in out.splitlines()


def test_rejection_is_printed_with_its_reason_and_status_1(place: Any) -> None:
    status, out, err = place("--user", "eve", "--tag", "namespace=x")
    assert status == 1
    assert err == ""
    first, blank, head, *rows = out.splitlines()
    assert first.startswith("application: rejected: no placement rule matched (")
    assert "tag 'namespace': user 'eve' may not submit to root, where root.x would be created" in first
    assert (blank, head.split()) == ("", ["rule", "outcome", "queue", "or", "reason"])
    assert [row.split()[:2] for row in rows] == [
        ["1", "tag"],
        ["2", "user"],
        ["3", "fixed"],
        ["4", "recovery"],
    ]


def test_json(place: Any) -> None:
    status, out, _ = place("--user", "ann", "--json")
    assert status == 0
    assert json.loads(out) == {
        "id": "application",
        "accepted": True,
        "queue": "root.ann",
        "rule": "user",
        "reason": "",
        "steps": [
            {
                "number": 1,
                "rule": "tag",
                "outcome": "no match",
                "queue": "",
                "reason": "the rule returns no queue for this application",
            },
            {"number": 2, "rule": "user", "outcome": "match", "queue": "root.ann", "reason": ""},
        ],
    }


def test_queue_and_partition_options_are_used(place: Any) -> None:
    assert place("--user", "eve", "--partition", "lab", "--queue", "bench")[0] == 0
    assert place("--user", "eve", "--partition", "lab", "--queue", "bunch")[0] == 1
    status, out, _ = place("--user", "eve", "--partition", "Lab", "--json")
    answer = json.loads(out)
    assert status == 1
    assert (answer["accepted"], answer["queue"], answer["rule"], answer["steps"]) == (False, "", "", [])
    assert answer["reason"] == "failed to find partition Lab"


def test_placing_records_no_events(place: Any) -> None:
    assert place("--user", "ann")[0] == 0
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["queues.yaml"]


# -- several applications ------------------------------------------------------------------------------


def test_multiple_applications_are_placed_in_order_on_one_scheduler(place: Any) -> None:
    Path("queues.yaml").write_text(
        CONFIG.replace(
            "- name: root\n        queues:", "- name: root\n        submitacl: '*'\n        queues:", 1
        )
    )
    apps = [
        {"id": "a", "user": "dora"},
        {"id": "b", "user": "eve", "tags": {"namespace": "dora"}},
        {"id": "c", "user": "dora", "groups": ["guests"], "queue": None},
        {"user": "eve", "partition": "lab", "queue": "root.bench"},
        {"id": "a", "user": "eve"},
        {"user": ""},
    ]
    Path("apps.jsonl").write_text("\n".join(["", *map(json.dumps, apps)]))
    status, out, _ = place("--apps", "apps.jsonl", "--json")
    assert status == 0
    answers = [json.loads(line) for line in out.splitlines()]
    assert [(answer["id"], answer["queue"], answer["rule"]) for answer in answers] == [
        ("a", "root.last_resort", "fixed"),
        ("b", "root.dora", "tag"),
        ("c", "root.dora", "user"),
        ("line-5", "root.bench", "provided"),
        ("a", "", ""),
        ("line-7", "", ""),
    ]
    assert "exists already" in answers[4]["reason"]
    assert "empty user" in answers[5]["reason"]


def test_multiple_applications_are_printed_one_per_line(place: Any) -> None:
    Path("apps.jsonl").write_text('{"id": "a", "user": "ann"}\n{"id": "b", "user": "eve"}\n')
    status, out, _ = place("--apps", "apps.jsonl")
    lines = out.splitlines()
    assert status == 0
    assert lines[0] == "a: root.ann, by rule 2 (user)"
    assert lines[1].startswith("b: rejected: no placement rule matched (")
    assert len(lines) == 2


def test_applications_from_standard_input(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'\xef\xbb\xbf{"user": "ann"}\r\n')))
    assert place("--apps", "-") == (0, "line-1: root.ann, by rule 2 (user)\n", "")


def test_empty_input_prints_nothing(place: Any) -> None:
    Path("apps.jsonl").write_text("\n\n")
    assert place("--apps", "apps.jsonl") == (0, "", "note: apps.jsonl contains no applications\n")


# -- invalid input -----------------------------------------------------------------------------------------


def test_every_invalid_line_is_reported_and_nothing_is_placed(place: Any) -> None:
    Path("apps.jsonl").write_text(
        '{"user": "ann"}\n{"user": 7, "groups": "dev", "tags": {"a": 1}}\n[]\n{"usr": "ann"}\n{"user":\n'
        + "[" * 100_000
    )
    assert place("--apps", "apps.jsonl") == (
        2,
        "",
        "Error: apps.jsonl: not all lines are applications, nothing was placed\n"
        "  user (line 2): expected text, got 7\n"
        "  groups (line 2): expected a list, got 'dev'\n"
        "  tags.a (line 2): expected text, got 1\n"
        "  line 3: expected an object, got a list\n"
        "  usr (line 4): unknown key, did you mean 'user'?; known: id, user, groups, queue, tags, partition\n"
        "  line 5: not JSON: Expecting value (column 9)\n"
        "  line 6: not an application: nested too deep\n",
    )


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "--user"),
        (("--apps", "apps.jsonl", "--user", "ann"), "--apps has its own"),
        (("--apps", "apps.jsonl", "--group", "g"), "--apps has its own"),
        (("--user", "ann", "--tag", "namespace"), "'namespace' is not KEY=VALUE"),
        (("--user", "ann", "--tag", "=x"), "'=x' is not KEY=VALUE"),
        (("--apps", "missing.jsonl"), "missing.jsonl: cannot be read: No such file or directory"),
        (("--apps", "."), "is a directory"),
        (("--apps", "binary"), "binary: line 1, column 1: this is not UTF-16 text"),
        (("--user", "ann", "surplus"), "unexpected extra argument"),
    ],
)
def test_invalid_calls_are_rejected(place: Any, arguments: tuple[str, ...], complaint: str) -> None:
    Path("binary").write_bytes(b"\xff\xfea")
    status, out, err = place(*arguments)
    assert (status, out) == (2, "")
    assert complaint in err


def test_a_tag_may_contain_equals_signs(place: Any) -> None:
    status, _, err = place("--user", "ann", "--tag", "selector=a=b")
    assert (status, err) == (0, "")


def test_all_problems_of_a_configuration_are_reported(place: Any) -> None:
    Path("queues.yaml").write_text(
        "partitions:\n  - name: default\n    quees: []\n    queues:\n      - name: a b\n"
    )
    status, out, err = place("--user", "ann")
    assert (status, out) == (2, "")
    head, *problems = err.splitlines()
    assert head == "Error: queues.yaml: not a valid configuration"
    assert any("partitions[0].quees (line 3, column 5): unknown key" in line for line in problems)
    assert any("partitions[0].queues[0].name" in line for line in problems)


def test_only_one_file_can_be_standard_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["place", "--config", "-", "--apps", "-"]) == 2
    assert "standard input (-) can be read only once: --config has it already" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "partitions: []\n"])
def test_configuration_without_partitions_is_rejected(place: Any, text: str) -> None:
    Path("queues.yaml").write_text(text)
    status, out, _ = place("--user", "ann")
    assert (status, out) == (1, "application: rejected: failed to find partition default\n")


def test_guide_shows_the_actual_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    guide = (Path(__file__).parents[3] / "docs" / "placement.md").read_text(encoding="utf-8")
    console = guide.split("```console\n")[1].split("```")[0]
    monkeypatch.chdir(tmp_path)
    Path("queues.yaml").write_text(guide.split("```yaml\n")[1].split("```")[0], encoding="utf-8")
    calls = [call.split("\n", 1) for call in console.split("$ yunikorn ")[1:]]
    assert calls
    for call, shown in calls:
        assert main(shlex.split(call)) == 0
        assert capsys.readouterr().out == shown
    line = guide.split("```json\n")[1].split("```")[0]
    Path("apps.jsonl").write_text(line)
    assert main(["place", "--config", "queues.yaml", "--apps", "apps.jsonl", "--json"]) == 0
    assert capsys.readouterr().out == guide.split("```json\n")[2].split("```")[0]
