"""Finding out what a workload file is, and reading it."""

from __future__ import annotations

from pathlib import Path

from yunikorn.errors import UsageError
from yunikorn.simulation.machines import read_machines
from yunikorn.simulation.scenario import Cluster, read_cluster, read_scenario
from yunikorn.simulation.source import read_content, trace_text, yaml_text
from yunikorn.simulation.swf import SwfOptions, read_swf
from yunikorn.simulation.workload import Workload

SCENARIO = "scenario"
SWF = "swf"
FORMATS = (SCENARIO, SWF)
_BY_EXTENSION = {".yaml": SCENARIO, ".yml": SCENARIO, ".json": SCENARIO, ".swf": SWF}


def read_workload(
    path: Path,
    *,
    format: str = "",
    nodes: Path | None = None,
    swf: SwfOptions | None = None,
    strict: bool = False,
) -> Workload:
    """The workload in the file `path`; raises `InputError`, or `UsageError` for options that are wrong.

    Without a `format` it is found by extension, else by content. `nodes` is a file of nodes, YAML or
    `.machines`; a trace without it takes the file of its own name with `.machines` added, if there is
    one. `strict` refuses a trace with bad lines instead of skipping them.
    """
    content = read_content(path)
    if not format:
        format = detect_format(path, content)
    if format not in FORMATS:
        raise UsageError(f"no format is called '{format}'; known: {', '.join(FORMATS)}")
    cluster = read_node_file(nodes) if nodes else None
    if format == SCENARIO:
        return read_scenario(yaml_text(content, str(path)), str(path), path.name, cluster)
    beside = path.with_name(f"{path.name}.machines")
    if cluster is None and beside.is_file():
        cluster = read_node_file(beside)
    text = trace_text(content, str(path))
    workload = read_swf(
        text, str(path), path.name, swf or SwfOptions(), cluster.nodes if cluster else [], strict=strict
    )
    workload.events = cluster.events if cluster else []
    workload.reloads = cluster.reloads if cluster else []
    return workload


def detect_format(path: Path, content: bytes) -> str:
    """`scenario` or `swf`: by the extension of the name (before `.gz`), else by the first line."""
    extensions = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    known = _BY_EXTENSION.get(extensions[-1]) if extensions else None
    return known or (SWF if _starts_with_columns(content) else SCENARIO)


def read_node_file(path: Path) -> Cluster:
    """Nodes, and perhaps node events, from a `.machines` or a YAML file; raises `InputError`."""
    content = read_content(path)
    if path.suffix.lower() == ".machines" or _starts_with_columns(content):
        return Cluster(read_machines(trace_text(content, str(path)), str(path)))
    return read_cluster(yaml_text(content, str(path)), str(path))


def _starts_with_columns(content: bytes) -> bool:
    # A line of numbers, or a comment as traces have it, before anything else.
    for line in content.splitlines():
        fields = line.split()
        if fields and not fields[0].startswith(b"#"):
            return fields[0].startswith(b";") or (fields[0].isdigit() and len(fields) > 1)
    return False
