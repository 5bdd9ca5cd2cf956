"""Answers to "why does it wait?" at one moment of a simulation: values for JSON, lines for people."""

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
"""So many requests of an application are written out for people; the number of the others is said."""


@attrs.frozen
class Cause:
    """One thing that stops a request."""

    check: str
    """Which check of a decision it is, such as `quota`, `limit`, `nodes` or `gang`."""
    summary: str
    detail: str
    """With the numbers of the moment."""


@attrs.frozen
class WaitingRequest:
    """A request of an application that waits."""

    ask: str
    waiting: int
    """How many tasks of it wait."""
    resources: dict[str, int]
    """Of each of them."""
    causes: list[Cause]
    """The check that a decision meets first comes first."""
    place: str
    """Where it stands in the order of the policies."""
    suggested_fixes: list[str]
    """The smallest change that would let it run at its turn: all of these."""


@attrs.frozen
class LongestWait:
    """From when to when, in seconds, a task of an application waited for its place."""

    task: str
    since: float
    until: float


@attrs.frozen
class ExplainAnswer:
    """What there is to say of an application at one moment."""

    application: str
    time: float
    """In seconds."""
    queue: str
    """Where it waits; empty if nothing of it does."""
    state: str
    """What is true of it at that moment, in words."""
    requests: list[WaitingRequest]
    """Empty if nothing of it waits."""
    longest_wait: LongestWait | None
    """The longest of its waits that were over by then."""


def describe_request(found: Explanation) -> WaitingRequest:
    """A request as the core explains it."""
    return WaitingRequest(
        ask=found.key,
        waiting=found.waiting,
        resources=dict(sorted(found.resource.items())),
        causes=[Cause(one.check, one.summary, one.detail) for one in found.reasons],
        place=str(found.position),
        suggested_fixes=list(found.suggested_fixes),
    )


def in_lines(answer: ExplainAnswer) -> Iterator[str]:
    """An answer for people."""
    yield f"{answer.application} at {_spell(answer.time)}: {answer.state}"
    for request in answer.requests[:SHOWN]:
        yield from _request(request)
    if len(answer.requests) > SHOWN:
        yield f"  and {len(answer.requests) - SHOWN} more requests; --json has all"
    wait = answer.longest_wait
    if wait is not None and not answer.requests:
        since = _spell(wait.since)
        yield (
            f"  it waited longest from {since} to {_spell(wait.until)}, for {wait.task}: "
            f"--explain {answer.application}@{since} says why"
        )


def _request(request: WaitingRequest) -> Iterator[str]:
    times = f"{request.waiting} times " if request.waiting > 1 else ""
    yield f"  {request.ask}: {times}{in_words(request.resources)}"
    for word, cause in zip(_words("stopped by", "and by"), request.causes, strict=False):
        yield f"    {word:<12} {cause.detail}"
    if not request.causes:
        yield f"    {'stopped by':<12} nothing: it is tried at the next decision"
    yield f"    {'its place':<12} {request.place}"
    for word, fix in zip(_words("would help", "and"), request.suggested_fixes, strict=False):
        yield f"    {word:<12} {fix}"


def _words(first: str, then: str) -> Iterator[str]:
    yield first
    while True:
        yield then


def _spell(time: float) -> str:
    return spell_duration(round(time * SECOND))
