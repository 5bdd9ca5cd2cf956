"""Compact log of a run's decisions, and description of the first difference between two logs.

A log is small enough to be sent between processes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

import attrs

from yunikorn.clock import SECOND
from yunikorn.config.durations import spell_duration
from yunikorn.errors import printable
from yunikorn.interface.messages import Allocation
from yunikorn_lab.simulation.explain_requests import ExplainAnswer
from yunikorn_lab.simulation.recorder import Recorder

PIECE = 1 << 16
OWN_WAY = ("ended", "node left")
"""Reasons of releases that are not decisions of the core."""


@attrs.frozen
class LoggedDecision:
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
        if reason not in OWN_WAY:
            self._add(moment, reason, allocation)

    def add_line(self, line: Mapping[str, Any]) -> None:
        """Add a decision as it is in decisions.jsonl, with its time in seconds as a decimal number."""
        kind = PLACES if line["event"] == "allocation" else line["reason"]
        if kind not in OWN_WAY:
            names = (line[key] for key in ("application", "ask", "node", "queue"))
            self._append(int(line["time"] * SECOND), kind, *names)

    def _add(self, moment: int, kind: str, place: Allocation) -> None:
        self._append(
            moment, kind, place.application_id, place.allocation_key, place.node_id, place.queue_name
        )

    def _append(self, moment: int, kind: str, application: str, task: str, node: str, queue: str) -> None:
        self._lines.append(f"{moment}\t{kind}\t{application}\t{task}\t{node}\t{queue}\n")
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


def unpack(packed: bytes) -> Iterator[LoggedDecision]:
    """Yield the decisions in order, decompressing the log piece by piece."""
    unpacker = zlib.decompressobj()
    rest = b""
    for start in range(0, len(packed), PIECE):
        *lines, rest = (rest + unpacker.decompress(packed[start : start + PIECE])).split(b"\n")
        for line in lines:
            time, kind, application, task, node, queue = line.decode().split("\t")
            yield LoggedDecision(int(time), kind, application, task, node, queue)


@attrs.frozen
class Divergence:
    """The first decision in which two runs differ; None for a run without a further decision."""

    equal: int
    """Number of equal decisions before."""
    one: LoggedDecision | None
    other: LoggedDecision | None


def find_divergence(one: bytes, other: bytes) -> Divergence | None:
    """Return the first difference between two logs, or None if the logs are equal."""
    if one == other:
        return None
    for number, (left, right) in enumerate(zip_longest(unpack(one), unpack(other))):
        if left != right:
            return Divergence(number, left, right)
    return None


@attrs.frozen
class DivergenceQuestion:
    """The question why the other run did not make the same decision; `moment` in nanoseconds."""

    application: str
    moment: int

    def __str__(self) -> str:
        return f"{self.application}@{spell_duration(self.moment)}"


@attrs.frozen
class DivergenceReport:
    """The first decision in which a variant differs from the baseline."""

    variant: str
    equal: int
    """Number of equal decisions before; the number of all decisions if `time` is None."""
    time: float | None
    """Time of the divergence, in seconds; None if the runs do not diverge."""
    sentence: str
    reason_unknown: str = ""
    """Cause of a missing reason, and what to do; empty if the sentence has one, or needs none."""


def question(divergence: Divergence) -> DivergenceQuestion | None:
    """Return the question to the other run: why the first run's placement does not happen there."""
    one, other = divergence.one, divergence.other
    if one is None or not one.is_placing:
        return None
    return DivergenceQuestion(one.application, one.time if other is None else min(one.time, other.time))


def question_to_first(divergence: Divergence) -> DivergenceQuestion | None:
    """Return the question to the first run why the other run's earlier placement does not happen there."""
    one, other = divergence.one, divergence.other
    if other is None or not other.is_placing or (one is not None and one.time <= other.time):
        return None
    return DivergenceQuestion(other.application, other.time)


def describe(
    first: str,
    second: str,
    divergence: Divergence | None,
    decisions: int,
    answer: ExplainAnswer | None,
    reason: str = "",
    *,
    is_of_first: bool = False,
) -> DivergenceReport:
    """Describe where `second` diverges from `first`.

    `reason` is that of the order under `second`, and `answer` the answer of `second` to the `question`, or
    that of `first` to `question_to_first` if `is_of_first`.
    """
    if divergence is None:
        text = f"Neither {first} nor {second} makes any decision."
        if decisions:
            text = f"{second} makes the same decisions as {first}: all {decisions:,} are equal."
        return DivergenceReport(second, decisions, None, printable(text))
    moments = [one.time for one in (divergence.one, divergence.other) if one is not None]
    moment = min(moments)
    here, there = _action(first, divergence.one, moment), _action(second, divergence.other, moment)
    equal = f"{divergence.equal:,} equal decision{'' if divergence.equal == 1 else 's'}"
    before = f"after {equal}" if divergence.equal else "with the first decision"
    because = f"; {reason}" if reason else _reason(second, divergence, None if is_of_first else answer)
    if is_of_first and answer is not None and answer.requests and divergence.other is not None:
        because = _obstacle(first, divergence.other, answer)
    text = f"At {spell_duration(moment)}, {before}, {here}, while {there}{because}."
    return DivergenceReport(second, divergence.equal, moment / SECOND, printable(text))


def _action(who: str, decision: LoggedDecision | None, moment: int) -> str:
    if decision is None:
        return f"{who} makes no further decision"
    what = f"{decision.task} of {decision.application} ({decision.queue})"
    action = f"places {what} on {decision.node}"
    if not decision.is_placing:
        action = f"releases {what} on {decision.node} ({decision.kind})"
    if decision.time > moment:
        return f"{who} makes no decision until {spell_duration(decision.time)}, when it {action}"
    return f"{who} {action}"


def _reason(who: str, divergence: Divergence, answer: ExplainAnswer | None) -> str:
    one, other = divergence.one, divergence.other
    if one is None or answer is None:
        return ""
    if other is not None and (one.application, one.task) == (other.application, other.task):
        if other.time == one.time:
            return "" if one.node == other.node else ": the order of nodes differs"
        if other.time < one.time:
            return ""  # No question was asked about the first run.
    if not answer.requests:
        return f"; under {who} {one.application} is allocated at the same time"
    return _obstacle(who, one, answer)


def _obstacle(who: str, decision: LoggedDecision, answer: ExplainAnswer) -> str:
    request = next((each for each in answer.requests if each.ask == decision.task), answer.requests[0])
    stopped = f"is stopped by: {request.causes[0].detail}" if request.causes else "is stopped by nothing"
    return f"; under {who} {decision.application} {stopped}; position: {request.place}"
