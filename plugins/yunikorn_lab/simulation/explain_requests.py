"""Questions of `--explain APP[@TIME]` to the core at given moments of a simulation, and their answers.

A question with a time is answered after all events of that instant, and a question without a time at the end
of the simulation. Questions do not influence decisions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Protocol

import attrs

from yunikorn.clock import SECOND
from yunikorn.config.durations import spell_duration
from yunikorn.errors import UsageError
from yunikorn.interface.messages import Allocation
from yunikorn.quantities import in_words
from yunikorn.text import suggest
from yunikorn_commands.input_source import InputChecks
from yunikorn_lab.simulation.recorder import Recorder
from yunikorn_lab.simulation.rm_state import PLACEHOLDER, Submitted, partition_name
from yunikorn_lab.simulation.scenario_values import parse_time
from yunikorn_lab.simulation.statistics import seconds
from yunikorn_lab.simulation.workload import Workload, WorkloadApplication

if TYPE_CHECKING:
    from yunikorn.explain.explanations import Explanation
    from yunikorn.interface.scheduler import Scheduler
    from yunikorn_lab.simulation.simulated_rm import SimulatedRM


SHOWN = 8
"""Number of requests per application in the text output; the number of further requests is printed."""


@attrs.frozen
class Cause:
    """A reason why a request waits."""

    check: str
    """Failed check of a scheduling decision, such as `quota`, `limit`, `nodes` or `gang`."""
    summary: str
    detail: str
    """Description with the numbers of the moment."""


@attrs.frozen
class WaitingRequest:
    """A waiting request of an application."""

    ask: str
    waiting: int
    """Number of waiting tasks of the request."""
    resources: dict[str, int]
    """Resources per task."""
    causes: list[Cause]
    """Causes in the order of the scheduler's checks."""
    place: str
    """Position of the request in the scheduling order."""
    suggested_fixes: list[str]
    """Smallest set of changes with which the request would be allocated at its position."""


@attrs.frozen
class LongestWait:
    """The longest wait of a task of an application; times in seconds."""

    task: str
    since: float
    until: float


@attrs.frozen
class ExplainAnswer:
    """Scheduling state of an application at one moment."""

    application: str
    time: float
    """Time of the answer, in seconds."""
    queue: str
    """Queue of the waiting requests; empty if no request waits."""
    state: str
    """State of the application at that moment, as text."""
    requests: list[WaitingRequest]
    longest_wait: LongestWait | None
    """Longest wait that was over by then."""


def describe_request(found: Explanation) -> WaitingRequest:
    """Convert the core's explanation of a request."""
    return WaitingRequest(
        ask=found.key,
        waiting=found.waiting,
        resources=dict(sorted(found.resource.items())),
        causes=[Cause(one.check, one.summary, one.detail) for one in found.reasons],
        place=str(found.position),
        suggested_fixes=list(found.suggested_fixes),
    )


def in_lines(answer: ExplainAnswer) -> Iterator[str]:
    """Yield the lines of an answer as text."""
    yield f"{answer.application} at {_spell(answer.time)}: {answer.state}"
    for request in answer.requests[:SHOWN]:
        yield from _request(request)
    if len(answer.requests) > SHOWN:
        yield f"  and {len(answer.requests) - SHOWN} more requests; --json lists all"
    wait = answer.longest_wait
    if wait is not None and not answer.requests:
        since = _spell(wait.since)
        yield (
            f"  longest wait: task {wait.task}, from {since} to {_spell(wait.until)}; "
            f"for the reason use --explain {answer.application}@{since}"
        )


def _request(request: WaitingRequest) -> Iterator[str]:
    times = f"{request.waiting} times " if request.waiting > 1 else ""
    yield f"  {request.ask}: {times}{in_words(request.resources)}"
    for number, cause in enumerate(request.causes):
        yield f"    {'and by' if number else 'stopped by':<12} {cause.detail}"
    if not request.causes:
        yield f"    {'stopped by':<12} nothing: the request is tried in the next scheduling cycle"
    yield f"    {'position':<12} {request.place}"
    for number, fix in enumerate(request.suggested_fixes):
        yield f"    {'and' if number else 'would help':<12} {fix}"


def _spell(time: float) -> str:
    return spell_duration(round(time * SECOND))


@attrs.frozen
class ExplainRequest:
    """A question why an application waits, at a moment (ns) or at the end of the simulation."""

    plan: WorkloadApplication
    moment: int | None = None


def parse_questions(
    texts: Sequence[str], workload: Workload, until: int | None, known: Sequence[WorkloadApplication] = ()
) -> list[ExplainRequest]:
    """Parse questions of the forms `APP` and `APP@TIME`; raises `UsageError` that lists all errors.

    They are about applications of the workload, or ones that are `known` already.

    A text that equals an application's id is taken as the id, even if it contains an `@`.
    """
    wanted = {name for text in texts for name in (text, text.rpartition("@")[0])}
    every = [*known, *workload.applications] if texts else []
    plans = {plan.id: plan for plan in every if plan.id in wanted}
    questions: list[ExplainRequest] = []
    checks = InputChecks()
    for text in texts:
        with checks.part(f"--explain {text}: "):
            questions.append(_parse(text, plans, every, until))
    checks.check()
    return questions


def _parse(
    text: str,
    plans: dict[str, WorkloadApplication],
    every: Sequence[WorkloadApplication],
    until: int | None,
) -> ExplainRequest:
    name, at, time = text.rpartition("@")
    if text in plans or not at:
        name, at = text, ""
    plan = plans.get(name)
    if plan is None:
        known = (each.id for each in every)
        raise ValueError(f"the workload has no application '{name}'{suggest(name, known)}")
    if not at:
        return ExplainRequest(plan)
    moment = parse_time(time)
    if until is not None and moment > until:
        raise ValueError(f"{time} is later than --until, where the simulation ends")
    return ExplainRequest(plan, moment)


@attrs.define
class WaitHistory:
    """Recorded waits and outcome of an application that a question names."""

    longest: LongestWait | None = None
    waited: int = 0
    """Duration of the longest wait (ns)."""
    ended: str = ""
    """Outcome of the application, as text."""

    @property
    def never(self) -> str:
        """Addition to the answer if no started task had to wait; else empty."""
        return "" if self.longest else "; none of its allocated tasks had to wait"


class SimulatedClock(Protocol):
    """Clock of a simulation, such as a `ManualClock`."""

    def now(self) -> int:
        """Return the time, in nanoseconds."""
        ...

    def set(self, moment: int) -> None:
        """Set the time (ns), which never goes back."""
        ...


class ExplainRequests(Recorder):
    """The questions of one simulation and their answers; records the waits of the named applications."""

    def __init__(
        self, questions: Iterable[ExplainRequest], core: Scheduler, clock: SimulatedClock, rm_id: str
    ) -> None:
        asked = list(enumerate(questions))
        self._timed = sorted(
            ((one.moment, number, one) for number, one in asked if one.moment is not None), reverse=True
        )
        self._rest = [(number, one) for number, one in asked if one.moment is None]
        self._core = core
        self._clock = clock
        self._rm_id = rm_id
        self._histories = {one.plan.id: WaitHistory() for _, one in asked}
        self.manager: SimulatedRM
        """The resource manager; set before the simulation starts."""
        self._answers: dict[int, ExplainAnswer] = {}

    def __bool__(self) -> bool:
        """Return True if there are questions."""
        return bool(self._histories)

    def allocated(self, moment: int, allocation: Allocation) -> None:
        """Note the end of a wait."""
        history = self._histories.get(allocation.application_id)
        if history is not None:
            asked = self._asked(allocation, moment)
            if moment - asked > history.waited:
                history.waited = moment - asked
                history.longest = LongestWait(allocation.allocation_key, seconds(asked), seconds(moment))

    def _asked(self, allocation: Allocation, moment: int) -> int:
        task = self.manager.running.get((allocation.partition_name, allocation.uuid))
        if task is not None:
            return task.ask.asked
        # A placeholder: the first placeholders are asked for at submission, the time of later ones is
        # unknown.
        first = allocation.allocation_key.endswith(PLACEHOLDER)
        return self.manager.live[allocation.application_id].plan.submit if first else moment

    def application_ended(self, moment: int, record: Submitted, outcome: str, reason: str) -> None:
        """Note the outcome of an application."""
        history = self._histories.get(record.plan.id)
        if history is not None:
            because = f": {reason}" if reason else ""
            verb = "was rejected" if outcome == "rejected" else outcome
            history.ended = f"it {verb} at {spell_duration(moment)}{because}"

    def answer_before(self, moment: int) -> None:
        """Answer the questions about times before `moment`; all events before `moment` have happened."""
        while self._timed and self._timed[-1][0] < moment:
            asked, number, question = self._timed.pop()
            self._clock.set(max(asked, self._clock.now()))
            self._answers[number] = self._answer(question.plan)

    def answer_rest(self) -> list[ExplainAnswer]:
        """Answer the remaining questions at the end, and return all answers in the order of the questions."""
        left = [(number, question) for _, number, question in self._timed] + self._rest
        self._timed, self._rest = [], []
        for number, question in left:
            self._answers[number] = self._answer(question.plan)
        return [self._answers[number] for number in sorted(self._answers)]

    def _answer(self, plan: WorkloadApplication) -> ExplainAnswer:
        now, history, record = self._clock.now(), self._histories[plan.id], self.manager.live.get(plan.id)
        found: dict[str, Explanation] = {}
        if record is not None:
            # The core may have removed the application already; then nothing waits.
            with contextlib.suppress(UsageError):
                found = self._core.explain(self._rm_id, partition_name(plan.partition), plan.id)
        requests = [describe_request(one) for one in found.values()]
        return ExplainAnswer(
            application=plan.id,
            time=seconds(now),
            queue=next(iter(found.values())).position.queue if found else "",
            state=_state(plan, record, requests, history, now)
            if record is not None
            else _elsewhere(plan, history, self.manager.missing_predecessors(plan.id)),
            requests=requests,
            longest_wait=history.longest,
        )


def _state(
    plan: WorkloadApplication,
    record: Submitted,
    requests: list[WaitingRequest],
    history: WaitHistory,
    now: int,
) -> str:
    running = f"{_tasks(record.running)} running"
    if not requests:
        return f"does not wait: {running}{history.never}"
    waiting = sum(request.waiting for request in requests)
    return (
        f"{_tasks(waiting)} waiting, {running}; submitted {spell_duration(now - record.plan.submit)} earlier"
    )


def _tasks(count: int) -> str:
    return f"{count or 'no'} task{'s' if count > 1 else ''}"


def _elsewhere(plan: WorkloadApplication, history: WaitHistory, missing: Collection[str]) -> str:
    if missing:
        shown = ", ".join(islice(missing, SHOWN)) + (", ..." if len(missing) > SHOWN else "")
        return f"does not wait: it is submitted after the end of {shown}"
    if not history.ended and plan.after:
        return f"does not wait: it is submitted after the end of {', '.join(plan.after[:SHOWN])}"
    if not history.ended:
        return f"does not wait: it is submitted at {spell_duration(plan.submit)}"
    return f"does not wait: {history.ended}{history.never}"
