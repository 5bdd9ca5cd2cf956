"""Checks of an application before its placement: its owner, then the submit policies of the partition.

A forced application (`application.create.force`) already runs and must come back: submit policies may change
its tags and priority, but neither reject nor move it. A policy that fails or answers wrongly rejects the
application (docs/decisions/archive/0073).

With workers, the checks stop at a policy that may block, and continue with its answer
(docs/decisions/archive/0183).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import attrs

from yunikorn.api import Submission
from yunikorn.containment import (
    contained,
    describe_error,
    exact_text,
    items_of,
    read_attribute,
    safe_repr,
    text_or_none,
)
from yunikorn.framework.policy_calls import ApplicationChange, PolicyAnswer, calls_at_once, may_block, safe
from yunikorn.resources import INT32_MAX, INT32_MIN
from yunikorn.scheduling.policy_questions import AskedPolicy
from yunikorn.scheduling.policy_steps import PolicyQuestion, Steps
from yunikorn.scheduling.user_groups import FORCE_TAG, Owner, is_forced

if TYPE_CHECKING:
    from yunikorn.framework.instances import PluginInstance
    from yunikorn.framework.plugin_failures import PluginFailures
    from yunikorn.scheduling.user_groups import UserGroups

FIXED = ("id", "user", "groups", "gang_total", "gang_style")
"""Attributes of a submission that a policy cannot change."""


@attrs.frozen
class _Policy:
    """A submit policy in use."""

    name: str
    origin: str
    submit: Callable[[Submission], Any]
    asked: AskedPolicy | None = None
    """The policy, if workers call it."""


@attrs.frozen(slots=True)
class CheckedApplication:
    """Result of the checks of one application."""

    owner: Owner
    queue_name: str
    tags: Mapping[str, str]
    priority: int | None = None
    """Priority of all its asks; None for the priority of each ask."""
    refusal: str = ""
    """Reason for a rejection; empty if the application may be placed."""


class ApplicationChecks:
    """Checks of one partition."""

    def __init__(
        self, users: UserGroups, policies: Sequence[PluginInstance], failures: PluginFailures
    ) -> None:
        self._users = users
        self._plugins = [one.plugin for one in policies]
        self._policies = [
            _Policy(one.name, one.origin, read_attribute(one.plugin, "submit")) for one in policies
        ]
        self._failures = failures

    def use_workers(self) -> None:
        """Let workers call the policies that may block; called before the first check."""
        self._users.use_workers()
        self._policies = [
            attrs.evolve(policy, asked=self._asked(policy, plugin))
            for policy, plugin in zip(self._policies, self._plugins, strict=True)
        ]

    def _asked(self, policy: _Policy, plugin: object) -> AskedPolicy | None:
        if not may_block(plugin, policy.origin, self._failures):
            return None
        at_once = calls_at_once(plugin, policy.origin, self._failures)
        call = partial(_call, policy.submit)
        return AskedPolicy(plugin, f"submit policy {policy.name}", policy.origin, call, at_once)

    def steps(self, app: Submission) -> Steps[CheckedApplication]:
        """Return the owner of an application as submitted, and what the submit policies make of it."""
        forced = is_forced(app.tags)
        owner = yield from self._users.steps(app.user, app.groups, forced=forced)
        if owner.refusal:
            return CheckedApplication(owner, app.queue_name, app.tags, refusal=owner.refusal)
        if not self._policies:
            return CheckedApplication(owner, app.queue_name, app.tags)
        current = attrs.evolve(app, user=owner.user, groups=tuple(owner.groups))
        for policy in self._policies:
            if policy.asked is None:
                found = self._ask(policy, current)
            else:
                answer = yield PolicyQuestion(policy.asked, partial(_same, current))
                found = self._understand(policy, current, answer)
            if not isinstance(found, str):
                current = found
            elif not forced:
                return CheckedApplication(owner, app.queue_name, app.tags, refusal=found)
        return _result(app, owner, current)

    def _ask(self, policy: _Policy, app: Submission) -> Submission | str:
        """Return what a policy makes of `app`, or the reason for a rejection."""
        try:
            answer = policy.submit(app)
            if answer is None:
                return app
            reason = text_or_none(answer)
            if reason is not None:
                return _rejection(policy, app, reason)
            return _checked(app, answer)
        except contained() as error:
            return self._failed(policy, app, error)

    def _understand(self, policy: _Policy, app: Submission, answer: PolicyAnswer) -> Submission | str:
        """Return what a worker's answer makes of `app`, or the reason for a rejection."""
        if answer.failed is not None:
            return self._failed(policy, app, answer.failed)
        if answer.reason is not None:
            return _rejection(policy, app, answer.reason)
        if answer.change is None:
            return app
        change = answer.change
        tags = MappingProxyType(dict(change.tags))
        return attrs.evolve(app, queue_name=change.queue_name, tags=tags, priority=change.priority)

    def _failed(self, policy: _Policy, app: Submission, cause: BaseException | str) -> str:
        return str(self._failures.report(policy.origin, "checking", cause, f"application '{app.id}'"))


def _same(app: Submission) -> Submission:
    return app


def _call(submit: Callable[[Submission], Any], app: Submission) -> PolicyAnswer:
    """Call a submit policy in a worker."""
    try:
        answer = submit(app)
        if answer is None:
            return PolicyAnswer()
        reason = text_or_none(answer)
        if reason is not None:
            return PolicyAnswer(reason=safe(reason))
        changed = _checked(app, answer)
        tags = {safe(name): safe(value) for name, value in changed.tags.items()}
        return PolicyAnswer(change=ApplicationChange(safe(changed.queue_name), tags, changed.priority))
    except contained() as error:
        return PolicyAnswer(failed=safe(describe_error(error)))


def _rejection(policy: _Policy, app: Submission, reason: str) -> str:
    return f"submit policy {policy.name} rejects application {app.id}: {reason}"


def _result(app: Submission, owner: Owner, changed: Submission) -> CheckedApplication:
    queue_name = app.queue_name if is_forced(app.tags) else changed.queue_name
    return CheckedApplication(owner, queue_name, changed.tags, changed.priority)


def _checked(before: Submission, answer: Any) -> Submission:
    """Return an exact copy of a changed submission. Raises `TypeError` or `ValueError` for a wrong one."""
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
    return attrs.evolve(
        before, queue_name=exact_text(queue_name), tags=MappingProxyType(tags), priority=priority
    )


def _force_tags(tags: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in tags.items() if name.lower() == FORCE_TAG}
