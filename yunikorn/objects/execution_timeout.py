"""How long an application may run (scheduler-interface seed; decision 22)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from yunikorn.clock import Timer, Timers


class ExecutionTimeout:
    """The time an application has, from the moment it first runs; in nanoseconds."""

    __slots__ = ("_timer", "amount", "deadline")

    def __init__(self, amount: int) -> None:
        self.amount = amount
        self.deadline: int | None = None
        """When its time is up; None until it first runs."""
        self._timer: Timer | None = None

    def start(self, timers: Timers, now: int, expire: Callable[[], None]) -> None:
        """The application runs: have `expire` called when its time is up.

        One that ran before and comes back goes on with what is left of its time.
        """
        if self.deadline is None:
            self.deadline = now + self.amount
        if self._timer is None:
            self._timer = timers.at(self.deadline, expire)

    def stop(self) -> None:
        """The application runs no more, for now or for good."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
