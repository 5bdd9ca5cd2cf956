"""Jobs of the Standard Workload Format, version 2.2: their lines, and a table of them.

A line has 18 columns of numbers; -1 stands for an unknown value. Whole numbers may be written as floats. Of
the columns after the 18th only the nodes are read: `4:ppn=8` here, and columns of numbers in
`swf_node_columns`. Times are in seconds.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from yunikorn.resources import INT64_MAX
from yunikorn_lab.simulation.trace_line import MAX_PROCESSORS, MAX_SECONDS, BadLine

COLUMNS = 18
MAX_MEMORY = 10**15
MOST_PREDECESSORS = 100_000
CANCELLED = 5
STATUSES = {
    "failed": (0,),
    "completed": (1,),
    "partial": (2, 3, 4),
    "cancelled": (CANCELLED,),
    "unknown": (-1,),
}
"""Values of column 11 by name."""


class SwfJob(NamedTuple):
    """Values of a job's line; -1 stands for an unknown value. Times are in seconds."""

    number: int
    submit: float
    """Submit time in the time of the trace."""
    processors: int
    """Number of allocated processors if known, else of requested processors."""
    runtime: float
    requested_time: float
    memory: int
    """Requested memory if known, else used memory, in the unit of the trace."""
    user: int
    group: int
    application: int
    queue: int
    partition: int
    wait: float = -1
    """Wait from submission to start that the trace recorded."""
    status: int = -1
    nodes: int = 0
    """Number of nodes of the job, as in a column `4:ppn=8`; 0 if unknown."""
    think: float = -1
    after: tuple[int, ...] = ()
    """Job numbers of the predecessors."""


def split_line(line: str) -> list[str]:
    """Return the columns of a line; raises `BadLine`."""
    fields = line.split()
    if len(fields) < COLUMNS:
        raise BadLine(f"expected {COLUMNS} columns of numbers, got {len(fields)}")
    return fields


def status_of(fields: list[str]) -> int:
    """Return the status (column 11); raises `BadLine`."""
    return _whole(fields, 10, "a status")


def has_fraction(fields: list[str]) -> bool:
    """Return True if the number of processors that counts is not whole."""
    for index in (4, 7):
        value = _number(fields[index], index, "processors") if "." in fields[index] else 0.0
        if value > 0:
            return not value.is_integer()
        if not value and _whole(fields, index, "processors") > 0:
            return False
    return False


def parse_job(fields: list[str]) -> SwfJob:
    """Parse the columns of a line; raises `BadLine`."""
    number = _whole(fields, 0, "a job number")
    submit = _time(fields, 1, "a submit time in seconds")
    if number < 0:
        raise BadLine(f"expected a job number of at least 0 in column 1, got '{fields[0]}'")
    if submit < 0:
        raise BadLine(f"expected a submit time of at least 0 in column 2, got '{fields[1]}'")
    processors = _processors(fields)
    used, wanted = _memory(fields, 6, "used memory"), _memory(fields, 9, "requested memory")
    return SwfJob(
        number,
        submit,
        processors,
        _time(fields, 3, "a run time in seconds"),
        _time(fields, 8, "a requested time in seconds"),
        wanted if wanted > 0 else used,
        _whole(fields, 11, "a user"),
        _whole(fields, 12, "a group"),
        _whole(fields, 13, "an application"),
        _whole(fields, 14, "a queue"),
        _whole(fields, 15, "a partition"),
        _time(fields, 2, "a wait in seconds"),
        status_of(fields),
        _nodes(fields[COLUMNS:], processors),
        _think_time(fields),
        _predecessors(fields),
    )


def _predecessors(fields: list[str]) -> tuple[int, ...]:
    text = fields[16]
    if text == "-1":
        return ()
    parts = text.replace(",", "&").split("&")
    if len(parts) > MOST_PREDECESSORS:
        raise BadLine(f"expected at most {MOST_PREDECESSORS} preceding jobs in column 17, got {len(parts)}")
    found = dict.fromkeys(
        _read_whole(part, 16, "a preceding job such as 7 or 1&2&3") for part in parts if part
    )
    return tuple(number for number in found if number >= 0)


def _think_time(fields: list[str]) -> float:
    # A think time per predecessor, such as 10&20, counts as the longest one.
    parts = fields[17].replace(",", "&").split("&")
    return max(_read_time(part, 17, "a think time in seconds") for part in parts)


def _nodes(extras: list[str], processors: int) -> int:
    for extra in extras:
        found = parse_nodes(extra)
        if found is not None:
            nodes, total, is_named = found
            if 0 < nodes <= processors and (is_named or total == processors):
                return nodes
    return 0


def parse_nodes(text: str) -> tuple[int, int, bool] | None:
    """Return nodes and processors of a text such as `4:ppn=8`, `4:8` or `1:ppn=2:big+2:ppn=1`, else None.

    The third value is True if the processors are named, so that the text means nothing else. A flag such as
    `#excl` says how nodes are shared, and is left out.
    """
    text = text.strip("\"'").removeprefix("nodes=").removeprefix("select=").partition("#")[0]
    if ":" not in text:
        return None
    nodes = processors = 0
    is_named = False
    for chunk in text.split("+"):
        first, *others = chunk.split(":")
        each = 1
        for other in others:
            key, _, value = other.rpartition("=")
            if key in ("ppn", "ncpus") and value.isdecimal():
                each, is_named = int(value[:12]), True
        if not is_named and len(others) == 1 and others[0].isdecimal():
            each = int(others[0][:12])
        elif not is_named:
            return None
        # A host name in place of a number is one node.
        count = int(first[:12]) if first.isdecimal() else 1
        nodes, processors = nodes + count, processors + count * each
    return nodes, processors, is_named


def _processors(fields: list[str]) -> int:
    allocated = _read_processors(fields, 4, "allocated processors")
    requested = _read_processors(fields, 7, "requested processors")
    processors = allocated if allocated > 0 else requested
    if processors <= 0:
        raise BadLine(
            f"expected a number of processors in column 5 or 8, got '{fields[4]}' and '{fields[7]}'"
        )
    if processors > MAX_PROCESSORS:
        raise BadLine(f"expected at most {MAX_PROCESSORS} processors, got {processors}")
    return processors


def _read_processors(fields: list[str], index: int, meaning: str) -> int:
    # A part of a processor needs a task of its own.
    text = fields[index]
    return math.ceil(_number(text, index, meaning)) if "." in text else _whole(fields, index, meaning)


def _memory(fields: list[str], index: int, meaning: str) -> int:
    memory = _whole(fields, index, meaning)
    if memory > MAX_MEMORY:
        raise BadLine(
            f"expected {meaning} of at most {MAX_MEMORY} in column {index + 1}, got '{fields[index]}'"
        )
    return memory


def _whole(fields: list[str], index: int, meaning: str) -> int:
    return _read_whole(fields[index], index, meaning)


def _read_whole(text: str, index: int, meaning: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = int(_number(text, index, meaning))
    if abs(value) > INT64_MAX:
        raise BadLine(f"expected {meaning} that fits 64 bits in column {index + 1}, got '{text[:40]}'")
    return value


def _time(fields: list[str], index: int, meaning: str) -> float:
    return _read_time(fields[index], index, meaning)


def _read_time(text: str, index: int, meaning: str) -> float:
    try:
        value: float = int(text)
    except ValueError:
        value = _number(text, index, meaning)
    if value > MAX_SECONDS:
        raise BadLine(f"expected {meaning} of at most {MAX_SECONDS} in column {index + 1}, got '{text}'")
    return value


def _number(text: str, index: int, meaning: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        shown = text if len(text) <= 40 else f"{text[:40]}..."
        raise BadLine(f"expected {meaning} in column {index + 1}, got '{shown}'")
    return value


_TYPES = "qdqddqqqqqqdqqd"
"""Array type codes of the columns, in the order of the fields of `SwfJob`: integers and times."""

_PROCESSORS, _NODES = SwfJob._fields.index("processors"), SwfJob._fields.index("nodes")

_TIMES = tuple(place for place, kind in enumerate(_TYPES) if kind == "d")


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
        self.after: dict[int, tuple[int, ...]] = {}
        """Predecessors by job number; only of jobs with any."""

    def __len__(self) -> int:
        return len(self._number)

    def line_of(self, number: int) -> int | None:
        """Return the line of the job with that number, or None."""
        if not self._climbs:
            return self._known.get(number)
        place = bisect_left(self._number, number)
        found = place < len(self._number) and self._number[place] == number
        return self._lines[place] if found else None

    def add(self, job: SwfJob, line: int) -> None:
        """Append a job whose number is not in the table yet."""
        if self._number:
            self._ordered = self._ordered and self._submit[-1] <= job.submit
            if self._climbs and job.number < self._number[-1]:
                self._climbs = False
                self._known = dict(zip(self._number, self._lines, strict=True))
        if not self._climbs:
            self._known[job.number] = line
        *values, after = job
        for column, value in zip(self._columns, values, strict=True):
            column.append(value)
        if after:
            self.after[job.number] = after
        self._lines.append(line)

    def set_nodes(self, nodes: Sequence[int]) -> None:
        """Set the number of nodes of each job, in the order of the trace."""
        self._columns[_NODES][:] = array("q", nodes)

    def processors(self) -> Sequence[int]:
        """Return the processors of each job, in the order of the trace."""
        return self._columns[_PROCESSORS]

    def nodes_known(self) -> int:
        """Return for how many jobs the number of nodes is known."""
        return sum(1 for nodes in self._columns[_NODES] if nodes)

    @property
    def earliest(self) -> float:
        """Earliest submit time; the table must not be empty."""
        return _plain(min(self._submit))

    def __iter__(self) -> Iterator[SwfJob]:
        after = self.after
        if self._ordered:
            for row in zip(*self._columns, strict=True):
                yield _job(row, after.get(row[0], ()))
            return
        submit = self._submit
        for place in sorted(range(len(self)), key=submit.__getitem__):
            row = tuple([column[place] for column in self._columns])
            yield _job(row, after.get(row[0], ()))


def _job(row: tuple[Any, ...], after: tuple[int, ...]) -> SwfJob:
    values = list(row)
    for place in _TIMES:
        values[place] = _plain(values[place])
    return SwfJob._make([*values, after])


def _plain(time: float) -> float:
    # Whole seconds become integers again, so that sums are exact.
    return int(time) if time.is_integer() else time
