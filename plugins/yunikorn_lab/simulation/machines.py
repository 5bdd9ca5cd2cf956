"""Nodes of a cluster from a `.machines` file, from the header of a trace, or from `sinfo` of Slurm.

A `.machines` file accompanies a trace of the Parallel Workloads Archive. It has one line per kind of node
with id, name, nodes, processors per node, speed, and memory per node in KB (-1 or missing: unknown).

Values in the output of Slurm's accounting command `sacct`: times, durations, memory and resources.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache

import attrs

from yunikorn.errors import Problem
from yunikorn.resources import Resource
from yunikorn_commands.input_source import InputError
from yunikorn_lab.simulation.trace_line import (
    MAX_PROCESSORS,
    MAX_SECONDS,
    BadLine,
    TraceRow,
    read_lines,
    take_rows,
)
from yunikorn_lab.simulation.workload import WorkloadNode

MIB = 2**20
MAX_BYTES = 2**60
NOTHING = ("", "Unknown", "None", "N/A", "(null)")
"""Texts of a value that is not known."""
UNLIMITED = ("UNLIMITED", "Partition_Limit")
"""Texts of a time limit that is none of the job."""

_TIME = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})\Z")
_EPOCH = re.compile(r"[0-9]{1,10}\Z")
_ELAPSED = re.compile(r"(?:(?:([0-9]{1,6})-)?([0-9]{1,6}):)?([0-9]{1,2}):([0-9]{2})(?:\.[0-9]+)?\Z")
_MEMORY = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)([KMGTPE]?)([cn]?)\Z")
_UNITS = {"": MIB, "K": 2**10, "M": MIB, "G": 2**30, "T": 2**40, "P": 2**50, "E": 2**60}
_JOB = re.compile(r"([0-9]+)(?:_([0-9]+|\[[^]]*\]))?(?:\+([0-9]+))?(\..+)?\Z")


def parse_moment(text: str, column: str) -> int | None:
    """Return a point in time in seconds since 1970, or None if it is not known; raises `BadLine`.

    Times of `sacct` are local times without a time zone; they are read as if the clock were never changed.
    """
    if text in NOTHING:
        return None
    if _EPOCH.match(text):
        return int(text)
    return _moment(text, column)


@lru_cache(maxsize=4096)
def _moment(text: str, column: str) -> int:
    match = _TIME.match(text)
    try:
        if match is None:
            raise ValueError
        year, month, day, hour, minute, second = map(int, match.groups())
        found = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)
    except ValueError:
        raise BadLine(
            f"expected a time such as 2026-01-31T18:00:00 in column {column}, got '{text[:40]}'"
        ) from None
    moment = int(found.timestamp())
    if not 0 <= moment <= MAX_SECONDS:
        raise BadLine(f"expected a time since 1970 in column {column}, got '{text}'")
    return moment


def parse_elapsed(text: str, column: str) -> int | None:
    """Return a duration such as `1-02:03:04` in seconds, or None if it is not known; raises `BadLine`."""
    if text in NOTHING:
        return None
    match = _ELAPSED.match(text)
    if match is None:
        raise BadLine(f"expected a duration such as 1-02:03:04 in column {column}, got '{text[:40]}'")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def parse_whole(text: str, column: str, most: int = MAX_PROCESSORS) -> int | None:
    """Return a whole number of at least 0, or None if it is not known; raises `BadLine`."""
    if text in NOTHING:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 18 or int(text) > most:
        raise BadLine(f"expected a whole number from 0 to {most} in column {column}, got '{text[:40]}'")
    return int(text)


@lru_cache(maxsize=4096)
def parse_memory(text: str, column: str) -> tuple[int, str]:
    """Return an amount of memory in bytes and its scope: `n` per node, `c` per core, or empty for the job.

    A number without a unit is in MiB. Raises `BadLine`.
    """
    match = _MEMORY.match(text)
    amount = int(Fraction(match[1]) * _UNITS[match[2]]) if match else -1
    if match is None or not 0 <= amount <= MAX_BYTES:
        raise BadLine(f"expected memory such as 4G, 4Gn or 4Gc in column {column}, got '{text[:40]}'")
    return amount, match[3]


@lru_cache(maxsize=4096)
def parse_tres(text: str, column: str) -> dict[str, int]:
    """Return `cpu`, `node`, `mem` (bytes) and `gpu` of a list of trackable resources; raises `BadLine`.

    GPUs are the number without a type if there is one, else the sum over their types. All other entries,
    such as `billing`, are left out.
    """
    found: dict[str, int] = {}
    typed = 0
    for entry in text.split(",") if text not in NOTHING else ():
        name, equals, value = entry.partition("=")
        if not equals:
            raise BadLine(f"expected resources such as cpu=8,mem=4G in column {column}, got '{text[:40]}'")
        if name in ("cpu", "node", "gres/gpu") or name.startswith("gres/gpu:"):
            number = parse_whole(value, column) or 0
            if name.startswith("gres/gpu:"):
                typed += number
            else:
                found["gpu" if name == "gres/gpu" else name] = number
        elif name == "mem":
            found["mem"] = parse_memory(value, column)[0]
    if typed:
        found.setdefault("gpu", typed)
    return found


def parse_job_id(text: str) -> tuple[str, bool, bool]:
    """Return a job's id, and two flags: it is a step of a job, and it is an array that has not started.

    Raises `BadLine`.
    """
    match = _JOB.match(text)
    if match is None:
        raise BadLine(
            f"expected a job such as 123, 123_4, 123+0 or 123.batch in column JobID, got '{text[:40]}'"
        )
    return text, bool(match[4]), (match[2] or "").startswith("[")


KB = 1024
MAX_NODES = 1_000_000
SLOWEST, FASTEST = 0.001, 1000.0
"""Limits of the speed of a node, relative to the nodes on which run times were measured."""

RATED = 10.0

_HEADER = re.compile(r"[;#]?\s*(MaxNodes|MaxProcs)\s*:\s*(\d{1,18})(?!\d)", re.IGNORECASE)
_SPEED = re.compile(r"-?\d{1,9}(\.\d{0,9})?\Z")
_WHOLE = re.compile(r"-?\d+(\.0*)?\Z")


def read_machines(text: str, file: str) -> list[WorkloadNode]:
    """Read the nodes of a `.machines` file; raises `InputError` that lists all bad lines."""
    nodes: list[WorkloadNode] = []
    problems: list[Problem] = []
    names: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split()
        if not fields or fields[0][0] in ";#":
            continue
        failure = _fault(fields, names)
        if failure:
            problems.append(Problem("", failure, number))
            continue
        names[fields[1]] = number
        memory = _whole(fields[5]) if len(fields) > 5 else -1
        speed = max(float(fields[4]), 0.0) if len(fields) > 4 else 0.0
        nodes.extend(_alike(fields[1], _whole(fields[2]), _whole(fields[3]), memory, speed))
    problems += _check_speeds(nodes)
    if problems or not nodes:
        raise InputError(file, problems or [Problem("", "contains no nodes")])
    return _relative(nodes)


def _check_speeds(nodes: Sequence[WorkloadNode]) -> list[Problem]:
    known = [node.speed for node in nodes if node.speed > 0]
    if known and max(known) / min(known) > FASTEST:
        what = (
            f"the speeds in column 5 differ by a factor of {max(known) / min(known):.3g}, expected at most "
        )
        return [Problem("", f"{what}{FASTEST:g}")]
    return []


def _relative(nodes: list[WorkloadNode]) -> list[WorkloadNode]:
    """Return the nodes with relative speeds; an unknown speed is 1.

    Speeds that are all above `RATED` (or below its inverse) are ratings such as MHz. They count relative to
    their mean over the processors, on which the run times of a log were measured.
    """
    known = [node for node in nodes if node.speed > 0]
    is_rated = all(node.speed > RATED for node in known) or all(node.speed < 1 / RATED for node in known)
    mean = 1.0
    if known and is_rated:
        mean = sum(node.speed * node.resources["vcore"] for node in known)
        mean /= sum(node.resources["vcore"] for node in known)
    elif all(node.speed in (0.0, 1.0) for node in nodes):
        return [attrs.evolve(node, speed=1.0) if not node.speed else node for node in nodes]
    return [attrs.evolve(node, speed=node.speed / mean if node.speed else 1.0) for node in nodes]


def nodes_from_header(lines: Iterable[str]) -> list[WorkloadNode]:
    """Return the nodes described by the lines MaxNodes and MaxProcs of a trace's header, if any.

    Processors are distributed evenly; the first nodes get one more if the division leaves a remainder.
    Without MaxNodes each processor is a node, and without MaxProcs each node has one processor.
    """
    found: dict[str, int] = {}
    for line in lines:
        if match := _HEADER.match(line.strip()):
            found.setdefault(match[1].lower(), int(match[2]))
    processors = found.get("maxprocs", 0) or found.get("maxnodes", 0)
    count = min(found.get("maxnodes", 0) or processors, processors)
    if not 0 < count <= MAX_NODES:
        return []
    each, more = divmod(processors, count)
    return [
        WorkloadNode(name, Resource(vcore=1000 * (each + (index < more))))
        for index, name in enumerate(numbered("node", count))
    ]


def numbered(name: str, count: int) -> list[str]:
    """Return `count` names, `NAME-01` to `NAME-12`, padded so that they sort in order; `NAME` for one."""
    if count == 1:
        return [name]
    width = len(str(count))
    return [f"{name}-{index:0{width}}" for index in range(1, count + 1)]


def _alike(name: str, count: int, processors: int, memory: int, speed: float) -> list[WorkloadNode]:
    amounts = {"vcore": 1000 * processors}
    if memory > 0:
        amounts["memory"] = KB * memory
    resources = Resource(amounts)
    return [WorkloadNode(each, resources, speed=speed) for each in numbered(name, count)]


def _fault(fields: list[str], names: dict[str, int]) -> str:
    expected = "expected id, name, nodes, processors per node, speed, memory per node in KB"
    if len(fields) < 4:
        return f"{expected}; got {len(fields)} columns"
    if fields[1] in names:
        return f"the name '{fields[1]}' was already used on line {names[fields[1]]}"
    for column, meaning, most in ((2, "the number of nodes", MAX_NODES), (3, "processors per node", 10**9)):
        if not _WHOLE.match(fields[column]) or not 0 < _whole(fields[column]) <= most:
            return (
                f"expected {meaning} in column {column + 1}, a whole number from 1 to {most}, "
                f"got '{fields[column]}'"
            )
    if len(fields) > 4 and not _SPEED.match(fields[4]):
        return f"expected a speed in column 5, such as 1 or 1.5, or -1, got '{fields[4][:40]}'"
    if len(fields) > 5 and (not _WHOLE.match(fields[5]) or abs(_whole(fields[5])) > 10**15):
        return f"expected memory per node in KB in column 6, or -1, got '{fields[5]}'"
    return ""


def _whole(text: str) -> int:
    return int(text[:40].partition(".")[0])


HEADER = ("NODELIST", "CPUS", "MEMORY", "GRES")
COMMAND = "sinfo --Node --format='%N|%c|%m|%G'"
MAX_MIB = 10**12
_GPU = re.compile(r"gpu(?::[^:(,]+)?:([0-9]{1,6})(?:\([^)]*\))?\Z")


def is_sinfo(content: bytes) -> bool:
    """Return True for a list of nodes with the header of `HEADER`; the last column may be missing."""
    line = content.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0].decode(errors="replace")
    return set(HEADER[:3]) <= {name.strip() for name in line.split("|")}


def read_sinfo(text: str, file: str) -> list[WorkloadNode]:
    """Read the nodes; a node of several partitions is listed several times, and is one node.

    Raises `InputError` that lists all bad lines.
    """
    nodes: dict[str, WorkloadNode] = {}

    def take(row: TraceRow) -> None:
        node = _node(row)
        if nodes.setdefault(node.name, node) != node:
            raise BadLine(f"the node '{node.name}' has other amounts than on an earlier line")

    problems = take_rows(read_lines(text, "|"), take)
    if problems or not nodes:
        raise InputError(file, problems or [Problem("", "contains no nodes")])
    return list(nodes.values())


def _node(row: TraceRow) -> WorkloadNode:
    name = row.text("NODELIST")
    if not name or "[" in name or "," in name:
        raise BadLine(f"expected one node in column NODELIST, got '{name[:40]}': use {COMMAND}")
    cores, memory = parse_whole(row.text("CPUS"), "CPUS"), parse_whole(row.text("MEMORY"), "MEMORY", MAX_MIB)
    if not cores:
        raise BadLine(f"expected a number of cores above 0 in column CPUS, got '{row.text('CPUS')}'")
    amounts = {"vcore": 1000 * cores, "memory": MIB * (memory or 0), "gpu": _gpus(row.text("GRES"))}
    return WorkloadNode(name, Resource({kind: amount for kind, amount in amounts.items() if amount}))


def _gpus(text: str) -> int:
    """Return the number of GPUs in `gpu:a100:4(S:0-1),gpu:2`; other generic resources are left out."""
    if text in NOTHING:
        return 0
    total = 0
    for entry in re.split(r",(?![^(]*\))", text):
        if entry.partition(":")[0] == "gpu":
            match = _GPU.match(entry)
            if match is None:
                raise BadLine(f"expected GPUs such as gpu:a100:4 in column GRES, got '{text[:40]}'")
            total += int(match[1])
    return total
