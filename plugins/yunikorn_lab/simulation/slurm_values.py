"""Values in the output of Slurm's accounting command `sacct`: times, durations, memory and resources."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache

from yunikorn_lab.simulation.trace_line import MAX_PROCESSORS, MAX_SECONDS, BadLine

MIB = 2**20
MAX_BYTES = 2**60
NOTHING = ("", "Unknown", "None", "N/A", "(null)")
"""Texts of a value that is not known."""
UNLIMITED = ("UNLIMITED", "Partition_Limit")
"""Texts of a time limit that is none of the job."""

_TIME = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})\Z")
_EPOCH = re.compile(r"[0-9]{1,10}\Z")
_ELAPSED = re.compile(r"(?:(?:([0-9]{1,6})-)?([0-9]{1,6}):)?([0-9]{1,2}):([0-9]{2})(?:\.[0-9]+)?\Z")
_MEMORY = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)([KMGTPE]?)([cn]?)\Z")
_UNITS = {"": MIB, "K": 2**10, "M": MIB, "G": 2**30, "T": 2**40, "P": 2**50, "E": 2**60}
_JOB = re.compile(r"([0-9]+)(?:_([0-9]+|\[[^]]*\]))?(?:\+([0-9]+))?(\..+)?\Z")


def parse_moment(text: str, column: str) -> int | None:
    """Return a point in time in seconds since 1970, or None if it is not known; raises `BadLine`.

    Times of `sacct` are local times without a time zone; they are read as if the clock were never changed.
    """
    if text in NOTHING:
        return None
    if _EPOCH.match(text):
        return int(text)
    return _moment(text, column)


@lru_cache(maxsize=4096)
def _moment(text: str, column: str) -> int:
    match = _TIME.match(text)
    try:
        if match is None:
            raise ValueError
        year, month, day, hour, minute, second = map(int, match.groups())
        found = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)
    except ValueError:
        raise BadLine(
            f"expected a time such as 2026-01-31T18:00:00 in column {column}, got '{text[:40]}'"
        ) from None
    moment = int(found.timestamp())
    if not 0 <= moment <= MAX_SECONDS:
        raise BadLine(f"expected a time since 1970 in column {column}, got '{text}'")
    return moment


def parse_elapsed(text: str, column: str) -> int | None:
    """Return a duration such as `1-02:03:04` in seconds, or None if it is not known; raises `BadLine`."""
    if text in NOTHING:
        return None
    match = _ELAPSED.match(text)
    if match is None:
        raise BadLine(f"expected a duration such as 1-02:03:04 in column {column}, got '{text[:40]}'")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def parse_whole(text: str, column: str, most: int = MAX_PROCESSORS) -> int | None:
    """Return a whole number of at least 0, or None if it is not known; raises `BadLine`."""
    if text in NOTHING:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 18 or int(text) > most:
        raise BadLine(f"expected a whole number from 0 to {most} in column {column}, got '{text[:40]}'")
    return int(text)


@lru_cache(maxsize=4096)
def parse_memory(text: str, column: str) -> tuple[int, str]:
    """Return an amount of memory in bytes and its scope: `n` per node, `c` per core, or empty for the job.

    A number without a unit is in MiB. Raises `BadLine`.
    """
    match = _MEMORY.match(text)
    amount = int(Fraction(match[1]) * _UNITS[match[2]]) if match else -1
    if match is None or not 0 <= amount <= MAX_BYTES:
        raise BadLine(f"expected memory such as 4G, 4Gn or 4Gc in column {column}, got '{text[:40]}'")
    return amount, match[3]


@lru_cache(maxsize=4096)
def parse_tres(text: str, column: str) -> dict[str, int]:
    """Return `cpu`, `node`, `mem` (bytes) and `gpu` of a list of trackable resources; raises `BadLine`.

    GPUs are the number without a type if there is one, else the sum over their types. All other entries,
    such as `billing`, are left out.
    """
    found: dict[str, int] = {}
    typed = 0
    for entry in text.split(",") if text not in NOTHING else ():
        name, equals, value = entry.partition("=")
        if not equals:
            raise BadLine(f"expected resources such as cpu=8,mem=4G in column {column}, got '{text[:40]}'")
        if name in ("cpu", "node", "gres/gpu") or name.startswith("gres/gpu:"):
            number = parse_whole(value, column) or 0
            if name.startswith("gres/gpu:"):
                typed += number
            else:
                found["gpu" if name == "gres/gpu" else name] = number
        elif name == "mem":
            found["mem"] = parse_memory(value, column)[0]
    if typed:
        found.setdefault("gpu", typed)
    return found


def parse_job_id(text: str) -> tuple[str, bool, bool]:
    """Return a job's id, and two flags: it is a step of a job, and it is an array that has not started.

    Raises `BadLine`.
    """
    match = _JOB.match(text)
    if match is None:
        raise BadLine(
            f"expected a job such as 123, 123_4, 123+0 or 123.batch in column JobID, got '{text[:40]}'"
        )
    return text, bool(match[4]), (match[2] or "").startswith("[")
