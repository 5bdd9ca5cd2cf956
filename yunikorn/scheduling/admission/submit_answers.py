"""Answers of submit policies about an application or an ask, as plain data.

A policy that fails or answers wrongly rejects what it was asked about (docs/decisions/archive/0073).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from yunikorn.api import AskSubmission, Submission
from yunikorn.containment import exact_text, items_of, safe_repr, text_or_none
from yunikorn.framework.policy_calls import ApplicationChange, PolicyAnswer, safe
from yunikorn.resources import INT32_MAX, INT32_MIN
from yunikorn.scheduling.admission.asked_policies import PolicyMethod
from yunikorn.scheduling.admission.policy_copies import ApplicationCopy
from yunikorn.scheduling.user_groups import FORCE_TAG

if TYPE_CHECKING:
    pass

FIXED = ("id", "user", "groups", "gang_total", "gang_style")
"""Attributes of a submission that a policy cannot change."""


def _reason(answer: Any, expected: type[Any]) -> PolicyAnswer | None:
    """Return a rejection, or None for a changed submission. Raises `TypeError` for anything else."""
    text = text_or_none(answer)
    if text is None and not issubclass(type(answer), expected):
        raise TypeError(f"it returned {safe_repr(answer)} instead of None, a submission or a reason")
    return None if text is None else PolicyAnswer(reason=safe(text))


def _read_submission(before: Submission, answer: Any) -> PolicyAnswer:
    """Return the reason or the change of an answer. Raises `TypeError` or `ValueError` for a wrong one."""
    reason = _reason(answer, Submission)
    if reason is not None:
        return reason
    for name in FIXED:
        if getattr(answer, name) != getattr(before, name):
            raise ValueError(f"it changed '{name}', which a submit policy cannot change")
    queue_name, given = answer.queue_name, items_of(answer.tags)
    if not issubclass(type(queue_name), str):
        raise TypeError(f"it set queue_name to {safe_repr(queue_name)} instead of text")
    if not all(issubclass(type(text), str) for pair in given for text in pair):
        raise TypeError(f"it set tags to {safe_repr(given)} instead of texts by name")
    tags = {exact_text(name): exact_text(value) for name, value in given}
    if _force_tags(tags) != _force_tags(before.tags):
        raise ValueError(f"it changed the tag '{FORCE_TAG}', which a submit policy cannot change")
    priority = answer.priority
    if priority is not None and (type(priority) is not int or not INT32_MIN < priority <= INT32_MAX):
        raise ValueError(
            f"it set priority to {safe_repr(priority)} instead of None or a whole number of 32 bits"
        )
    tags = {safe(name): safe(value) for name, value in tags.items()}
    return PolicyAnswer(change=ApplicationChange(safe(exact_text(queue_name)), tags, priority))


def _force_tags(tags: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in tags.items() if name.lower() == FORCE_TAG}


SUBMIT = PolicyMethod("submit policy", "submit", "checking", "application '{0.id}'", _read_submission)


def _copied(ask: AskSubmission) -> AskSubmission:
    return attrs.evolve(ask, app=ApplicationCopy.of(ask.app))


def _read_ask(before: AskSubmission, answer: Any) -> PolicyAnswer:
    """Return the reason or the priority of an answer. Raises `TypeError` or `ValueError` for a wrong one."""
    reason = _reason(answer, AskSubmission)
    if reason is not None:
        return reason
    for field in attrs.fields(AskSubmission):
        name = field.name
        if name != "priority" and getattr(answer, name) is not getattr(before, name):
            raise ValueError(f"it changed '{name}', which a submit policy cannot change")
    priority = answer.priority
    if type(priority) is not int or not INT32_MIN < priority <= INT32_MAX:
        raise ValueError(f"it set priority to {safe_repr(priority)} instead of a whole number of 32 bits")
    return PolicyAnswer(ask_priority=priority)


SUBMIT_ASK = PolicyMethod("submit policy", "submit_ask", "checking", "ask {0.key}", _read_ask, _copied)
