"""`yunikorn simulate --fail-on` and `--assert`: an exit status for continuous integration."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rest.commands.operator_kit import Run
from yunikorn_lab.reporting.tables import duration
from yunikorn_lab.simulation.scenario_values import parse_time

CONFIG = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues: [{name: a}, {name: b}]
"""
NODES = "nodes: [{name: n, resources: {vcore: 1}}]\napplications:\n"
JOB = "  - {{id: {id}, queue: root.{queue}, submit: 0, tasks: [{{resources: {{vcore: 1}}, runtime: 10s}}]}}\n"


@pytest.fixture
def simulate(run: Run, tmp_path: Path) -> Run:
    """Return a function that simulates two applications of 10 s on one core; one more for `root.QUEUE`."""

    def call(*options: str) -> tuple[int, str, str]:
        queues = ["a", "a", *(option for option in options if not option.startswith("-"))][:3]
        (tmp_path / "queues.yaml").write_text(CONFIG)
        jobs = "".join(
            JOB.format(id=f"j-{number}", queue=queue)
            for number, queue in enumerate(queues)
            if queue.isalpha()
        )
        (tmp_path / "w.yaml").write_text(NODES + jobs)
        given = [option for option in options if option not in ("a", "b", "nope")]
        files = ("--config", str(tmp_path / "queues.yaml"), "--workload", str(tmp_path / "w.yaml"))
        return run("simulate", *files, "--json", *given)

    return call


def failures(err: str) -> list[str]:
    """Return the conditions that were not met."""
    return [line for line in err.splitlines() if line.startswith("FAILED: ")]


def test_conditions_that_are_met_change_nothing(simulate: Run) -> None:
    options = [
        "--fail-on=rejected",
        "--fail-on=waiting",
        "--fail-on=failed",
        "--assert=root.a.wait.max <= 10s",
    ]
    status, out, err = simulate(*options, "--assert=rejected == 0")
    assert (status, failures(err)) == (0, [])
    assert out.startswith("{")


def test_a_rejected_application_fails_the_call(simulate: Run) -> None:
    assert simulate("nope")[0] == 0
    status, out, err = simulate("nope", "--fail-on=rejected", "--fail-on=waiting")
    assert (status, failures(err)) == (
        1,
        ["FAILED: --fail-on rejected: rejected applications: 1"],
    )
    assert out.startswith("{")


def test_waiting_applications_fail_the_call(simulate: Run) -> None:
    status, _, err = simulate("--until=5s", "--fail-on=waiting")
    assert (status, failures(err)) == (
        1,
        [
            "FAILED: --fail-on waiting: waiting applications: 1",
            "FAILED: --fail-on waiting: waiting tasks: 1",
        ],
    )


def test_an_assertion_that_is_not_met_prints_both_values(simulate: Run) -> None:
    status, _, err = simulate("--assert=root.a.wait.max < 5s", "--assert=applications > 7")
    assert (status, failures(err)) == (
        1,
        [
            "FAILED: --assert root.a.wait.max < 5s: is not met: the value is 10s",
            "FAILED: --assert applications > 7: is not met: the value is 2",
        ],
    )


def test_wrong_conditions_are_refused_before_the_run(simulate: Run) -> None:
    status, out, err = simulate("--assert=root.aa.wait.max < 5s", "--assert=root.c.wait.max < 5s")
    assert (status, out) == (2, "")
    assert "--assert 'root.aa.wait.max < 5s': unknown queue 'root.aa', did you mean 'root.a'?" in err
    assert "unknown queue 'root.c'" in err
    assert simulate("--fail-on=late")[0] == 2
    assert simulate("--assert=wait.p95")[0] == 2


def test_all_assertions_about_what_the_report_lacks_are_named(simulate: Run) -> None:
    status, _, err = simulate("--assert=use.gpu < 1", "--assert=root.a.use.vcroe < 1")
    assert status == 2
    assert "--assert 'use.gpu < 1': unknown resource type 'gpu' in use.gpu; known: vcore" in err
    assert "--assert 'root.a.use.vcroe < 1': unknown resource type 'vcroe' in use.vcroe, did you mean" in err


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1d", 86400), ("1d 2h", 93600), ("1d2h3m4s", 93784), ("0.5d", 43200), ("3h 4m", 11040), ("4m 5s", 245)],
)
def test_times_may_have_days_and_spaces(text: str, seconds: int) -> None:
    assert parse_time(text) == seconds * 10**9


@pytest.mark.parametrize(
    "text", ["", " ", "d", "1d3", "1 2", "1h 2", "1d-2h", "1 d", "-1d", "1d 1d", "9" * 30 + "d"]
)
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected seconds or a duration|too long"):
        parse_time(text)


@given(st.integers(0, 10**9))
def test_what_reports_print_can_be_typed(seconds: int) -> None:
    printed = duration(float(seconds))
    assert abs(parse_time(printed) / 10**9 - seconds) <= (30 if seconds >= 3600 else 0.5)
    assert duration(parse_time(printed) / 10**9) == printed


def test_wait_targets_are_reported_and_judged(simulate: Run) -> None:
    status, out, err = simulate("--slo=root.a=5s", "--slo=root=10s", "--assert=root.a.slo >= 60%")
    found = {target["queue"]: target["share_met"] for target in json.loads(out)["figures"]["slo"]}
    assert found == {"root": 1, "root.a": 0.5}
    assert status == 1
    assert failures(err) == ["FAILED: --assert root.a.slo >= 60%: is not met: the value is 50%"]


def test_wait_target_of_an_unknown_queue_is_an_error(simulate: Run) -> None:
    status, _, err = simulate("--slo=root.aa=5s")
    assert (status, "unknown queue 'root.aa', did you mean 'root.a'?" in err) == (2, True)
