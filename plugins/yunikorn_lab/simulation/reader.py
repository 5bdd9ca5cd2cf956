"""Detection of the format of a workload file, and reading of the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import attrs

from yunikorn.errors import Problem, UsageError
from yunikorn_commands.input_files import InputFile
from yunikorn_commands.input_source import (
    InputError,
    SeedWithoutEffect,
    read_content,
    trace_text,
    yaml_text,
)
from yunikorn_commands.workload_formats import NODE_COLUMNS, POD_COLUMNS, is_batsim, is_history, is_slurm
from yunikorn_history.history_filter import EVERYTHING, HistoryFilter
from yunikorn_lab.simulation.batsim import BatsimOptions, read_batsim
from yunikorn_lab.simulation.machines import is_sinfo, read_machines, read_sinfo
from yunikorn_lab.simulation.openb import (
    SHARE,
    OpenbOptions,
    read_openb,
    read_openb_nodes,
)
from yunikorn_lab.simulation.scenario_reader import (
    ScenarioCluster,
    read_cluster,
    read_scenario,
    read_scenario_file,
)
from yunikorn_lab.simulation.slurm import SlurmOptions, read_slurm
from yunikorn_lab.simulation.snapshot_nodes import read_snapshot_nodes
from yunikorn_lab.simulation.swf import SwfOptions, read_swf
from yunikorn_lab.simulation.swf_jobs import COLUMNS
from yunikorn_lab.simulation.trace_line import read_rows
from yunikorn_lab.simulation.workload import Workload
from yunikorn_snapshots.snapshot_errors import MARK

SCENARIO = "scenario"
SWF = "swf"
OPENB = "openb"
BATSIM = "batsim"
SLURM = "slurm"
FORMATS = (SCENARIO, SWF, OPENB, BATSIM, SLURM)
HISTORY = "history"
"""Format of `history:FILE`, which is not chosen for a file."""
MOST_WORDS = 100
"""Maximum number of header lines of words above the jobs of a trace without an extension."""

_BY_EXTENSION = {".yaml": SCENARIO, ".yml": SCENARIO, ".swf": SWF}


def read_workload(
    path: InputFile,
    *,
    format: str = "",
    nodes: InputFile | None = None,
    swf: SwfOptions | None = None,
    openb: OpenbOptions | None = None,
    batsim: BatsimOptions | None = None,
    slurm: SlurmOptions | None = None,
    history: HistoryFilter = EVERYTHING,
    strict: bool = False,
    seed: int | None = None,
) -> Workload:
    """Read the workload in `path`; raises `InputError`, or `UsageError` for invalid options.

    Without a `format` the extension decides, else the content. A folder must contain openb files: one list of
    pods and one list of nodes. `nodes` is a file of nodes in YAML, `.machines`, openb or `sinfo` format.
    Without this file a trace uses the file of its own name with `.machines` appended, if it exists, and a
    list of pods uses the list of nodes in its folder. `strict` refuses a trace with bad lines instead of
    skipping them. `seed` replaces the seed of a scenario.
    """
    if format and format not in FORMATS:
        raise UsageError(f"unknown format '{format}'; known: {', '.join(FORMATS)}")
    openb = openb or OpenbOptions()
    openb.check()
    cluster = read_node_file(nodes, openb.gpus) if nodes else None
    if isinstance(path, Path) and path.is_dir():
        if format not in ("", OPENB):
            raise InputError(str(path), [Problem("", f"is a folder; the format {format} needs a file")])
        path = _only_list(path, "pods", _is_pods)
        format = OPENB
    if (format or _by_extension(path)) == SCENARIO:
        _check_job_options(swf, SCENARIO, path)
        return read_scenario_file(path, cluster, seed)
    content = read_content(path)
    format = format or detect_format(path, content)
    _check_job_options(swf, format, path)
    if format == SCENARIO:
        return read_scenario(yaml_text(content, str(path)), str(path), path.name, cluster, seed)
    if seed is not None:
        raise SeedWithoutEffect(f"a seed has no effect: {path} is a trace, which contains no random values")
    if format == HISTORY:
        from yunikorn_lab.simulation.history_workload import read_history

        return read_history(content, str(path), path.name, history, cluster)
    text = trace_text(content, str(path))
    if format == OPENB:
        next(read_rows(text, str(path), POD_COLUMNS), None)  # report a wrong list before missing nodes
        if cluster is None:
            cluster = read_node_file(_only_list(path.parent, "nodes", _is_nodes), openb.gpus)
        workload = read_openb(text, str(path), path.name, openb, cluster.nodes, strict=strict)
    else:
        beside = path.with_name(f"{path.name}.machines")
        if cluster is None:
            cluster = read_node_file(beside) if beside.is_file() else ScenarioCluster([])
        given = (text, str(path), path.name)
        if format == BATSIM:
            workload = read_batsim(*given, batsim or BatsimOptions(), cluster.nodes, strict=strict)
        elif format == SLURM:
            workload = read_slurm(*given, slurm or SlurmOptions(), cluster.nodes, strict=strict)
        else:
            workload = read_swf(*given, swf or SwfOptions(), cluster.nodes, strict=strict)
    return attrs.evolve(workload, events=cluster.events, reloads=cluster.reloads)


def files_of_workload(path: InputFile, nodes: InputFile | None, format: str) -> list[tuple[str, InputFile]]:
    """Return the files of a readable workload of this format, with their roles `workload` and `nodes`."""
    if isinstance(path, Path) and path.is_dir():
        path = _only_list(path, "pods", _is_pods)
    found: list[tuple[str, InputFile]] = [("workload", path)]
    beside = path.with_name(f"{path.name}.machines")
    if nodes is not None:
        found.append(("nodes", nodes))
    elif format == OPENB:
        found.append(("nodes", _only_list(path.parent, "nodes", _is_nodes)))
    elif format not in (SCENARIO, HISTORY) and beside.is_file():
        found.append(("nodes", beside))
    return found


def _check_job_options(swf: SwfOptions | None, format: str, path: InputFile) -> None:
    if format != SWF and swf is not None and swf.has_job_options:
        raise UsageError(
            f"--swf-status and --kill-at-limit apply to traces in the Standard Workload Format, but {path} "
            f"is read as {format}"
        )


def detect_format(path: InputFile, content: bytes) -> str:
    """Return one of `FORMATS`, by the extension (before `.gz`), else by the content."""
    known = _by_extension(path)
    if known is not None:
        return known
    if is_history(content):
        return HISTORY
    if is_batsim(content):
        return BATSIM
    if is_slurm(content):
        return SLURM
    if _starts_with_columns(content):
        return SWF
    return OPENB if _is_pods(content) or ".csv" in path.suffixes else SCENARIO


def _by_extension(path: InputFile) -> str | None:
    extensions = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    return _BY_EXTENSION.get(extensions[-1]) if extensions else None


def read_node_file(path: InputFile, gpus: str = SHARE) -> ScenarioCluster:
    """Read nodes and any node events from a `.machines`, YAML, openb or `sinfo` file, or from a snapshot.

    `gpus` is the unit for counting the GPUs of an openb file. Raises `InputError`.
    """
    content = read_content(path)
    if content.startswith(MARK):
        return ScenarioCluster(read_snapshot_nodes(content, str(path)))
    if _is_nodes(content):
        return ScenarioCluster(read_openb_nodes(trace_text(content, str(path)), str(path), gpus))
    if is_sinfo(content):
        return ScenarioCluster(read_sinfo(trace_text(content, str(path)), str(path)))
    if path.suffix.lower() == ".machines" or _starts_with_columns(content):
        return ScenarioCluster(read_machines(trace_text(content, str(path)), str(path)))
    return read_cluster(yaml_text(content, str(path)), str(path))


def _only_list(folder: Path, what: str, is_one: Callable[[bytes], bool]) -> Path:
    """Return the only openb list of `what` in a folder; raises `InputError` if there is none or several."""
    try:
        files = sorted(path for path in folder.iterdir() if path.is_file() and ".csv" in path.suffixes)
    except OSError as error:
        raise InputError(str(folder), [Problem("", f"cannot be read: {error.strerror or error}")]) from error
    found = [path for path in files if is_one(read_content(path))]
    if len(found) == 1:
        return found[0]
    option = "--nodes" if what == "nodes" else "--workload"
    names = ", ".join(path.name for path in found)
    problem = f"contains several lists of {what}: {names}" if found else f"contains no list of {what} (CSV)"
    raise InputError(str(folder), [Problem("", f"{problem}; specify one with {option} FILE")])


def _is_nodes(content: bytes) -> bool:
    return set(NODE_COLUMNS) <= _header(content)


def _is_pods(content: bytes) -> bool:
    return set(POD_COLUMNS) <= _header(content)


def _header(content: bytes) -> set[str]:
    line = content.lstrip().partition(b"\n")[0][:1000]
    return {name.strip(' "\r\ufeff') for name in line.decode("utf-8-sig", errors="replace").split(",")}


def _starts_with_columns(content: bytes) -> bool:
    # Traces begin with a line of numbers, or with comment lines that start with a semicolon. A header of
    # words may stand above a complete line of numbers.
    words = 0
    for line in content.splitlines():
        fields = line.split()
        if not fields or fields[0].startswith(b"#"):
            continue
        if fields[0].startswith(b";"):
            return True
        if fields[0].isdigit():
            return len(fields) >= (COLUMNS if words else 2)
        words += 1
        if words > MOST_WORDS:
            return False
    return False
