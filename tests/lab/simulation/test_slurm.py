"""Output of Slurm's `sacct` as a workload, and of `sinfo` as its nodes."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yunikorn.clock import SECOND
from yunikorn.errors import UsageError
from yunikorn.framework.registry import Registry
from yunikorn.resources import Resource
from yunikorn_commands.input_source import InputError
from yunikorn_lab.simulation.machines import parse_elapsed, parse_memory, parse_tres, read_sinfo
from yunikorn_lab.simulation.reader import read_node_file, read_workload
from yunikorn_lab.simulation.run import simulate
from yunikorn_lab.simulation.slurm import SlurmOptions, read_slurm
from yunikorn_lab.simulation.workload import Workload, WorkloadApplication, WorkloadNode

EXAMPLE = Path(__file__).parents[3] / "examples" / "slurm"
GIB = 2**30
NODES = [WorkloadNode("n", Resource({"vcore": 64000, "memory": 256 * GIB, "gpu": 8}))]
ROW = {
    "JobID": "7",
    "User": "ann",
    "Account": "physics",
    "Submit": "2026-03-02T08:00:00",
    "Start": "2026-03-02T08:01:30",
    "End": "2026-03-02T09:01:30",
    "Elapsed": "01:00:00",
    "State": "COMPLETED",
    "NNodes": "1",
    "AllocCPUS": "4",
    "ReqMem": "",
    "AllocTRES": "",
}


def table(*rows: dict[str, str], end: str = "", delimiter: str = "|") -> str:
    """Write rows, given as changes of `ROW`, with the columns of the first row."""
    whole = [{**ROW, **row} for row in rows] or [ROW]
    lines = [list(whole[0]), *([row.get(name, "") for name in whole[0]] for row in whole)]
    return "".join(delimiter.join(fields) + f"{end}\n" for fields in lines)


def read(
    *rows: dict[str, str],
    options: SlurmOptions | None = None,
    nodes: list[WorkloadNode] = NODES,
    strict: bool = False,
) -> Workload:
    """Read rows, given as changes of `ROW`."""
    return read_slurm(table(*rows), "jobs.txt", "jobs.txt", options or SlurmOptions(), nodes, strict=strict)


def one(**row: str) -> WorkloadApplication:
    """Return the application of one row, given as changes of `ROW`."""
    (found,) = read(row).applications
    return found


def amounts(application: WorkloadApplication) -> list[tuple[int, dict[str, int]]]:
    """Return the numbers of tasks and their amounts."""
    return [(group.count, dict(group.resources)) for group in application.tasks]


def test_job_becomes_an_application() -> None:
    job = one()
    assert (job.id, job.user, job.groups, job.queue) == ("job-7", "ann", ("physics",), "root.default")
    assert amounts(job) == [(1, {"vcore": 4000})]
    assert (job.submit, job.tasks[0].runtime, job.recorded_wait) == (0, 3600 * SECOND, 90 * SECOND)
    assert read({}).origin == read({}).began == 1772438400


def test_columns_may_have_any_order_and_any_delimiter() -> None:
    expected = read({}).applications
    backwards = "\n".join("|".join(reversed(line.split("|"))) for line in table().splitlines())
    for text in (backwards, table(end="|"), table(delimiter=";"), table(delimiter="\t")):
        assert read_slurm(text, "f", "f", SlurmOptions(), NODES).applications == expected


def test_tasks_of_a_job_on_several_nodes_start_together() -> None:
    job = one(NNodes="4", AllocCPUS="10", AllocTRES="cpu=10,mem=10G,node=4,gres/gpu=5")
    each = {"memory": 10 * GIB // 4}
    assert amounts(job) == [
        (1, {"vcore": 3000, "gpu": 2, **each}),
        (1, {"vcore": 3000, "gpu": 1, **each}),
        (2, {"vcore": 2000, "gpu": 1, **each}),
    ]
    assert job.gang == "Atomic"
    assert one().gang == ""


@pytest.mark.parametrize(
    ("row", "memory"),
    [
        ({"ReqMem": "4Gn"}, 8 * GIB),
        ({"ReqMem": "4Gc"}, 16 * GIB),
        ({"ReqMem": "4G"}, 4 * GIB),
        ({"ReqMem": "4096M"}, 4 * GIB),
        ({"ReqMem": "4096"}, 4 * GIB),
        ({"ReqMem": "2.50G"}, 5 * GIB // 2),
        ({"ReqMem": "0n"}, 0),
        ({"ReqMem": "?"}, 0),
        ({"ReqMem": "4Gn", "AllocTRES": "cpu=4,mem=6G"}, 6 * GIB),
    ],
)
def test_memory(row: dict[str, str], memory: int) -> None:
    job = one(NNodes="2", **row)
    assert sum(group.count * group.resources.get("memory", 0) for group in job.tasks) == memory


def test_steps_waiting_jobs_and_repeated_lines_are_left_out_and_counted() -> None:
    found = read(
        {},
        {},
        {"JobID": "7.batch"},
        {"JobID": "7.extern"},
        {"JobID": "7.0", "State": "FAILED"},
        {"JobID": "8", "State": "PENDING", "Start": "Unknown", "End": "Unknown", "Elapsed": "00:00:00"},
        {"JobID": "9_[3-9%2]", "State": "PENDING", "Start": "Unknown", "Elapsed": "00:00:00"},
        {
            "JobID": "10",
            "State": "CANCELLED by 1001",
            "Start": "None",
            "Elapsed": "00:00:00",
            "AllocCPUS": "0",
        },
        {"JobID": "11", "State": "CANCELLED by 1001"},
    )
    assert [job.id for job in found.applications] == ["job-7", "job-11"]
    assert found.counts == {
        "repeated lines left out": 1,
        "job steps left out": 3,
        "jobs that never started, left out": 3,
    }


def test_arrays_and_heterogeneous_jobs_are_applications_of_their_own() -> None:
    found = read({"JobID": "7_1"}, {"JobID": "7_2"}, {"JobID": "8+0"}, {"JobID": "8+1"})
    assert [job.id for job in found.applications] == ["job-7_1", "job-7_2", "job-8+0", "job-8+1"]


def test_each_run_of_a_requeued_job_is_an_application() -> None:
    again = {"Submit": "2026-03-02T08:30:00", "Start": "2026-03-02T08:31:00"}
    found = read({"State": "PREEMPTED"}, again, {"JobID": "6", **again, "State": "REQUEUED"})
    assert [job.id for job in found.applications] == ["job-7", "job-7-run-2", "job-6"]
    assert found.counts == {"runs of requeued jobs, each an application": 1}


def test_running_job_has_its_time_so_far() -> None:
    found = read({"State": "RUNNING", "End": "Unknown", "Elapsed": "1-02:03:04"})
    assert found.applications[0].tasks[0].runtime == 93784 * SECOND
    assert found.counts == {"jobs that still ran, time until the report taken": 1}


@pytest.mark.parametrize(
    ("limit", "hours"),
    [
        ({"Timelimit": "1-01:00:00"}, 25),
        ({"Timelimit": "1-01:00:00", "TimelimitRaw": "180"}, 3),
        ({"Timelimit": "00:30:00"}, 1),
        ({"Timelimit": "UNLIMITED"}, None),
        ({"Timelimit": "Partition_Limit"}, None),
        ({"Timelimit": ""}, None),
    ],
)
def test_running_job_runs_to_its_time_limit(limit: dict[str, str], hours: int | None) -> None:
    found = read({"State": "RUNNING", "End": "Unknown", "Elapsed": "01:00:00", **limit})
    assert found.applications[0].tasks[0].runtime == (hours or 1) * 3600 * SECOND
    what = "time until the report taken" if hours is None else "their time limit taken"
    assert found.counts == {f"jobs that still ran, {what}": 1}


def test_job_is_submitted_when_it_is_eligible() -> None:
    eligible = "2026-03-02T08:01:00"
    rows = [
        {},
        {"JobID": "8", "Eligible": eligible},
        {"JobID": "9", "Eligible": "Unknown"},
        {"JobID": "10", "Eligible": "2026-03-02T07:00:00"},
    ]
    found = read(*({"Eligible": "", **row} for row in rows))
    assert [job.submit // SECOND for job in found.applications] == [0, 0, 0, 60]
    assert [(job.recorded_wait or 0) // SECOND for job in found.applications] == [90, 90, 90, 30]
    assert found.counts == {"jobs that were eligible after their submission, taken as submitted then": 1}


def test_job_with_more_nodes_than_cores_is_counted() -> None:
    found = read({"NNodes": "4", "AllocCPUS": "2"})
    assert amounts(found.applications[0]) == [(2, {"vcore": 1000})]
    assert found.counts == {"jobs with more nodes than cores, run with one node for each core": 1}


def test_short_job_without_time_counts() -> None:
    assert one(Elapsed="00:00:00").tasks[0].runtime == 0


def test_time_without_elapsed_column_is_from_start_to_end() -> None:
    text = table().replace("Elapsed", "Other")
    assert read_slurm(text, "f", "f", SlurmOptions(), NODES).applications[0].tasks[0].runtime == 3600 * SECOND


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"JobID": "x"}, "expected a job such as 123, 123_4, 123+0 or 123.batch in column JobID, got 'x'"),
        ({"State": "GONE"}, "expected a state such as COMPLETED in column State, got 'GONE'"),
        ({"Submit": "Unknown"}, "expected a time in column Submit, got 'Unknown'"),
        ({"Submit": "yesterday"}, "expected a time such as 2026-01-31T18:00:00 in column Submit"),
        ({"Start": "2026-02-30T00:00:00"}, "in column Start, got '2026-02-30T00:00:00'"),
        ({"Elapsed": "1 hour"}, "expected a duration such as 1-02:03:04 in column Elapsed"),
        ({"AllocCPUS": "four"}, "expected a whole number from 0 to 10000000 in column AllocCPUS, got 'four'"),
        ({"AllocCPUS": ""}, "expected a number of cores above 0"),
        ({"ReqMem": "4Q"}, "expected memory such as 4G, 4Gn or 4Gc in column ReqMem, got '4Q'"),
        ({"AllocTRES": "cpu"}, "expected resources such as cpu=8,mem=4G in column AllocTRES, got 'cpu'"),
        ({"AllocTRES": "gres/gpu=x"}, "in column AllocTRES, got 'x'"),
        ({"Elapsed": "", "End": "2026-03-02T07:00:00"}, "expected an End that is not before the Start"),
    ],
)
def test_bad_line_is_skipped_with_its_number_or_refused(row: dict[str, str], message: str) -> None:
    found = read({}, {"JobID": "8", **row})
    assert len(found.applications) == 1
    assert found.counts == {"lines skipped": 1}
    assert found.remarks[0].startswith("jobs.txt: line 3: ")
    assert message in found.remarks[0]
    with pytest.raises(InputError, match=r"line 3: "):
        read({}, {"JobID": "8", **row}, strict=True)


def test_wrong_number_of_columns_is_a_bad_line() -> None:
    text = table() + "8|ann|a name with | in it" + "|" * 20 + "\n"
    found = read_slurm(text, "f", "f", SlurmOptions(), NODES)
    assert "line 3: expected 12 columns as in the header, got 24" in found.remarks[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "JobID|State|AllocCPUS\n1|COMPLETED|1\n",
            "missing columns: Submit, Elapsed or ElapsedRaw or End, Start",
        ),
        ("JobID    JobName  State\n-------- -------- -----\n1  a  COMPLETED\n", "columns of fixed width"),
        ('{"meta": {"Slurm": {}}, "jobs": []}', "it is JSON"),
        (table({"State": "PENDING"}), "contains no jobs that ran (1 jobs that never started, left out)"),
    ],
)
def test_other_output_is_refused_with_the_command_to_use(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_workload(path)
    assert message in str(caught.value)
    if "no jobs" not in message:
        assert "sacct --allusers --allocations --parsable2" in str(caught.value)


def test_nodes_are_required(tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(table())
    with pytest.raises(InputError, match=r"describes no nodes: specify them with --nodes FILE"):
        read_workload(path)


def test_amounts_that_the_nodes_do_not_have_are_left_out_and_named() -> None:
    row = {"AllocTRES": "cpu=4,mem=4G,gres/gpu=1"}
    found = read(row, nodes=[WorkloadNode("n", Resource({"vcore": 8000}))])
    assert amounts(found.applications[0]) == [(1, {"vcore": 4000})]
    assert found.remarks == [
        "jobs.txt: gpu of 1 job is left out, because no node has the type gpu",
        "jobs.txt: memory of 1 job is left out, because not every node has memory",
    ]


def test_templates() -> None:
    rows = ({"Partition": "gpu,cpu", "QOS": ""}, {"JobID": "8", "Partition": "a.b", "QOS": "high"})
    found = read(*rows, options=SlurmOptions("root.{partition}.{qos}", "{account}-{user}", ""))
    assert [(job.queue, job.user, job.groups) for job in found.applications] == [
        ("root.gpu_cpu.unknown", "physics-ann", ()),
        ("root.a_dot_b.high", "physics-ann", ()),
    ]
    with pytest.raises(
        UsageError, match=r"--slurm-queue 'root.\{qos\}' uses \{qos\}, but jobs.txt has no column QOS"
    ):
        read({}, options=SlurmOptions("root.{qos}"))
    with pytest.raises(UsageError, match=r"--slurm-user uses the unknown field '\{name\}'"):
        read({}, options=SlurmOptions(user="{name}"))


def test_example_runs(registry: Registry, tmp_path: Path) -> None:
    packed = tmp_path / "jobs.gz"
    packed.write_bytes(gzip.compress((EXAMPLE / "jobs.txt").read_bytes()))
    for path in (EXAMPLE / "jobs.txt", packed):
        workload = read_workload(path, nodes=EXAMPLE / "nodes.txt", slurm=SlurmOptions("root.{account}"))
        assert workload.format == "slurm"
        report = simulate((EXAMPLE / "queues.yaml").read_text(), workload, registry)
        assert (report.applications.submitted, report.applications.finished) == (11, 11)
        assert report.tasks.too_large == 0


def test_nodes_of_sinfo() -> None:
    nodes = read_node_file(EXAMPLE / "nodes.txt").nodes
    assert [node.name for node in nodes] == ["cpu1", "cpu2", "cpu3", "gpu1"]
    assert dict(nodes[0].resources) == {"vcore": 16000, "memory": 64000 * 2**20}
    assert dict(nodes[3].resources) == {"vcore": 32000, "memory": 256000 * 2**20, "gpu": 4}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("n[1-4]|8|100|(null)", "expected one node in column NODELIST, got 'n[1-4]': use sinfo --Node"),
        ("n|8+|100|", "expected a whole number from 0 to 10000000 in column CPUS, got '8+'"),
        ("n|0|100|", "expected a number of cores above 0 in column CPUS"),
        ("n|8|100|gpu:many", "expected GPUs such as gpu:a100:4 in column GRES"),
        ("n|8|100", "expected 4 columns as in the header, got 3"),
        ("m|9|100|", "the node 'm' has other amounts than on an earlier line"),
    ],
)
def test_bad_lines_of_sinfo_are_refused(line: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_sinfo(f"NODELIST|CPUS|MEMORY|GRES\nm|8|100|gpu:t:1,gpu:2(S:0,1),shard:4\n{line}\n", "nodes.txt")
    assert message in str(caught.value)
    assert "line 3" in str(caught.value)


@given(st.integers(0, 999), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_elapsed_is_read_as_it_is_written(days: int, hours: int, minutes: int, seconds: int) -> None:
    expected = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    assert parse_elapsed(f"{days}-{hours:02}:{minutes:02}:{seconds:02}", "Elapsed") == expected
    if not days:
        assert parse_elapsed(f"{hours:02}:{minutes:02}:{seconds:02}", "Elapsed") == expected
        if not hours:
            assert parse_elapsed(f"{minutes:02}:{seconds:02}.250", "Elapsed") == expected


@given(st.integers(1, 10**6), st.sampled_from("KMGT"), st.sampled_from(["", "n", "c"]))
def test_memory_is_read_as_it_is_written(number: int, unit: str, scope: str) -> None:
    power = "KMGT".index(unit) + 1
    assert parse_memory(f"{number}{unit}{scope}", "ReqMem") == (number * 1024**power, scope)


def test_gpus_with_and_without_type() -> None:
    assert parse_tres("gres/gpu:a100=2,gres/gpu:v100=1", "c")["gpu"] == 3
    assert parse_tres("gres/gpu:a100=2,gres/gpu=2", "c")["gpu"] == 2
    assert parse_tres("billing=7,energy=x,gres/shard=3", "c") == {}


@given(st.integers(1, 40), st.integers(1, 200), st.integers(0, 50))
def test_no_core_and_no_gpu_is_lost_between_nodes(nodes: int, cores: int, gpus: int) -> None:
    job = one(NNodes=str(nodes), AllocCPUS=str(cores), AllocTRES=f"cpu={cores},gres/gpu={gpus}")
    assert sum(group.count * group.resources["vcore"] for group in job.tasks) == 1000 * cores
    assert sum(group.count * group.resources.get("gpu", 0) for group in job.tasks) == gpus
    assert sum(group.count for group in job.tasks) == min(nodes, cores)
