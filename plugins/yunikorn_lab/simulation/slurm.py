"""Workloads from the output of Slurm's accounting command, `sacct --parsable2` or `--parsable`.

A job becomes an application with one task per node. The header names the columns, in any order. The tasks
of a job on several nodes start together, as an Atomic gang.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping

import attrs

from yunikorn.clock import SECOND
from yunikorn.errors import Problem, UsageError
from yunikorn.model.gang import ATOMIC
from yunikorn.resources import Resource
from yunikorn.text import number_of
from yunikorn_commands.input_source import InputError
from yunikorn_commands.workload_formats import delimiter_of
from yunikorn_lab.simulation.machines import (
    MAX_BYTES,
    NOTHING,
    UNLIMITED,
    parse_elapsed,
    parse_job_id,
    parse_memory,
    parse_moment,
    parse_tres,
    parse_whole,
)
from yunikorn_lab.simulation.trace_line import (
    MAX_SECONDS,
    UNKNOWN,
    BadLine,
    TraceApplications,
    TraceRow,
    check_templates,
    limit_tag,
    queue_template,
    read_lines,
    take_rows,
)
from yunikorn_lab.simulation.workload import Workload, WorkloadApplication, WorkloadNode, WorkloadTaskGroup

COLUMNS = (
    *("JobID", "User", "Account", "Partition", "QOS", "Submit", "Eligible", "Start", "End"),
    *("Elapsed", "Timelimit", "State"),
    *("NNodes", "AllocCPUS", "ReqCPUS", "ReqMem", "AllocTRES", "ReqTRES"),
)
COMMAND = f"sacct --allusers --allocations --parsable2 --starttime 2026-01-01 --format={','.join(COLUMNS)}"
"""Command that prints all columns that are read."""

FIELDS = {
    **{"user": "User", "account": "Account", "partition": "Partition", "qos": "QOS"},
    **{"group": "Group", "cluster": "Cluster", "wckey": "WCKey"},
}
"""Fields of the templates, and their columns."""

NEVER_RAN = ("PENDING", "REVOKED", "CONFIGURING")
RUNNING = ("RUNNING", "SUSPENDED", "COMPLETING", "STOPPED", "RESIZING", "STAGE_OUT", "SIGNALING")
ENDED = (
    *("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY"),
    *("DEADLINE", "BOOT_FAIL", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "LAUNCH_FAILED"),
)
STATES = (*NEVER_RAN, *RUNNING, *ENDED)

STEPS = "job steps left out"
WAITING = "jobs that never started, left out"
LATE = "jobs that were eligible after their submission, taken as submitted then"
TO_LIMIT = "jobs that still ran, their time limit taken"
UNFINISHED = "jobs that still ran, time until the report taken"
MORE_NODES = "jobs with more nodes than cores, run with one node for each core"
REPEATED = "repeated lines left out"
RERUN = "runs of requeued jobs, each an application"


@attrs.frozen
class SlurmOptions:
    """Settings for the conversion of jobs to applications; templates with the fields of `FIELDS`."""

    queue: str = "root.default"
    user: str = "{user}"
    group: str = "{account}"

    @property
    def templates(self) -> dict[str, str]:
        """Templates by option."""
        return {"--slurm-queue": self.queue, "--slurm-user": self.user, "--slurm-group": self.group}

    def check(self) -> None:
        """Raise `UsageError` for a template with an unknown field."""
        check_templates(self.templates, tuple(FIELDS))


def read_slurm(
    text: str, file: str, name: str, options: SlurmOptions, nodes: list[WorkloadNode], *, strict: bool = False
) -> Workload:
    """Read the workload of a list of jobs, to be run on `nodes`.

    Bad lines are skipped and counted. With `strict`, bad lines raise `InputError`. A list without jobs that
    ran raises `InputError` in both cases.
    """
    options.check()
    jobs = _Jobs(options, nodes)
    problems = take_rows(_rows(text, file, options), jobs.take)
    none = ", ".join(f"{count} {what}" for what, count in jobs.counts.items())
    nothing = f"contains no jobs that ran{none and f' ({none})'}"
    remarks = jobs.check(file, problems, nothing, strict=strict)
    check_nodes(nodes, file)
    return jobs.workload(name, "slurm", nodes, [*remarks, *jobs.remarks(file)])


def check_nodes(nodes: list[WorkloadNode], file: str) -> None:
    """Raise `InputError` if there are no nodes."""
    if not nodes:
        what_to_do = (
            "specify them with --nodes FILE: a scenario with `nodes`, a .machines file, or the output of "
            "sinfo --Node --format='%N|%c|%m|%G'"
        )
        raise InputError(file, [Problem("", f"describes no nodes: {what_to_do}")])


def _rows(text: str, file: str, options: SlurmOptions) -> Iterator[TraceRow | Problem]:
    content = text[:4000].encode()
    delimiter = delimiter_of(content)
    if not delimiter:
        layout = "JSON" if content.lstrip().startswith(b"{") else "columns of fixed width, or has no header"
        raise InputError(
            file, [Problem("", f"is no list of jobs with delimiters (it is {layout}): use {COMMAND}")]
        )
    return read_lines(text, delimiter, lambda header, line: _check_header(header, file, line, options))


_NEEDED = (
    ("JobID", "JobIDRaw"),
    ("Submit",),
    ("Elapsed", "ElapsedRaw", "End"),
    ("State",),
    ("AllocCPUS", "NCPUS", "AllocTRES", "ReqCPUS", "ReqTRES"),
)


def _check_header(header: list[str], file: str, line: int, options: SlurmOptions) -> None:
    missing = [" or ".join(names) for names in _NEEDED if not set(names) & set(header)]
    if "Elapsed" not in header and "ElapsedRaw" not in header and "Start" not in header:
        missing.append("Start")
    if missing:
        what = f"missing columns: {', '.join(missing)}; a command that prints all columns: {COMMAND}"
        raise InputError(file, [Problem("", what, line)])
    unusable = [
        f"{option} '{template}' uses {{{field}}}, but {file} has no column {column}"
        for option, template in options.templates.items()
        for field, column in FIELDS.items()
        if f"{{{field}}}" in template
        and column not in header
        # The defaults of user and group are those of a full list, and empty in a shorter one.
        and template != getattr(SlurmOptions(), option.rpartition("-")[2])
    ]
    if unusable:
        raise UsageError("\n".join(unusable))


class _Jobs(TraceApplications):
    """Conversion of rows to applications."""

    def __init__(self, options: SlurmOptions, nodes: list[WorkloadNode]) -> None:
        super().__init__()
        self._options = options
        self._queue = queue_template(options.queue)
        self._has = {
            "memory": all(node.resources.get("memory", 0) for node in nodes),
            "gpu": any(node.resources.get("gpu", 0) for node in nodes),
        }
        self._left_out: Counter[str] = Counter()
        self._runs: dict[str, set[tuple[int, int | None]]] = {}

    def remarks(self, file: str) -> list[str]:
        """Return remarks on amounts that the nodes do not have."""
        where = {"memory": "not every node has memory", "gpu": "no node has the type gpu"}
        return [
            f"{file}: {kind} of {number_of(count, 'job')} is left out, because {where[kind]}"
            for kind, count in sorted(self._left_out.items())
        ]

    def take(self, row: TraceRow) -> None:
        """Add a job, if it ran; raises `BadLine`."""
        name, is_step, is_open = parse_job_id(row.text("JobID") or row.text("JobIDRaw"))
        if is_step:
            self.counts[STEPS] += 1
            return
        state = (row.text("State").split() or [""])[0].rstrip("+")
        if state not in STATES:
            raise BadLine(
                f"expected a state such as COMPLETED in column State, got '{row.text('State')[:40]}'"
            )
        submit, start = parse_moment(row.text("Submit"), "Submit"), parse_moment(row.text("Start"), "Start")
        if submit is None:
            raise BadLine(f"expected a time in column Submit, got '{row.text('Submit')}'")
        runtime = _runtime(row, start)
        if (
            is_open
            or state in NEVER_RAN
            or runtime is None
            or (not runtime and _has_no_start(row, start, state))
        ):
            self.counts[WAITING] += 1
            return
        limit = _limit(row) if state in RUNNING else None
        tasks = self._tasks(row, max(runtime, limit or 0))
        runs = self._runs.setdefault(name, set())
        if (submit, start) in runs:
            self.counts[REPEATED] += 1
            return
        runs.add((submit, start))
        if state in RUNNING:
            self.counts[UNFINISHED if limit is None else TO_LIMIT] += 1
        eligible = parse_moment(row.text("Eligible"), "Eligible")
        if eligible is not None and submit < eligible <= (start or eligible):
            self.counts[LATE] += 1
            submit = eligible
        self.counts[RERUN] += len(runs) > 1
        self._add(row, f"job-{name}" + (f"-run-{len(runs)}" if len(runs) > 1 else ""), submit, start, tasks)

    def _add(
        self, row: TraceRow, name: str, submit: int, start: int | None, tasks: tuple[WorkloadTaskGroup, ...]
    ) -> None:
        values = {field: row.text(column) or UNKNOWN for field, column in FIELDS.items()}
        group = self._options.group.format_map(values)
        known = group not in ("", UNKNOWN)
        self.applications.append(
            WorkloadApplication(
                id=name,
                submit=submit * SECOND,
                tasks=tasks,
                tags=limit_tag(_stated_limit(row)),
                queue=self._queue(values),
                user=self._options.user.format_map(values),
                groups=(group,) if known else (),
                gang=ATOMIC if sum(group.count for group in tasks) > 1 else "",
                recorded_wait=None if start is None or start < submit else (start - submit) * SECOND,
            )
        )

    def _tasks(self, row: TraceRow, runtime: int) -> tuple[WorkloadTaskGroup, ...]:
        """Return one task per node; nodes get equal parts, the first ones one core or GPU more if needed."""
        allocated = parse_tres(row.text("AllocTRES"), "AllocTRES")
        tres = {**parse_tres(row.text("ReqTRES"), "ReqTRES"), **allocated}
        cores = _first(row, ("AllocCPUS", "NCPUS")) or tres.get("cpu") or _first(row, ("ReqCPUS",))
        if not cores:
            raise BadLine(
                "expected a number of cores above 0 in column AllocCPUS, ReqCPUS or AllocTRES, got none"
            )
        count = _first(row, ("NNodes", "AllocNodes")) or tres.get("node") or 1
        if count > cores:
            self.counts[MORE_NODES] += 1
            count = cores
        memory = self._if_any("memory", _memory(row, tres, cores, count))
        gpus = self._if_any("gpu", tres.get("gpu", 0))
        groups: list[WorkloadTaskGroup] = []
        for index, (number, amounts) in enumerate(_split(count, cores, gpus), 1):
            found = Resource({**amounts, **({"memory": -(-memory // count)} if memory else {})})
            groups.append(WorkloadTaskGroup(f"task-{index}", number, self.shared(found), runtime * SECOND))
        return tuple(groups)

    def _if_any(self, kind: str, amount: int) -> int:
        if amount and not self._has[kind]:
            self._left_out[kind] += 1
            return 0
        return amount


def _split(count: int, cores: int, gpus: int) -> Iterator[tuple[int, dict[str, int]]]:
    """Yield numbers of equal tasks and their amounts, so that cores and GPUs are distributed evenly."""
    more_cores, more_gpus = cores % count, gpus % count
    edges = sorted({0, more_cores, more_gpus, count})
    for low, high in itertools.pairwise(edges):
        amounts = {"vcore": 1000 * (cores // count + (low < more_cores))}
        each = gpus // count + (low < more_gpus)
        yield high - low, {**amounts, **({"gpu": each} if each else {})}


def _memory(row: TraceRow, tres: Mapping[str, int], cores: int, nodes: int) -> int:
    """Return the memory of all nodes of a job (bytes); 0 if it is not known."""
    if tres.get("mem"):
        return tres["mem"]
    text = row.text("ReqMem")
    if text in NOTHING or text.startswith("?"):
        return 0
    amount, scope = parse_memory(text, "ReqMem")
    return min(amount * {"n": nodes, "c": cores}.get(scope, 1), MAX_BYTES)


def _runtime(row: TraceRow, start: int | None) -> int | None:
    """Return the run time (s), without times of suspension if the list has them; None if it is not known."""
    raw = parse_whole(row.text("ElapsedRaw"), "ElapsedRaw", MAX_SECONDS)
    if raw is not None:
        return raw
    elapsed = parse_elapsed(row.text("Elapsed"), "Elapsed")
    if elapsed is not None:
        return elapsed
    end = parse_moment(row.text("End"), "End")
    if start is None or end is None:
        return None
    if end < start:
        raise BadLine("expected an End that is not before the Start, got an earlier time")
    return end - start


def _has_no_start(row: TraceRow, start: int | None, state: str) -> bool:
    """Return True for a job without any run time that was ended before it started."""
    allocated = _first(row, ("AllocCPUS",))
    never = start is None if "Start" in row else False
    return never or state == "CANCELLED" or allocated == 0


def _limit(row: TraceRow) -> int | None:
    """Return the time limit of a job (s); None if it has none, or the list has no such column."""
    raw = row.text("TimelimitRaw")
    if raw and raw not in UNLIMITED:
        minutes = parse_whole(raw, "TimelimitRaw", MAX_SECONDS // 60)
        return None if minutes is None else 60 * minutes
    text = row.text("Timelimit")
    return None if text in UNLIMITED else parse_elapsed(text, "Timelimit")


def _stated_limit(row: TraceRow) -> int:
    """Return the time limit of a job (s); 0 if it has none that can be read."""
    try:
        return _limit(row) or 0
    except BadLine:
        return 0


def _first(row: TraceRow, columns: tuple[str, ...]) -> int | None:
    for column in columns:
        found = parse_whole(row.text(column), column)
        if found:
            return found
    return None
