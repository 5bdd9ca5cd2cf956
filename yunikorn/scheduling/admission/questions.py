"""Questions about what may wait: asked now, by a worker, or again at a time.

One class for all kinds: a kind names the policies that are asked about an item (`Steps`), and what follows
from the result. Items that are asked about at the same time share a timer, so that many items cost few
timers, and those that wait for the same policy are asked about in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import attrs

from yunikorn.config.durations import describe_duration

if TYPE_CHECKING:
    from collections.abc import Hashable

    from yunikorn.accounting.partition import Partition
    from yunikorn.clock import Timer
    from yunikorn.model.allocation import PlacementHold
    from yunikorn.model.application import ApplicationHold
    from yunikorn.scheduling.admission.asked_policies import Steps
    from yunikorn.scheduling.admission.worker_questions import WorkerQuestions

AWAITED = "its answer is awaited"
"""Reason of a wait while a worker asks a policy."""


def with_next_question(wait: ApplicationHold | PlacementHold, now: int) -> str:
    """Return the message of a wait with the time until the next question; none while an answer is awaited."""
    if wait.why == AWAITED:
        return wait.message
    return f"{wait.message}; asked again in {describe_duration(max(wait.until - now, 0))}"


T = TypeVar("T", bound="Hashable")
R = TypeVar("R")


@attrs.define(eq=False)
class _Question(Generic[R]):
    """A question whose answer a worker has not given yet."""

    steps: Steps[R]
    awaited: str = ""
    """Policy whose answer is awaited, as in `submit policy site-rules`."""
    withdraw: Callable[[], object] = lambda: None
    is_outdated: bool = False
    """True if something has changed since the question, so that another one follows."""


@attrs.define(eq=False)
class _Round(Generic[T]):
    """Items that are asked about at the same time."""

    due: int
    items: dict[T, None] = attrs.field(factory=dict)
    timer: Timer | None = None


class Questions(Generic[T, R]):
    """Items of one kind in a partition that wait for a worker, or for the time of the next question."""

    def __init__(
        self,
        partition: Partition,
        workers: WorkerQuestions | None,
        steps: Callable[[T], Steps[R]],
        take: Callable[[T, R], object],
        again: Callable[[T], object],
        *,
        order: Callable[[T], int] = lambda item: 0,
        after: Callable[[], object] = lambda: None,
    ) -> None:
        """Create without items; without `workers` no policy may need one.

        `take` gets a result that workers have given. `again` asks about an item that is due, or that has
        changed since the question. Items that are due together are asked about in this `order`, and `after`
        follows them.
        """
        self._clock, self._timers = partition.clock, partition.timers
        self._workers = workers
        self._steps, self._take, self._again, self._order, self._after = steps, take, again, order, after
        self._open: dict[T, _Question[R]] = {}
        """Items about which a worker asks."""
        self._due: dict[T, _Round[T]] = {}
        """Items that are asked about again."""
        self._latest: dict[Hashable, _Round[T]] = {}
        """The round created last, by the group of its items."""
        self._exact: dict[int, _Round[T]] = {}
        """Rounds whose items are asked about at exactly this time (ns)."""

    def __len__(self) -> int:
        return len(self._open.keys() | self._due.keys())

    def __iter__(self) -> Iterator[T]:
        """Return the items in their order."""
        return iter(sorted({**self._due, **self._open}, key=self._order))

    def __contains__(self, item: T) -> bool:
        return item in self._open or item in self._due

    # -- questions ----------------------------------------------------------------------------------

    def ask(self, item: T) -> R | None:
        """Ask about an item, and return the result; None if workers have to answer first."""
        return self._go_on(item, _Question(self._steps(item)), None)

    def _go_on(self, item: T, question: _Question[R], answer: Any) -> R | None:
        try:
            asked = question.steps.send(answer)
        except StopIteration as end:
            self._open.pop(item, None)
            result: R = end.value
            return result
        assert self._workers is not None
        self._open[item] = question
        question.awaited = asked.policy.title
        question.withdraw = self._workers.ask(asked, partial(self._answered, item, question))
        return None

    def _answered(self, item: T, question: _Question[R], answer: Any) -> None:
        result = self._go_on(item, question, answer)
        if result is not None:
            self._take(item, result)
            if question.is_outdated:
                self._again(item)

    def awaited(self, item: T) -> str:
        """Return the policy whose answer about an item is awaited, or ""."""
        question = self._open.get(item)
        return "" if question is None else question.awaited

    def outdate(self, item: T) -> bool:
        """Ask about an item once more after the answer of a worker; return False if none is awaited."""
        question = self._open.get(item)
        if question is not None:
            question.is_outdated = True
        return question is not None

    def withdraw(self, item: T) -> None:
        """Ask no more about an item."""
        question = self._open.pop(item, None)
        if question is not None:
            question.withdraw()
        self.forget_time(item)

    # -- later --------------------------------------------------------------------------------------

    def ask_after(self, item: T, group: Hashable, wait: int, latest: int | None = None) -> int:
        """Ask about an item after so long (ns), or a little earlier with its group; return the time (ns).

        With `latest` the question comes at that time (ns) at the latest, and not earlier because of others.
        """
        self.forget_time(item)
        now = self._clock.now()
        due = now + wait
        if latest is not None and latest <= due:
            return self._join(item, self._start(max(now, latest)))
        # A round that is due in the second half of the wait is joined: there is one timer for many items.
        joined = self._latest.get(group)
        if joined is None or not (now + due) // 2 <= joined.due <= due or joined.timer is None:
            joined = self._latest[group] = self._start(due)
        return self._join(item, joined)

    def ask_at(self, item: T, due: int | None) -> None:
        """Ask about an item at exactly this time (ns), or not by time."""
        known = self._due.get(item)
        if due == (None if known is None else known.due):
            return
        self.forget_time(item)
        if due is not None:
            joined = self._exact.get(due)
            if joined is None:
                joined = self._exact[due] = self._start(due)
            self._join(item, joined)

    def _start(self, due: int) -> _Round[T]:
        made: _Round[T] = _Round(due)
        made.timer = self._timers.at(due, partial(self._go, made))
        return made

    def _join(self, item: T, joined: _Round[T]) -> int:
        joined.items[item] = None
        self._due[item] = joined
        return joined.due

    def forget_time(self, item: T) -> None:
        """Ask about an item at no time."""
        joined = self._due.pop(item, None)
        if joined is not None:
            del joined.items[item]
            if not joined.items and joined.timer is not None:
                joined.timer.cancel()
                self._end(joined)

    def _end(self, ended: _Round[T]) -> None:
        ended.timer = None
        if self._exact.get(ended.due) is ended:
            del self._exact[ended.due]

    def forget_groups(self) -> None:
        """Join no present round any more: groups have another meaning from now on."""
        self._latest = {}

    def restart(self) -> None:
        """Ask about all items from the first policy on, in a new configuration."""
        self._latest = {}
        for item in self:
            # An earlier answer may have ended others: an item is asked about only while it waits.
            if item in self:
                self.withdraw(item)
                self._again(item)

    def ask_now(self) -> None:
        """Ask about all items that have a time, without waiting for it."""
        for item in sorted(self._due, key=self._order):
            if item in self._due:
                self.forget_time(item)
                self._again(item)

    def _go(self, due: _Round[T]) -> None:
        self._end(due)
        for item in sorted(due.items, key=self._order):
            if self._due.get(item) is due:
                self.forget_time(item)
                self._again(item)
        self._after()
