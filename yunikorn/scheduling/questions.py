"""Questions to policies that may answer later: their answers, and the times at which they are asked again.

Items that the same policy makes wait share timers, so that many items cost few timers, and those that wait
for the same are asked about in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from yunikorn.api import Wait
from yunikorn.clock import SECOND
from yunikorn.config.durations import describe_duration
from yunikorn.containment import contained, describe_error, number_or_none, safe_repr, text_or_none
from yunikorn.framework.plugin_failures import LONGEST_SECONDS
from yunikorn.framework.policy_calls import PolicyAnswer, safe

if TYPE_CHECKING:
    from collections.abc import Hashable

    from yunikorn.clock import Clock, Timer, Timers

SHORTEST = 0.1
"""Shortest time (s) between two questions about an item; shorter waits are extended to it."""
AFTER_FAILURE = 60.0
"""Time (s) until a policy that failed is asked again."""
AWAITED = "its answer is awaited"
"""Reason of a wait while a worker asks a policy."""


class Holding(Protocol):
    """Hold of an application or of a placement."""

    @property
    def message(self) -> str:
        """Message that names the policy and its reason."""
        ...

    @property
    def why(self) -> str:
        """Reason of the policy."""
        ...

    @property
    def until(self) -> int:
        """Time at which the policy is asked again (ns)."""
        ...


def checked(answer: Any) -> str | Wait:
    """Return an answer other than None as values of Python itself. Raises `TypeError` or `ValueError`."""
    reason = text_or_none(answer)
    if reason is not None:
        return reason
    if not issubclass(type(answer), Wait):
        raise TypeError(f"it returned {safe_repr(answer)} instead of None, a reason or Wait")
    seconds, why = number_or_none(answer.seconds), text_or_none(answer.why)
    if seconds is None or not 0 <= seconds < LONGEST_SECONDS:
        given = safe_repr(answer.seconds)
        raise ValueError(f"it returned a wait of {given} seconds instead of a number from 0 to below 1e9")
    if why is None:
        raise TypeError(f"it returned the reason {safe_repr(answer.why)} instead of text")
    return Wait(max(seconds, SHORTEST), why)


def call(method: Callable[[Any], Any], argument: Any) -> PolicyAnswer:
    """Call a policy that returns None, a reason or `Wait` in a worker."""
    try:
        answer = method(argument)
        if answer is None:
            return PolicyAnswer()
        said = checked(answer)
        if isinstance(said, Wait):
            return PolicyAnswer(wait=round(said.seconds * SECOND), why=safe(said.why))
        return PolicyAnswer(reason=safe(said))
    except contained() as error:
        return PolicyAnswer(failed=safe(describe_error(error)))


def said_by(answer: PolicyAnswer) -> str | Wait | None:
    """Return the reason or the wait of a worker's answer that has not failed."""
    if answer.reason is not None:
        return answer.reason
    return None if answer.wait is None else Wait(answer.wait / SECOND, answer.why)


def with_next_question(hold: Holding, now: int) -> str:
    """Return the message of a hold with the time until the next question; none while an answer is awaited."""
    if hold.why == AWAITED:
        return hold.message
    return f"{hold.message}; asked again in {describe_duration(max(hold.until - now, 0))}"


T = TypeVar("T", bound="Hashable")


class _Round(Generic[T]):
    """Items that one policy is asked about at the same time."""

    __slots__ = ("at", "due", "items", "timer")

    def __init__(self, at: int, due: int) -> None:
        self.at, self.due = at, due
        self.items: dict[T, None] = {}
        self.timer: Timer | None = None


class Rounds(Generic[T]):
    """Items of one partition that wait for the next question."""

    def __init__(
        self, clock: Clock, timers: Timers, order: Callable[[T], int], ask: Callable[[T, int], None]
    ) -> None:
        """Create without items; `ask` is called when an item is due, with the position of the policy."""
        self._clock = clock
        self._timers = timers
        self._order = order
        self._ask = ask
        self._of: dict[T, _Round[T]] = {}
        self._latest: dict[int, _Round[T]] = {}
        """The round created last, by the position of its policy."""

    def __len__(self) -> int:
        return len(self._of)

    def __iter__(self) -> Iterator[T]:
        """Return the items in their order."""
        return iter(sorted(self._of, key=self._order))

    def __contains__(self, item: T) -> bool:
        return item in self._of

    def add(self, item: T, at: int, seconds: float, latest: int | None = None) -> int:
        """Ask policy `at` about an item after so many seconds, or a little earlier; return the time (ns).

        With `latest` the question comes at that time (ns) at the latest, and not earlier because of others.
        """
        now = self._clock.now()
        due = now + round(seconds * SECOND)
        if latest is not None and latest <= due:
            return self._add_alone(item, at, max(now, latest))
        # A round that is due in the second half of the wait is joined: there is one timer for many items.
        joined = self._latest.get(at)
        if joined is None or not (now + due) // 2 <= joined.due <= due or joined.timer is None:
            joined = self._latest[at] = self._start(at, due)
        joined.items[item] = None
        self._of[item] = joined
        return joined.due

    def _add_alone(self, item: T, at: int, due: int) -> int:
        made = self._start(at, due)
        made.items[item] = None
        self._of[item] = made
        return due

    def _start(self, at: int, due: int) -> _Round[T]:
        made: _Round[T] = _Round(at, due)
        made.timer = self._timers.at(due, lambda: self._go(made))
        return made

    def discard(self, item: T) -> None:
        """Ask no more about an item."""
        joined = self._of.pop(item, None)
        if joined is None:
            return
        joined.items.pop(item, None)
        if not joined.items and joined.timer is not None:
            joined.timer.cancel()
            joined.timer = None

    def forget_policies(self) -> None:
        """Join no present round any more: positions have another meaning from now on."""
        self._latest = {}

    def ask_now(self) -> None:
        """Ask about all items, without waiting for their times."""
        for item in self:
            # An earlier answer may have ended others: an item is asked about only while it waits.
            waiting = self._of.get(item)
            if waiting is not None:
                self.discard(item)
                self._ask(item, waiting.at)

    def _go(self, due: _Round[T]) -> None:
        due.timer = None
        for item in sorted(due.items, key=self._order):
            if self._of.get(item) is due:
                self.discard(item)
                self._ask(item, due.at)
