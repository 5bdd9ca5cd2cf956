"""Checks of an application before its placement: its owner, then the submit policies of the partition.

A forced application (`application.create.force`) already runs and must come back: submit policies may change
its tags and priority, but neither reject nor move it. A policy that fails or answers wrongly rejects the
application (docs/decisions/archive/0073).

With workers, the checks stop at a policy that may block, and continue with its answer
(docs/decisions/archive/0183).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import attrs

from yunikorn.api import Submission
from yunikorn.containment import exact_text, items_of, safe_repr, text_or_none
from yunikorn.framework.policy_calls import ApplicationChange, PolicyAnswer, safe
from yunikorn.resources import INT32_MAX, INT32_MIN
from yunikorn.scheduling.admission.asked_policies import PolicyMethod
from yunikorn.scheduling.user_groups import FORCE_TAG, is_forced

if TYPE_CHECKING:
    from yunikorn.scheduling.admission.asked_policies import AskedPolicy, Steps
    from yunikorn.scheduling.user_groups import UserGroups

FIXED = ("id", "user", "groups", "gang_total", "gang_style")
"""Attributes of a submission that a policy cannot change."""


def check_application(
    users: UserGroups, policies: Sequence[AskedPolicy], app: Submission
) -> Steps[Submission | str]:
    """Return what owner and submit policies make of an application, or the reason for a rejection."""
    forced = is_forced(app.tags)
    owner = yield from users.steps(app.user, app.groups, forced=forced)
    if owner.refusal:
        return owner.refusal
    current = attrs.evolve(app, user=owner.user, groups=tuple(owner.groups))
    for policy in policies:
        answer = yield from policy.ask(current)
        change, refusal = answer.change, answer.failed or ""
        if answer.reason is not None:
            refusal = f"{policy.title} rejects application {app.id}: {answer.reason}"
        if refusal and not forced:
            return refusal
        if change is not None:
            current = attrs.evolve(
                current,
                queue_name=change.queue_name,
                tags=MappingProxyType(dict(change.tags)),
                priority=change.priority,
            )
    return attrs.evolve(current, queue_name=app.queue_name) if forced else current


def _read_submission(before: Submission, answer: Any) -> PolicyAnswer:
    """Return the reason or the change of an answer. Raises `TypeError` or `ValueError` for a wrong one."""
    reason = text_or_none(answer)
    if reason is not None:
        return PolicyAnswer(reason=safe(reason))
    if not issubclass(type(answer), Submission):
        raise TypeError(f"it returned {safe_repr(answer)} instead of None, a submission or a reason")
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


SUBMIT = PolicyMethod(
    "submit policy", "submit", "checking", lambda app: f"application '{app.id}'", _read_submission
)


def _force_tags(tags: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in tags.items() if name.lower() == FORCE_TAG}
