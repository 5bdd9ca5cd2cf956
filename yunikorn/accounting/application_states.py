"""States of the applications of a partition: which event moves an application, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.states import ADVANCE, APPLICATION, FAILING, RESUMING, RUNNING

if TYPE_CHECKING:
    from collections.abc import Callable

    from yunikorn.model.application import Application
    from yunikorn.states import ApplicationEvent


class ApplicationStates:
    """Changes of the states of applications."""

    __slots__ = ("_entered",)

    def __init__(self, entered: Callable[[Application, str], None]) -> None:
        """Create for a partition; `entered` does what follows from each new state, with its reason."""
        self._entered = entered

    def fire(self, app: Application, event: ApplicationEvent, reason: str = "") -> bool:
        """Apply an event of the state machine; return True if the state changed.

        Raises `StateError` if the state does not allow the event.
        """
        target = APPLICATION.moves.get((app.state, event)) or APPLICATION.next(app.label, app.state, event)
        if target == app.state:
            return False
        app.state = target
        self._entered(app, reason)
        return True

    def advance(self, app: Application, reason: str = "") -> None:
        """Move to the next active state; do nothing if the state is Running."""
        if app.state != RUNNING:
            self.fire(app, ADVANCE.get(app.state, "run"), reason)

    def start(self, app: Application) -> None:
        """Move to the next active state after a real allocation; do nothing if the state is Running."""
        if app.state == RESUMING:
            self.fire(app, ADVANCE[RESUMING], "allocation added")
        if app.state != RUNNING:
            self.fire(app, ADVANCE.get(app.state, "run"), "allocation added")

    def conclude(self, app: Application) -> None:
        """Fire `complete`, or `fail` in state Failing, if no allocations and no requests are left."""
        if app.state == FAILING:
            if not (app.allocations or app.has_waiting or app.leaving):
                self.fire(app, "fail", app.reason)
        elif app.is_idle:
            self.fire(app, "complete", "no requests and no allocations left")
