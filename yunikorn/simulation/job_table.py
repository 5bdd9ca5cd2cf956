"""Jobs of a trace as columns of numbers, in 88 bytes per job."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from yunikorn.simulation.trace_line import Job

_TYPES = "qdqddqqqqqq"
"""Array type codes of the columns, in the order of the fields of `Job`: integers and times."""


class JobTable:
    """Jobs stored in the order of the trace and iterated in order of submission."""

    def __init__(self) -> None:
        self._columns: list[array[Any]] = [array(kind) for kind in _TYPES]
        self._number, self._submit = self._columns[:2]
        self._lines = array("q")
        self._climbs = True
        """True while each job number is larger than the preceding one; allows lookups by binary search."""
        self._ordered = True
        self._known: dict[int, int] = {}
        """Lines by job number; filled once job numbers are no longer ascending."""

    def __len__(self) -> int:
        return len(self._number)

    def line_of(self, number: int) -> int | None:
        """Return the line of the job with that number, or None."""
        if not self._climbs:
            return self._known.get(number)
        place = bisect_left(self._number, number)
        found = place < len(self._number) and self._number[place] == number
        return self._lines[place] if found else None

    def add(self, job: Job, line: int) -> None:
        """Append a job whose number is not in the table yet."""
        if self._number:
            self._ordered = self._ordered and self._submit[-1] <= job.submit
            if self._climbs and job.number < self._number[-1]:
                self._climbs = False
                self._known = dict(zip(self._number, self._lines, strict=True))
        if not self._climbs:
            self._known[job.number] = line
        for column, value in zip(self._columns, job, strict=True):
            column.append(value)
        self._lines.append(line)

    @property
    def earliest(self) -> float:
        """Earliest submit time; the table must not be empty."""
        return _plain(min(self._submit))

    def __iter__(self) -> Iterator[Job]:
        if self._ordered:
            for row in zip(*self._columns, strict=True):
                yield _job(row)
            return
        submit = self._submit
        for place in sorted(range(len(self)), key=submit.__getitem__):
            yield _job(tuple(column[place] for column in self._columns))


def _job(row: tuple[float, ...]) -> Job:
    number, submit, processors, runtime, requested, *others = row
    job: tuple[float, ...] = (number, _plain(submit), processors, _plain(runtime), _plain(requested), *others)
    return Job._make(job)


def _plain(time: float) -> float:
    # Whole seconds become integers again, so that sums are exact.
    return int(time) if time.is_integer() else time
