"""The decisions of a run, small enough to be sent from one process to another, and where two runs part."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import zip_longest

import attrs

from yunikorn.interface.messages import Allocation
from yunikorn.simulation.recorder import Recorder

PIECE = 1 << 16
_OWN_WAY = ("ended", "node left")
"""Places that are given back without a decision."""


@attrs.frozen
class Decision:
    """Something that the core decided; `time` in nanoseconds."""

    time: int
    kind: str
    """`places`, or why the core took the place back, such as `preempted`."""
    application: str
    task: str
    node: str
    queue: str

    @property
    def is_placing(self) -> bool:
        """Whether a task or a placeholder got its place."""
        return self.kind == PLACES


PLACES = "places"


class DecisionLog(Recorder):
    """Keeps every decision, a line each, packed: some five bytes for each."""

    def __init__(self) -> None:
        self._packer = zlib.compressobj(1)
        self._lines: list[str] = []
        self._packed: list[bytes] = []

    def allocated(self, moment: int, allocation: Allocation) -> None:
        """A line."""
        self._add(moment, PLACES, allocation)

    def released(self, moment: int, allocation: Allocation, reason: str) -> None:
        """A line, if it was the core that decided so."""
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
        """All of it; the decision log is over."""
        self._flush()
        self._packed.append(self._packer.flush())
        return b"".join(self._packed)


def unpack(packed: bytes) -> Iterator[Decision]:
    """The decisions in their order, without holding all of them."""
    unpacker = zlib.decompressobj()
    rest = b""
    for start in range(0, len(packed), PIECE):
        *lines, rest = (rest + unpacker.decompress(packed[start : start + PIECE])).split(b"\n")
        for line in lines:
            time, kind, application, task, node, queue = line.decode().split("\t")
            yield Decision(int(time), kind, application, task, node, queue)


@attrs.frozen
class Divergence:
    """The first decision in which two runs differ; one that decides nothing more has None."""

    equal: int
    """How many decisions were the same before."""
    one: Decision | None
    other: Decision | None


def find_divergence(one: bytes, other: bytes) -> Divergence | None:
    """Where two runs part; None if they never do."""
    if one == other:
        return None
    for number, (left, right) in enumerate(zip_longest(unpack(one), unpack(other))):
        if left != right:
            return Divergence(number, left, right)
    return None
