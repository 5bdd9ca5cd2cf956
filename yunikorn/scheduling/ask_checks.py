"""Checks of single asks by the submit policies that have `submit_ask`, before they are admitted.

Without such a policy no ask comes here. An ask whose check needs a worker waits beside the partition; a
release of the ask, or another ask with the same key, ends the wait (`docs/decisions/archive/0202`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from yunikorn.api import AskSubmission, SubmitPolicy
from yunikorn.containment import contained, describe_error, read_attribute, safe_repr, text_or_none
from yunikorn.framework.policy_calls import PolicyAnswer, calls_at_once, may_block, safe
from yunikorn.model.ask import DEFAULT_SPEC, AskSpec
from yunikorn.resources import INT32_MAX, INT32_MIN
from yunikorn.scheduling.application_copies import ApplicationCopy
from yunikorn.scheduling.ask_admission import AS_REQUESTED
from yunikorn.scheduling.policy_questions import AskedPolicy
from yunikorn.scheduling.policy_steps import Finished, PendingSteps, PolicyQuestion, Steps, begin
from yunikorn.states import FAILING

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.framework.instances import PluginInstance
    from yunikorn.framework.plugin_failures import PluginFailures
    from yunikorn.model.allocation import TerminationType
    from yunikorn.model.application import Application
    from yunikorn.resources import Resource
    from yunikorn.scheduling.ask_admission import AskAdmission
    from yunikorn.scheduling.policy_questions import PolicyQuestions


@attrs.define
class _Policy:
    """A submit policy that checks asks."""

    name: str
    origin: str
    plugin: object
    submit_ask: Callable[[AskSubmission], Any]
    copies: bool = False
    """True if the policy may block, and gets a copy of the application."""
    asked: AskedPolicy | None = None
    """The policy, if workers call it."""


class AskChecks:
    """Policies of one configuration that check asks."""

    def __init__(self, policies: Sequence[PluginInstance], failures: PluginFailures) -> None:
        self._failures = failures
        self._policies = [
            _Policy(one.name, one.origin, one.plugin, read_attribute(one.plugin, "submit_ask"))
            for one in policies
            if type(one.plugin).submit_ask is not SubmitPolicy.submit_ask
        ]

    def __bool__(self) -> bool:
        return bool(self._policies)

    def bind(self, *, workers: bool) -> None:
        """Read which policies may block; with `workers`, those call them. Called after opening."""
        for policy in self._policies:
            policy.copies = may_block(policy.plugin, policy.origin, self._failures)
            if policy.copies and workers:
                at_once = calls_at_once(policy.plugin, policy.origin, self._failures)
                call, title = partial(_call, policy.submit_ask), f"submit policy {policy.name}"
                policy.asked = AskedPolicy(policy.plugin, title, policy.origin, call, at_once)

    def steps(self, ask: AskSubmission) -> Steps[int | str]:
        """Return the priority that the policies give to an ask, or the reason for a rejection."""
        for policy in self._policies:
            given = partial(_copied, ask) if policy.copies else partial(_same, ask)
            if policy.asked is None:
                answer = _call(policy.submit_ask, given())
            else:
                answer = yield PolicyQuestion(policy.asked, given)
            if answer.failed is not None:
                return str(self._failures.report(policy.origin, "checking", answer.failed, f"ask {ask.key}"))
            if answer.reason is not None:
                return f"submit policy {policy.name} rejects ask {ask.key}: {answer.reason}"
            if answer.ask_priority is not None:
                ask = attrs.evolve(ask, priority=answer.ask_priority)
        return ask.priority


def _same(ask: AskSubmission) -> AskSubmission:
    return ask


def _copied(ask: AskSubmission) -> AskSubmission:
    return attrs.evolve(ask, app=ApplicationCopy.of(ask.app))  # type: ignore[arg-type]


def _call(submit_ask: Callable[[AskSubmission], Any], ask: AskSubmission) -> PolicyAnswer:
    """Call a policy, in a worker or in the core's thread."""
    try:
        answer = submit_ask(ask)
        if answer is None:
            return PolicyAnswer()
        reason = text_or_none(answer)
        if reason is not None:
            return PolicyAnswer(reason=safe(reason))
        return PolicyAnswer(ask_priority=_checked(ask, answer))
    except contained() as error:
        return PolicyAnswer(failed=safe(describe_error(error)))


def _checked(before: AskSubmission, answer: Any) -> int:
    """Return the priority of a changed ask. Raises `TypeError` or `ValueError` for a wrong answer."""
    if not issubclass(type(answer), AskSubmission):
        raise TypeError(f"it returned {safe_repr(answer)} instead of None, a submission or a reason")
    for field in attrs.fields(AskSubmission):
        name = field.name
        if name != "priority" and getattr(answer, name) is not getattr(before, name):
            raise ValueError(f"it changed '{name}', which a submit policy cannot change")
    priority = answer.priority
    if type(priority) is not int or not INT32_MIN < priority <= INT32_MAX:
        raise ValueError(f"it set priority to {safe_repr(priority)} instead of a whole number of 32 bits")
    return priority


@attrs.define(eq=False)
class WaitingAsk:
    """An ask that is neither admitted nor rejected."""

    app: Application
    ask: AskSubmission
    spec: AskSpec
    pending: PendingSteps[int | str] | None = None


class AskIntake:
    """Admits or rejects the asks that an RM reports to one partition."""

    def __init__(self, partition: Partition, asks: AskAdmission, questions: PolicyQuestions | None) -> None:
        """Create without policies; with `questions`, which workers answer, asks may wait."""
        self._partition, self._asks, self._questions = partition, asks, questions
        self.checks: AskChecks | None = None
        """The policies in use; None if none of them checks asks."""
        self._waiting: dict[str, dict[str, WaitingAsk]] = {}
        """Asks that wait for an answer, by application and key."""

    def __len__(self) -> int:
        """Return the number of asks that wait."""
        return sum(map(len, self._waiting.values()))

    def awaited(self, app: Application) -> str:
        """Return the policy that the first waiting ask of an application waits for; empty if none waits."""
        one = next(iter(self._waiting.get(app.id, {}).values()), None)
        return "" if one is None or one.pending is None else one.pending.waits_for

    def use(self, checks: AskChecks) -> None:
        """Use these policies from now on."""
        self.checks = checks or None
        self._asks.priorities_are_final = bool(checks)

    # -- asks ---------------------------------------------------------------------------------------

    def add(
        self,
        app_id: str,
        key: str,
        resource: Resource,
        count: int,
        priority: int,
        spec: AskSpec = DEFAULT_SPEC,
    ) -> None:
        """Check an ask, and admit or reject it; one whose check needs a worker waits."""
        app = self._partition.applications.get(app_id)
        if app is None or app.state == FAILING or self.checks is None:
            self._asks.add(app_id, key, resource, count, priority, spec)  # which rejects it
            return
        if app.ask_priority is not None:
            priority = app.ask_priority
        replaced = self._withdraw(app_id, key)
        submission = AskSubmission(
            key,
            app,
            resource,
            count,
            priority,
            spec.tags,
            spec.task_group,
            placeholder=spec.placeholder,
            originator=spec.originator,
        )
        self._check(WaitingAsk(app, submission, spec))
        self._settle(replaced)

    def _check(self, one: WaitingAsk) -> None:
        assert self.checks is not None

        def take(found: int | str) -> None:
            self._take(one)
            self._conclude(one, found)
            self._settle([one])

        found = begin(self.checks.steps(one.ask), self._questions, take)
        if isinstance(found, Finished):
            self._conclude(one, found.result)
        else:
            one.pending = found
            self._waiting.setdefault(one.app.id, {})[one.ask.key] = one
            self._partition.accounting.pending_accounting.wait_for_answer(one.app)

    def _take(self, one: WaitingAsk) -> None:
        """Forget an ask that waits; `_settle` follows, when it is known what becomes of the ask."""
        alike = self._waiting[one.app.id]
        del alike[one.ask.key]
        if not alike:
            del self._waiting[one.app.id]
        one.app.unanswered -= 1

    def _settle(self, ended: Sequence[WaitingAsk]) -> None:
        """Let applications complete that waited for nothing but the answers to these asks."""
        if ended:
            self._asks.flush()
        for one in ended:
            if not one.app.unanswered and one.app.queue is not None:
                self._partition.accounting.pending_accounting.all_answered(one.app)

    def _conclude(self, one: WaitingAsk, found: int | str) -> None:
        """Admit or reject an ask whose check is complete."""
        ask, app = one.ask, one.app
        if isinstance(found, str):
            self._reject(one, found)
        elif self._partition.applications.get(app.id) is not app:
            self._reject(one, f"failed to find application {app.id}")
        else:
            self._asks.add(app.id, ask.key, ask.resource, ask.count, found, one.spec)

    def _reject(self, one: WaitingAsk, reason: str) -> None:
        self._asks.flush()
        self._partition.changes.ask_rejected(one.ask.key, reason, one.app.id)

    # -- ends of a wait -----------------------------------------------------------------------------

    def release(self, app_id: str, key: str, termination: TerminationType, message: str = "") -> None:
        """Drop asks as `AskAdmission.release`, also such as wait."""
        withdrawn = self._withdraw(app_id, key)
        for one in withdrawn:
            if one.ask.key not in one.app.asks:
                self._report_release(one, termination, message or AS_REQUESTED)
        if not (withdrawn and key and key not in withdrawn[0].app.asks):
            self._asks.release(app_id, key, termination, message)
        self._settle(withdrawn)

    def end(self, app_id: str, key: str, termination: TerminationType, message: str) -> bool:
        """Drop the asks that wait, which a release of allocations ends, too; return True if there were any.

        Those with a pending ask of the same key are reported with it.
        """
        withdrawn = self._withdraw(app_id, key)
        for one in withdrawn:
            known = one.app.asks.get(one.ask.key)
            if known is None or not known.pending:
                self._report_release(one, termination, message)
        self._settle(withdrawn)
        return bool(withdrawn)

    def _report_release(self, one: WaitingAsk, termination: TerminationType, message: str) -> None:
        self._partition.changes.ask_released(one.app.id, one.ask.key, termination, message)

    def placed(self, app: Application, key: str) -> None:
        """Take one replica from the ask with this key, if one waits: the RM has placed it itself."""
        one = self._waiting.get(app.id, {}).get(key)
        if one is None:
            return
        if one.ask.count > 1:
            one.ask = attrs.evolve(one.ask, count=one.ask.count - 1)
        else:
            self._settle(self._withdraw(app.id, key))

    def withdraw(self, app_id: str) -> None:
        """Forget the asks that wait of an application that leaves."""
        self._withdraw(app_id, "")

    def _withdraw(self, app_id: str, key: str) -> list[WaitingAsk]:
        if not self._waiting:
            return []
        found = list(self._named(app_id, key))
        for one in found:
            self._take(one)
            assert one.pending is not None
            one.pending.withdraw()
        return found

    def _named(self, app_id: str, key: str) -> Iterator[WaitingAsk]:
        groups = [self._waiting.get(app_id, {})] if app_id else self._waiting.values()
        for alike in groups:
            if not key:
                yield from alike.values()
            elif key in alike:
                yield alike[key]

    def check_again(self) -> None:
        """Check the asks that wait by the policies of a new configuration."""
        waiting = [*self._named("", "")]
        for one in waiting:
            self._take(one)
            if self.checks is None:
                self._conclude(one, one.ask.priority)
            else:
                self._check(one)
        self._settle(waiting)

    def close(self, reason: str) -> None:
        """Reject the asks that wait."""
        for one in self._withdraw("", ""):
            self._reject(one, reason)
