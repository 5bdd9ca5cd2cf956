"""Admission of applications by policies: admitted, rejected, or held until the policy admits them.

A held application is accepted and its asks are booked, but the cycle does not see it: it is in no order of
its queue, so that any number of held applications costs nothing per decision. Policies are asked again by
timers of the core. Applications that the same policy holds share timers, and are asked about in the order of
their arrival (docs/decisions/archive/0074).

With workers, an application is held while the answer of a policy that may block is awaited
(docs/decisions/archive/0076).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from yunikorn.api import Wait
from yunikorn.containment import contained, read_attribute
from yunikorn.framework.policy_calls import PolicyAnswer, calls_at_once, may_block
from yunikorn.model.application import Hold
from yunikorn.scheduling.application_copies import ApplicationCopy
from yunikorn.scheduling.policy_questions import AskedPolicy
from yunikorn.scheduling.questions import AFTER_FAILURE, AWAITED, Rounds, call, checked, said_by
from yunikorn.states import FAILING

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.framework.instances import PluginInstance
    from yunikorn.framework.plugin_failures import PluginFailures
    from yunikorn.model.application import Application
    from yunikorn.scheduling.policy_questions import PolicyQuestions


@attrs.frozen(slots=True)
class Admitted:
    """Answer of the policies to one question about an application."""

    at: int = 0
    """Position of the policy that rejects the application or makes it wait."""
    refusal: str = ""
    """Reason for a rejection."""
    wait: Wait | None = None
    asked: AskedPolicy | None = None
    """The policy, if a worker has to ask it."""


ADMITTED = Admitted()


@attrs.define
class _Policy:
    """An admission policy in use."""

    name: str
    origin: str
    plugin: object
    admit: Callable[[Application], Any]
    asked: AskedPolicy | None = None
    """The policy, if workers call it."""


class AdmissionChain:
    """Admission policies of a configuration, asked in order."""

    def __init__(self, policies: Sequence[PluginInstance], failures: PluginFailures) -> None:
        self._policies = [
            _Policy(one.name, one.origin, one.plugin, read_attribute(one.plugin, "admit")) for one in policies
        ]
        self._failures = failures

    def __bool__(self) -> bool:
        return bool(self._policies)

    def bind(self, *, workers: bool) -> None:
        """Read which policies may block: they get a copy of the application, and are called by `workers`."""
        for policy in self._policies:
            if may_block(policy.plugin, policy.origin, self._failures):
                title = f"admission policy {policy.name}"
                if workers:
                    at_once = calls_at_once(policy.plugin, policy.origin, self._failures)
                    policy.asked = AskedPolicy(
                        policy.plugin, title, policy.origin, partial(call, policy.admit), at_once
                    )
                else:
                    policy.admit = partial(_admit_copy, policy.admit)

    def name(self, at: int) -> str:
        """Return the name of the policy at this position."""
        return self._policies[at].name

    def ask(self, app: Application, first: int = 0) -> Admitted:
        """Ask the policies about `app`, from position `first` on, until one does not admit it."""
        for at, policy in enumerate(self._policies[first:], first):
            if policy.asked is not None:
                return Admitted(at, asked=policy.asked)
            try:
                answer = policy.admit(app)
                if answer is None:
                    continue
                said = checked(answer)
                if isinstance(said, Wait):
                    return Admitted(at, wait=said)
                return self._rejected(app, at, said)
            except contained() as error:
                return self._failed(app, at, error)
        return ADMITTED

    def understand(self, app: Application, at: int, answer: PolicyAnswer) -> Admitted:
        """Return what a worker's answer about `app` means; after an admission the next policies are asked."""
        if answer.failed is not None:
            return self._failed(app, at, answer.failed)
        said = said_by(answer)
        if said is None:
            return self.ask(app, at + 1)
        return Admitted(at, wait=said) if isinstance(said, Wait) else self._rejected(app, at, said)

    def _rejected(self, app: Application, at: int, reason: str) -> Admitted:
        return Admitted(at, f"admission policy {self.name(at)} rejects application {app.id}: {reason}")

    def _failed(self, app: Application, at: int, cause: BaseException | str) -> Admitted:
        origin = self._policies[at].origin
        blame = self._failures.report(origin, "admitting", cause, f"application '{app.id}'")
        # The failure may pass: the application is not rejected, and not admitted either.
        return Admitted(at, wait=Wait(AFTER_FAILURE, str(blame)))


def _admit_copy(admit: Callable[[Any], Any], app: Application) -> Any:
    return admit(ApplicationCopy.of(app))


class ApplicationHolds:
    """Held applications of one partition."""

    def __init__(
        self,
        partition: Partition,
        chain: AdmissionChain,
        on_admission: Callable[[Application], None],
        questions: PolicyQuestions | None = None,
    ) -> None:
        """Create without applications; `on_admission` is called for each that is no longer held.

        `questions` are answered by workers; None if there are no workers.
        """
        self._partition = partition
        self._chain = chain
        self._on_admission = on_admission
        self._questions = questions
        self._rounds: Rounds[Application] = Rounds(
            partition.clock, partition.timers, lambda app: app.arrival, self._ask_again
        )
        self._asked: dict[Application, Callable[[], None]] = {}
        """Applications about which a worker asks, each with the function that withdraws the question."""
        self._unreported: set[Application] = set()
        """Held applications about which no policy has answered yet."""

    def __len__(self) -> int:
        return len(self._rounds) + len(self._asked)

    def ask(self, app: Application) -> str:
        """Ask about a new application that has its queue; it is held from now on if a policy makes it wait.

        Returns the reason for a rejection, or "". A forced application already runs, and is admitted.
        """
        if not self._chain or app.forced:
            return ""
        answer = self._chain.ask(app)
        if answer.wait is not None:
            self._hold(app, answer, answer.wait)
        elif answer.asked is not None:
            self._unreported.add(app)
            self._consult(app, answer.at, answer.asked)
        return answer.refusal

    def report(self, app: Application) -> None:
        """Report to the RM and the event sinks that a new application is held."""
        if app.held is not None and app not in self._unreported:
            self._partition.changes.remarked(app, "ApplicationHeld", app.held.message)

    def reconfigure(self, chain: AdmissionChain) -> None:
        """Ask the policies of a new configuration about all held applications."""
        self._chain = chain
        self._rounds.forget_policies()
        for app in sorted([*self._rounds, *self._asked], key=lambda app: app.arrival):
            # An earlier answer may have ended others: the application is asked about only while it is held.
            if app in self._rounds or app in self._asked:
                self._withdraw(app)
                self._ask_again(app, 0)

    def ask_now(self) -> None:
        """Ask about all held applications, except those about which a worker asks already."""
        self._rounds.ask_now()

    # -- workers ------------------------------------------------------------------------------------

    def _consult(self, app: Application, at: int, asked: AskedPolicy) -> None:
        """Let a worker ask a policy about an application, which is held meanwhile."""
        questions = self._questions
        assert questions is not None
        until = self._partition.clock.now() + questions.limit
        self._set_hold(app, at, AWAITED, until)
        self._asked[app] = questions.ask(
            asked, lambda: ApplicationCopy.of(app), lambda answer: self._answered(app, at, answer)
        )

    def _answered(self, app: Application, at: int, answer: PolicyAnswer) -> None:
        del self._asked[app]
        if app.state != FAILING:
            self._take(app, self._chain.understand(app, at, answer))

    # -- answers ------------------------------------------------------------------------------------

    def _hold(self, app: Application, answer: Admitted, wait: Wait) -> None:
        self._set_hold(app, answer.at, wait.why, self._rounds.add(app, answer.at, wait.seconds))

    def _set_hold(self, app: Application, at: int, why: str, until: int) -> None:
        now, before = self._partition.clock.now(), app.held
        since = now if before is None else before.since
        hold = Hold(self._chain.name(at), why, since, until, lambda: self._leave(app))
        if before is None:
            app.hold(hold)
            return
        # A question to a worker counts once, and not once more with its answer.
        hold.number, hold.latest = before.number + (before.why != AWAITED), now
        app.held = hold

    def _leave(self, app: Application) -> None:
        self._unreported.discard(app)
        self._withdraw(app)

    def _withdraw(self, app: Application) -> None:
        """Ask no more about an application."""
        withdraw = self._asked.pop(app, None)
        if withdraw is not None:
            withdraw()
        self._rounds.discard(app)

    def _ask_again(self, app: Application, at: int) -> None:
        if app.state != FAILING:
            self._take(app, self._chain.ask(app, at))

    def _take(self, app: Application, answer: Admitted) -> None:
        """Apply an answer about a held application."""
        if answer.asked is not None:
            self._consult(app, answer.at, answer.asked)
            return
        is_first = app in self._unreported
        self._unreported.discard(app)
        if answer.wait is not None:
            self._hold(app, answer, answer.wait)
            if is_first:
                self.report(app)
        elif answer.refusal:
            self._partition.fail_application(app, answer.refusal)
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
