"""Scores of run-time estimators: what they would have said about the tasks of a workload, and what was true.

Tasks start when they did on the machine of the recording, or at their submission if that is unknown. Each
estimator is asked at the start of a task, and learns when the task has ended.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from yunikorn.clock import SECOND
from yunikorn.config.queues_yaml import PluginRef
from yunikorn.framework.instances import make_instance
from yunikorn.framework.kinds import RUN_TIME
from yunikorn.framework.plugin_failures import PluginFailures
from yunikorn.framework.registry import Registry
from yunikorn.model.node import Node
from yunikorn.resources import Resource
from yunikorn.scheduling.run_time_estimates import RunTimeEstimates
from yunikorn_lab.reporting.tables import Table
from yunikorn_lab.simulation.workload import FOREVER, Workload, WorkloadApplication, WorkloadTaskGroup

CHOSEN = "(the best of each queue)"
"""Row of the estimates that count, from one estimator or another."""
INSIDE = 0.8
"""Share of the tasks that should end between `low` and `high`."""


@attrs.frozen
class EstimatorScore:
    """Figures of one estimator."""

    name: str
    tasks: int
    """Number of groups of equal tasks that ended."""
    known: float
    """Share of them that the estimator knew something about; the other figures are of these."""
    bias: float | None
    """Median of the estimated median divided by the run time: 1 is right, 2 twice too long."""
    within_two: float | None
    """Share with a median between half and twice the run time."""
    inside: float | None
    """Share with a run time from `low` to `high`; 0.8 for estimates of which this is said."""


@attrs.frozen
class QueueView:
    """Queue of a task."""

    path: str


@attrs.frozen
class ApplicationView:
    """Application of a task."""

    id: str
    user: str
    queue: QueueView
    tags: Mapping[str, str]


@attrs.frozen(eq=False)
class TaskView:
    """A task as estimators see it."""

    app: ApplicationView
    key: str
    resource: Resource
    tags: Mapping[str, str]
    task_group: str
    execution_timeout: int
    priority: int = 0
    foreign: bool = False
    placeholder: bool = False
    originator: bool = False

    @property
    def label(self) -> str:
        """Name in messages."""
        return f"task {self.key} of application {self.app.id}"


@attrs.frozen(eq=False, kw_only=True)
class EndedTaskView(TaskView):
    """A task that has ended, as estimators observe it: on a node of which nothing is known."""

    uuid: str
    placed: int
    """Time of the placement (ns)."""
    created: int
    """Time of the submission (ns)."""
    node: Node = attrs.field(factory=lambda: Node("", {}, {}, {}))

    @classmethod
    def of(cls, task: TaskView, number: int, placed: int, created: int) -> EndedTaskView:
        """Return the view of a task that was placed at a time."""
        fields = attrs.asdict(task, recurse=False)
        return cls(**fields, uuid=f"{task.key}#{number}", placed=placed, created=created)


class Answers:
    """Answers of one estimator, with what was true."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked = 0
        self._ratios: list[float] = []
        self._inside = 0

    def add(self, answer: Any, seconds: float) -> None:
        """Add an answer about a task that ran for so long."""
        self.asked += 1
        if answer is not None:
            self._ratios.append(max(answer.median, 1.0) / max(seconds, 1.0))
            self._inside += answer.low <= seconds <= answer.high

    def score(self) -> EstimatorScore:
        """Return the figures."""
        known = len(self._ratios)
        if not known:
            return EstimatorScore(self.name, self.asked, 0.0, None, None, None)
        close = sum(0.5 <= ratio <= 2 for ratio in self._ratios)
        bias = sorted(self._ratios)[(known - 1) // 2]
        rounded = [round(each, 4) for each in (known / self.asked, bias, close / known, self._inside / known)]
        return EstimatorScore(self.name, self.asked, *rounded)


def estimator_scores(
    workload: Workload, refs: Sequence[PluginRef], registry: Registry
) -> list[EstimatorScore]:
    """Return the scores of each estimator, and of the estimates that count; raises what a plugin raises."""
    failures = PluginFailures()
    made = [make_instance(registry, RUN_TIME, ref.name, ref.options) for ref in refs]
    for one in made:
        one.plugin.opened(_context(failures, one.origin))
    single = [RunTimeEstimates([one], failures, lambda: 0) for one in made]
    chosen = RunTimeEstimates(made, failures, lambda: 0)
    answers = [Answers(name) for name in (*(one.name for one in made), CHOSEN)]
    running: list[tuple[int, int, EndedTaskView, float, list[Any]]] = []

    def end(until: float) -> None:
        while running and running[0][0] <= until:
            _, _, task, seconds, said = heapq.heappop(running)
            for answer, found in zip(answers, said, strict=True):
                answer.add(found, seconds)
            chosen.learn(task, seconds)  # type: ignore[arg-type]

    starts = sorted(
        (app.submit + (app.recorded_wait or 0) + group.delay, number, app, group)
        for number, (app, group) in enumerate(_groups(workload))
    )
    for start, number, app, group in starts:
        end(start)
        task = _task(app, group)
        said = [one.of(task) for one in (*single, chosen)]  # type: ignore[arg-type]
        ended = EndedTaskView.of(task, number, start, app.submit)
        heapq.heappush(running, (start + group.own_time, number, ended, group.own_time / SECOND, said))
    end(float("inf"))
    return [one.score() for one in answers]


def _groups(workload: Workload) -> list[tuple[WorkloadApplication, WorkloadTaskGroup]]:
    return [(app, group) for app in workload.applications for group in app.tasks if group.own_time != FOREVER]


def _task(app: WorkloadApplication, group: WorkloadTaskGroup) -> TaskView:
    of = ApplicationView(app.id, app.user, QueueView(app.queue.lower()), app.tags)
    return TaskView(of, group.name, group.resources, group.tags, group.name, group.timeout)


def _context(failures: PluginFailures, origin: str) -> Any:
    from yunikorn.api import Context

    return failures.context_of(origin, Context("", lambda: 0))


def scores_json(scores: Sequence[EstimatorScore]) -> str:
    """Return the scores as JSON text with a final newline."""
    return json.dumps([attrs.asdict(one) for one in scores], indent=2) + "\n"


def scores_table(scores: Sequence[EstimatorScore]) -> Table:
    """Return the scores as a table."""
    rows = [
        [
            one.name,
            f"{one.known:.0%}",
            "-" if one.bias is None else f"{one.bias:.2f}",
            *("-" if share is None else f"{share:.0%}" for share in (one.within_two, one.inside)),
        ]
        for one in scores
    ]
    tasks = scores[-1].tasks
    note = f"Of {tasks:,} groups of equal tasks. An interval from low to high should hold {INSIDE:.0%}."
    columns = ["estimator", "known", "bias", "within 2x", "in interval"]
    return Table("Run-time estimators", columns, rows, note=note, is_ordered=True)
