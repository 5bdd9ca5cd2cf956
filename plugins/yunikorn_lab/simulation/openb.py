"""Workloads from the openb traces: CSV files with the nodes and pods of a cluster with GPUs.

A line for a node has the columns `sn`, the node's name, `cpu_milli` in thousandths of a core, `memory_mib` in
mebibytes, `gpu`, the number of GPUs, and `model`, the model of the GPUs. Each pod becomes an application with
one task. Missing times are replaced as described at `_times` and in docs/workloads.md.
"""

from __future__ import annotations

import attrs

from yunikorn.clock import SECOND
from yunikorn.errors import Problem, UsageError
from yunikorn.resources import Resource
from yunikorn_commands.input_source import InputError
from yunikorn_commands.workload_formats import NODE_COLUMNS, POD_COLUMNS
from yunikorn_lab.simulation.trace_line import (
    UNKNOWN,
    BadLine,
    TraceApplications,
    TraceRow,
    check_templates,
    read_rows,
    take_rows,
)
from yunikorn_lab.simulation.workload import (
    NO_TAGS,
    Workload,
    WorkloadApplication,
    WorkloadNode,
    WorkloadTaskGroup,
)

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

    def take(row: TraceRow) -> None:
        node = _read_node(row, counting)
        if node.name in nodes:
            raise BadLine(f"duplicate node name '{node.name}'")
        nodes[node.name] = node

    problems = take_rows(read_rows(text, file, NODE_COLUMNS), take)
    if problems or not nodes:
        raise InputError(file, problems or [Problem("", "contains no nodes")])
    return list(nodes.values())


def _read_node(row: TraceRow, counting: str) -> WorkloadNode:
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


FIELDS = ("qos", "phase", "kind")
DEFAULT_RUNTIME = 3600
"""Run time (seconds) of a pod without a known start or end."""

SELECTOR = "yunikorn.apache.org/node-selector"
"""Tag that carries the node selector; the predicate `node-selector` evaluates the tag."""

NO_START = "pods that were never scheduled, time from creation to deletion taken"
NO_TIMES = f"pods without times, {DEFAULT_RUNTIME} s taken"
NO_CREATION = "pods without a time of creation, taken to arrive at the start"
CHOOSY = "pods that want a certain model of GPU"


@attrs.frozen
class OpenbOptions:
    """Settings for the conversion of pods to applications.

    `queue` and `user` are templates with the fields `{qos}`, `{phase}` (columns of the trace) and `{kind}`
    (`cpu`, `share` for a part of a GPU, `gpu`, or `gpus` for several). `gpus` is the unit for counting GPUs,
    one of `GPU_COUNTS`.
    """

    queue: str = "root.default"
    user: str = "nobody"
    gpus: str = SHARE

    def check(self) -> None:
        """Raise `UsageError` for a template with an unknown field, or an unknown unit for counting GPUs."""
        check_templates({"queue": self.queue, "user": self.user}, FIELDS)
        if self.gpus not in GPU_COUNTS:
            raise UsageError(f"unknown unit of GPUs '{self.gpus}'; known: {', '.join(GPU_COUNTS)}")


def read_openb(
    text: str, file: str, name: str, options: OpenbOptions, nodes: list[WorkloadNode], *, strict: bool = False
) -> Workload:
    """Read the workload of a list of pods, to be run on `nodes`.

    Bad lines are skipped and counted. With `strict`, bad lines raise `InputError`. A list without usable pods
    raises `InputError` in both cases.
    """
    options.check()
    pods = _Pods(options)
    problems = take_rows(read_rows(text, file, POD_COLUMNS), pods.take)
    remarks = pods.check(file, problems, "contains no pods", strict=strict)
    if pods.counts[CHOOSY]:
        remarks.append(
            f"{file}: {pods.counts[CHOOSY]} pods ask for a model of GPU (gpu_spec): only partitions "
            "with the predicate node-selector enforce it"
        )
    return pods.workload(name, "openb", nodes, remarks)


class _Pods(TraceApplications):
    """Conversion of rows to applications."""

    def __init__(self, options: OpenbOptions) -> None:
        super().__init__()
        self._options = options
        self._lines: dict[str, int] = {}
        self._texts: dict[tuple[str, str, str, str], str] = {}

    def take(self, row: TraceRow) -> None:
        """Add a pod; raises `BadLine`."""
        name = row.text("name")
        if not name:
            raise BadLine("expected a name in column name, got nothing")
        gpus = row.whole("num_gpu", MAX_GPUS, "a number of GPUs")
        milli = row.whole("gpu_milli", 1000, "thousandths of a GPU")
        resources = self._amount(row, gpus, milli)
        created, runtime, recorded, found = _times(row)
        if self._lines.setdefault(name, row.line) != row.line:
            raise BadLine(f"the pod name '{name}' was already used on line {self._lines[name]}")
        self.counts.update(found)
        models = row.text("gpu_spec")
        if models:
            self.counts[CHOOSY] += 1
        tags = {SELECTOR: f"{MODEL} in ({', '.join(models.split('|'))})"} if models else NO_TAGS
        kind = "cpu" if not gpus else "gpus" if gpus > 1 else "share" if milli < 1000 else "gpu"
        self.applications.append(
            WorkloadApplication(
                id=name,
                submit=created,
                tasks=(WorkloadTaskGroup("pod", 1, resources, runtime, tags=tags),),
                queue=self._fill(self._options.queue, row, kind),
                user=self._fill(self._options.user, row, kind),
                recorded_wait=recorded,
            )
        )

    def _amount(self, row: TraceRow, gpus: int, milli: int) -> Resource:
        amounts = {
            "vcore": row.whole("cpu_milli", MAX_MILLI, "thousandths of a core"),
            "memory": MIB * row.whole("memory_mib", MAX_MIB, "mebibytes"),
            **gpu_amount(gpus, milli, self._options.gpus),
        }
        found = Resource({kind: amount for kind, amount in amounts.items() if amount})
        if not found:
            raise BadLine("expected a pod with cores, memory or GPUs above 0, got a pod with none of them")
        return self.shared(found)

    def _fill(self, template: str, row: TraceRow, kind: str) -> str:
        key = (template, row.text("qos") or UNKNOWN, row.text("pod_phase") or UNKNOWN, kind)
        text = self._texts.get(key)
        if text is None:
            text = self._texts[key] = template.format_map(dict(zip(FIELDS, key[1:], strict=True)))
        return text


def _times(row: TraceRow) -> tuple[int, int, int | None, list[str]]:
    """Return a pod's arrival, run time and recorded wait (ns), and the replacements for missing values."""
    created, started, deleted = (row.time(f"{name}_time") for name in ("creation", "scheduled", "deletion"))
    found = [] if created is not None else [NO_CREATION]
    waited = None if created is None or started is None or started < created else started - created
    since = started if started is not None else created
    if since is None or deleted is None:
        return created or 0, DEFAULT_RUNTIME * SECOND, waited, [*found, NO_TIMES]
    if started is None:
        found.append(NO_START)
    if deleted < since:
        begin = "scheduled_time" if started is not None else "creation_time"
        raise BadLine(f"expected a deletion_time that is not before the {begin}, got an earlier time")
    return created or 0, deleted - since, waited, found
