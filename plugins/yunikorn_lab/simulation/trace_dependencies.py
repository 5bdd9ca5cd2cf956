"""Predecessors of the jobs of a trace, without those that cannot be followed.

In a trace in the Standard Workload Format they are column 17, unless that has one value for nearly all jobs,
which says nothing about any of them. Batsim itself leaves the notation to its users. Read is `dependencies`,
a key of a job or of its `extra_data`: a list of ids as in `id`, with or without the name of the workload
before them (`w0!12`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import attrs

from yunikorn.errors import Problem
from yunikorn.text import number_of
from yunikorn_lab.simulation.dependencies import find_cycles
from yunikorn_lab.simulation.swf_jobs import JobTable
from yunikorn_lab.simulation.trace_line import BadLine
from yunikorn_lab.simulation.workload import WorkloadApplication

KEY = "dependencies"
CIRCULAR = "predecessors in a circle, ignored"
SHOWN = 3
PREFIX = "job-"
"""Start of the ids of applications, before the id of the job."""


def _remove_circles(after: dict[str, list[str]], counts: Counter[str]) -> dict[str, str]:
    """Remove predecessors in circles from `after`; returns descriptions of the circles by a job of each."""
    found = {}
    for circle in find_cycles(after):
        members = set(circle)
        for name in circle:
            kept = [other for other in after[name] if other not in members]
            counts[CIRCULAR] += len(after[name]) - len(kept)
            after[name] = kept
        if len(circle) == 1:
            found[circle[0]] = f"{_job(circle[0])} follows itself"
        else:
            more = ", ..." if len(circle) > 2 * SHOWN else ""
            names = ", ".join(name.removeprefix(PREFIX) for name in circle[: 2 * SHOWN])
            found[circle[0]] = f"the jobs {names}{more} wait for each other"
    return found


def _remarks(
    file: str, counts: Mapping[str, int], missing: tuple[str, Sequence[object]], circular: Sequence[object]
) -> list[str]:
    """Return remarks on predecessors that are missing or in circles, with the first few examples."""
    return [
        f"{file}: {counts[what]} {what}: {'; '.join(map(str, examples[:SHOWN]))}"
        + ("; ..." if len(examples) > SHOWN else "")
        for what, examples in (missing, (CIRCULAR, circular))
        if examples
    ]


def _job(name: str) -> str:
    return f"job {name.removeprefix(PREFIX)}"


# -- Standard Workload Format -------------------------------------------------------------------------------

AUTO, ALL, NONE = "auto", "all", "none"
DEPENDENCIES = (AUTO, ALL, NONE)
"""Predecessors that count: those of a column that is no filler, all of them, or none."""
FILLER_SHARE = 0.9
"""Part of the jobs from which on one value of the column is a filler."""
FILLER_JOBS = 20
"""Number of jobs from which on the column may be a filler; a few jobs may well follow the same one."""

FILLED = "predecessors that are a filler, ignored"
NOT_IN_TRACE = "predecessors that are not in the trace, ignored"
LEFT_OUT = "predecessors left out by their status, ignored"


class SwfDependencies:
    """Checks the predecessors of all jobs; those that cannot be followed are removed from the table."""

    def __init__(self, jobs: JobTable, left_out: Collection[int], which: str = AUTO) -> None:
        """Check `jobs`; `left_out` are the numbers of jobs that were left out by their status.

        `which` is one of `DEPENDENCIES`.
        """
        self._jobs = jobs
        self._left_out = left_out
        self.counts: Counter[str] = Counter()
        self._missing: list[Problem] = []
        self._filler: tuple[int, ...] = ()
        if which == NONE:
            jobs.after.clear()
        elif which == AUTO:
            self._remove_filler()
        self._remove_missing()
        after = {str(number): list(map(str, before)) for number, before in jobs.after.items()}
        circles = _remove_circles(after, self.counts)
        self.circular = [self._problem(int(first), what) for first, what in circles.items()]
        """Jobs that wait for themselves or for each other."""
        for name, before in after.items() if circles else ():
            self._keep(int(name), list(map(int, before)))

    def remarks(self, file: str) -> list[str]:
        """Return remarks for the user, with the first few examples."""
        found = []
        jobs, followers = len(self._jobs), len(self._jobs.after)
        if self._filler:
            value = "&".join(map(str, self._filler))
            found.append(
                f"{file}: the preceding job (column 17) is {value} for {self.counts[FILLED]} of {jobs} jobs: "
                f"taken for a filler, and ignored (see --swf-dependencies {ALL})"
            )
        if followers:
            found.append(
                f"{file}: {followers} of {number_of(jobs, 'job')} follow another one (see --swf-dependencies "
                f"{NONE})"
            )
        if self.counts[LEFT_OUT]:
            found.append(f"{file}: {self.counts[LEFT_OUT]} {LEFT_OUT}")
        return [*found, *_remarks(file, self.counts, (NOT_IN_TRACE, self._missing), self.circular)]

    def _remove_filler(self) -> None:
        """Remove the predecessors of all jobs that share them with nearly all others."""
        after, jobs = self._jobs.after, len(self._jobs)
        if jobs < FILLER_JOBS or len(after) < FILLER_SHARE * jobs:
            return
        value, count = Counter(after.values()).most_common(1)[0]
        if count >= FILLER_SHARE * jobs:
            self._filler, self.counts[FILLED] = value, count
            for number in [number for number, before in after.items() if before == value]:
                del after[number]

    def _remove_missing(self) -> None:
        for number, before in list(self._jobs.after.items()):
            known = []
            for other in before:
                if self._jobs.line_of(other) is not None:
                    known.append(other)
                elif other in self._left_out:
                    self.counts[LEFT_OUT] += 1
                elif other:  # 0 stands for no job in many logs
                    self.counts[NOT_IN_TRACE] += 1
                    self._missing.append(self._problem(number, f"job {number} follows job {other}"))
            self._keep(number, known)

    def _keep(self, number: int, before: list[int]) -> None:
        if before:
            self._jobs.after[number] = tuple(before)
        else:
            del self._jobs.after[number]

    def _problem(self, number: int, message: str) -> Problem:
        return Problem("", message, self._jobs.line_of(number) or 0)


# -- Batsim -------------------------------------------------------------------------------------------------

NOT_IN_WORKLOAD = "predecessors that are not in the workload, ignored"


def read_dependencies(job: Mapping[str, Any], extra: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the ids of the applications that a job follows; raises `BadLine`."""
    value = job.get(KEY)
    if value is None:
        value = extra.get(KEY)
    if value is None:
        return ()
    found: dict[str, None] = {}
    for each in value if isinstance(value, list) else [None]:
        if isinstance(each, bool) or not isinstance(each, (str, int)) or each == "":
            raise BadLine(f"expected a list of ids of jobs in '{KEY}', such as [1, 2]")
        found[f"{PREFIX}{each}"] = None
    return tuple(found)


def follow(
    applications: Sequence[WorkloadApplication], file: str, counts: Counter[str]
) -> tuple[list[WorkloadApplication], list[str]]:
    """Return the applications with the predecessors that can be followed, and remarks on the others.

    Predecessors that are missing or wait for each other are left out and counted in `counts`.
    """
    names = _Names(application.id for application in applications)
    after: dict[str, list[str]] = {}
    missing: list[str] = []
    for application in applications:
        found = [(other, names.find(other)) for other in application.after]
        after[application.id] = list(dict.fromkeys(name for _, name in found if name))
        missing += [f"{_job(application.id)} follows {_job(other)}" for other, name in found if not name]
    circular = list(_remove_circles(after, counts).values())
    counts.update({NOT_IN_WORKLOAD: len(missing)} if missing else {})
    remarks = _remarks(file, counts, (NOT_IN_WORKLOAD, missing), circular)
    return [attrs.evolve(each, after=tuple(after[each.id])) for each in applications], remarks


class _Names:
    """Ids of applications, which are found with and without the name of the workload."""

    def __init__(self, names: Iterable[str]) -> None:
        self._known = set(names)
        self._plain: dict[str, str] = {}
        for name in self._known:
            plain = _plain(name)
            self._plain[plain] = "" if plain in self._plain else name

    def find(self, name: str) -> str:
        """Return the id meant by `name`; empty if there is none, or more than one."""
        return name if name in self._known else self._plain.get(_plain(name), "")


def _plain(name: str) -> str:
    return PREFIX + name.removeprefix(PREFIX).rpartition("!")[2]
