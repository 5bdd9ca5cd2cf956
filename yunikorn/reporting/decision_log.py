"""Compact log of a run's decisions, and detection of the first difference between two logs.

A log is small enough to be sent between processes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import zip_longest

import attrs

from yunikorn.interface.messages import Allocation
from yunikorn.simulation.recorder import Recorder

PIECE = 1 << 16
_OWN_WAY = ("ended", "node left")
"""Reasons of releases that are not decisions of the core."""


@attrs.frozen
class Decision:
    """A decision of the core; `time` in nanoseconds."""

    time: int
    kind: str
    """`places`, or the reason of a release by the core, such as `preempted`."""
    application: str
    task: str
    node: str
    queue: str

    @property
    def is_placing(self) -> bool:
        """True if a task or a placeholder was allocated."""
        return self.kind == PLACES


PLACES = "places"


class DecisionLog(Recorder):
    """A recorder that keeps every decision as a compressed line, at about five bytes per decision."""

    def __init__(self) -> None:
        self._packer = zlib.compressobj(1)
        self._lines: list[str] = []
        self._packed: list[bytes] = []

    def allocated(self, moment: int, allocation: Allocation) -> None:
        """Add an allocation."""
        self._add(moment, PLACES, allocation)

    def released(self, moment: int, allocation: Allocation, reason: str) -> None:
        """Add a release if the core decided it."""
        if reason not in _OWN_WAY:
            self._add(moment, reason, allocation)

    def _add(self, moment: int, kind: str, place: Allocation) -> None:
        task, node = place.allocation_key, place.node_id
        self._lines.append(f"{moment}\t{kind}\t{place.application_id}\t{task}\t{node}\t{place.queue_name}\n")
        if len(self._lines) >= 1_000:
            self._flush()

    def _flush(self) -> None:
        self._packed.append(self._packer.compress("".join(self._lines).encode()))
        self._lines.clear()

    def pack(self) -> bytes:
        """Return the compressed log; the log cannot be used afterwards."""
        self._flush()
        self._packed.append(self._packer.flush())
        return b"".join(self._packed)


def unpack(packed: bytes) -> Iterator[Decision]:
    """Yield the decisions in order, decompressing the log piece by piece."""
    unpacker = zlib.decompressobj()
    rest = b""
    for start in range(0, len(packed), PIECE):
        *lines, rest = (rest + unpacker.decompress(packed[start : start + PIECE])).split(b"\n")
        for line in lines:
            time, kind, application, task, node, queue = line.decode().split("\t")
            yield Decision(int(time), kind, application, task, node, queue)


@attrs.frozen
class Divergence:
    """The first decision in which two runs differ; None for a run without a further decision."""

    equal: int
    """Number of equal decisions before."""
    one: Decision | None
    other: Decision | None


def find_divergence(one: bytes, other: bytes) -> Divergence | None:
    """Return the first difference between two logs, or None if the logs are equal."""
    if one == other:
        return None
    for number, (left, right) in enumerate(zip_longest(unpack(one), unpack(other))):
        if left != right:
            return Divergence(number, left, right)
    return None
