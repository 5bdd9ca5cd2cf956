"""Two continuations of a scheduler with the same run times, one of them with changes.

Both begin with the scheduler of a snapshot, and run beside each other in processes of their own. What they
decide is compared, and the first decision that differs is explained by a third, short one.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from yunikorn_foresight.forked_work import ForesightError, begin
from yunikorn_foresight.whatif_recorder import AppOwner, ContinuedRun, RunRecorder
from yunikorn_foresight.whatif_result import WhatIfResult, find_differences
from yunikorn_lab.reporting.decision_log import (
    Divergence,
    DivergenceReport,
    describe,
    find_divergence,
    question,
    question_to_first,
    unpack,
)
from yunikorn_lab.reporting.order_reason import find_order_reason, order_question
from yunikorn_lab.simulation.continuation import FirstChanges, continued, waiting_and_running
from yunikorn_lab.simulation.explain_requests import ExplainAnswer, ExplainRequest
from yunikorn_lab.simulation.known_run_times import EstimatedRunTimes
from yunikorn_lab.simulation.workload import FOREVER, Workload, WorkloadApplication, describe_reload

if TYPE_CHECKING:
    from yunikorn.interface.scheduler import Scheduler

WITHOUT, WITH = "the cluster as it is", "the changed cluster"


@attrs.frozen
class WhatIf:
    """A question about a scheduler, which is at its present and stays there."""

    scheduler: Scheduler
    changes: FirstChanges
    texts: tuple[str, ...]
    """The changes in words."""
    arrivals: Workload | None = None
    """Applications that arrive later, with the changes only."""
    horizon: int = 24 * 3600 * 10**9
    """Time (ns) that is simulated."""
    assumed: int = FOREVER
    """Run time (ns) of tasks that no estimator knows."""

    def answer(self) -> WhatIfResult:
        """Simulate and compare; raises `ForesightError` for a simulation that is not possible."""
        without, changed = _in_children([partial(self._play, is_changed=side) for side in (False, True)])
        applications, queues, users = find_differences(without, changed)
        return WhatIfResult(
            self.scheduler.clock.now(),
            self.horizon,
            self.texts,
            (without.placed, changed.placed),
            (without.waiting, changed.waiting),
            (sum(without.preempted.values()), sum(changed.preempted.values())),
            tuple(applications),
            tuple(queues),
            tuple(users),
            self._first_difference(without.decisions, changed.decisions),
            changed.refusals,
            tuple(filter(None, [without.remark])),
        )

    def _uuids(self) -> frozenset[str]:
        partitions = [at.partition for _, at in self.scheduler.all_partitions()]
        apps = [app for partition in partitions for app in partition.applications.values()]
        return frozenset(uuid for app in apps for uuid in app.allocations)

    def _play(self, *, is_changed: bool) -> ContinuedRun:
        partitions = [at.partition for _, at in self.scheduler.all_partitions()]
        apps = [app for partition in partitions for app in partition.applications.values()]
        recorder = RunRecorder(self._uuids(), {(app.id, key) for app in apps for key in app.asks})
        recorder.owners = {app.id: AppOwner(app.user, app.queue.path) for app in apps if app.queue}
        run_times = EstimatedRunTimes(self.assumed)
        report = continued(
            self.scheduler,
            run_times,
            changes=self.changes if is_changed else FirstChanges(),
            workload=self.arrivals if is_changed else None,
            until=self.horizon,
            recorder=recorder,
            brief=True,
        )
        refused = [describe_reload(one) for one in report.reloads if not one.taken]
        refused += [f"{one.example} is rejected: {one.reason} ({one.count}x)" for one in report.rejections]
        return ContinuedRun(
            recorder.starts,
            recorder.owners,
            recorder.preempted,
            recorder.pack(),
            (*refused, *report.node_troubles),
            report.tasks.waiting,
            run_times.remark(),
        )

    # -- the first difference -----------------------------------------------------------------------

    def _first_difference(self, without: bytes, changed: bytes) -> DivergenceReport:
        found = find_divergence(without, changed)
        if found is None:
            return describe(WITHOUT, WITH, None, sum(1 for _ in unpack(without)), None)
        ((answer, reason, is_of_first),) = _in_children([partial(self._explain, found)])
        return describe(WITHOUT, WITH, found, found.equal, answer, reason, is_of_first=is_of_first)

    def _explain(self, found: Divergence) -> tuple[ExplainAnswer | None, str, bool]:
        """Return the answer to why the decision differs, the reason of an order, and whose answer it is."""
        known = len(self._uuids())
        by_order = order_question(found.equal + known, found.one, found.other)
        first = next(self.scheduler.sessions()).rm_id
        if by_order is not None:
            run = partial(
                continued,
                self.scheduler,
                EstimatedRunTimes(self.assumed),
                changes=self.changes,
                workload=self.arrivals,
                brief=True,
            )
            return None, find_order_reason(by_order, run, rm_id=first), False
        asked, is_of_first = question_to_first(found), True
        if asked is None:
            asked, is_of_first = question(found), False
        if asked is None:
            return None, "", False
        plan = next((one for one in self._applications() if one.id == asked.application), None)
        if plan is None:
            return None, "", False
        report = continued(
            self.scheduler,
            EstimatedRunTimes(self.assumed),
            changes=FirstChanges() if is_of_first else self.changes,
            workload=None if is_of_first else self.arrivals,
            until=asked.moment,
            questions=[ExplainRequest(plan, asked.moment)],
            brief=True,
        )
        return next(iter(report.explanations), None), "", is_of_first

    def _applications(self) -> Sequence[WorkloadApplication]:
        later = self.arrivals.applications if self.arrivals is not None else ()
        return [*waiting_and_running(self.scheduler), *self.changes.submit, *later]


def _in_children(works: Sequence[Callable[[], object]]) -> list[Any]:
    """Return the results of work in children that run beside each other; raises `ForesightError`."""
    children = [begin(partial(_packed, work)) for work in works]
    found, errors = [], []
    for child in children:
        try:
            found.append(pickle.loads(base64.b64decode(child.result())))
        except ForesightError as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return found


def _packed(work: Callable[[], object]) -> str:
    return base64.b64encode(pickle.dumps(work())).decode()
