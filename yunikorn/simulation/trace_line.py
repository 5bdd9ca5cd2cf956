"""Parser for a line of a trace in the Standard Workload Format, version 2.2.

A line has 18 columns of numbers; -1 stands for an unknown value. Whole numbers may be written as floats, and
columns after the 18th are ignored. Times are in seconds.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from yunikorn.resources import INT64_MAX

COLUMNS = 18
MAX_SECONDS = 9_000_000_000
"""Limit of times in seconds, so that nanoseconds fit into 64 bits."""

MAX_PROCESSORS = 10_000_000
MAX_MEMORY = 10**15


class BadLine(ValueError):
    """An invalid line; the message states the expected content."""


class Job(NamedTuple):
    """Values of a job's line; -1 stands for an unknown value. Times are in seconds."""

    number: int
    submit: float
    """Submit time in the time of the trace."""
    processors: int
    """Number of allocated processors if known, else of requested processors."""
    runtime: float
    requested_time: float
    memory: int
    """Memory per processor in the unit of the trace: requested memory if known, else used memory."""
    user: int
    group: int
    application: int
    queue: int
    partition: int


def parse_line(line: str) -> Job:
    """Parse `line`; raises `BadLine`."""
    fields = line.split()
    if len(fields) < COLUMNS:
        raise BadLine(f"expected {COLUMNS} columns of numbers, got {len(fields)}")
    number = _whole(fields, 0, "a job number")
    submit = _time(fields, 1, "a submit time in seconds")
    if number < 0:
        raise BadLine(f"expected a job number of at least 0 in column 1, got '{fields[0]}'")
    if submit < 0:
        raise BadLine(f"expected a submit time of at least 0 in column 2, got '{fields[1]}'")
    used, wanted = _memory(fields, 6, "used memory"), _memory(fields, 9, "requested memory")
    return Job(
        number,
        submit,
        _processors(fields),
        _time(fields, 3, "a run time in seconds"),
        _time(fields, 8, "a requested time in seconds"),
        wanted if wanted > 0 else used,
        _whole(fields, 11, "a user"),
        _whole(fields, 12, "a group"),
        _whole(fields, 13, "an application"),
        _whole(fields, 14, "a queue"),
        _whole(fields, 15, "a partition"),
    )


def _processors(fields: list[str]) -> int:
    allocated = _whole(fields, 4, "allocated processors")
    requested = _whole(fields, 7, "requested processors")
    processors = allocated if allocated > 0 else requested
    if processors <= 0:
        raise BadLine(
            f"expected a number of processors in column 5 or 8, got '{fields[4]}' and '{fields[7]}'"
        )
    if processors > MAX_PROCESSORS:
        raise BadLine(f"expected at most {MAX_PROCESSORS} processors, got {processors}")
    return processors


def _memory(fields: list[str], index: int, meaning: str) -> int:
    memory = _whole(fields, index, meaning)
    if memory > MAX_MEMORY:
        raise BadLine(
            f"expected {meaning} of at most {MAX_MEMORY} in column {index + 1}, got '{fields[index]}'"
        )
    return memory


def _whole(fields: list[str], index: int, meaning: str) -> int:
    text = fields[index]
    try:
        value = int(text)
    except ValueError:
        value = int(_number(text, index, meaning))
    if abs(value) > INT64_MAX:
        raise BadLine(f"expected {meaning} that fits 64 bits in column {index + 1}, got '{text[:40]}'")
    return value


def _time(fields: list[str], index: int, meaning: str) -> float:
    text = fields[index]
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
