"""Dependencies of the jobs of a Batsim workload, without those that cannot be followed.

Batsim itself leaves the notation of dependencies to its users. Read is `dependencies`, a key of a job or of
its `extra_data`: a list of ids as in `id`, with or without the name of the workload before them (`w0!12`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from yunikorn.simulation.dependencies import find_cycles
from yunikorn.simulation.trace_line import BadLine
from yunikorn.simulation.workload import WorkloadApplication

KEY = "dependencies"
MISSING = "predecessors that are not in the workload, ignored"
CIRCULAR = "predecessors in a circle, ignored"
SHOWN = 3
PREFIX = "job-"
"""Start of the ids of applications, before the id of the job."""


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
    circular = _remove_circles(after, counts)
    counts.update({MISSING: len(missing)} if missing else {})
    remarks = []
    for examples, what in ((missing, MISSING), (circular, CIRCULAR)):
        if examples:
            more = "; ..." if len(examples) > SHOWN else ""
            remarks.append(f"{file}: {counts[what]} {what}: {'; '.join(examples[:SHOWN])}{more}")
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


def _remove_circles(after: dict[str, list[str]], counts: Counter[str]) -> list[str]:
    """Remove the predecessors in circles from `after`; return a description of each circle."""
    found = []
    for circle in find_cycles(after):
        members = set(circle)
        for name in circle:
            kept = [other for other in after[name] if other not in members]
            counts[CIRCULAR] += len(after[name]) - len(kept)
            after[name] = kept
        if len(circle) == 1:
            found.append(f"{_job(circle[0])} follows itself")
        else:
            more = ", ..." if len(circle) > 2 * SHOWN else ""
            names = ", ".join(name.removeprefix(PREFIX) for name in circle[: 2 * SHOWN])
            found.append(f"the jobs {names}{more} wait for each other")
    return found


def _job(name: str) -> str:
    return f"job {name.removeprefix(PREFIX)}"
