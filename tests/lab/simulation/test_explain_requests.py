"""`--explain APP[@TIME]`: answered for the given moment, with numbers, without an effect on decisions."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from yunikorn.cli.main import main
from yunikorn.clock import SECOND
from yunikorn.config.durations import parse_duration, spell_duration
from yunikorn.errors import UsageError
from yunikorn.framework.registry import Registry
from yunikorn_lab.simulation.explain_requests import ExplainAnswer, parse_questions
from yunikorn_lab.simulation.reader import read_workload
from yunikorn_lab.simulation.report import Report
from yunikorn_lab.simulation.run import simulate

PAGE = (Path(__file__).parents[3] / "docs" / "reports.md").read_text("utf-8")
CONFIG = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: science
            resources: {max: {memory: 24Gi}}
          - name: web
"""
WORKLOAD = """
nodes:
  - {name: worker, count: 2, resources: {vcore: 8, memory: 32Gi}}
applications:
  - id: survey
    queue: root.science
    tasks:
      - {name: scan, count: 4, resources: {vcore: 1, memory: 5Gi}, runtime: 1h}
  - id: model
    submit: 10m
    queue: root.science
    tasks:
      - {name: train, count: 2, resources: {vcore: 4, memory: 6Gi}, runtime: 30m}
  - id: lost
    submit: 20m
    queue: root.nowhere
    tasks:
      - {resources: {vcore: 1}, runtime: 1m}
"""


def ask(tmp_path: Path, *questions: str, until: int | None = None, workload: str = WORKLOAD) -> Report:
    """Simulate with explain requests."""
    path = tmp_path / "workload.yaml"
    path.write_text(workload, "utf-8")
    plan = read_workload(path)
    asked = parse_questions(questions, plan, until)
    return simulate(CONFIG, plan, Registry.load(third_party=False), until=until, questions=asked)


def answers(tmp_path: Path, *questions: str, until: int | None = None) -> list[ExplainAnswer]:
    """Return the answers of a simulation."""
    return ask(tmp_path, *questions, until=until).explanations


def test_waiting_application_is_explained_at_the_requested_time(tmp_path: Path) -> None:
    (answer,) = answers(tmp_path, "model@20m")
    assert (answer.application, answer.time, answer.queue) == ("model", 1200.0, "root.science")
    assert answer.state == "2 tasks waiting, no task running; submitted 10m earlier"
    (request,) = answer.requests
    assert (request.ask, request.waiting, request.resources) == (
        "train",
        2,
        {"memory": 6 << 30, "vcore": 4000},
    )
    assert [(cause.check, cause.detail) for cause in request.causes] == [
        (
            "quota",
            "over the quota of queue root.science "
            "(requested memory 6Gi, vcore 4, available memory 4Gi, vcore 12)",
        )
    ]
    assert request.place == (
        "1st to 2nd of 2 pending requests in queue root.science; "
        "queue root.science is the only one with pending requests under root"
    )
    assert request.suggested_fixes == [
        "raise the max of queue root.science by memory 2Gi, or release the same amount there"
    ]


def test_explanation_follows_all_events_of_its_instant(tmp_path: Path) -> None:
    before, at = answers(tmp_path, "model@59m59s", "model@1h")
    assert len(before.requests) == 1
    # The survey ends at 1h, and the model starts in that instant.
    assert at.requests == []
    assert at.state == "does not wait: 2 tasks running"


def test_application_that_does_not_wait_is_explained_with_its_longest_wait(tmp_path: Path) -> None:
    early, late, end = answers(tmp_path, "model@5m", "model@1h10m", "model")
    assert early.state == "does not wait: it is submitted at 10m"
    assert early.longest_wait is None
    assert late.state == "does not wait: 2 tasks running"
    assert end.state == "does not wait: it finished at 1h30m"
    for answer in (late, end):
        assert answer.longest_wait is not None
        assert (answer.longest_wait.task, answer.longest_wait.since, answer.longest_wait.until) == (
            "train",
            600.0,
            3600.0,
        )


def test_applications_that_never_waited_or_were_rejected_are_explained(tmp_path: Path) -> None:
    survey, lost = answers(tmp_path, "survey", "lost")
    assert survey.state == ("does not wait: it finished at 1h; none of its allocated tasks had to wait")
    assert lost.state.startswith("does not wait: it was rejected at 20m: ")


def test_explanations_are_in_the_order_of_the_requests(tmp_path: Path) -> None:
    asked = ["survey", "model@20m", "survey@1m", "model@11m", "model@20m"]
    found = [(answer.application, answer.time) for answer in answers(tmp_path, *asked)]
    assert found == [
        ("survey", 5400.0),
        ("model", 1200.0),
        ("survey", 60.0),
        ("model", 660.0),
        ("model", 1200.0),
    ]


def test_until_is_a_valid_time_of_an_explanation(tmp_path: Path) -> None:
    timed, rest = answers(tmp_path, "model@15m", "model", until=900 * SECOND)
    assert timed == rest
    assert (timed.time, len(timed.requests)) == (900.0, 1)


def test_times_after_the_end_are_explained_at_the_end(tmp_path: Path) -> None:
    (answer,) = answers(tmp_path, "model@30h")
    assert (answer.time, answer.state) == (5400.0, "does not wait: it finished at 1h30m")


def test_explaining_changes_nothing(tmp_path: Path) -> None:
    questions = [f"{name}@{minute}m" for name in ("survey", "model", "lost") for minute in range(0, 95, 5)]
    quiet, asked = json.loads(ask(tmp_path).to_json()), json.loads(ask(tmp_path, *questions).to_json())
    assert quiet.pop("explanations") == []
    assert len(asked.pop("explanations")) == len(questions)
    assert quiet == asked


def test_all_errors_are_reported_together(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        answers(tmp_path, "modl@20m", "survey@soon", "survey@2h", "model", until=3600 * SECOND)
    assert str(caught.value).splitlines() == [
        "--explain modl@20m: the workload has no application 'modl', did you mean 'model'?",
        "--explain survey@soon: expected seconds or a duration such as 90, 30s, 1h30m or 1d, got 'soon'",
        "--explain survey@2h: 2h is later than --until, where the simulation ends",
    ]


def test_application_id_may_contain_the_time_separator(tmp_path: Path) -> None:
    workload = WORKLOAD.replace("id: model", "id: model@10")
    whole, timed = ask(tmp_path, "model@10", "model@10@20m", workload=workload).explanations
    assert (whole.application, whole.time) == ("model@10", 5400.0)
    assert (timed.application, timed.time) == ("model@10", 1200.0)


def test_gang_is_explained_by_its_placeholders(tmp_path: Path) -> None:
    workload = WORKLOAD.replace("    submit: 10m\n", "    submit: 10m\n    gang: Soft\n    gangtimeout: 2h\n")
    waiting, end = ask(tmp_path, "model@20m", "model", workload=workload).explanations
    (request,) = waiting.requests
    assert request.ask == "train~placeholder"
    assert end.longest_wait is not None
    assert (end.longest_wait.since, end.longest_wait.until) == (600.0, 3600.0)


@pytest.mark.parametrize("nanoseconds", [0, 1, 500_000_000, 90 * SECOND, 3600 * SECOND, 86_461 * SECOND + 7])
def test_printed_times_can_be_used_in_requests(nanoseconds: int) -> None:
    assert parse_duration(spell_duration(nanoseconds)) == nanoseconds


# -- the page ----------------------------------------------------------------------------------------------


def test_example_of_the_page_is_the_actual_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    section = PAGE[PAGE.index("## Why is it waiting?") :]
    config, workload = re.findall(r"```yaml\n(.*?)```", section, re.DOTALL)[:2]
    assert yaml.safe_load(config)["partitions"]
    command, reported = re.findall(r"```(?:sh|text)\n(.*?)```", section, re.DOTALL)[:2]
    (tmp_path / "queues.yaml").write_text(config, "utf-8")
    (tmp_path / "workload.yaml").write_text(workload, "utf-8")
    words: list[Any] = command.split()
    assert words[:2] == ["yunikorn", "simulate"]
    named = [str(tmp_path / word) if word.endswith(".yaml") else word for word in words[1:]]
    assert main(named) == 0
    out = capsys.readouterr().out
    assert reported.strip() in "\n".join(line.rstrip() for line in out.splitlines())
