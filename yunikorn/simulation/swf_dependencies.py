"""Predecessors of the jobs of a trace (column 17), without those that cannot be followed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from yunikorn.errors import Problem
from yunikorn.simulation.dependencies import find_cycles
from yunikorn.simulation.swf_jobs import JobTable

MISSING = "predecessors that are not in the trace, ignored"
LEFT_OUT = "predecessors left out by their status, ignored"
CIRCULAR = "predecessors in a circle, ignored"
SHOWN = 3


class SwfDependencies:
    """Checks the predecessors of all jobs; those that cannot be followed are removed from the table."""

    def __init__(self, jobs: JobTable, left_out: Collection[int]) -> None:
        """Check `jobs`; `left_out` are the numbers of jobs that were left out by their status."""
        self._jobs = jobs
        self._left_out = left_out
        self.counts: Counter[str] = Counter()
        self.circular: list[Problem] = []
        """Jobs that wait for themselves or for each other."""
        self._missing: list[Problem] = []
        self._remove_missing()
        self._remove_circles()

    def remarks(self, file: str) -> list[str]:
        """Return remarks for the user, with the first few examples."""
        found = []
        if self.counts[LEFT_OUT]:
            found.append(f"{file}: {self.counts[LEFT_OUT]} {LEFT_OUT}")
        for problems, what in ((self._missing, MISSING), (self.circular, CIRCULAR)):
            if problems:
                examples = "; ".join(map(str, problems[:SHOWN]))
                more = "; ..." if len(problems) > SHOWN else ""
                found.append(f"{file}: {self.counts[what]} {what}: {examples}{more}")
        return found

    def _remove_missing(self) -> None:
        for number, before in list(self._jobs.after.items()):
            known = []
            for other in before:
                if self._jobs.line_of(other) is not None:
                    known.append(other)
                elif other in self._left_out:
                    self.counts[LEFT_OUT] += 1
                elif other:  # 0 stands for no job in many logs
                    self.counts[MISSING] += 1
                    self._missing.append(self._problem(number, f"job {number} follows job {other}"))
            self._keep(number, known)

    def _remove_circles(self) -> None:
        after = {str(number): list(map(str, before)) for number, before in self._jobs.after.items()}
        for circle in find_cycles(after):
            members = set(map(int, circle))
            for number in members:
                before = self._jobs.after[number]
                kept = [other for other in before if other not in members]
                self.counts[CIRCULAR] += len(before) - len(kept)
                self._keep(number, kept)
            first = int(circle[0])
            if len(circle) == 1:
                what = f"job {first} follows itself"
            else:
                shown = ", ".join(circle[: 2 * SHOWN]) + (", ..." if len(circle) > 2 * SHOWN else "")
                what = f"the jobs {shown} wait for each other"
            self.circular.append(self._problem(first, what))

    def _keep(self, number: int, before: list[int]) -> None:
        if before:
            self._jobs.after[number] = tuple(before)
        else:
            del self._jobs.after[number]

    def _problem(self, number: int, message: str) -> Problem:
        return Problem("", message, self._jobs.line_of(number) or 0)
