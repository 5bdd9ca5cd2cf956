"""Reason of a divergence: the keys of the order by which a run serves another application than the first run.

The run is repeated up to the decision. Decisions are then made one by one, and the keys are read immediately
before the one that differs, when they are what the scheduler sees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from yunikorn.config.durations import spell_duration
from yunikorn.containment import contained, safe_repr
from yunikorn.interface.messages import Allocation
from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.application import Application
from yunikorn_lab.reporting.decision_log import OWN_WAY, LoggedDecision
from yunikorn_lab.simulation.engine import Progress
from yunikorn_lab.simulation.recorder import Recorder
from yunikorn_lab.simulation.rm_state import partition_name
from yunikorn_lab.simulation.simulated_rm import RM_ID

DIGITS = 4


@attrs.frozen
class OrderQuestion:
    """The question why a run places a task of `served` where the first run places one of `passed`."""

    equal: int
    """Number of equal decisions before."""
    moment: int
    passed: str
    """Application of the first run's decision."""
    served: str
    """Application of this run's decision."""


def order_question(
    equal: int, one: LoggedDecision | None, other: LoggedDecision | None
) -> OrderQuestion | None:
    """Return the question about two decisions at one time; None if their order is not the difference."""
    if one is None or other is None or not (one.is_placing and other.is_placing):
        return None
    if one.time != other.time or one.application == other.application:
        return None
    return OrderQuestion(equal, one.time, one.application, other.application)


def find_order_reason(
    question: OrderQuestion,
    run: Callable[..., object],
    *,
    watch: Callable[[Progress], bool] | None = None,
    rm_id: str = RM_ID,
) -> str:
    """Repeat a run up to the decision of the question; returns the reason, or "" if there is none.

    `run` is `simulate` or `continued` with what was simulated, and `rm_id` its resource manager. `watch` ends
    the run if it returns False; then there is no reason either.
    """
    probe = _Probe(question, rm_id)
    run(
        until=question.moment,
        recorder=probe,
        watch=watch,
        meet=probe.meet,
        before_decision=probe.look,
    )
    return probe.reason


class _Probe(Recorder):
    """Counts decisions, and reads the keys before the decision of the question."""

    def __init__(self, question: OrderQuestion, rm_id: str) -> None:
        self._question, self._rm_id = question, rm_id
        self._count = 0
        self._core: Scheduler
        self.reason = ""

    def meet(self, core: Scheduler) -> None:
        """Receive the core."""
        self._core = core

    def allocated(self, moment: int, allocation: Allocation) -> None:
        """Count an allocation."""
        self._count += 1

    def released(self, moment: int, allocation: Allocation, reason: str) -> None:
        """Count a release if the core decided it."""
        self._count += reason not in OWN_WAY

    def look(self, moment: int) -> bool:
        """Read the keys if the next decision is that of the question; returns False to end the run."""
        if moment < self._question.moment or self._count < self._question.equal:
            return True
        if self._count == self._question.equal:
            self.reason = self._read()
        return False

    def _read(self) -> str:
        found = {at: self._find(at) for at in (self._question.passed, self._question.served)}
        passed, served = found[self._question.passed], found[self._question.served]
        if passed is None or served is None:
            return ""
        (partition, app), (_, other) = passed, served
        by_order = _keys(app, other)
        if by_order:
            return by_order
        explained = self._core.explain(self._rm_id, partition, app.id).values()
        causes = [reason.detail for one in explained for reason in one.reasons[:1]]
        return f"{app.id} comes before {other.id}, but is stopped by: {causes[0]}" if causes else ""

    def _find(self, application: str) -> tuple[str, Application] | None:
        for at in self._core.partitions(self._rm_id):
            found = at.partition.applications.get(application)
            if found is not None:
                return partition_name(at.partition.name), found
        return None


def _keys(passed: Application, served: Application) -> str:
    """Return the keys of the applications, or of the queues where their paths part; "" if `passed` leads."""
    here, there = _chain(passed), _chain(served)
    if not here or not there or here[0] is not there[0]:
        return ""
    level = next((at for at, pair in enumerate(zip(here, there, strict=False)) if pair[0] is not pair[1]), -1)
    members: tuple[Any, Any] = (passed, served) if level < 0 else (here[level], there[level])
    order = (here[-1] if level < 0 else here[level - 1]).order
    behind, first = (order.sort_key(member, quiet=True) for member in members)
    try:
        leads = first[:-1] < behind[:-1]
    except contained():
        return ""
    if not leads:
        return ""
    names = [member.id if level < 0 else member.path for member in members]
    what, ours, theirs = _difference(order.policy.name, first[:-1], behind[:-1], is_queue=level >= 0)
    return f"{order.policy.name}: {names[1]} has {what} {ours}, {names[0]} {theirs}"


def _difference(
    policy: str, first: Sequence[Any], behind: Sequence[Any], *, is_queue: bool
) -> tuple[str, str, str]:
    """Return the first part in which two sort keys differ: its name, and both values as text."""
    if first[0] != behind[0]:
        return "a", "valid key", "an invalid one"
    if len(first) == 4 and first[1] != behind[1]:
        return "priority", str(-first[1]), str(-behind[1])
    key, other = first[-2], behind[-2]
    if key == other:
        return "an equal key, and comes", "first", "second, by submission or name"
    if policy == "fair" and isinstance(key, tuple) and isinstance(other, tuple):
        return _shares(key, other, is_queue=is_queue)
    if policy in ("fifo", "stateaware") and isinstance(key, int) and isinstance(other, int):
        return "submission at", spell_duration(key), spell_duration(other)
    return "key", safe_repr(key), safe_repr(other)


def _shares(key: tuple[Any, ...], other: tuple[Any, ...], *, is_queue: bool) -> tuple[str, str, str]:
    pairs = enumerate(zip(key, other, strict=False))
    at = next((at for at, (a, b) in pairs if a != b), min(len(key), len(other)))
    ours, theirs = (part[at] if at < len(part) else 0.0 for part in (key, other))
    if at == 0:
        return "share", f"{ours:.{DIGITS}g}", f"{theirs:.{DIGITS}g}"
    if is_queue:
        return "an equal share and pending", f"{-ours:.{DIGITS}g}", f"{-theirs:.{DIGITS}g}"
    return "an equal largest share and next", f"{ours:.{DIGITS}g}", f"{theirs:.{DIGITS}g}"


def _chain(app: Application) -> list[Any]:
    found: list[Any] = []
    queue: Any = app.queue
    while queue is not None:
        found.append(queue)
        queue = queue.parent
    return found[::-1]
