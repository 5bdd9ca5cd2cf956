"""Meaning of the memory columns of traces: chosen by what the recorded machine could run, and said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from tests.lab.simulation.recorded_logs import EPOCH, MACHINES, lines_of, record
from yunikorn.errors import UsageError
from yunikorn_lab.simulation.machines import read_machines
from yunikorn_lab.simulation.reader import read_workload
from yunikorn_lab.simulation.survey import survey
from yunikorn_lab.simulation.swf import SwfOptions, read_swf
from yunikorn_lab.simulation.workload import Workload

Write = Callable[[str, str], Path]
WORDS = {"kb": "KB", "mb": "MB", "bytes": "bytes"}


def read(*lines: str, memory: str = "auto") -> Workload:
    """Return the workload of a log on the recorded machine."""
    return read_swf("\n".join(lines), "log", "log", SwfOptions(memory=memory), read_machines(MACHINES, "m"))


def note_on_memory(workload: Workload) -> str:
    """Return the note that says how memory was read."""
    (note,) = [remark for remark in workload.remarks if "memory of jobs" in remark]
    return note


def memories(workload: Workload) -> list[int]:
    """Return the bytes per task of all jobs."""
    return [application.tasks[0].resources.get("memory", 0) for application in workload.applications]


@pytest.mark.parametrize("unit", ["kb", "bytes"])
@pytest.mark.parametrize("has_waits", [True, False], ids=["waits", "no waits"])
@pytest.mark.parametrize(
    ("owner", "extras"),
    [
        ("processor", ""),
        ("node", ""),
        ("job", ""),
        ("node", "batch {nodes}:ppn={ppn} shared"),
        ("node", "{nodes}:{ppn}"),
        ("node", "batch {nodes}:ppn={ppn}:x86:fast -1"),
        ("node", "-1 -1 {nodes}:ppn={ppn}#excl"),
        ("job", "{nodes}:ppn={ppn}"),
        ("node", "{nodes} {ppn}"),
        ("node", "-1 {ppn} {nodes}"),
        ("job", "{nodes} {ppn} short"),
    ],
)
def test_the_default_reads_what_a_log_means(unit: str, has_waits: bool, owner: str, extras: str) -> None:
    for seed in range(3):
        lines = lines_of(record(seed), owner, unit, extras=extras, has_waits=has_waits, epoch=EPOCH)
        workload = read(*lines)
        assert f"is read as {WORDS[unit]} per {owner}" in note_on_memory(workload)
        assert survey(workload).offered_load.partitions["default"]["memory"] < 1


def test_nodes_of_a_job_divide_its_memory_per_node() -> None:
    jobs = record(1)
    found = memories(read(*lines_of(jobs, "node", "kb", extras="q {nodes}:ppn={ppn}")))
    assert found == [-(-job.memory // job.ppn) for job in jobs]


@pytest.mark.parametrize("extras", ["{nodes} {ppn}", "7 {nodes} {ppn} 3", "{ppn} x {nodes}"])
def test_nodes_of_two_columns_of_numbers_divide_the_memory(extras: str) -> None:
    jobs = record(1)
    workload = read(*lines_of(jobs, "node", "kb", extras=extras))
    assert "because the jobs name their nodes (columns " in note_on_memory(workload)
    assert memories(workload) == [-(-job.memory // job.ppn) for job in jobs]


@pytest.mark.parametrize(
    "header",
    [
        "; Column 19: cores per node\n; Column 20: number of nodes",
        "; 19 ppn\n; 20 nodes",
        "job submit wait run procs cpu mem n time mem2 state user group app queue part after think ppn nodes",
    ],
)
def test_a_header_that_names_the_columns_of_nodes_decides(header: str) -> None:
    # On this machine either column could be the nodes.
    jobs = [attrs.evolve(job, ppn=min(job.ppn, 4)) for job in record(2)]
    workload = read(header, *lines_of(jobs, "node", "kb", extras="{ppn} {nodes}"))
    assert "the jobs name their nodes (columns 19 and 20)" in note_on_memory(workload)
    assert memories(workload) == [-(-job.memory // job.ppn) for job in jobs]


@pytest.mark.parametrize("extras", ["1 8", "{nodes} 5", "{ppn}", "{nodes}", "x y"])
def test_other_columns_are_no_nodes(extras: str) -> None:
    workload = read(*lines_of(record(4), "processor", "kb", extras=extras))
    assert "is read as KB per processor, as the format says" in note_on_memory(workload)


@pytest.mark.parametrize(
    ("owner", "extras"),
    [("processor", ""), ("node", ""), ("node", "{nodes} {ppn}"), ("job", "{nodes}:ppn={ppn}")],
)
def test_a_unit_by_which_all_jobs_are_tiny_is_not_kb(owner: str, extras: str) -> None:
    for seed in range(3):
        note = note_on_memory(read(*lines_of(record(seed), owner, "mb", extras=extras)))
        assert f"is read as MB per {owner}" in note
        assert extras or "because as KB no job would have a thousandth of a node's memory" in note


def test_few_jobs_do_not_prove_a_larger_unit() -> None:
    few = note_on_memory(read(*lines_of(record(2, count=19), "processor", "mb")))
    assert "KB per processor, as the format says" in few


def test_a_few_jobs_that_fit_nowhere_are_not_called_none() -> None:
    jobs = record(5, count=250)
    lines = list(lines_of([attrs.evolve(job, memory=2**30) for job in jobs], "processor", "kb"))
    odd = lines_of([attrs.evolve(jobs[0], number=999, nodes=2, ppn=16, memory=60 * 2**30)], "node", "kb")
    note = note_on_memory(read(*lines, *odd))
    assert "as KB per processor 0.4% of the jobs would fit nowhere" in note


def test_the_note_says_why_the_format_is_not_followed() -> None:
    note = note_on_memory(read(*lines_of(record(2), "node", "kb")))
    assert note.startswith("the memory of jobs is read as KB per node; as KB per processor ")
    assert "(offered load of memory 0." in note


@pytest.mark.parametrize(
    ("line", "reading"),
    [
        ("; Note: requested memory is in KB per processor", "KB per processor"),
        ("; Column 10: memory per node [kilobytes]", "KB per node"),
        ("; Memory of jobs is the total of the whole job", "KB per job"),
        ("job submit mem_per_node_kb", "KB per node"),
    ],
)
def test_a_header_that_names_the_meaning_decides(line: str, reading: str) -> None:
    # With memory below every limit all readings are possible.
    jobs = [attrs.evolve(job, memory=2**30) for job in record(3)]
    note = note_on_memory(read(line, *lines_of(jobs, "node", "kb")))
    assert f"is read as {reading}, as the header says: " in note


@pytest.mark.parametrize(
    "line",
    ["; Computer: 8 nodes of 64 GB memory per job slot", "; MaxMemory: 67108864", "; no word about it"],
)
def test_sizes_of_the_machine_are_no_hint(line: str) -> None:
    workload = read(line, *lines_of(record(3), "processor", "kb"))
    assert "is read as KB per processor, as the format says" in note_on_memory(workload)


def test_a_header_that_is_impossible_is_not_followed() -> None:
    workload = read("; Note: memory is in KB per processor", *lines_of(record(3), "node", "kb"))
    assert "is read as KB per node; as KB per processor " in note_on_memory(workload)


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("kb", 16 * 1024),
        ("bytes", 16),
        ("mb", 16 * 1024**2),
        ("node-kb", 16 * 1024 // 4),
        ("job-kb", 2 * 1024),
        ("job-mb", 2 * 1024**2),
        ("node", 16 * 1024 // 4),
        ("processor", 16 * 1024),
        ("none", 0),
    ],
)
def test_a_setting_is_followed(setting: str, expected: int) -> None:
    job = "1 0 0 60 8 -1 -1 8 -1 16 1 7 3 5 1 2 -1 -1 2:ppn=4"
    assert memories(read(job, memory=setting)) == [expected]


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown meaning of memory 'host'; known: auto, none, processor"):
        read("1", memory="host")


def test_nodes_without_memory_are_said(write: Write) -> None:
    header = "; MaxNodes: 2\n; MaxProcs: 32\n"
    path = write("log.swf", header + "\n".join(lines_of(record(1, count=3), "node", "kb")))
    workload = read_workload(path)
    note = "the memory of jobs is left out, because node node-1 and 1 more nodes have no memory"
    assert note_on_memory(workload) == note
    assert memories(workload) == [0, 0, 0]


def test_memory_that_no_machine_has_is_left_out() -> None:
    jobs = [f"{number} {60 * number} 0 60 8 -1 -1 8 -1 {10**15} 1 7 3 5 1 2 -1 -1" for number in range(5)]
    workload = read(*jobs)
    assert "is left out, because no reading of it is possible" in note_on_memory(workload)
    assert memories(workload) == [0] * 5


# -- speed of nodes -----------------------------------------------------------------------------------------


def test_speeds_of_machines_are_relative_to_one() -> None:
    nodes = read_machines("0 slow 2 4 0.5 -1\n1 fast 1 8 2 -1\n2 unknown 1 8 -1 -1\n", "f")
    assert [node.speed for node in nodes] == [0.5, 0.5, 2.0, 1.0]


def test_ratings_are_relative_to_their_mean() -> None:
    nodes = read_machines("0 a 2 4 2000 -1\n1 b 1 8 3000 -1\n", "f")
    assert [node.speed for node in nodes] == [0.8, 0.8, 1.2]
    assert {node.speed for node in read_machines("0 a 2 4 2600 -1\n", "f")} == {1.0}


def test_the_note_says_if_the_format_would_be_possible_too() -> None:
    small = [attrs.evolve(job, memory=2**30) for job in record(3)]
    note = note_on_memory(read(*lines_of(small, "node", "kb", extras="{nodes}:{ppn}")))
    assert "name their nodes; KB per processor, as the format says, would be possible too" in note
    note = note_on_memory(read(*lines_of(record(3), "node", "kb", extras="{nodes}:{ppn}")))
    assert "because the jobs name their nodes; as KB per processor " in note


@pytest.mark.parametrize(("wait", "reading"), [(0, "KB per node"), (-1, "KB per processor")])
def test_memory_of_jobs_that_ran_at_one_time_decides(wait: int, reading: str) -> None:
    """Eight jobs fill the machine every few hours; the offered load of memory is low under both readings."""
    memory = 20 * 1024**2
    jobs = [
        f"{8 * burst + each} {10_000 * burst} {wait} 1000 16 -1 -1 16 -1 {memory} 1 7 3 5 1 2 -1 -1"
        for burst in range(10)
        for each in range(8)
    ]
    assert f"is read as {reading}" in note_on_memory(read(*jobs))
