"""Base class of plugins that estimate how long a task runs."""

from __future__ import annotations

from yunikorn.api.base import Plugin, RunTime
from yunikorn.api.views import Allocation, Task


class RunTimeEstimator(Plugin):
    """Base class of estimators of run times.

    A partition names several. For each task the core takes the estimate of the one whose estimates have been
    best in the queue of the task, of those that know it. No estimate ends a task, or keeps one from running
    on.
    """

    def estimate(self, task: Task, age: float) -> RunTime | None:
        """Return the run time of a task, or None if nothing is known about it.

        `task` is a request, or an allocation that has run for `age` seconds: the answer is then about the
        tasks that run at least as long. The core corrects an answer below the age.
        """
        raise TypeError(f"{type(self).__name__} has no estimate(task, age)")

    def observe(self, task: Allocation, seconds: float) -> None:
        """Learn from a task that has ended by itself after `seconds`.

        Not called for placeholders, nor for tasks that were preempted, timed out, or could not start. The
        members of a gang that end together after the same time count once.
        """
