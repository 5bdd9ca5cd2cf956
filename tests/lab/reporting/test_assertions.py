"""Assertions about reports: their notation, and verdicts on small runs with known figures."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yunikorn.errors import UsageError
from yunikorn_lab.reporting.assertion_figures import FIGURES, FigureUnit
from yunikorn_lab.reporting.full_report import FullReport
from yunikorn_lab.reporting.report_assertions import (
    OPERATORS,
    check_queues,
    judge,
    parse_assertion,
    parse_assertions,
    spell,
)

Observe = Callable[..., FullReport]

QUEUES = """
          - name: web
          - name: science
            queues: [{name: bio}, {name: physics}]
          - name: spare
"""
# One vcore. Waits: web 0 and 50 s, bio 10 s, physics 30 s.
FOUR = """
nodes: [{name: n, resources: {vcore: 1, memory: 4Gi}}]
applications:
  - {id: one, queue: root.web, tasks: [{resources: {vcore: 1}, runtime: 20}]}
  - {id: two, queue: root.science.bio, submit: 10, tasks: [{resources: {vcore: 1}, runtime: 30}]}
  - {id: three, queue: root.science.physics, submit: 20, tasks: [{resources: {vcore: 1}, runtime: 30}]}
  - {id: four, queue: root.web, submit: 30, tasks: [{resources: {vcore: 1}, runtime: 20}]}
"""
NEVER = "  - {id: five, queue: root.web, submit: 40, tasks: [{resources: {vcore: 2}, runtime: 20}]}\n"


@pytest.fixture
def four(observe: Observe) -> FullReport:
    """Run the four applications."""
    return observe(FOUR, QUEUES)


@pytest.mark.parametrize(
    ("text", "value", "holds"),
    [
        ("wait.max <= 50s", "50s", True),
        ("wait.max < 50", "50s", False),
        ("root.wait.max<=50s", "50s", True),
        ("root.web.wait.mean == 25", "25s", True),
        ("root.web.wait.p50 != 25s", "25s", False),
        ("root.science.bio.wait.p95 > 5s", "10s", True),
        ("root.science.wait.mean == 20s", "20s", True),
        ("root.science.wait.max >= 31s", "30s", False),
        ("root.science.wait.count == 2", "2", True),
        ("root.science.task_wait.max == 30s", "30s", True),
        ("root.web.use == 40%", "40%", True),
        ("root.web.use.vcore == 0.4", "40%", True),
        ("root.science.use.vcore == 60%", "60%", True),
        ("root.web.use.memory == 0%", "0%", True),
        ("use.vcore >= 99.5%", "100%", True),
        ("default:root.use.vcore >= 100%", "100%", True),
        ("default:root.science.whole_wait.max < 1m", "30s", True),
        ("finished == 4", "4", True),
        ("root.science.finished == 2", "2", True),
        ("unplaced == 0", "0", True),
        ("rejected > 0", "0", False),
        ("makespan <= 1m40s", "1m40s", True),
        ("fairness.use_of_queues < 1", None, True),
        ("slowdown.p95 >= 3.5", "3.5", True),
    ],
)
def test_verdict(four: FullReport, text: str, value: str | None, holds: bool) -> None:
    verdict = judge(parse_assertion(text), four)
    assert verdict.holds is holds
    if value is not None:
        assert verdict.assertion.spell(verdict.value) == value


def test_message_has_the_exact_value(four: FullReport) -> None:
    assert str(judge(parse_assertion("root.web.wait.max  <  20s"), four)) == (
        "root.web.wait.max < 20s: is not met: the value is 50s"
    )


def test_wait_that_has_not_ended_breaks_an_upper_bound(observe: Observe) -> None:
    result = observe(FOUR + NEVER, QUEUES)
    for text in (
        "root.web.wait.max < 1h",
        "wait.mean < 1h",
        "root.web.wait.p95 <= 1h",
        "whole_wait.max < 1h",
    ):
        verdict = judge(parse_assertion(text), result)
        assert not verdict.holds
        assert "never started" in verdict.reason
    # The median of three, of which one has not ended, is known to be a wait that has ended.
    assert judge(parse_assertion("root.web.wait.p50 < 1h"), result).holds
    assert judge(parse_assertion("root.science.wait.max < 1h"), result).holds
    assert judge(parse_assertion("wait.max > 1s"), result).holds
    assert not judge(parse_assertion("unplaced == 0"), result).holds
    assert judge(parse_assertion("root.web.never_started == 1"), result).holds


def test_wait_targets_that_were_not_given_are_asked_for(four: FullReport) -> None:
    assert str(judge(parse_assertion("root.web.slo >= 95%"), four)).endswith(
        "root.web has no such value: give its wait target with --slo root.web=TIME"
    )


def test_queue_without_applications_has_no_wait(four: FullReport) -> None:
    known = {("default", "root.spare")}
    for text in ("root.spare.wait.p95 < 60s", "root.spare.wait.p95 > 60s", "root.spare.wait.max != 1s"):
        verdict = judge(parse_assertion(text), four, known)
        assert not verdict.holds
        assert verdict.reason == "no application was in root.spare"
    assert judge(parse_assertion("root.spare.use.vcore == 0%"), four, known).holds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("root.wbe.wait.p95 < 1s", "unknown queue 'root.wbe', did you mean 'root.web'?"),
        ("gpu:root.web.wait.p95 < 1s", "unknown partition 'gpu'; known: default"),
        ("use.vcroe < 1", "unknown resource type 'vcroe' in use.vcroe, did you mean 'vcore'?"),
        ("root.science.wait.p95 < 1s", "the report has the percentiles of its leaf queues"),
        ("root.science.guarantee.vcore > 1%", "name one: root.science.bio, root.science.physics"),
    ],
)
def test_names_that_the_report_does_not_have_are_refused(four: FullReport, text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        judge(parse_assertion(text), four)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected FIGURE OPERATOR VALUE"),
        ("wait.p95", "expected FIGURE OPERATOR VALUE"),
        ("wait.p95 <", "expected FIGURE OPERATOR VALUE"),
        ("< 5", "expected FIGURE OPERATOR VALUE"),
        ("wait.p95 = 5s", "unknown operator '=', did you mean '=='?"),
        ("wait.p95 <> 5s", "unknown operator '<>'; known: < <= > >= == !="),
        ("wait.p99 < 5s", "unknown figure 'wait.p99', did you mean 'wait.p95'?"),
        ("root.web.wiat.p95 < 5s", "unknown figure 'wiat.p95', did you mean 'wait.p95'?"),
        ("root.web < 5s", "unknown figure"),
        ("web.wait.p95 < 5s", "'web' is no queue: expected a path that begins with root, such as root.web"),
        ("root..wait.p95 < 5s", "is no queue"),
        ("root.web.rejected == 0", "rejected is a figure of the whole run, not of a queue"),
        ("gpu:root.rejected == 0", "rejected is a figure of the whole run, not of a queue"),
        ("wait.p95 < 60%", "the value of wait.p95 is a time such as 60s or 1h30m, got '60%'"),
        ("wait.p95 < soon", "the value of wait.p95 is a time"),
        ("wait.p95 < 9999999999999h", "too long"),
        ("rejected < 5s", "the value of rejected is a number such as 0 or 2.5, got '5s'"),
        ("use.vcore > 80", "write 80% or a number up to 1, got '80'"),
        ("use.vcore > -1", "the value of use.vcore is a share"),
    ],
)
def test_bad_notation_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_assertion(text)
    assert message in str(caught.value)


def test_all_bad_assertions_are_reported_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        parse_assertions(["wait.p99 < 5s", "rejected == 0", "rejected"], "--target")
    assert [line[:26] for line in str(caught.value).splitlines()] == [
        "--target 'wait.p99 < 5s': ",
        "--target 'rejected': expec",
    ]


def test_unknown_queues_are_refused_before_a_run() -> None:
    queues = {("default", "root.web"), ("default", "root.wait"), ("gpu", "root.web")}
    good = [
        "root.web.wait.p95 < 1s",
        "root.wait.wait.p95 < 1s",
        "gpu:root.web.use < 1",
        "root.use < 1",
        "failed < 1",
    ]
    check_queues(parse_assertions(good), queues)
    with pytest.raises(UsageError, match=r"unknown queue .root\.wait."):
        check_queues([parse_assertion("gpu:root.wait.wait.p95 < 1s")], queues)
    with pytest.raises(UsageError, match="unknown partition 'gpus', did you mean 'gpu'"):
        check_queues([parse_assertion("gpus:root.web.wait.p95 < 1s")], queues)


@pytest.mark.parametrize(
    ("path", "queue", "figure"),
    [
        ("root.wait.wait.p95", "root.wait", "wait.p95"),
        ("root.a.use.nvidia.com/gpu", "root.a", "use.nvidia.com/gpu"),
        ("root.use.use", "root.use", "use"),
        ("root.finished.tasks_ended", "root.finished", "tasks_ended"),
        ("tasks_waiting", "", "tasks_waiting"),
    ],
)
def test_path_is_split_where_a_figure_begins(path: str, queue: str, figure: str) -> None:
    found = parse_assertion(f"{path} > 0")
    assert (found.queue, found.figure) == (queue, figure)


@given(
    name=st.sampled_from(sorted(FIGURES)),
    sign=st.sampled_from(sorted(OPERATORS)),
    value=st.integers(0, 10**6).map(lambda number: number / 8),
)
def test_value_is_read_as_it_is_spelled(name: str, sign: str, value: float) -> None:
    unit = FIGURES[name].unit
    bound = value / 10**6 if unit is FigureUnit.SHARE else value
    found = parse_assertion(f"{name} {sign} {spell(bound, unit)}")
    assert (found.figure, found.operator) == (name, sign)
    assert found.bound == pytest.approx(bound)


def test_every_figure_can_be_judged_on_every_run(four: FullReport) -> None:
    for name, definition in FIGURES.items():
        value = "1s" if definition.unit is FigureUnit.TIME else "1"
        judge(parse_assertion(f"{name} >= {value}"), four)
        if definition.of_queues:
            judge(parse_assertion(f"root.web.{name} >= {value}"), four)
