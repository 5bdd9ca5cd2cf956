"""Nodes of the openb traces: a CSV file with a line for each node of a cluster with GPUs.

The columns are `sn`, the node's name, `cpu_milli` in thousandths of a core, `memory_mib` in mebibytes, `gpu`,
the number of GPUs, and `model`, the model of the GPUs.
"""

from __future__ import annotations

from yunikorn.errors import Problem
from yunikorn.resources import Resource
from yunikorn.simulation.csv_rows import CsvRow, read_rows
from yunikorn.simulation.input_error import InputError
from yunikorn.simulation.trace_line import BadLine
from yunikorn.simulation.workload import WorkloadNode

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu")
MODEL = "gpu-model"
"""Node attribute with the model of the GPUs."""

MIB = 2**20
MAX_MILLI = 10**12
MAX_MIB = 10**12
MAX_GPUS = 10**6

SHARE, WHOLE = "share", "whole"
GPU_COUNTS = (SHARE, WHOLE)
"""Units for counting GPUs: thousandths as the type `gpu-milli`, or whole GPUs as the type `gpu`."""


def gpu_amount(gpus: int, milli: int, counting: str) -> dict[str, int]:
    """Return `milli` thousandths of each of `gpus` GPUs as a resource amount; empty if either number is 0.

    If GPUs are counted as whole, a part of a GPU counts as one GPU, because the rest cannot be used by other
    pods.
    """
    if not gpus or not milli:
        return {}
    return {"gpu-milli": gpus * milli} if counting == SHARE else {"gpu": gpus}


def read_openb_nodes(text: str, file: str, counting: str = SHARE) -> list[WorkloadNode]:
    """Read the nodes of a file; raises `InputError` that lists all bad lines."""
    nodes: dict[str, WorkloadNode] = {}
    problems: list[Problem] = []
    for row in read_rows(text, file, NODE_COLUMNS):
        if isinstance(row, Problem):
            problems.append(row)
            continue
        try:
            node = _read_node(row, counting)
            if node.name in nodes:
                raise BadLine(f"duplicate node name '{node.name}'")
            nodes[node.name] = node
        except BadLine as error:
            problems.append(Problem("", str(error), row.line))
    if problems or not nodes:
        raise InputError(file, problems or [Problem("", "contains no nodes")])
    return list(nodes.values())


def _read_node(row: CsvRow, counting: str) -> WorkloadNode:
    name = row.text("sn")
    if not name:
        raise BadLine("expected a name in column sn, got nothing")
    amounts = {
        "vcore": row.whole("cpu_milli", MAX_MILLI, "thousandths of a core"),
        "memory": MIB * row.whole("memory_mib", MAX_MIB, "mebibytes"),
        **gpu_amount(row.whole("gpu", MAX_GPUS, "a number of GPUs"), 1000, counting),
    }
    model = row.text("model")
    return WorkloadNode(name, Resource(amounts), {MODEL: model} if model else {})
