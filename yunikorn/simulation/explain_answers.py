"""Answers to `--explain`: the state of a waiting application at one moment, as JSON values and as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

from yunikorn.clock import SECOND
from yunikorn.config.durations import spell_duration
from yunikorn.config.quantities import in_words

if TYPE_CHECKING:
    from yunikorn.scheduling.explain import Explanation

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
    """Waiting requests of the application."""
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
    for word, cause in zip(_words("stopped by", "and by"), request.causes, strict=False):
        yield f"    {word:<12} {cause.detail}"
    if not request.causes:
        yield f"    {'stopped by':<12} nothing: the request is tried in the next scheduling cycle"
    yield f"    {'position':<12} {request.place}"
    for word, fix in zip(_words("would help", "and"), request.suggested_fixes, strict=False):
        yield f"    {word:<12} {fix}"


def _words(first: str, then: str) -> Iterator[str]:
    yield first
    while True:
        yield then


def _spell(time: float) -> str:
    return spell_duration(round(time * SECOND))
