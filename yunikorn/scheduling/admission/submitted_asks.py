"""Checks of single asks by the submit policies that have `submit_ask`, before they are admitted.

Without such a policy no ask comes here. An ask whose check needs a worker waits beside the partition; a
release of the ask, or another ask with the same key, ends the wait (`docs/decisions/archive/0202`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from yunikorn.api import AskSubmission
from yunikorn.model.ask import DEFAULT_SPEC, AskSpec
from yunikorn.scheduling.admission.asked_policies import AskedPolicy
from yunikorn.scheduling.admission.questions import Questions
from yunikorn.scheduling.ask_admission import AS_REQUESTED
from yunikorn.states import FAILING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from yunikorn.accounting.partition import Partition
    from yunikorn.model.allocation import TerminationType
    from yunikorn.model.application import Application
    from yunikorn.resources import Resource
    from yunikorn.scheduling.admission.asked_policies import Steps
    from yunikorn.scheduling.admission.worker_questions import WorkerQuestions
    from yunikorn.scheduling.ask_admission import AskAdmission


@attrs.define(eq=False)
class WaitingAsk:
    """An ask that is neither admitted nor rejected."""

    app: Application
    ask: AskSubmission
    spec: AskSpec


class SubmittedAsks:
    """Admits or rejects the asks that an RM reports to one partition."""

    def __init__(self, partition: Partition, asks: AskAdmission, workers: WorkerQuestions | None) -> None:
        """Create without policies; with `workers`, asks may wait."""
        self._partition, self._asks = partition, asks
        self.policies: Sequence[AskedPolicy] = ()
        """The policies in use that check asks."""
        self._questions: Questions[WaitingAsk, int | str] = Questions(
            partition, workers, self._steps, self._answered, self._check
        )
        self._waiting: dict[str, dict[str, WaitingAsk]] = {}
        """Asks that wait for an answer, by application and key."""

    def __len__(self) -> int:
        """Return the number of asks that wait."""
        return len(self._questions)

    def awaited(self, app: Application) -> str:
        """Return the policy that the first waiting ask of an application waits for; empty if none waits."""
        one = next(iter(self._waiting.get(app.id, {}).values()), None)
        return "" if one is None else self._questions.awaited(one)

    def use(self, policies: Sequence[AskedPolicy]) -> None:
        """Use these policies from now on."""
        self.policies = policies
        self._asks.priorities_are_final = bool(policies)

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
        if app is None or app.state == FAILING or not self.policies:
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
        found = self._questions.ask(one)
        if found is not None:
            self._conclude(one, found)
        else:
            self._waiting.setdefault(one.app.id, {})[one.ask.key] = one
            self._partition.accounting.pending_accounting.wait_for_answer(one.app)

    def _steps(self, one: WaitingAsk) -> Steps[int | str]:
        """Return the priority that the policies give to an ask, or the reason for a rejection."""
        ask = one.ask
        for policy in self.policies:
            answer = yield from policy.ask(ask)
            if refusal := policy.refusal(answer, f"rejects ask {ask.key}"):
                return refusal
            if answer.ask_priority is not None:
                ask = attrs.evolve(ask, priority=answer.ask_priority)
        return ask.priority

    def _answered(self, one: WaitingAsk, found: int | str) -> None:
        self._take(one)
        self._conclude(one, found)
        self._settle([one])

    def _take(self, one: WaitingAsk) -> None:
        """Forget an ask that waits; `_settle` follows, when it is known what becomes of the ask."""
        self._questions.withdraw(one)
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
            self._check(one)
        self._settle(waiting)

    def close(self, reason: str) -> None:
        """Reject the asks that wait."""
        for one in self._withdraw("", ""):
            self._reject(one, reason)
