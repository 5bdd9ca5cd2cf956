"""Execution timeout: limit on the run time of an application (docs/decisions/0022)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from yunikorn.clock import Timer, Timers


class ExecutionTimeout:
    """Time limit of an application (ns), counted from its first start."""

    __slots__ = ("_timer", "amount", "deadline")

    def __init__(self, amount: int) -> None:
        self.amount = amount
        self.deadline: int | None = None
        """Time at which the limit is reached (ns); None until the application first runs."""
        self._timer: Timer | None = None

    def start(self, timers: Timers, now: int, expire: Callable[[], None]) -> None:
        """Start the timer that calls `expire` at the deadline, when the application runs.

        An application that ran before keeps its original deadline.
        """
        if self.deadline is None:
            self.deadline = now + self.amount
        if self._timer is None:
            self._timer = timers.at(self.deadline, expire)

    def stop(self) -> None:
        """Stop the timer when the application no longer runs, temporarily or finally."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
