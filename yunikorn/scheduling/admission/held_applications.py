"""Applications that wait for admission policies: admitted, rejected, or held until a policy admits them.

A held application is accepted and its asks are booked, but the cycle does not see it: it is in no order of
its queue, so that any number of held applications costs nothing per decision. Applications that the same
policy holds are asked about in the order of their arrival (docs/decisions/archive/0074). An application is
held as well while a worker asks a policy about it (docs/decisions/archive/0076).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from yunikorn.framework.policy_calls import PolicyAnswer
from yunikorn.model.application import ApplicationHold
from yunikorn.scheduling.admission.asked_policies import (
    NO_OBJECTION,
    PolicyMethod,
    waiting_for,
)
from yunikorn.scheduling.admission.policy_copies import ApplicationCopy
from yunikorn.scheduling.admission.questions import AWAITED, Questions
from yunikorn.states import FAILING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from yunikorn.accounting.partition import Partition
    from yunikorn.model.application import Application
    from yunikorn.scheduling.admission.asked_policies import AskedPolicy, Steps
    from yunikorn.scheduling.admission.worker_questions import WorkerQuestions

ADMIT = PolicyMethod(
    "admission policy", "admit", "admitting", "application '{0.id}'", copy=ApplicationCopy.of
)


Verdict = tuple[int, PolicyAnswer]
"""Position of the policy that rejects an application or makes it wait, and its answer."""


def _is_unanswered(hold: ApplicationHold) -> bool:
    """Return True if no policy has answered yet."""
    return hold.number == 1 and hold.why == AWAITED


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
        self._questions: Questions[Application, Verdict] = Questions(
            partition, workers, self._steps, self._take, self._ask_again, order=lambda app: app.arrival
        )

    def __len__(self) -> int:
        return len(self._questions)

    def ask(self, app: Application) -> str:
        """Ask about a new application that has its queue; it is held from now on if a policy makes it wait.

        Returns the reason for a rejection, or "". A forced application already runs, and is admitted.
        """
        if not self._policies or app.forced:
            return ""
        verdict = self._questions.ask(app)
        return "" if verdict is None else self._apply(app, verdict)

    def report(self, app: Application) -> None:
        """Report to the RM and the event sinks that a new application is held."""
        if app.held is not None and not _is_unanswered(app.held):
            self._partition.changes.remarked(app, "ApplicationHeld", app.held.message)

    def reconfigure(self, policies: Sequence[AskedPolicy]) -> None:
        """Ask the policies of a new configuration about all held applications."""
        self._policies = policies
        self._questions.forget_groups()
        for app in self._questions:
            assert app.held is not None
            app.held.at = 0
        self._questions.restart()

    def ask_now(self) -> None:
        """Ask about all held applications, except those about which a worker asks already."""
        self._questions.ask_now()

    # -- answers ------------------------------------------------------------------------------------

    def _steps(self, app: Application) -> Steps[Verdict]:
        """Ask from the policy on that holds the application, until one does not admit it."""
        first = 0 if app.held is None else app.held.at
        for at, policy in enumerate(self._policies[first:], first):
            if policy.at_once:
                until = self._partition.clock.now() + self._partition.timeouts.policy_answer
                self._set_hold(app, at, AWAITED, until)
            answer = yield from policy.ask(app)
            if answer != NO_OBJECTION or app.state == FAILING:
                return at, waiting_for(answer)
        return 0, NO_OBJECTION

    def _apply(self, app: Application, verdict: Verdict) -> str:
        """Hold an application that a policy makes wait; return the reason for a rejection, or ""."""
        at, answer = verdict
        if answer.wait is not None:
            self._set_hold(app, at, answer.why, self._questions.ask_after(app, at, answer.wait))
        if answer.reason is None:
            return ""
        return self._policies[at].refusal(answer, f"rejects application {app.id}")

    def _set_hold(self, app: Application, at: int, why: str, until: int) -> None:
        now, before = self._partition.clock.now(), app.held
        since = now if before is None else before.since
        hold = ApplicationHold(
            self._policies[at].name, why, since, until, at, partial(self._questions.withdraw, app)
        )
        if before is None:
            app.hold(hold)
            return
        # A question to a worker counts once, and not once more with its answer.
        hold.number, hold.latest = before.number + (before.why != AWAITED), now
        app.held = hold

    def _ask_again(self, app: Application) -> None:
        if app.state != FAILING:
            verdict = self._questions.ask(app)
            if verdict is not None:
                self._take(app, verdict)

    def _take(self, app: Application, verdict: Verdict) -> None:
        """Apply an answer about a held application."""
        if app.state == FAILING:
            return
        assert app.held is not None
        is_first = _is_unanswered(app.held)
        if refusal := self._apply(app, verdict):
            self._partition.fail_application(app, refusal)
        elif verdict[1].wait is None:
            self._admit(app, app.held.policy, reported=not is_first)
        elif is_first:
            self.report(app)

    def _admit(self, app: Application, policy: str, *, reported: bool) -> None:
        app.end_hold()
        # Preemption and refused requests are tried again only after a change.
        self._partition.accounting.change_count += 1
        self._on_admission(app)
        if reported:
            text = f"admitted by admission policy {policy}"
            self._partition.changes.remarked(app, "ApplicationAdmitted", text)
        self._partition.states.conclude(app)
