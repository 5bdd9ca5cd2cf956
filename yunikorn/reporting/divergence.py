"""Description of the first difference between two runs of one workload, and of its cause."""

from __future__ import annotations

import attrs

from yunikorn.clock import SECOND
from yunikorn.config.durations import spell_duration
from yunikorn.errors import printable
from yunikorn.reporting.decision_log import Decision, Divergence
from yunikorn.simulation.explain_answers import ExplainAnswer


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


def question(divergence: Divergence) -> DivergenceQuestion | None:
    """Return the question to the other run: why the first run's placement does not happen there."""
    one, other = divergence.one, divergence.other
    if one is None or not one.is_placing:
        return None
    return DivergenceQuestion(one.application, one.time if other is None else min(one.time, other.time))


def describe(
    first: str, second: str, divergence: Divergence | None, decisions: int, answer: ExplainAnswer | None
) -> DivergenceReport:
    """Describe where `second` diverges from `first`; `answer` is the answer of `second` to the `question`."""
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
    text = (
        f"At {spell_duration(moment)}, {before}, {here}, while {there}{_reason(second, divergence, answer)}."
    )
    return DivergenceReport(second, divergence.equal, moment / SECOND, printable(text))


def _action(who: str, decision: Decision | None, moment: int) -> str:
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
    request = next((each for each in answer.requests if each.ask == one.task), answer.requests[0])
    stopped = f"is stopped by: {request.causes[0].detail}" if request.causes else "is stopped by nothing"
    return f"; under {who} {one.application} {stopped}; position: {request.place}"
