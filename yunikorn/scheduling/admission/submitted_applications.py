"""Submission of applications: checks, placement in a queue, and the acceptance or the rejection.

An application whose checks or placement need a worker waits, and continues with the answer. It is neither
accepted nor rejected, and not part of the partition. Its asks and releases are kept, and applied in their
order when the application is accepted or rejected (`docs/decisions/archive/0183`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import attrs

from yunikorn.framework.defaults import import_default
from yunikorn.model.application import Application, ExecutionTimeout
from yunikorn.model.gang import SOFT, read_disruption_tag, read_step_tag, style_named
from yunikorn.model.gang_topology import GANG_TOPOLOGY_TAG
from yunikorn.resources import is_zero
from yunikorn.scheduling.admission.questions import Questions
from yunikorn.scheduling.application_admission import gang_refusal, make_gang, report_oversize, report_style
from yunikorn.scheduling.placement import PlacementResult, apply_namespace_quota
from yunikorn.scheduling.user_groups import is_forced

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.scheduling.admission.asked_policies import Steps
    from yunikorn.scheduling.admission.held_applications import HeldApplications
    from yunikorn.scheduling.admission.queue_quotas import QueueQuotas
    from yunikorn.scheduling.admission.worker_questions import WorkerQuestions
    from yunikorn.scheduling.application_spec import ApplicationSpec
    from yunikorn.scheduling.existing_allocations import ExistingAllocations
    from yunikorn.scheduling.policies import Policies


Entry = Callable[[str], object]
"""Function that applies an entry; called with the reason for the rejection of the application, or ""."""


@attrs.define(eq=False)
class WaitingApplication:
    """An application that is neither accepted nor rejected, with the entries of its RM that concern it."""

    app: Application
    spec: ApplicationSpec
    entries: list[Entry] = attrs.field(factory=list)
    keys: set[str] = attrs.field(factory=set)
    """Keys of the asks among the entries."""
    size: int = 0
    """Number of asks and other entries."""


class SubmittedApplications:
    """Applications that are submitted to one partition: accepted, rejected, or waiting for that."""

    def __init__(
        self,
        partition: Partition,
        policies: Policies,
        existing: ExistingAllocations,
        held: HeldApplications,
        quotas: QueueQuotas,
        *,
        on_new_queues: Callable[[], object],
        node_order: Callable[[Application, str], str],
        workers: WorkerQuestions | None,
    ) -> None:
        """Create for a partition; with `workers`, applications may wait.

        `on_new_queues` is called after placement has created queues. `node_order` returns the node order of
        an application in a queue with this node order.
        """
        self._partition = partition
        self.policies = policies
        """Policies in use."""
        self._existing, self._held, self._quotas = existing, held, quotas
        self._on_new_queues, self._node_order = on_new_queues, node_order
        self._questions: Questions[WaitingApplication, str | PlacementResult] = Questions(
            partition, workers, self._steps, self._resume, self._check
        )
        self._waiting: dict[str, WaitingApplication] = {}
        """Waiting applications by id."""

    def __len__(self) -> int:
        """Return the number of applications that wait."""
        return len(self._waiting)

    def __contains__(self, app_id: str) -> bool:
        return app_id in self._waiting

    def __iter__(self) -> Iterator[WaitingApplication]:
        return iter(self._waiting.values())

    @property
    def size(self) -> int:
        """Number of asks and other entries that wait."""
        return sum(one.size for one in self)

    def get(self, app_id: str) -> WaitingApplication | None:
        """Return a waiting application, or None."""
        return self._waiting.get(app_id)

    def withdraw(self, app_id: str) -> WaitingApplication:
        """Remove and return a waiting application; its checks are not continued."""
        one = self._waiting.pop(app_id)
        self._questions.withdraw(one)
        return one

    def defer(self, app_id: str, entry: Entry, keys: Sequence[str] = ()) -> None:
        """Apply an entry when the checks of its application are complete; `keys` are those of its asks."""
        one = self._waiting[app_id]
        one.entries.append(entry)
        one.size += max(1, len(keys))
        one.keys.update(key for key in keys if type(key) is str)

    def owner_of(self, key: str) -> str:
        """Return the application with a waiting ask of this key, or ""."""
        return next((one.app.id for one in self if key in one.keys), "")

    def awaited(self, app_id: str) -> str:
        """Return the policy whose answer an application waits for."""
        return self._questions.awaited(self._waiting[app_id])

    def why(self, app_id: str) -> str:
        """Return why an application is not accepted yet."""
        return f"application '{app_id}' is not accepted yet: the answer of {self.awaited(app_id)} is awaited"

    # -- checks -------------------------------------------------------------------------------------

    def submit(self, submission: ApplicationSpec) -> Application:
        """Place an application in a queue and add it, or reject it with a reason.

        An application whose checks need a worker waits.
        """
        partition = self._partition
        app = Application(
            submission.id,
            submission.user,
            submission.groups,
            submission.queue_name,
            submission.tags,
            submitted=partition.clock.now(),
            arrival=partition.next_arrival(),
        )
        partition.changes.application_submitted(app)
        app.forced = is_forced(submission.tags)
        app.gang_style = (style_named(submission.gang_style) or SOFT) if submission.gang_style else SOFT
        reason = self._refusal(app)
        if not reason:
            one = WaitingApplication(app, submission)
            found = self._questions.ask(one)
            if found is None:
                self._waiting[app.id] = one
                return app
            reason = self._take_in(app, submission, found)
        self._conclude(app, submission, reason)
        return app

    def _steps(self, one: WaitingApplication) -> Steps[str | PlacementResult]:
        """Apply resolver, submit policies and placement rules; return the placement, or why there is none.

        Submit policies may change tags and priority of a forced application, but neither reject nor move it:
        it already runs and must come back.
        """
        app, policies, submitted = one.app, self.policies, one.spec.view()
        owner = yield from policies.users.steps(submitted.user, submitted.groups, forced=app.forced)
        if owner.refusal:
            return owner.refusal
        current = attrs.evolve(submitted, user=owner.user, groups=tuple(owner.groups))
        for policy in policies.submit:
            answer = yield from policy.ask(current)
            refusal, change = policy.refusal(answer, f"rejects application {app.id}"), answer.change
            if refusal and not app.forced:
                return refusal
            if change is not None:
                tags, queue_name = MappingProxyType(dict(change.tags)), change.queue_name
                current = attrs.evolve(current, queue_name=queue_name, tags=tags, priority=change.priority)
        app.user, app.groups, app.tags = current.user, current.groups, current.tags
        app.queue_name = submitted.queue_name if app.forced else current.queue_name
        app.ask_priority = current.priority
        return (yield from policies.placement.steps(app))

    def _conclude(self, app: Application, submission: ApplicationSpec, reason: str) -> None:
        """Reject an application, or report its acceptance."""
        if reason:
            self._partition.reject_application(app, reason, answered=not submission.implicit)
            return
        style = submission.gang_style
        if style and style_named(style) is None:
            report_style(app, style, self._partition)
        self._held.report(app)
        self._existing.arrived(app)

    def _resume(self, one: WaitingApplication, found: str | PlacementResult) -> None:
        """Continue with a waiting application whose checks and placement are complete."""
        self.withdraw(one.app.id)
        reason = self._refusal(one.app) or self._take_in(one.app, one.spec, found)
        self._end_wait(one, reason)

    def _end_wait(self, one: WaitingApplication, reason: str) -> None:
        """Report the result of the checks of an application, and apply the entries that wait for it."""
        self._conclude(one.app, one.spec, reason)
        if reason:
            self._existing.arrived(one.app)
        for entry in one.entries:
            entry(reason)

    def reject(self, app_id: str, reason: str) -> None:
        """Reject an application whose checks or placement are not complete."""
        self._end_wait(self.withdraw(app_id), reason)

    def _refusal(self, app: Application) -> str:
        """Return why the partition accepts no application of this id now; empty if it does."""
        if reason := self._partition.closed_to(f"application {app.id}"):
            return reason
        if app.id in self._partition.applications or app.id in self._waiting:
            return f"application {app.id} exists already in partition {self._partition.config_name}"
        return ""

    def _take_in(self, app: Application, submission: ApplicationSpec, found: str | PlacementResult) -> str:
        """Add an application to the queue of its placement; return the reason for a rejection."""
        partition = self._partition
        if isinstance(found, str):
            return found
        if text := app.tags.get(GANG_TOPOLOGY_TAG, ""):
            reader = import_default("yunikorn_service.topology_request_reader")
            app.topology, wrong = reader.read_topology_tag(text, self.policies.topology)
            # What runs already is taken over, also if the level has gone meanwhile.
            if wrong and not is_forced(app.tags):
                return str(wrong)
        if problems := read_disruption_tag(app.tags)[1] or read_step_tag(app.tags)[1]:
            return problems
        if not is_zero(submission.gang):
            make_gang(app, submission.gang, submission.execution_timeout, partition)
        elif submission.execution_timeout:
            app.execution_timeout = ExecutionTimeout(submission.execution_timeout)
        if not found.queue:
            return f"failed to place application {app.id}: {found.reason}"
        queue = partition.queue(found.queue)
        if queue is None:
            made = partition.queues.create(found.queue, app.user, app.groups)
            if isinstance(made, str):
                return f"failed to place application {app.id}: {made}"
            queue = made
            self._on_new_queues()
        if not queue.is_leaf:
            return f"failed to place application {app.id}: queue {queue.path} is not a leaf queue"
        if not queue.managed:
            apply_namespace_quota(queue, app.tags)
            self._quotas.ask_again(queue)
        reason = gang_refusal(app, queue, self.policies.plan.registry)
        if not reason:
            app.enter(queue)
            reason = self._held.ask(app)
        if reason:
            app.leave()
            partition.queues.check_empty(queue)
            return reason
        app.node_order = self._node_order(app, queue.settings.node_sort)
        partition.add_application(app, queue)
        report_oversize(app, partition)
        return ""

    def check_again(self) -> None:
        """Check the waiting applications by the policies of a new configuration."""
        self._questions.restart()

    def _check(self, one: WaitingApplication) -> None:
        found = self._questions.ask(one)
        if found is not None:
            self._resume(one, found)

    def close(self, reason: str) -> None:
        """Reject the waiting applications."""
        for one in [*self]:
            self.reject(one.app.id, reason)
