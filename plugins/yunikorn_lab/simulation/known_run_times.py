"""Run times for simulations that begin with a scheduler: the medians of its estimators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.clock import SECOND
from yunikorn.config.durations import spell_duration
from yunikorn_lab.simulation.workload import FOREVER

if TYPE_CHECKING:
    from yunikorn.api import Task
    from yunikorn.scheduling.partition_scheduler import PartitionScheduler


class EstimatedRunTimes:
    """The median that the estimators of the task's partition give, or one time for all that none knows.

    A task that runs longer than estimated goes on for as long as it is late, as under backfilling.
    """

    def __init__(self, assumed: int = FOREVER) -> None:
        """Take `assumed` (ns) as the run time of tasks that no estimator knows; by default they never end."""
        self._assumed = assumed
        self.asked = self.unknown = 0
        """Numbers of requests and tasks so far, and of those that no estimator knows."""

    def left(self, at: PartitionScheduler, task: Task, age: int) -> int:
        """Return how long (ns) a task goes on that has run for `age` (ns)."""
        self.asked += 1
        estimates = at.policies.run_times
        found = estimates.of(task, age / SECOND)
        if found is not None and age and round(found.median * SECOND) <= age:
            found = estimates.of(task) or found
        self.unknown += found is None
        runtime = self._assumed if found is None else round(found.median * SECOND)
        return FOREVER if runtime >= FOREVER else abs(runtime - age)

    def remark(self) -> str:
        """Return what the report has to say about unknown run times; empty if all are known."""
        if not self.unknown:
            return ""
        if self._assumed >= FOREVER:
            taken = "never to end: give --assume-runtime, or estimators in the configuration"
        else:
            taken = f"to run for {spell_duration(self._assumed)}"
        return (
            f"no estimator knows the run times of {self.unknown:,} of {self.asked:,} requests and tasks,"
            f" which are taken {taken}"
        )
