"""Traces in the Standard Workload Format: tolerant of common deviations, exact about errors."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yunikorn.clock import SECOND
from yunikorn.errors import UsageError
from yunikorn.framework.registry import Registry
from yunikorn.resources import Resource
from yunikorn_commands.input_source import InputError
from yunikorn_lab.simulation.adjustments import Adjustments
from yunikorn_lab.simulation.reader import read_workload
from yunikorn_lab.simulation.run import simulate
from yunikorn_lab.simulation.survey import survey
from yunikorn_lab.simulation.swf import SwfOptions, read_swf
from yunikorn_lab.simulation.workload import Workload, WorkloadNode

NODES = [WorkloadNode("n", Resource(vcore=8000, memory=2**30))]


def line(
    number: object = 1,
    submit: object = 0,
    run: object = 10,
    allocated: object = 2,
    used: object = -1,
    requested: object = -1,
    time: object = -1,
    memory: object = -1,
    user: object = 7,
    group: object = 3,
    queue: object = 1,
    wait: object = -1,
) -> str:
    """Return a line of a trace."""
    fields = [number, submit, wait, run, allocated, -1, used, requested, time, memory, 1, user, group]
    return " ".join(str(field) for field in [*fields, 5, queue, 2, -1, -1])


def read(
    *lines: str, nodes: list[WorkloadNode] | None = None, strict: bool = False, **options: Any
) -> Workload:
    """Return the workload of these lines."""
    text = "\n".join(lines)
    return read_swf(
        text, "trace", "trace", SwfOptions(**options), NODES if nodes is None else nodes, strict=strict
    )


def test_a_job_becomes_an_application_of_one_processor_tasks() -> None:
    application = read(line(number=12, run=99, allocated=4)).applications[0]
    group = application.tasks[0]
    assert application.id == "job-12"
    assert (group.count, group.resources, group.runtime) == (4, {"vcore": 1000}, 99 * SECOND)
    assert (application.queue, application.user, application.groups) == ("root.default", "user7", ("group3",))


def test_recorded_waits_are_read_from_column_3() -> None:
    jobs = read(line(1, wait=75), line(2, wait=0), line(3), line(4, wait=1.5)).applications
    assert [job.recorded_wait for job in jobs] == [75 * SECOND, 0, None, 1_500_000_000]
    with pytest.raises(InputError, match="expected a wait in seconds in column 3, got 'soon'"):
        read(line(1, wait="soon"))


def test_queue_user_and_group_are_templates() -> None:
    jobs = [line(1, queue=4, user=2, group=9), line(2, queue=-1, user=-1, group=-1)]
    workload = read(*jobs, queue="root.q{queue}.{application}-{partition}", user="u{user:0>3}", group="")
    first, second = workload.applications
    assert (first.queue, first.user, first.groups) == ("root.q4.5-2", "u002", ())
    assert (second.queue, second.user) == ("root.qunknown.5-2", "uunknown")


@pytest.mark.parametrize(
    "template", ["q{quue}", "q{", "q{}", "{queue.real}", "{queue[0]}", "{queue:d}", "{0}"]
)
def test_a_template_that_cannot_be_filled_is_refused(template: str) -> None:
    with pytest.raises(UsageError, match="the template"):
        read(line(), queue=template)


def test_times_count_from_the_earliest_submission() -> None:
    epoch = 1_027_839_845
    workload = read(line(1, submit=epoch), line(2, submit=epoch + 60))
    assert [application.submit for application in workload.applications] == [0, 60 * SECOND]
    assert workload.origin == epoch
    assert workload.began == epoch


@pytest.mark.parametrize(
    ("header", "submit", "began"),
    [
        ("; UnixStartTime: 1027839845", 60, 1_027_839_905),
        (";UnixStartTime:1027839845", 1_027_839_999, 1_027_839_999),
        ("; UnixStartTime: 0", 60, None),
        ("; Version: 2.2", 60, None),
    ],
)
def test_dates_are_those_of_the_header_or_of_the_submissions(
    header: str, submit: int, began: float | None
) -> None:
    workload = read(header, line(1, submit=submit))
    assert (workload.origin, workload.began) == (submit, began)
    assert Adjustments(speed_up=Fraction(2)).apply(workload).began is None
    assert Adjustments(nodes_fraction=Fraction(2)).apply(workload).began == began


def test_floats_extra_columns_gaps_and_comments_are_accepted() -> None:
    workload = read(
        "; a comment",
        "",
        line(3.0, submit=1.5, run=2.25, allocated="4.0") + " 99 extra",
        "# another",
        line(70, submit=2.0),
    )
    first, second = workload.applications
    assert (first.id, first.submit, first.tasks[0].runtime) == ("job-3", 0, 2_250_000_000)
    assert second.submit == SECOND // 2
    assert workload.counts == {}


def test_allocated_processors_are_preferred_to_requested_ones() -> None:
    workload = read(line(1, allocated=4, requested=8), line(2, allocated=-1, requested=8))
    assert [application.size for application in workload.applications] == [4, 8]


def test_an_unknown_run_time_is_replaced_and_counted() -> None:
    workload = read(line(1, run=-1, time=500), line(2, run=-1), line(3, run=0, time=500))
    runtimes = [application.tasks[0].runtime // SECOND for application in workload.applications]
    assert runtimes == [500, 3600, 0]
    assert workload.counts == {
        "run times unknown, requested time taken": 1,
        "run times unknown, 3600 s taken": 1,
    }


@pytest.mark.parametrize(
    ("bad", "reported"),
    [
        ("1 2 3", "expected 18 columns of numbers, got 3"),
        ("hello world", "expected 18 columns of numbers, got 2"),
        (line(run="abc"), "expected a run time in seconds in column 4, got 'abc'"),
        (line(run="nan"), "expected a run time in seconds in column 4, got 'nan'"),
        (line(run="1e400"), "expected a run time in seconds in column 4, got '1e400'"),
        (line(number=-1), "expected a job number of at least 0 in column 1, got '-1'"),
        (line(submit=-1), "expected a submit time of at least 0 in column 2, got '-1'"),
        (line(submit=1_700_000_000_000), "of at most 9000000000 in column 2, got '1700000000000'"),
        (line(allocated=-1), "expected a number of processors in column 5 or 8, got '-1' and '-1'"),
        (line(allocated=0, requested=0), "expected a number of processors in column 5 or 8"),
        (line(allocated=10**9), "expected at most 10000000 processors, got 1000000000"),
        (line(memory=10**16), "expected requested memory of at most"),
        (line(used="9" * 5000), "expected used memory in column 7, got '9"),
        (line(user="x" * 100), "expected a user in column 12, got '" + "x" * 40 + "...'"),
        (line(number=5), "job number 5 was already used on line 1"),
    ],
)
def test_invalid_line_is_skipped_and_reported(bad: str, reported: str) -> None:
    workload = read(line(5), bad, line(6))
    assert [application.id for application in workload.applications] == ["job-5", "job-6"]
    assert workload.counts["lines skipped"] == 1
    (remark,) = workload.remarks
    assert remark.startswith("trace: line 2: ")
    assert reported in remark
    with pytest.raises(InputError) as caught:
        read(line(5), bad, line(6), strict=True)
    assert str(caught.value) == remark


def test_only_the_first_bad_lines_are_reported() -> None:
    workload = read(line(1), *["x"] * 12)
    assert len(workload.remarks) == 6
    assert workload.remarks[-1] == "trace: 7 more lines like these"
    assert workload.counts == {"lines skipped": 12}


def test_decreasing_times_are_reported_and_kept() -> None:
    lines = (line(1, submit=10), line(2, submit=4), line(3, submit=10))
    workload = read(*lines)
    assert [application.id for application in workload.applications] == ["job-2", "job-1", "job-3"]
    assert workload.counts == {"submit times running backwards": 1}
    assert "line 2: expected a submit time of at least 10 in column 2" in workload.remarks[0]
    with pytest.raises(InputError, match="line 2"):
        read(*lines, strict=True)


def test_trace_of_bad_lines_only_is_an_error() -> None:
    with pytest.raises(InputError, match="line 1: expected 18 columns"):
        read("1 2")
    with pytest.raises(InputError, match="contains no jobs"):
        read("; Version: 2.2")


def test_requested_memory_in_kb_per_processor_is_preferred() -> None:
    jobs = [line(1, used=100, memory=200), line(2, used=100), line(3)]
    memories = [app.tasks[0].resources.get("memory") for app in read(*jobs).applications]
    assert memories == [200 * 1024, 100 * 1024, None]


def test_memory_is_omitted_if_nodes_have_none() -> None:
    bare = [*NODES, WorkloadNode("bare", Resource(vcore=1000))]
    assert read(line(used=100), nodes=bare).applications[0].tasks[0].resources == {"vcore": 1000}
    assert read(line(used=100), memory="none").applications[0].tasks[0].resources == {"vcore": 1000}


def test_memory_in_bytes_is_detected() -> None:
    jobs = [line(number, submit=20 * number, used=500_000_000) for number in range(3)]
    workload = read(*jobs)
    assert workload.applications[0].tasks[0].resources["memory"] == 500_000_000
    assert "memory of jobs is read as bytes per processor" in workload.remarks[0]
    assert read(*jobs, memory="kb").applications[0].tasks[0].resources["memory"] == 512_000_000_000


def test_nodes_are_read_from_the_header() -> None:
    header = ("; MaxNodes: 3", "; MaxProcs: 8")
    nodes = read(*header, line(), nodes=[]).nodes
    assert [(node.name, node.resources["vcore"]) for node in nodes] == [
        ("node-1", 3000),
        ("node-2", 3000),
        ("node-3", 2000),
    ]
    assert len(read("; MaxProcs: 4", line(), nodes=[]).nodes) == 4
    assert read("; MaxNodes: 2", line(), nodes=[]).nodes[0].resources == {"vcore": 1000}
    with pytest.raises(InputError, match="specify them with --nodes FILE"):
        read(line(), nodes=[])


@given(st.lists(st.text(alphabet="0123456789-.e ;#ab\t", max_size=60), max_size=8))
def test_any_text_is_read_or_rejected(lines: list[str]) -> None:
    workload = read(*lines, line(10**6))
    assert workload.applications
    submits = [application.submit for application in workload.applications]
    assert submits == sorted(submits)


def test_real_trace_is_read_completely(traces: Path) -> None:
    workload = read_workload(traces / "swf" / "hpc2n.swf")
    assert len(workload.applications) == 3170
    assert len(workload.nodes) == 120
    assert workload.nodes[0] == WorkloadNode("seth-001", Resource(vcore=2000, memory=2**30))
    assert sum(application.size for application in workload.applications) == 63_965
    assert workload.counts == {"run times unknown, requested time taken": 25}


# -- rigid jobs, statuses, limits and headers ---------------------------------------------------------------


def full_line(number: int, submit: int = 0, **values: object) -> str:
    """Return a line with values of further columns: status, after and think."""
    columns = [number, submit, -1, 10, 2, -1, -1, -1, values.get("time", -1), -1, values.get("status", 1)]
    columns += [7, 3, 5, 1, 2, values.get("after", -1), values.get("think", -1)]
    return " ".join(map(str, columns))


def test_jobs_are_rigid_by_default() -> None:
    assert read(line()).applications[0].gang == "Atomic"
    assert read(line(), jobs="tasks").applications[0].gang == ""


@pytest.mark.parametrize(
    ("jobs", "fate"), [("atomic", "which will never start"), ("tasks", "whose tasks start in parts")]
)
def test_jobs_larger_than_the_cluster_are_named_before_the_run(jobs: str, fate: str) -> None:
    found = survey(read(line(1, allocated=8), line(2, allocated=9), jobs=jobs))
    assert found.oversized.applications_beyond_cluster == 1
    assert found.notes == [
        f"1 application larger than the whole cluster, {fate}: job-2 asks for 9 tasks of vcore 1, there is "
        "room for 8"
    ]


@pytest.mark.parametrize(
    ("status", "kept"),
    [
        ("all", [1, 2, 3, 4, 5]),
        ("not-cancelled", [1, 2, 4, 5]),
        ("completed", [1]),
        ("completed, failed", [1, 2]),
        ("1,-1", [1, 4]),
        ("not-partial,not-5", [1, 2, 4]),
    ],
)
def test_statuses_are_kept_or_left_out(status: str, kept: list[int]) -> None:
    statuses = (1, 0, 5, -1, 3)
    lines = [full_line(number, status=value) for number, value in enumerate(statuses, 1)]
    workload = read(*lines, status=status)
    assert [application.id for application in workload.applications] == [f"job-{each}" for each in kept]
    assert workload.counts.get("jobs left out by their status", 0) == 5 - len(kept)


def test_a_job_that_is_left_out_may_have_unknown_processors() -> None:
    never_ran = line(2, run=-1, allocated=-1).replace(" -1 -1 1 7 ", " -1 -1 5 7 ")
    workload = read(line(1), never_ran, status="not-cancelled")
    assert workload.counts == {"jobs left out by their status": 1}


@pytest.mark.parametrize("status", ["", "canceled", "not-", "completed,not-failed", "7"])
def test_an_unknown_status_is_refused(status: str) -> None:
    with pytest.raises(UsageError, match="expected all, a list of failed, completed, partial"):
        read(line(), status=status)


def test_a_status_that_no_job_has_is_an_error() -> None:
    with pytest.raises(InputError, match="--swf-status leaves out all 1"):
        read(full_line(1, status=5), status="completed")


def test_cancelled_jobs_are_pointed_out() -> None:
    (remark,) = read(full_line(1, status=5), full_line(2)).remarks
    assert (
        remark == "trace: 1 job of status cancelled, treated like all others (see --swf-status not-cancelled)"
    )


def test_a_job_ends_at_its_requested_time_with_kill_at_limit() -> None:
    lines = [line(1, run=100, time=60), line(2, run=50, time=60), line(3, run=100), line(4, run=-1, time=60)]
    runtimes = [one.tasks[0].runtime // SECOND for one in read(*lines, kill_at_limit=True).applications]
    assert runtimes == [60, 50, 100, 60]
    assert read(*lines, kill_at_limit=True).counts["run times cut at the requested time"] == 1
    assert read(*lines).applications[0].tasks[0].runtime == 100 * SECOND


def test_parts_of_processors_are_rounded_up_and_said() -> None:
    workload = read(line(1, allocated="2.5"), line(2, allocated="0.25"), line(3, allocated="3.0"))
    assert [application.size for application in workload.applications] == [3, 1, 3]
    assert workload.counts == {"fractional processors, rounded up": 2}
    assert workload.remarks == ["trace: the fractional number of processors of 2 jobs is rounded up"]


def test_lines_of_words_above_the_jobs_are_headers() -> None:
    words = "JobID Submit Wait Run"
    workload = read("MaxProcs: 4", words, line(1), words, "other words", line(2), nodes=[])
    assert len(workload.nodes) == 4
    assert workload.counts == {"lines skipped": 1}
    assert workload.remarks == [
        "trace: line 5: expected 18 columns of numbers, got 2",
        "trace: line 1: taken as a header: MaxProcs: 4",
        "trace: line 2: taken as a header: JobID Submit Wait Run",
    ]


# -- dependencies -------------------------------------------------------------------------------------------


def followed(workload: Workload) -> dict[str, tuple[str, ...]]:
    """Return the predecessors by application."""
    return {application.id: application.after for application in workload.applications}


def test_preceding_jobs_and_think_times_are_followed() -> None:
    lines = [full_line(1), full_line(2, after=1, think=30), full_line(3, after="1&2&3&4"), full_line(4)]
    lines[2] = full_line(3, after="1&2&4", think="5&7")
    workload = read(*lines)
    assert followed(workload) == {
        "job-1": (),
        "job-2": ("job-1",),
        "job-3": ("job-1", "job-2", "job-4"),
        "job-4": (),
    }
    assert [application.think // SECOND for application in workload.applications] == [0, 30, 7, 0]
    assert workload.remarks == ["trace: 2 of 4 jobs follow another one (see --swf-dependencies none)"]
    unfollowed = read(*lines, dependencies="none")
    assert set(followed(unfollowed).values()) == {()}
    assert unfollowed.remarks == []


def filled(jobs: int, others: int) -> list[str]:
    """Return jobs with a filler, job 1, in the columns of the predecessors; the first `others` have none."""
    after = [-1 if number <= others else 1 for number in range(1, jobs + 1)]
    return [full_line(number, after=job, think=job) for number, job in enumerate(after, 1)]


def test_a_filler_is_no_predecessor() -> None:
    lines = [*filled(40, others=1)[:-1], full_line(40, after=39)]
    workload = read(*lines)
    assert {name: jobs for name, jobs in followed(workload).items() if jobs} == {"job-40": ("job-39",)}
    assert workload.counts == {"predecessors that are a filler, ignored": 38}
    assert workload.remarks == [
        "trace: the preceding job (column 17) is 1 for 38 of 40 jobs: taken for a filler, and ignored "
        "(see --swf-dependencies all)",
        "trace: 1 of 40 jobs follow another one (see --swf-dependencies none)",
    ]
    assert followed(read(*lines, dependencies="all"))["job-2"] == ("job-1",)


@pytest.mark.parametrize(("jobs", "others"), [(19, 1), (40, 5)])
def test_a_job_may_be_followed_by_many(jobs: int, others: int) -> None:
    workload = read(*filled(jobs, others))
    assert sum(map(bool, followed(workload).values())) == jobs - others
    assert not workload.counts


def test_predecessors_that_cannot_be_followed_are_ignored_and_named() -> None:
    lines = [
        full_line(1, after=99, think=5),
        full_line(2, after="2&1"),
        full_line(3, after=4),
        full_line(4, after="3&1"),
        full_line(5, after=6),
        full_line(6, status=5),
        full_line(7, after=0),
    ]
    workload = read(*lines, status="not-cancelled")
    assert followed(workload) == {
        "job-1": (),
        "job-2": ("job-1",),
        "job-3": (),
        "job-4": ("job-1",),
        "job-5": (),
        "job-7": (),
    }
    assert workload.counts == {
        "jobs left out by their status": 1,
        "predecessors that are not in the trace, ignored": 1,
        "predecessors in a circle, ignored": 3,
        "predecessors left out by their status, ignored": 1,
    }
    text = "\n".join(workload.remarks)
    assert "job 1 follows job 99" in text
    assert "job 2 follows itself" in text
    assert "the jobs 3, 4 wait for each other" in text


def test_strict_refuses_circles() -> None:
    with pytest.raises(InputError, match=r"line 2.*follows itself"):
        read(full_line(1), full_line(2, after=2), strict=True)


@pytest.mark.parametrize("after", ["x", "1&x", "1e400"])
def test_a_predecessor_that_is_no_number_is_a_bad_line(after: str) -> None:
    workload = read(full_line(1), full_line(2, after=after))
    assert "expected a preceding job such as 7 or 1&2&3 in column 17" in workload.remarks[0]


def test_thousands_of_jobs_in_chains_run_in_their_order(registry: Registry) -> None:
    """Chains with forward references and a fan-in, and a job before all that is not in the log."""
    lines = ["; MaxProcs: 8"]
    for number in range(1, 1001):
        after = 5000 if number % 100 == 1 else number - 1
        lines.append(full_line(number, submit=number % 7, after=after))
    lines.append(full_line(2000, after="&".join(str(100 * number) for number in range(1, 11))))
    config = (
        'partitions: [{name: default, queues: [{name: root, submitacl: "*", queues: [{name: default}]}]}]'
    )
    report = simulate(config, read(*lines, nodes=[]), registry)
    assert report.applications.finished == 1001
    assert report.dependencies is not None
    assert (report.dependencies.dependents, report.dependencies.waiting) == (991, 0)
    # Ten chains of a hundred jobs of 10 s on four slots of two processors, and the last job.
    assert report.times.makespan == pytest.approx(2510, abs=60)
