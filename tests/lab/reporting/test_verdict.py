"""Verdict of a report: which sentence stands for which run, and which run has none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from yunikorn.clock import SECOND
from yunikorn_lab.reporting.full_report import FullReport
from yunikorn_lab.reporting.idle_capacity import CAUSES
from yunikorn_lab.reporting.verdict_fixes import IDLE

Observe = Callable[..., FullReport]
ONE_CORE = "nodes: [{name: n, resources: {vcore: 1, memory: 4Gi}}]\napplications:\n"
TWO_QUEUES = "          - {name: a}\n          - {name: b}"


def job(name: str, queue: str, runtime: str, submit: int = 0, **more: str) -> str:
    """Return an application with one task of one core."""
    extra = "".join(f", {key}: {value}" for key, value in more.items())
    task = f"{{resources: {{vcore: 1, memory: 1Gi}}, runtime: {runtime}}}"
    return f"  - {{id: {name}, queue: {queue}, submit: {submit}, tasks: [{task}]{extra}}}\n"


def jobs(number: int, queue: str, runtime: str, first: int, apart: int) -> str:
    """Return several applications, one after the other."""
    return "".join(job(f"{queue}-{at}", queue, runtime, first + at * apart) for at in range(number))


def test_a_run_without_waits_says_so(observe: Observe) -> None:
    assert observe(ONE_CORE + job("x", "root.a", "20s")).verdict == ["No application waited for a second."]


def test_an_empty_run_has_nothing_to_judge(observe: Observe) -> None:
    assert observe(ONE_CORE + job("x", "root.a", "20s", 10), until=1).verdict == [
        "No application was submitted, so there is nothing to judge. "
        "Check the times of the workload, and --until.",
        "The run was cut at 1s; 1 application had not ended, so figures are incomplete. "
        "Without --until, or with a later one, more of them end.",
    ]


def test_a_workload_that_is_rejected_whole_says_so_first(observe: Observe) -> None:
    first, *others = observe(ONE_CORE + job("x", "root.nowhere", "20s")).verdict
    assert first.startswith("Every application was rejected (1), most often because: ")
    assert first.endswith(". `yunikorn place` shows where a configuration places an application.")
    assert not others


WAITS = "Applications wait %s on average until their last task starts, one in 20 for 40m 0s or more. "
WAITS += "`yunikorn compare --set` tries other settings, `yunikorn size` other numbers of nodes."
APART = " Compare other guarantees or sort policies of the queues with `yunikorn compare --set`."
BACKLOG = jobs(5, "root.b", "10m", 0, 0)
"""Jobs that wait 20 minutes on average."""


@pytest.mark.parametrize(
    ("others", "sentences"),
    [
        (
            jobs(5, "root.a", "2m", 7_200, 0),
            [
                WAITS % "12m 0s",
                "root.b waits 5 times as long as root.a (20m 0s against 4m 0s on average)." + APART,
            ],
        ),
        (
            jobs(5, "root.a", "2m", 7_200, 120),
            [
                WAITS % "10m 0s",
                "root.b waits 20m 0s on average, while root.a hardly waits." + APART,
            ],
        ),
        (
            jobs(5, "root.a", "10m", 7_200, 0),
            [WAITS % "20m 0s"],
        ),
    ],
)
def test_waits_and_the_queue_that_waits_longer(others: str, sentences: list[str], observe: Observe) -> None:
    found = observe(ONE_CORE + BACKLOG + others, TWO_QUEUES).verdict
    assert [sentence for sentence in found if " wait" in sentence] == sentences


def test_full_hours_name_the_main_user(observe: Observe) -> None:
    work = job("x", "root.a", "5h", user="ann") + job("y", "root.a", "1h", user="bob")
    (full,) = [sentence for sentence in observe(ONE_CORE + work).verdict if "full" in sentence]
    mostly = "mostly by ann (used 83% of it over the whole run)"
    assert full == f"The machine was full (cores) on 6 of 6 hours, {mostly}."


def test_more_work_than_the_machine_can_do(observe: Observe) -> None:
    found = observe(ONE_CORE + jobs(4, "root.a", "10m", 0, 300)).verdict
    (load,) = [sentence for sentence in found if sentence.startswith("More work")]
    assert "offered load of cores: 2.67" in load
    assert load.endswith("About 2.7 times the nodes would do: --nodes-fraction tries it.")


GUARANTEED = "          - {name: a, resources: {guaranteed: %s}}\n          - {name: b}"


def test_a_guarantee_of_what_is_not_scarce_is_no_fault(observe: Observe) -> None:
    guarantee = GUARANTEED % "{vcore: 1, memory: 4Gi}"
    work = jobs(6, "root.a", "10m", 0, 0)
    result = observe(ONE_CORE + work, guarantee)
    (queue,) = result.figures.queues
    assert queue.guarantees["memory"].kept is not None
    assert queue.guarantees["memory"].kept < 0.5
    assert not [sentence for sentence in result.verdict if "guarantee" in sentence]


def test_a_missed_guarantee_of_the_scarce_type(observe: Observe) -> None:
    work = job("x", "root.b", "30m") + job("y", "root.a", "30m", 60)
    found = observe(ONE_CORE + work, GUARANTEED % "{vcore: 1}").verdict
    assert (
        "root.a got 51% of the cores that its guarantee owed it. "
        "Check whether preemption may enforce it (docs/scheduling.md#guarantees)."
    ) in found


def test_room_beside_a_full_type_is_not_idle(observe: Observe) -> None:
    result = observe(ONE_CORE + jobs(3, "root.a", "10m", 0, 0))
    assert result.figures.idle["default"]["memory"].of_capacity > 0.1
    assert not [sentence for sentence in result.verdict if "idle" in sentence]


def test_idle_room_of_the_scarce_type_names_its_cause(observe: Observe) -> None:
    work = ONE_CORE.replace("vcore: 1", "vcore: 4") + jobs(4, "root.a", "10m", 0, 0)
    found = observe(work, "          - {name: a, resources: {max: {vcore: 2}}}").verdict
    assert (
        "25 % of the cores stood idle while work waited, mostly for this reason: quota. "
        "Raise the max of the queue that --explain APP names."
    ) in found


def test_every_cause_of_idle_capacity_has_a_fix() -> None:
    assert set(IDLE) == set(CAUSES)


def test_missed_wait_targets(observe: Observe) -> None:
    work = ONE_CORE + jobs(4, "root.a", "60s", 0, 0)
    found = observe(work, targets={"root.a": 90 * SECOND}).verdict
    assert (
        "root.a met its wait target of 1m 30s for 50 % of its applications; 2 waited longer. "
        "`yunikorn size` finds the nodes that meet a target."
    ) in found
    kept = observe(work, targets={"root.a": 900 * SECOND}).verdict
    assert not [sentence for sentence in kept if "target" in sentence]


def test_a_run_that_was_cut_is_named_first(observe: Observe) -> None:
    found = observe(ONE_CORE + jobs(4, "root.a", "10m", 0, 0), until=60).verdict
    assert found[0].startswith(
        "The run was cut at 1m 0s; 4 applications had not ended, so figures are incompl"
    )


def test_rejected_work_does_not_arrive_at_the_machine(observe: Observe) -> None:
    found = observe(ONE_CORE + jobs(4, "root.nowhere", "10m", 0, 0) + job("x", "root.a", "10m")).verdict
    assert not [sentence for sentence in found if sentence.startswith("More work")]


@pytest.mark.parametrize(("number", "text"), [(1, "1 task fits on no node"), (2, "2 tasks fit on no node")])
def test_tasks_that_fit_nowhere(observe: Observe, number: int, text: str) -> None:
    work = ONE_CORE.replace("vcore: 1,", "vcore: 500m,") + jobs(number, "root.a", "10m", 0, 0)
    assert any(sentence.startswith(text) for sentence in observe(work).verdict)


def test_the_default_user_is_not_named(observe: Observe) -> None:
    work = job("x", "root.a", "5h") + job("y", "root.a", "1h", user="bob")
    assert "The machine was full (cores) on 6 of 6 hours." in observe(ONE_CORE + work).verdict


def test_work_without_an_end_is_told_from_work_that_waits(observe: Observe) -> None:
    running, waiting = job("x", "root.a", "forever"), jobs(2, "root.b", "10s", 60, 0)
    assert observe(ONE_CORE + running).verdict[:2] == [
        "1 of 1 application runs without an end.",
        "No application waited for a second.",
    ]
    found = observe(ONE_CORE + running + waiting, TWO_QUEUES).verdict
    assert found[:3] == [
        "2 of 3 applications still wait at the end, most often because: the cluster is full. "
        "--explain APP names the smallest change that lets an application run.",
        "1 of 3 applications runs without an end.",
        "No application that started waited for a second.",
    ]


def test_tasks_of_running_applications_that_wait(observe: Observe) -> None:
    work = ONE_CORE + job("x", "root.a", "forever").replace("tasks: [{", "tasks: [{count: 3, ")
    first = observe(work).verdict[0]
    assert first == (
        "1 of 1 application runs without an end, and 2 tasks of theirs wait, most often because: "
        "the cluster is full. --explain APP names the smallest change that lets an application run."
    )


def test_failures_have_their_reason(observe: Observe) -> None:
    work = job("x", "root.a", "1h", timeout="1m") + job("y", "root.a", "30m", submit=7200)
    found = observe(ONE_CORE.replace("vcore: 1", "vcore: 2") + work.replace("vcore: 1", "vcore: 2"))
    (failed,) = [sentence for sentence in found.verdict if "failed" in sentence]
    assert failed.startswith("1 of 2 applications failed, most often because: ")
    assert found.report.failures[0].example == "x"


def test_verdict_is_the_first_field_of_the_report(observe: Observe) -> None:
    result = observe(ONE_CORE + job("x", "root.a", "20s"))
    assert result.to_json().startswith('{\n  "verdict": [\n    "No application waited')
