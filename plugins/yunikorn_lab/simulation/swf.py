"""Workloads from traces in the Standard Workload Format.

A job becomes an application with one single-processor task per processor, which start together by default.
`swf_jobs` parses the lines, `swf_memory` chooses the meaning of the memory columns, and `trace_dependencies`
checks predecessors. Missing values are replaced as described here and in docs/workloads.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import attrs

from yunikorn.clock import SECOND
from yunikorn.errors import Problem, UsageError
from yunikorn.model.gang import ATOMIC
from yunikorn.resources import Resource
from yunikorn.text import number_of
from yunikorn_commands.input_source import LINES_SHOWN, InputError, remarks_on
from yunikorn_lab.simulation.arrivals import Arrivals
from yunikorn_lab.simulation.machines import MAX_NODES, nodes_from_header
from yunikorn_lab.simulation.swf_jobs import (
    CANCELLED,
    COLUMNS,
    STATUSES,
    JobTable,
    SwfJob,
    has_fraction,
    parse_job,
    split_line,
    status_of,
)
from yunikorn_lab.simulation.swf_memory import AUTO, SETTINGS, Machine, MemoryReading, choose
from yunikorn_lab.simulation.swf_node_columns import ExtraColumns
from yunikorn_lab.simulation.trace_dependencies import AUTO as NO_FILLER
from yunikorn_lab.simulation.trace_dependencies import DEPENDENCIES, SwfDependencies
from yunikorn_lab.simulation.trace_line import UNKNOWN, BadLine, check_templates, date_of, limit_tag
from yunikorn_lab.simulation.workload import Workload, WorkloadApplication, WorkloadNode, WorkloadTaskGroup

_START = re.compile(r"[;#]\s*UnixStartTime\s*:\s*(\d{1,12})(?!\d)", re.IGNORECASE)
DEFAULT_RUNTIME = 3600
"""Run time (seconds) of a job whose run time and requested time are both unknown."""

FIELDS = ("queue", "user", "group", "application", "partition")
MEMORY = tuple(SETTINGS)
JOBS = {"atomic": ATOMIC, "tasks": ""}
"""Gang style of the tasks of a job: `atomic` starts all of them at once, and `tasks` one by one."""

SKIPPED = "lines skipped"
BACKWARDS = "submit times running backwards"
REQUESTED_TIME = "run times unknown, requested time taken"
NO_TIME = f"run times unknown, {DEFAULT_RUNTIME} s taken"
FRACTIONS = "fractional processors, rounded up"
LEFT_OUT = "jobs left out by their status"
KILLED = "run times cut at the requested time"

ALL, NOT = "all", "not-"


def parse_statuses(text: str) -> frozenset[int] | None:
    """Return the statuses of the jobs to keep, None for all; raises `UsageError`.

    `text` is `all`, or names and numbers of statuses with commas: those to keep, or each with `not-` those
    to leave out.
    """
    if text == ALL:
        return None
    parts = [part.strip() for part in text.split(",")]
    values = {str(value): (value,) for values in STATUSES.values() for value in values} | STATUSES
    chosen = {part.removeprefix(NOT) for part in parts}
    negated = {part.startswith(NOT) for part in parts}
    if not chosen <= set(values) or len(negated) > 1:
        raise UsageError(
            f"--swf-status '{text[:80]}': expected {ALL}, a list of {', '.join(STATUSES)} or of numbers in "
            f"column 11, or the same each with {NOT}, such as {NOT}cancelled"
        )
    found = frozenset(value for part in chosen for value in values[part])
    return found if negated == {False} else frozenset(STATUS_VALUES) - found


STATUS_VALUES = tuple(value for values in STATUSES.values() for value in values)


@attrs.frozen
class SwfOptions:
    """Settings for the conversion of jobs to applications.

    `queue`, `user` and `group` are templates with the fields `{queue}`, `{user}`, `{group}`, `{application}`
    and `{partition}`, which are columns of the job. `memory`, one of `MEMORY`, says what the memory columns
    count. `jobs` is `atomic` for tasks that start together, or `tasks` for tasks that start independently.
    `status` names the jobs to keep, as for `parse_statuses`. With `kill_at_limit` a job ends at its requested
    time. `dependencies`, one of `DEPENDENCIES`, says which preceding jobs count.
    """

    queue: str = "root.default"
    user: str = "user{user}"
    group: str = "group{group}"
    memory: str = AUTO
    jobs: str = "atomic"
    status: str = ALL
    kill_at_limit: bool = False
    dependencies: str = NO_FILLER

    @property
    def has_job_options(self) -> bool:
        """True if jobs are left out or cut."""
        return self.status != ALL or self.kill_at_limit

    def check(self) -> None:
        """Raise `UsageError` for a template with an unknown field, or for an unknown setting."""
        check_templates({"queue": self.queue, "user": self.user, "group": self.group}, FIELDS)
        if self.memory not in MEMORY:
            raise UsageError(f"unknown meaning of memory '{self.memory}'; known: {', '.join(MEMORY)}")
        if self.jobs not in JOBS:
            raise UsageError(f"unknown kind of jobs '{self.jobs}'; known: {', '.join(JOBS)}")
        if self.dependencies not in DEPENDENCIES:
            raise UsageError(
                f"unknown choice of preceding jobs '{self.dependencies}'; known: {', '.join(DEPENDENCIES)}"
            )
        parse_statuses(self.status)


def read_swf(
    text: str, file: str, name: str, options: SwfOptions, nodes: list[WorkloadNode], *, strict: bool = False
) -> Workload:
    """Read the workload of a trace; an empty list of `nodes` is replaced by the nodes of the trace's header.

    Bad lines are skipped and counted, and predecessors in a circle are ignored. With `strict`, both raise
    `InputError`. A trace without jobs, or without any description of nodes, raises `InputError` in any case.
    """
    options.check()
    lines = _Lines(text, options)
    jobs, problems = lines.jobs, lines.problems
    if not jobs:
        raise InputError(file, problems or [Problem("", lines.why_empty())])
    nodes = nodes or nodes_from_header(lines.header)
    if not nodes:
        what_to_do = (
            "specify them with --nodes FILE, put a FILE.machines beside the trace, "
            f"or add MaxNodes and MaxProcs to the header, for at most {MAX_NODES:,} nodes"
        )
        raise InputError(file, [Problem("", f"the header describes no nodes: {what_to_do}")])
    dependencies = SwfDependencies(jobs, lines.left_out, options.dependencies)
    if strict and (problems or dependencies.circular):
        raise InputError(file, sorted([*problems, *dependencies.circular], key=lambda one: one.line))
    columns = lines.extras.apply(jobs, lines.header, nodes)
    choice = choose(options.memory, jobs, nodes, lines.header, f" ({columns})" if columns else "")
    remarks = [
        *remarks_on(file, problems),
        *lines.remarks(file),
        *dependencies.remarks(file),
        *filter(None, [choice.note, _on_speeds(nodes)]),
    ]
    origin = jobs.earliest
    applications = SwfApplications(jobs, options, choice.reading, nodes, origin)
    counts = dict(lines.counts + dependencies.counts)
    began = date_of(origin, _start_of(lines.header))
    return Workload(
        name, "swf", nodes, applications, remarks=remarks, counts=counts, origin=origin, began=began
    )


def _start_of(header: list[str]) -> float:
    """Return the Unix time at which a trace begins; 0 if its header does not say it."""
    return next((float(match[1]) for each in header if (match := _START.match(each.strip()))), 0.0)


def _on_speeds(nodes: list[WorkloadNode]) -> str:
    speeds = {node.speed for node in nodes}
    if speeds == {1.0}:
        return ""
    low, high = min(speeds), max(speeds)
    of = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
    return f"run times are divided by the speed of the nodes: {of}"


class _Lines:
    """The lines of a trace: header, jobs, and problems."""

    def __init__(self, text: str, options: SwfOptions) -> None:
        self.jobs = JobTable()
        self.problems: list[Problem] = []
        self.counts: Counter[str] = Counter()
        self.extras = ExtraColumns()
        """Columns after the 18th of the jobs."""
        self.header: list[str] = []
        """Lines before the first job."""
        self.left_out: set[int] = set()
        """Numbers of the jobs that were left out by their status."""
        self._keep = parse_statuses(options.status)
        self._kills = options.kill_at_limit
        self._statuses: Counter[int] = Counter()
        self._cancelled_early = 0
        self._latest = 0.0
        self._words: dict[str, int] = {}
        """Header lines without a semicolon, by their text."""
        for number, line in enumerate(_lines(text), 1):
            line = line.strip()
            if not line or line[0] in ";#":
                if line and not self.jobs:
                    self.header.append(line)
            elif not self._is_header(line, number):
                self._read(line, number)

    def _is_header(self, line: str, number: int) -> bool:
        """Note a line of words; it is a header before the first job, or if it repeats such a header."""
        if line[0].isdigit() or line[0] in "-+.":
            return False
        if not self.jobs and not self.problems:
            self._words.setdefault(line, number)
            self.header.append(line)
        return line in self._words

    def _read(self, line: str, number: int) -> None:
        try:
            fields = split_line(line)
            if self._keep is not None and status_of(fields) not in self._keep:
                self._leave_out(fields)
                return
            job = parse_job(fields)
            first = self.jobs.line_of(job.number)
            if first is not None:
                raise BadLine(f"job number {job.number} was already used on line {first}")
            fraction = has_fraction(fields)
        except BadLine as error:
            self.problems.append(Problem("", str(error), number))
            self.counts[SKIPPED] += 1
            return
        if job.submit < self._latest:
            self.counts[BACKWARDS] += 1
            self.problems.append(Problem("", _backwards(job.submit, self._latest), number))
        self._latest = max(self._latest, job.submit)
        self.counts.update(self._notes_on(job, fraction))
        self._statuses[job.status] += 1
        self._cancelled_early += job.status == CANCELLED and job.runtime <= 0
        self.jobs.add(job, number)
        self.extras.add(fields[COLUMNS:])

    def _leave_out(self, fields: list[str]) -> None:
        self.counts[LEFT_OUT] += 1
        if fields[0].isdecimal():
            self.left_out.add(int(fields[0][:20]))

    def _notes_on(self, job: SwfJob, fraction: bool) -> Iterator[str]:
        if job.runtime < 0:
            yield REQUESTED_TIME if job.requested_time > 0 else NO_TIME
        if fraction:
            yield FRACTIONS
        if self._kills and job.runtime > job.requested_time > 0:
            yield KILLED

    def why_empty(self) -> str:
        """Return why there are no jobs."""
        if self.counts[LEFT_OUT]:
            return f"contains no jobs of this status: --swf-status leaves out all {self.counts[LEFT_OUT]}"
        return "contains no jobs: expected 18 columns of numbers in each line"

    def remarks(self, file: str) -> list[str]:
        """Return remarks on headers, and on values that are read in a way that the user may not expect."""
        words = list(self._words.items())[:LINES_SHOWN]
        found = [f"{file}: line {number}: taken as a header: {line[:60]}" for line, number in words]
        counts = self.counts
        if counts[BACKWARDS]:
            found.append(
                f"{file}: jobs with an earlier submit time than a line above are included, each at its own "
                "time"
            )
        if counts[FRACTIONS]:
            found.append(
                f"{file}: the fractional number of processors of {number_of(counts[FRACTIONS], 'job')} is "
                "rounded up"
            )
        if counts[LEFT_OUT]:
            found.append(f"{file}: left out {number_of(counts[LEFT_OUT], 'job')} by status")
        if self._statuses[CANCELLED]:
            early = f", {self._cancelled_early} of them before they ran" if self._cancelled_early else ""
            found.append(
                f"{file}: {number_of(self._statuses[CANCELLED], 'job')} of status cancelled{early}, treated "
                f"like all others (see --swf-status {NOT}cancelled)"
            )
        return found


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


def _backwards(submit: float, latest: float) -> str:
    return (
        f"expected a submit time of at least {latest:.12g} in column 2, as on an earlier line, "
        f"got {submit:.12g}"
    )


class SwfApplications(Arrivals):
    """The applications of a table of jobs, created on demand; equal values are shared to save memory."""

    def __init__(
        self,
        jobs: JobTable,
        options: SwfOptions,
        memory: MemoryReading | None,
        nodes: list[WorkloadNode],
        origin: float,
    ) -> None:
        """Prepare the iteration; `memory` None leaves memory out, `origin` is the trace's start time (s)."""
        self._jobs = jobs
        self._options = options
        self._memory = memory
        self._node_processors = Machine.of(nodes).node_processors
        self._origin = _nanoseconds(origin)
        self._texts: dict[tuple[str, tuple[int, ...]], str] = {}
        self._groups: dict[str, tuple[str, ...]] = {}
        self._resources: dict[int, Resource] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[WorkloadApplication]:
        return map(self._application, self._jobs)

    def _application(self, job: SwfJob) -> WorkloadApplication:
        group = self._fill(self._options.group, job)
        tasks = WorkloadTaskGroup("task", job.processors, self._resource(job), self._runtime(job))
        return WorkloadApplication(
            id=f"job-{job.number}",
            submit=_nanoseconds(job.submit) - self._origin,
            tasks=(tasks,),
            tags=limit_tag(job.requested_time),
            queue=self._fill(self._options.queue, job),
            user=self._fill(self._options.user, job),
            groups=self._groups.setdefault(group, (group,) if group else ()),
            gang=JOBS[self._options.jobs],
            recorded_wait=_nanoseconds(job.wait) if job.wait >= 0 else None,
            after=tuple([f"job-{number}" for number in job.after]),
            think=_nanoseconds(max(job.think, 0)) if job.after else 0,
        )

    def _fill(self, template: str, job: SwfJob) -> str:
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

    def _resource(self, job: SwfJob) -> Resource:
        amount = 0 if self._memory is None else self._memory.per_task(job, self._node_processors)
        known = self._resources.get(amount)
        if known is None:
            amounts = {"vcore": 1000, "memory": amount} if amount else {"vcore": 1000}
            known = self._resources[amount] = Resource(amounts)
        return known

    def _runtime(self, job: SwfJob) -> int:
        if job.runtime < 0:
            return _nanoseconds(job.requested_time if job.requested_time > 0 else DEFAULT_RUNTIME)
        if self._options.kill_at_limit and job.runtime > job.requested_time > 0:
            return _nanoseconds(job.requested_time)
        return _nanoseconds(job.runtime)


def _nanoseconds(seconds: float) -> int:
    return seconds * SECOND if isinstance(seconds, int) else round(seconds * SECOND)
