"""Workloads from traces in the Standard Workload Format.

A job becomes an application with one single-processor task per processor. `trace_line` parses the lines.
Missing values are replaced as described here and in docs/workloads.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import attrs

from yunikorn.clock import SECOND
from yunikorn.errors import Problem, UsageError
from yunikorn.model.gang import ATOMIC
from yunikorn.resources import Resource
from yunikorn.simulation.arrivals import Arrivals
from yunikorn.simulation.machines import KB, MAX_NODES, nodes_from_header
from yunikorn.simulation.source import InputError, remarks_on
from yunikorn.simulation.trace_line import UNKNOWN, BadLine, Job, JobTable, check_templates, parse_line
from yunikorn.simulation.workload import Workload, WorkloadApplication, WorkloadNode, WorkloadTaskGroup

DEFAULT_RUNTIME = 3600
"""Run time (seconds) of a job whose run time and requested time are both unknown."""

FIELDS = ("queue", "user", "group", "application", "partition")
MEMORY_UNITS = ("auto", "kb", "bytes", "none")
JOBS = {"tasks": "", "atomic": ATOMIC}
"""Gang style of the tasks of a job: `tasks` start one by one, and `atomic` starts all of them at once."""

SKIPPED = "lines skipped"
BACKWARDS = "submit times running backwards"
REQUESTED_TIME = "run times unknown, requested time taken"
NO_TIME = f"run times unknown, {DEFAULT_RUNTIME} s taken"


@attrs.frozen
class SwfOptions:
    """Settings for the conversion of jobs to applications.

    `queue`, `user` and `group` are templates with the fields `{queue}`, `{user}`, `{group}`, `{application}`
    and `{partition}`, which are columns of the job. `memory` is the unit of the memory columns: `kb` as the
    format specifies, `bytes`, `none` to ignore them, or `auto` to detect the unit. `jobs` is `tasks` for
    tasks that start independently, or `atomic` for tasks that start together.
    """

    queue: str = "root.default"
    user: str = "user{user}"
    group: str = "group{group}"
    memory: str = "auto"
    jobs: str = "tasks"

    def check(self) -> None:
        """Raise `UsageError` for a template with an unknown field, or for an unknown setting."""
        check_templates({"queue": self.queue, "user": self.user, "group": self.group}, FIELDS)
        if self.memory not in MEMORY_UNITS:
            raise UsageError(f"unknown unit of memory '{self.memory}'; known: {', '.join(MEMORY_UNITS)}")
        if self.jobs not in JOBS:
            raise UsageError(f"unknown kind of jobs '{self.jobs}'; known: {', '.join(JOBS)}")


def read_swf(
    text: str, file: str, name: str, options: SwfOptions, nodes: list[WorkloadNode], *, strict: bool = False
) -> Workload:
    """Read the workload of a trace; an empty list of `nodes` is replaced by the nodes of the trace's header.

    Bad lines are skipped and counted. With `strict`, bad lines raise `InputError`. A trace without jobs, or
    without any description of nodes, raises `InputError` in both cases.
    """
    options.check()
    jobs, problems, counts = _read_lines(text)
    if not jobs:
        raise InputError(file, problems or [Problem("", "contains no jobs")])
    nodes = nodes or nodes_from_header(text)
    if not nodes:
        what_to_do = (
            "specify them with --nodes FILE, put a FILE.machines beside the trace, "
            f"or add MaxNodes and MaxProcs to the header, for at most {MAX_NODES:,} nodes"
        )
        raise InputError(file, [Problem("", f"the header describes no nodes: {what_to_do}")])
    if strict and problems:
        raise InputError(file, problems)
    remarks = remarks_on(file, problems)
    if counts[BACKWARDS]:
        remarks.append(
            f"{file}: jobs with an earlier submit time than a line above are included, each at its own time"
        )
    unit = _memory_unit(options.memory, jobs, nodes, remarks)
    origin = jobs.earliest
    applications = SwfApplications(jobs, options, unit, origin)
    return Workload(name, "swf", nodes, applications, remarks=remarks, counts=dict(counts), origin=origin)


def _read_lines(text: str) -> tuple[JobTable, list[Problem], Counter[str]]:
    jobs = JobTable()
    problems: list[Problem] = []
    counts: Counter[str] = Counter()
    latest = 0.0
    for number, line in enumerate(_lines(text), 1):
        line = line.strip()
        if not line or line[0] in ";#":
            continue
        try:
            job = parse_line(line)
            first = jobs.line_of(job.number)
            if first is not None:
                raise BadLine(f"job number {job.number} was already used on line {first}")
        except BadLine as error:
            problems.append(Problem("", str(error), number))
            counts[SKIPPED] += 1
            continue
        if job.submit < latest:
            counts[BACKWARDS] += 1
            problems.append(Problem("", _backwards(job.submit, latest), number))
        latest = max(latest, job.submit)
        counts.update(_what_is_missing(job))
        jobs.add(job, number)
    return jobs, problems, counts


def _lines(text: str) -> Iterator[str]:
    if "\n" not in text:
        yield from text.splitlines()
        return
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield text[start:end]
        start = end + 1


def _what_is_missing(job: Job) -> Iterator[str]:
    if job.runtime < 0:
        yield REQUESTED_TIME if job.requested_time > 0 else NO_TIME


def _backwards(submit: float, latest: float) -> str:
    return (
        f"expected a submit time of at least {latest:.12g} in column 2, as on an earlier line, "
        f"got {submit:.12g}"
    )


def _memory_unit(unit: str, jobs: Iterable[Job], nodes: list[WorkloadNode], remarks: list[str]) -> int:
    """Return the bytes per unit of the memory columns, or 0 to ignore memory.

    Memory is ignored unless every node has memory, because tasks that ask for memory do not fit on nodes
    without memory.
    """
    largest = max(node.resources.get("memory", 0) for node in nodes)
    if unit == "none" or not all(node.resources.get("memory", 0) for node in nodes):
        return 0
    if unit != "auto":
        return KB if unit == "kb" else 1
    known = [job.memory for job in jobs if job.memory > 0]
    too_large = sum(1 for memory in known if memory * KB > largest >= memory)
    if 2 * too_large <= len(known):
        return KB
    remarks.append(
        "memory is read as bytes, because most jobs would fit on no node if it were KB (see --swf-memory)"
    )
    return 1


class SwfApplications(Arrivals):
    """The applications of a table of jobs, created on demand; equal values are shared to save memory."""

    def __init__(self, jobs: JobTable, options: SwfOptions, unit: int, origin: float) -> None:
        """Prepare the iteration; `unit` is the memory unit in bytes, `origin` the trace's start time (s)."""
        self._jobs = jobs
        self._options = options
        self._unit = unit
        self._origin = _nanoseconds(origin)
        self._texts: dict[tuple[str, tuple[int, ...]], str] = {}
        self._groups: dict[str, tuple[str, ...]] = {}
        self._resources: dict[int, Resource] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[WorkloadApplication]:
        return map(self._application, self._jobs)

    def _application(self, job: Job) -> WorkloadApplication:
        group = self._fill(self._options.group, job)
        tasks = WorkloadTaskGroup("task", job.processors, self._resource(job.memory), _runtime(job))
        return WorkloadApplication(
            id=f"job-{job.number}",
            submit=_nanoseconds(job.submit) - self._origin,
            tasks=(tasks,),
            queue=self._fill(self._options.queue, job),
            user=self._fill(self._options.user, job),
            groups=self._groups.setdefault(group, (group,) if group else ()),
            gang=JOBS[self._options.jobs],
            recorded_wait=_nanoseconds(job.wait) if job.wait >= 0 else None,
        )

    def _fill(self, template: str, job: Job) -> str:
        values = (job.queue, job.user, job.group, job.application, job.partition)
        key = (template, values)
        text = self._texts.get(key)
        if text is None:
            named = {
                name: str(value) if value >= 0 else UNKNOWN
                for name, value in zip(FIELDS, values, strict=True)
            }
            text = self._texts[key] = template.format_map(named)
        return text

    def _resource(self, memory: int) -> Resource:
        amount = max(memory, 0) * self._unit
        known = self._resources.get(amount)
        if known is None:
            amounts = {"vcore": 1000, "memory": amount} if amount else {"vcore": 1000}
            known = self._resources[amount] = Resource(amounts)
        return known


def _runtime(job: Job) -> int:
    if job.runtime >= 0:
        return _nanoseconds(job.runtime)
    return _nanoseconds(job.requested_time if job.requested_time > 0 else DEFAULT_RUNTIME)


def _nanoseconds(seconds: float) -> int:
    return seconds * SECOND if isinstance(seconds, int) else round(seconds * SECOND)
