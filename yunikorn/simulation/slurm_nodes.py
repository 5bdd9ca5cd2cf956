"""Nodes of a Slurm cluster, from `sinfo --Node --format='%N|%c|%m|%G'`."""

from __future__ import annotations

import re

from yunikorn.errors import Problem
from yunikorn.resources import Resource
from yunikorn.simulation.slurm_values import MIB, NOTHING, parse_whole
from yunikorn.simulation.source import InputError
from yunikorn.simulation.trace_line import BadLine
from yunikorn.simulation.workload import WorkloadNode

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
    problems: list[Problem] = []
    header: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        fields = [field.strip() for field in line.split("|")]
        if not line.strip() or fields == header:
            continue
        if not header:
            header = fields
            continue
        try:
            if len(fields) != len(header):
                raise BadLine(f"expected {len(header)} columns as in the header, got {len(fields)}")
            node = _node(dict(zip(header, fields, strict=True)))
            if nodes.setdefault(node.name, node) != node:
                raise BadLine(f"the node '{node.name}' has other amounts than on an earlier line")
        except BadLine as error:
            problems.append(Problem("", str(error), number))
    if problems or not nodes:
        raise InputError(file, problems or [Problem("", "contains no nodes")])
    return list(nodes.values())


def _node(row: dict[str, str]) -> WorkloadNode:
    name = row["NODELIST"]
    if not name or "[" in name or "," in name:
        raise BadLine(f"expected one node in column NODELIST, got '{name[:40]}': use {COMMAND}")
    cores, memory = parse_whole(row["CPUS"], "CPUS"), parse_whole(row["MEMORY"], "MEMORY", MAX_MIB)
    if not cores:
        raise BadLine(f"expected a number of cores above 0 in column CPUS, got '{row['CPUS']}'")
    amounts = {"vcore": 1000 * cores, "memory": MIB * (memory or 0), "gpu": _gpus(row.get("GRES", ""))}
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
