"""Detection of file formats, node files, and unreadable files."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from yunikorn.errors import UsageError
from yunikorn.resources import Resource
from yunikorn_commands.input_source import InputError
from yunikorn_lab.simulation.machines import read_machines
from yunikorn_lab.simulation.reader import detect_format, read_workload
from yunikorn_lab.simulation.swf import SwfOptions

Write = Callable[[str, str], Path]

JOB = "1 0 -1 10 2 -1 -1 -1 -1 -1 1 7 3 5 1 2 -1 -1"
TRACE = f"; MaxProcs: 4\n{JOB}\n"
SCENARIO = (
    "nodes: [{name: n, resources: {vcore: 1}}]\n"
    "applications: [{id: a, tasks: [{resources: {vcore: 1}, runtime: 1}]}]\n"
)


@pytest.mark.parametrize(
    ("name", "text", "format"),
    [
        ("a.swf", TRACE, "swf"),
        ("a.yaml", SCENARIO, "scenario"),
        ("a.YML", SCENARIO, "scenario"),
        ("a.txt", TRACE, "swf"),
        ("a", "\n\n" + SCENARIO, "scenario"),
        ("trace", "# a comment\n; MaxProcs: 4\n" + JOB, "swf"),
    ],
)
def test_format_is_detected(name: str, text: str, format: str, write: Write) -> None:
    workload = read_workload(write(name, text))
    assert (workload.format, workload.name) == (format, name)


def test_requested_format_is_used(write: Write) -> None:
    assert read_workload(write("odd.yaml", TRACE), format="swf").format == "swf"
    with pytest.raises(UsageError, match="unknown format 'pdf'; known: scenario, swf"):
        read_workload(write("a", TRACE), format="pdf")


def test_missing_columns_of_a_csv_file_are_reported(write: Write) -> None:
    with pytest.raises(InputError, match=r"expected the columns name, cpu_milli.*missing: memory_mib"):
        read_workload(write("pods.csv", "name,cpu_milli\na,1\n"))


def test_compressed_files_are_decompressed(tmp_path: Path) -> None:
    path = tmp_path / "a.swf.gz"
    path.write_bytes(gzip.compress(TRACE.encode()))
    assert read_workload(path).format == "swf"
    path.write_bytes(gzip.compress(TRACE.encode())[:-9])
    with pytest.raises(InputError, match="cannot be read"):
        read_workload(path)


@pytest.mark.parametrize(
    ("content", "reported"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"nodes: \xff", "byte 0xff"),
        (b"nodes:\t[]\0", "U\\+0000"),
    ],
)
def test_files_without_a_workload_are_rejected(content: bytes, reported: str, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=reported) as caught:
        read_workload(path)
    assert str(caught.value).startswith(str(path))


def test_binary_traces_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "a.swf"
    path.write_bytes(b"1 2\0 3")
    with pytest.raises(InputError, match="is not text"):
        read_workload(path)
    path.write_bytes(f"; MaxProcs: 4\n; Installation: Ume\xe5\n{JOB}\n".encode("latin-1"))
    assert len(read_workload(path).applications) == 1


def test_missing_file_and_folder_are_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file or directory"):
        read_workload(tmp_path / "missing")
    with pytest.raises(InputError, match="contains no list of pods"):
        read_workload(tmp_path)


def test_nodes_come_from_the_option_then_the_file_beside_then_the_header(write: Write) -> None:
    trace = write("a.swf", TRACE)
    assert len(read_workload(trace).nodes) == 4
    write("a.swf.machines", "0 m 3 2 1 1024\n")
    assert [node.name for node in read_workload(trace).nodes] == ["m-1", "m-2", "m-3"]
    nodes = write(
        "nodes.yaml",
        "nodes: [{name: y, resources: {vcore: 1}}]\nevents: [{at: 1, node: y, action: drain}]\n",
    )
    workload = read_workload(trace, nodes=nodes)
    assert [node.name for node in workload.nodes] == ["y"]
    assert len(workload.events) == 1


def test_a_scenario_takes_nodes_from_either_kind_of_file(write: Write) -> None:
    scenario = write("a.yaml", SCENARIO)
    nodes = write("cluster", "0 m 2 2 1\n")
    assert [node.name for node in read_workload(scenario, nodes=nodes).nodes] == ["m-1", "m-2"]


def test_machines_with_and_without_memory() -> None:
    nodes = read_machines("; comment\n0 a 1 2 1 1048576\n1 b 2 4 1 -1\n2 c 1 8\n", "f")
    assert [(node.name, node.resources) for node in nodes] == [
        ("a", Resource(vcore=2000, memory=2**30)),
        ("b-1", Resource(vcore=4000)),
        ("b-2", Resource(vcore=4000)),
        ("c", Resource(vcore=8000)),
    ]


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("0 a 1\n", "line 1: expected id, name, nodes, processors per node"),
        ("0 a 1 2\n0 a 1 2\n", "line 2: the name 'a' was already used on line 1"),
        ("0 a x 2\n", "expected the number of nodes in column 3"),
        ("0 a 1 0\n", "expected processors per node in column 4"),
        ("0 a 1 2 1 lots\n", "expected memory per node in KB in column 6, or -1, got 'lots'"),
        ("0 a 99999999999 2\n", "a whole number from 1 to 1000000"),
        ("; nothing\n", "contains no nodes"),
    ],
)
def test_invalid_machines(text: str, reported: str) -> None:
    with pytest.raises(InputError) as caught:
        read_machines(text, "f")
    assert reported in str(caught.value)


@pytest.mark.parametrize("options", [SwfOptions(kill_at_limit=True), SwfOptions(status="not-cancelled")])
def test_options_of_jobs_are_refused_for_other_formats(write: Write, options: SwfOptions) -> None:
    path = write("a.yaml", "nodes: []\n")
    with pytest.raises(UsageError, match=r"apply to traces in the Standard .* is read as scenario"):
        read_workload(path, swf=options)


def test_a_trace_with_a_header_of_words_is_detected(write: Write) -> None:
    header = "JobId Submit Wait\n"
    assert read_workload(write("a.txt", f"MaxProcs: 4\n{header}{JOB}")).format == "swf"
    assert detect_format(write("b.txt", header), header.encode()) == "scenario"
