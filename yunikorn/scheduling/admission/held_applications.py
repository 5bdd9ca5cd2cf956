"""Applications that wait for admission policies: admitted, rejected, or held until a policy admits them.

A held application is accepted and its asks are booked, but the cycle does not see it: it is in no order of
its queue, so that any number of held applications costs nothing per decision. Applications that the same
policy holds are asked about in the order of their arrival (docs/decisions/archive/0074). An application is
held as well while a worker asks a policy about it (docs/decisions/archive/0076).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from yunikorn.model.application import Hold
from yunikorn.scheduling.admission.asked_policies import (
    NO_OBJECTION,
    PolicyMethod,
    read_verdict,
    waiting_for,
)
from yunikorn.scheduling.admission.policy_copies import ApplicationCopy
from yunikorn.scheduling.admission.questions import AWAITED, Questions
from yunikorn.states import FAILING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from yunikorn.accounting.partition import Partition
    from yunikorn.framework.policy_calls import PolicyAnswer
    from yunikorn.model.application import Application
    from yunikorn.scheduling.admission.asked_policies import AskedPolicy, Steps
    from yunikorn.scheduling.admission.worker_questions import WorkerQuestions

ADMIT = PolicyMethod(
    "admission policy",
    "admit",
    "admitting",
    lambda app: f"application '{app.id}'",
    read_verdict,
    ApplicationCopy.of,
)


class _Verdict(NamedTuple):
    """Answer of the admission policies about an application."""

    at: int
    """Position of the policy that rejects the application or makes it wait."""
    answer: PolicyAnswer


class HeldApplications:
    """Applications of one partition that admission policies hold."""

    def __init__(
        self,
        partition: Partition,
        policies: Sequence[AskedPolicy],
        on_admission: Callable[[Application], None],
        workers: WorkerQuestions | None = None,
    ) -> None:
        """Create without applications; `on_admission` is called for each that is no longer held."""
        self._partition = partition
        self._policies = policies
        self._on_admission = on_admission
        self._questions: Questions[Application, _Verdict] = Questions(
            partition, workers, self._steps, self._take, self._ask_again, order=lambda app: app.arrival
        )
        self._unreported: set[Application] = set()
        """Held applications about which no policy has answered yet."""

    def __len__(self) -> int:
        return len(self._questions)

    def ask(self, app: Application) -> str:
        """Ask about a new application that has its queue; it is held from now on if a policy makes it wait.

        Returns the reason for a rejection, or "". A forced application already runs, and is admitted.
        """
        if not self._policies or app.forced:
            return ""
        verdict = self._questions.ask(app)
        if verdict is None:
            self._unreported.add(app)
            return ""
        if verdict.answer.wait is not None:
            self._hold(app, verdict)
        return self._refusal(app, verdict)

    def report(self, app: Application) -> None:
        """Report to the RM and the event sinks that a new application is held."""
        if app.held is not None and app not in self._unreported:
            self._partition.changes.remarked(app, "ApplicationHeld", app.held.message)

    def reconfigure(self, policies: Sequence[AskedPolicy]) -> None:
        """Ask the policies of a new configuration about all held applications."""
        self._policies = policies
        self._questions.forget_groups()
        for app in self._questions:
            # An earlier answer may have ended others: the application is asked about only while it is held.
            if app in self._questions:
                self._questions.withdraw(app)
                assert app.held is not None
                app.held.at = 0
                self._ask_again(app)

    def ask_now(self) -> None:
        """Ask about all held applications, except those about which a worker asks already."""
        self._questions.ask_now()

    # -- answers ------------------------------------------------------------------------------------

    def _steps(self, app: Application) -> Steps[_Verdict]:
        """Ask from the policy on that holds the application, until one does not admit it."""
        first = 0 if app.held is None else app.held.at
        for at, policy in enumerate(self._policies[first:], first):
            if policy.at_once:
                self._set_hold(app, at, AWAITED, self._partition.clock.now() + self._questions.limit)
            answer = yield from policy.ask(app)
            if answer != NO_OBJECTION or app.state == FAILING:
                return _Verdict(at, waiting_for(answer))
        return _Verdict(0, NO_OBJECTION)

    def _refusal(self, app: Application, verdict: _Verdict) -> str:
        reason = verdict.answer.reason
        if reason is None:
            return ""
        return f"{self._policies[verdict.at].title} rejects application {app.id}: {reason}"

    def _hold(self, app: Application, verdict: _Verdict) -> None:
        at, answer = verdict
        assert answer.wait is not None
        self._set_hold(app, at, answer.why, self._questions.ask_after(app, at, answer.wait))

    def _set_hold(self, app: Application, at: int, why: str, until: int) -> None:
        now, before = self._partition.clock.now(), app.held
        since = now if before is None else before.since
        hold = Hold(self._policies[at].name, why, since, until, at, lambda: self._leave(app))
        if before is None:
            app.hold(hold)
            return
        # A question to a worker counts once, and not once more with its answer.
        hold.number, hold.latest = before.number + (before.why != AWAITED), now
        app.held = hold

    def _leave(self, app: Application) -> None:
        self._unreported.discard(app)
        self._questions.withdraw(app)

    def _ask_again(self, app: Application) -> None:
        if app.state != FAILING:
            verdict = self._questions.ask(app)
            if verdict is not None:
                self._take(app, verdict)

    def _take(self, app: Application, verdict: _Verdict) -> None:
        """Apply an answer about a held application."""
        if app.state == FAILING:
            return
        is_first = app in self._unreported
        self._unreported.discard(app)
        if verdict.answer.wait is not None:
            self._hold(app, verdict)
            if is_first:
                self.report(app)
        elif refusal := self._refusal(app, verdict):
            self._partition.fail_application(app, refusal)
        else:
            self._admit(app, reported=not is_first)

    def _admit(self, app: Application, *, reported: bool) -> None:
        assert app.held is not None
        policy = app.held.policy
        app.end_hold()
        # Preemption and refused requests are tried again only after a change.
        self._partition.accounting.change_count += 1
        self._on_admission(app)
        if reported:
            text = f"admitted by admission policy {policy}"
            self._partition.changes.remarked(app, "ApplicationAdmitted", text)
        self._partition.states.conclude(app)
