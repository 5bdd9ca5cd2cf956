"""Admission of applications by policies: admitted, rejected, or held until the policy admits them.

A held application is accepted and its asks are booked, but the cycle does not see it: it is in no order of
its queue, so that any number of held applications costs nothing per decision. Policies are asked again by
timers of the core. Applications that the same policy holds share timers, and are asked about in the order of
their arrival (docs/decisions/0074).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from yunikorn.api import Wait
from yunikorn.clock import SECOND
from yunikorn.containment import contained, number_or_none, read_attribute, safe_repr, text_or_none
from yunikorn.framework.plugin_failures import LONGEST_SECONDS
from yunikorn.model.application import Hold
from yunikorn.states import FAILING

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.clock import Timer
    from yunikorn.framework.instances import PluginInstance
    from yunikorn.framework.plugin_failures import PluginFailures
    from yunikorn.model.application import Application

SHORTEST = 0.1
"""Shortest time (s) between two questions about an application; shorter waits are extended to it."""
AFTER_FAILURE = 60.0
"""Time (s) until a policy that failed is asked again."""


@attrs.frozen(slots=True)
class Admitted:
    """Answer of the policies to one question about an application."""

    at: int = 0
    """Position of the policy that rejects the application or makes it wait."""
    refusal: str = ""
    """Reason for a rejection."""
    wait: Wait | None = None


ADMITTED = Admitted()


class AdmissionChain:
    """Admission policies of a configuration, asked in order."""

    def __init__(self, policies: Sequence[PluginInstance], failures: PluginFailures) -> None:
        self._policies: list[tuple[str, str, Callable[[Application], Any]]] = [
            (one.name, one.origin, read_attribute(one.plugin, "admit")) for one in policies
        ]
        self._failures = failures

    def __bool__(self) -> bool:
        return bool(self._policies)

    def name(self, at: int) -> str:
        """Return the name of the policy at this position."""
        return self._policies[at][0]

    def ask(self, app: Application, first: int = 0) -> Admitted:
        """Ask the policies about `app`, from position `first` on, until one does not admit it."""
        for at, (name, origin, admit) in enumerate(self._policies[first:], first):
            try:
                answer = admit(app)
                if answer is None:
                    continue
                reason = text_or_none(answer)
                if reason is not None:
                    return Admitted(at, f"admission policy {name} rejects application {app.id}: {reason}")
                return Admitted(at, wait=_checked(answer))
            except contained() as error:
                blame = self._failures.report(origin, "admitting", error, f"application '{app.id}'")
                # The failure may pass: the application is not rejected, and not admitted either.
                return Admitted(at, wait=Wait(AFTER_FAILURE, str(blame)))
        return ADMITTED


def _checked(answer: Any) -> Wait:
    if not issubclass(type(answer), Wait):
        raise TypeError(f"it returned {safe_repr(answer)} instead of None, a reason or Wait")
    seconds, why = number_or_none(answer.seconds), text_or_none(answer.why)
    if seconds is None or not 0 <= seconds < LONGEST_SECONDS:
        given = safe_repr(answer.seconds)
        raise ValueError(f"it returned a wait of {given} seconds instead of a number from 0 to below 1e9")
    if why is None:
        raise TypeError(f"it returned the reason {safe_repr(answer.why)} instead of text")
    return Wait(max(seconds, SHORTEST), why)


class _Round:
    """Applications that one policy is asked about at the same time."""

    __slots__ = ("apps", "due", "timer")

    def __init__(self, due: int) -> None:
        self.due = due
        self.apps: dict[Application, None] = {}
        self.timer: Timer | None = None


class ApplicationHolds:
    """Held applications of one partition."""

    def __init__(
        self, partition: Partition, chain: AdmissionChain, on_admission: Callable[[Application], None]
    ) -> None:
        """Create without applications; `on_admission` is called for each that is no longer held."""
        self._partition = partition
        self._chain = chain
        self._on_admission = on_admission
        self._held: dict[Application, _Round] = {}
        self._latest: dict[int, _Round] = {}
        """The round created last, by the position of its policy."""

    def __len__(self) -> int:
        return len(self._held)

    def ask(self, app: Application) -> str:
        """Ask about a new application that has its queue; it is held from now on if a policy makes it wait.

        Returns the reason for a rejection, or "". A forced application already runs, and is admitted.
        """
        if not self._chain or app.forced:
            return ""
        answer = self._chain.ask(app)
        if answer.wait is not None:
            self._hold(app, answer, answer.wait)
        return answer.refusal

    def report(self, app: Application) -> None:
        """Report to the RM and the event sinks that a new application is held."""
        if app.held is not None:
            self._partition.gangs.report(app, "ApplicationHeld", app.held.message)

    def reconfigure(self, chain: AdmissionChain) -> None:
        """Ask the policies of a new configuration about all held applications."""
        self._chain = chain
        held, self._latest = sorted(self._held, key=lambda app: app.arrival), {}
        for app in held:
            # An earlier answer may have ended others: the application is asked about only while it is held.
            if app in self._held:
                self._withdraw(app)
                if app.state != FAILING:
                    self._take(app, chain.ask(app))

    # -- rounds -------------------------------------------------------------------------------------

    def _hold(self, app: Application, answer: Admitted, wait: Wait) -> None:
        now = self._partition.clock.now()
        due = now + round(wait.seconds * SECOND)
        # A round that is due in the second half of the wait is joined: there is one timer for many
        # applications, and those that wait for the same are asked about in the order of their arrival.
        joined = self._latest.get(answer.at)
        if joined is None or not (now + due) // 2 <= joined.due <= due or joined.timer is None:
            joined = self._latest[answer.at] = _Round(due)
            made = joined
            joined.timer = self._partition.timers.at(due, lambda: self._go(made, answer.at))
        joined.apps[app] = None
        self._held[app] = joined
        since = now if app.held is None else app.held.since
        policy = self._chain.name(answer.at)
        hold = Hold(policy, wait.why, since, joined.due, lambda: self._withdraw(app))
        if app.held is None:
            app.hold(hold)
        else:
            app.held = hold

    def _withdraw(self, app: Application) -> None:
        """Ask no more about an application."""
        joined = self._held.pop(app, None)
        if joined is None:
            return
        joined.apps.pop(app, None)
        if not joined.apps and joined.timer is not None:
            joined.timer.cancel()
            joined.timer = None

    def _go(self, due: _Round, at: int) -> None:
        """Ask about the applications of a round, in the order of their arrival."""
        due.timer = None
        for app in sorted(due.apps, key=lambda app: app.arrival):
            if self._held.get(app) is due:
                self._withdraw(app)
                if app.state != FAILING:
                    self._take(app, self._chain.ask(app, at))

    def _take(self, app: Application, answer: Admitted) -> None:
        """Apply an answer about a held application."""
        if answer.wait is not None:
            self._hold(app, answer, answer.wait)
        elif answer.refusal:
            self._partition.fail_application(app, answer.refusal)
        else:
            self._admit(app)

    def _admit(self, app: Application) -> None:
        assert app.held is not None
        policy = app.held.policy
        app.end_hold()
        # Preemption and refused requests are tried again only after a change.
        self._partition.accounting.changes += 1
        self._on_admission(app)
        self._partition.gangs.report(app, "ApplicationAdmitted", f"admitted by admission policy {policy}")
        app.conclude()
