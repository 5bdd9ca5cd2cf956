"""Run times by the estimators of a partition: their answers, checked, with their failures contained.

For each task the estimate counts that comes from the estimator with the smallest running error in the queue.
The error of an estimate is the larger of estimate and run time, divided by the smaller one; each ended task
changes the running error by a fraction of the difference (docs/decisions/0222-run-times-and-backfilling.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.accounting.books import Keeper
from yunikorn.api import RunTime
from yunikorn.clock import SECOND
from yunikorn.containment import WrongAnswer, contained, number_of, safe_repr
from yunikorn.framework.plugin_failures import LONGEST_SECONDS
from yunikorn.model.allocation import Allocation
from yunikorn.states import COMPLETED, FAILED, FAILING, REMOVED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from yunikorn.api import Task
    from yunikorn.framework.instances import PluginInstance
    from yunikorn.framework.plugin_failures import PluginFailures
    from yunikorn.model.node import Node

WEIGHT = 1 / 16
"""Weight of the latest task in a running error."""
WORST = 100.0
"""Largest error that counts, so that no single task spoils an estimator for long."""
MOST_QUEUES = 10_000
"""Number of queues whose running errors are kept; the ones that were first are forgotten first."""


class RunTimeEstimates:
    """The estimators of one partition, as a plugin with books, which learns when tasks end."""

    def __init__(
        self, estimators: Sequence[PluginInstance], failures: PluginFailures, now: Callable[[], int]
    ) -> None:
        self._estimators, self._failures, self._now = estimators, failures, now
        self.errors: dict[str, dict[PluginInstance, float]] = {}
        """Running errors of the estimators by queue."""
        self._latest: tuple[str, str, int, int] | None = None

    def take_over(self, former: RunTimeEstimates) -> None:
        """Continue with the running errors of the estimators that stay."""
        for queue, errors in former.errors.items():
            self.errors[queue] = {one: errors[one] for one in self._estimators if one in errors}

    def keepers(self) -> list[Keeper]:
        """Return the books that tell ends; none without estimators."""
        return [Keeper(self, "run-time estimators")] if self._estimators else []

    def of(self, task: Task, age: float = 0.0) -> RunTime | None:
        """Return the run time of a task that has run for `age` seconds; None if no estimator knows it."""
        return next(self.answers(task, age), None)

    def answers(self, task: Task, age: float = 0.0) -> Iterator[RunTime]:
        """Yield what each estimator says that knows the task, the best one in its queue first."""
        errors = self.errors.get(_queue_of(task), {})
        ordered = sorted(self._estimators, key=lambda one: errors.get(one, 1.0))
        return filter(None, (self._ask(one, task, age) for one in ordered))

    def _ask(self, one: PluginInstance, task: Task, age: float) -> RunTime | None:
        try:
            answer = one.plugin.estimate(task, age)
            if answer is None:
                return None
            if type(answer) is not RunTime:
                raise WrongAnswer(f"{safe_repr(answer)} is neither a RunTime nor None")
            fault = "is no number of seconds from 0 to below 1e9"
            times = [number_of(each, fault, 0, LONGEST_SECONDS - 1) for each in _times(answer)]
            if times != sorted(times):
                raise WrongAnswer(f"{safe_repr(answer)} is not in ascending order")
            return RunTime(*(max(each, age) for each in times))
        except contained() as error:
            self._failures.report(one.origin, "estimating the run time of", error, f"task {task.key}")
            return None

    # -- books --------------------------------------------------------------------------------------

    def placed(self, task: Task, node: Node) -> None:
        """Do nothing."""

    def node_added(self, node: Node) -> None:
        """Do nothing."""

    def node_removed(self, node: Node) -> None:
        """Do nothing."""

    def released(self, task: Task, node: Node) -> None:
        """Learn from a task that has ended by itself."""
        if type(task) is not Allocation or task.state != COMPLETED or task.placeholder:
            return
        withdrawn = task.app.leaving or task.app.state in (FAILING, FAILED)
        if withdrawn or task.releasing is not None or task.node.state == REMOVED:
            return
        now = self._now()
        run = (task.app.id, task.task_group, task.placed, now)
        if run != self._latest:
            self._latest = run
            self.learn(task, (now - task.placed) / SECOND)

    def learn(self, task: Allocation, seconds: float) -> None:
        """Judge the estimators by a task that ran for so long, and let them learn from it."""
        errors = self.errors.setdefault(_queue_of(task), {})
        if len(self.errors) > MOST_QUEUES:
            del self.errors[next(iter(self.errors))]
        for one in self._estimators:
            answer = self._ask(one, task, 0.0)
            if answer is not None:
                low, high = sorted((max(answer.median, 1.0), max(seconds, 1.0)))
                known = errors.get(one, 1.0)
                errors[one] = known + (min(high / low, WORST) - known) * WEIGHT
            try:
                one.plugin.observe(task, seconds)
            except contained() as error:
                self._failures.report(one.origin, "observing", error, task.label)


def _times(answer: RunTime) -> tuple[float, float, float]:
    return answer.low, answer.median, answer.high


def _queue_of(task: Task) -> str:
    return "" if task.app.queue is None else task.app.queue.path
