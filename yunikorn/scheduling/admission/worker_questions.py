"""Questions of one partition to policies that worker threads call (`docs/decisions/archive/0076`).

Order, time limits and back-off are decided here, in the core, by timers of its clock. The only input from
outside are the answers, so a replay of the answers repeats everything. Each policy object has a lane, in
which its questions wait for their turn: a policy that hangs delays no other.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import attrs

from yunikorn.clock import SECOND
from yunikorn.config.durations import describe_duration
from yunikorn.errors import printable
from yunikorn.framework.policy_calls import PolicyAnswer, PolicyCalls

if TYPE_CHECKING:
    from collections.abc import Hashable

    from yunikorn.accounting.partition import Partition
    from yunikorn.clock import Timer
    from yunikorn.scheduling.admission.asked_policies import AskedPolicy, PolicyQuestion

_log = logging.getLogger("yunikorn.plugins")

FEW_HANGING = 8
"""Number of calls without a return from which a policy is asked only once per pause."""
MOST_HANGING = 16
"""Number of calls without a return from which a policy is not asked until one of them returns."""
PAUSE = 60 * SECOND
"""First pause (ns) of a policy with that many calls; each further one is twice as long."""
LONGEST_PAUSE = 3600 * SECOND


@attrs.define(eq=False)
class _Lane:
    """Questions to one policy object."""

    policy: AskedPolicy
    queue: deque[PolicyQuestion] = attrs.field(factory=deque)
    running: dict[int, PolicyQuestion] = attrs.field(factory=dict)
    """Questions of the calls in progress, by number."""
    hanging: set[int] = attrs.field(factory=set)
    """Numbers of the calls that were given up and have not returned."""
    by_key: dict[Hashable, PolicyQuestion] = attrs.field(factory=dict)
    """Questions that equal ones may join."""
    pause: int = 0
    until: int = 0
    """Time of the next try, while too many calls hang."""
    is_silent: bool = False
    """True from a call without a return until the next answer in time."""
    refusing: Timer | None = None
    """Timer that refuses the questions in the queue."""
    when_idle: list[Callable[[], object]] = attrs.field(factory=list)


class WorkerQuestions:
    """Questions of one partition to its policies."""

    def __init__(
        self, partition: Partition, calls: PolicyCalls, activate: Callable[[], object] = lambda: None
    ) -> None:
        """Create without questions; `activate` is called before an answer is applied."""
        self._partition = partition
        self._calls = calls
        self._activate = activate
        self._lanes: dict[int, _Lane] = {}
        """Lanes by the identity of the policy object."""

    def __len__(self) -> int:
        return sum(len(lane.queue) + len(lane.running) for lane in self._lanes.values())

    def ask(self, question: PolicyQuestion, then: Callable[[PolicyAnswer], object]) -> Callable[[], object]:
        """Ask a policy, and call `then` with the answer, later; return a function that withdraws that.

        Questions with the same key share one call.
        """
        policy, key = question.policy, question.key
        lane = self._lanes.setdefault(id(policy.plugin), _Lane(policy))
        joined = question if key is None else lane.by_key.setdefault(key, question)
        if joined is question:
            lane.queue.append(question)
        joined.waiters[then] = None
        self._dispatch(lane)
        return lambda: joined.waiters.pop(then, None)

    # -- calls --------------------------------------------------------------------------------------

    def _dispatch(self, lane: _Lane) -> None:
        """Start the calls that may start now."""
        while lane.queue and len(lane.running) < lane.policy.at_once and not lane.when_idle:
            if not lane.queue[0].waiters:
                self._forget_key(lane, lane.queue.popleft())
            elif self._may_start(lane):
                self._start(lane, lane.queue.popleft())
            else:
                if not lane.running and lane.refusing is None:
                    # The caller of `ask` gets no answer before it continues.
                    lane.refusing = self._partition.timers.after(0, partial(self._refuse, lane))
                return

    def _may_start(self, lane: _Lane) -> bool:
        hanging = len(lane.hanging)
        if hanging < FEW_HANGING:
            return True
        return hanging < MOST_HANGING and not lane.running and self._partition.clock.now() >= lane.until

    def _start(self, lane: _Lane, question: PolicyQuestion) -> None:
        work = partial(question.policy.work, question.policy.prepare(question.subject))
        number = self._calls.start(work, partial(self._returned, lane))
        lane.running[number] = question
        question.timer = self._partition.timers.after(
            self._partition.timeouts.policy_answer, partial(self._time_out, lane, number)
        )

    def _returned(self, lane: _Lane, number: int, answer: PolicyAnswer) -> None:
        self._activate()
        question = lane.running.pop(number, None)
        if question is None:
            # The answer is too late, but one thread less hangs.
            lane.hanging.discard(number)
        else:
            assert question.timer is not None
            question.timer.cancel()
            lane.pause = lane.until = 0
            if lane.is_silent:
                lane.is_silent = False
                _log.warning("plugin %s answers again", printable(lane.policy.origin))
            self._finish(lane, question, answer)
        self._go_on(lane)

    def _time_out(self, lane: _Lane, number: int) -> None:
        question = lane.running.pop(number)
        lane.hanging.add(number)
        place = self._calls.abandon(number)
        if not lane.is_silent:
            lane.is_silent = True
            _log.error(
                "plugin %s: a call has not returned within %s; its thread is replaced, the core continues%s",
                printable(lane.policy.origin),
                describe_duration(self._partition.timeouts.policy_answer),
                f" ({printable(place)})" if place else "",
            )
        if len(lane.hanging) >= FEW_HANGING:
            lane.pause = min(max(2 * lane.pause, PAUSE), LONGEST_PAUSE)
            lane.until = self._partition.clock.now() + lane.pause
        text = f"it has not returned within {describe_duration(self._partition.timeouts.policy_answer)}"
        self._finish(lane, question, PolicyAnswer(failed=text))
        self._go_on(lane)

    def _refuse(self, lane: _Lane) -> None:
        """Answer the questions in the queue without a call: too many calls hang."""
        lane.refusing = None
        if self._may_start(lane):
            self._dispatch(lane)
            return
        refused, text = list(lane.queue), f"it was not called: {len(lane.hanging)} calls have not returned"
        lane.queue.clear()
        for question in refused:
            self._finish(lane, question, PolicyAnswer(failed=text))

    def _finish(self, lane: _Lane, question: PolicyQuestion, answer: PolicyAnswer) -> None:
        self._forget_key(lane, question)
        if question.waiters:
            found = question.policy.understand(question.subject, answer)
            while question.waiters:
                # One that waits may withdraw the others.
                then = next(iter(question.waiters))
                del question.waiters[then]
                then(found)

    @staticmethod
    def _forget_key(lane: _Lane, question: PolicyQuestion) -> None:
        key = question.key
        if key is not None and lane.by_key.get(key) is question:
            del lane.by_key[key]

    def _go_on(self, lane: _Lane) -> None:
        if not lane.running and lane.when_idle:
            actions, lane.when_idle = lane.when_idle, []
            for action in actions:
                action()
        self._dispatch(lane)

    # -- life of the policies -------------------------------------------------------------------------

    def forget_questions(self) -> None:
        """Withdraw all questions; answers of calls in progress are ignored."""
        for lane in self._lanes.values():
            for question in [*lane.queue, *lane.running.values()]:
                question.waiters.clear()
            lane.queue.clear()
            lane.by_key.clear()

    def when_idle(self, plugin: object, action: Callable[[], object]) -> None:
        """Call `action` when no call of a policy is in progress, at once if possible; none starts before."""
        lane = self._lanes.get(id(plugin))
        if lane is None or not lane.running:
            action()
        else:
            lane.when_idle.append(action)

    def release(self, plugin: object) -> None:
        """Give up all calls of a policy, and forget the policy."""
        lane = self._lanes.pop(id(plugin), None)
        if lane is None:
            return
        for number, question in lane.running.items():
            if question.timer is not None:
                question.timer.cancel()
            self._calls.abandon(number)
        if lane.refusing is not None:
            lane.refusing.cancel()
        for number in [*lane.running, *lane.hanging]:
            self._calls.forget(number)
        lane.running.clear()
        lane.queue.clear()
        for action in lane.when_idle:
            action()

    def close(self) -> None:
        """Give up all calls of all policies."""
        for lane in list(self._lanes.values()):
            self.release(lane.policy.plugin)
