"""The life of applications: from the first pod to acceptance and end, with or without gangs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

import attrs

from yunikorn.interface.messages import TerminationType
from yunikorn.resources import NOTHING
from yunikorn_kubernetes.api_server.pod_events import PodEvents
from yunikorn_kubernetes.objects import Pod
from yunikorn_kubernetes.shim.conditions import Conditions
from yunikorn_kubernetes.shim.failures import REJECTION, TIMED_OUT, PodFailures
from yunikorn_kubernetes.shim.gangs import Placeholders
from yunikorn_kubernetes.shim.shim_applications import KubernetesApplication
from yunikorn_kubernetes.shim.shim_cluster import ShimCluster
from yunikorn_kubernetes.shim.shim_states import (
    ACCEPTED,
    APPLICATION,
    COMPLETED,
    FAILED,
    FAILING,
    NEW,
    RESERVING,
    RESUMING,
    RUNNING,
    SUBMITTED,
    fire,
)
from yunikorn_kubernetes.shim.task_flow import TaskFlow
from yunikorn_kubernetes.shim.tasks import Task
from yunikorn_kubernetes.translation.pod_applications import controller_of, is_gang_member, is_terminated

_log = logging.getLogger("yunikorn.kubernetes.applications")

ENDED = (COMPLETED, FAILED)
"""States of applications that the core has forgotten; a new pod of such an application begins it again."""


class ApplicationFlow:
    """Moves applications through their states."""

    def __init__(
        self,
        cluster: ShimCluster,
        tasks: TaskFlow,
        placeholders: Placeholders,
        failures: PodFailures,
        events: PodEvents,
        conditions: Conditions,
        refused: Callable[[str, str], bool],
    ) -> None:
        """Create the flow; `refused` returns True if an application that is rejected goes on without gang."""
        self._refused = refused
        self._cluster, self._tasks, self._placeholders = cluster, tasks, placeholders
        self._failures, self._events, self._conditions = failures, events, conditions
        self._ended_members: frozenset[tuple[str, str]] = frozenset()
        """Applications and controllers of gang members that ended before a recovery."""

    # -- the beginning ------------------------------------------------------------------------------

    def recover_from(self, ended: Iterable[Pod]) -> None:
        """Note the pods that had ended before a recovery.

        Members that are still pending wait for no gang if others of their application, made by the same
        controller, ran already: the gang was placed as a whole once, and its members are not made again.
        """
        self._ended_members = frozenset(
            (self._cluster.translation.app_id(pod), controller_of(pod))
            for pod in ended
            if pod.spec.node_name and is_gang_member(pod)
        )

    def add(self, task: Task) -> None:
        """Add a new task to its application, which begins with its first pod."""
        app = self._cluster.applications.get(task.app_id)
        if app is not None and _begins_again(app, task):
            self._placeholders.delete_all(app)
            self._cluster.batches.remove_application(app.id, app.batch)
            app = None
        if app is None or app.state in ENDED:
            app = self._begin(task.app_id, task.pod)
        app.tasks[task.uid] = task
        app.controllers.add(controller_of(task.pod))
        if task.placeholder:
            owners = task.pod.metadata.owner_references
            app.originator = next((owner.uid for owner in owners if owner.kind == "Pod"), app.originator)
        else:
            app.originator = app.originator or task.uid
        task.originator = not task.placeholder and task.uid == app.originator
        if task.pod.spec.node_name:
            self._tasks.found_bound(task)
            if task.placeholder and app.gang is None:
                # Gangs were switched off since; no member would replace the placeholder.
                self._placeholders.delete(task)
        else:
            self._proceed(app, task)
        if app.state == RESERVING and app.originator not in app.tasks:
            # Only placeholders were left, which end with their owner; the new pod owns the next ones.
            self._placeholders.create_missing(app)

    def _begin(self, app_id: str, pod: Pod) -> KubernetesApplication:
        submission = self._cluster.translation.submission(pod, self._cluster.terms.get(app_id))
        app = KubernetesApplication(submission.request, submission.owner, submission.gang)
        app.has_run = app.gang is not None and (app_id, controller_of(pod)) in self._ended_members
        if app.has_run and app.gang is not None and not app.gang.has_placeholders:
            # The core would wait for a whole gang, of which members are gone.
            app.request = attrs.evolve(app.request, placeholder_ask=NOTHING, gang_scheduling_style="")
        self._cluster.applications[app_id] = app
        if submission.problems:
            note = f"unable to get taskGroups for pod: {'; '.join(submission.problems)}"
            self._events.pod(pod, "GangScheduling", "TaskGroupsError", note, warning=True)
        if submission.ignored:
            self._events.pod(pod, "Scheduling", "Scheduling", "; ".join(submission.ignored), warning=True)
        if fire(APPLICATION, app, "SubmitApplication"):
            app.batch = self._cluster.batches.add_application(app.request)
        return app

    def _proceed(self, app: KubernetesApplication, task: Task) -> None:
        """Submit a new task if the state of its application allows that, else keep it for later."""
        if task.state != NEW:
            return
        if task.placeholder:
            if app.state == RESERVING:
                self._tasks.submit(task)
            elif app.state not in (SUBMITTED, ACCEPTED) or not app.has_placeholders:
                # The gang got on without this placeholder, which was created too late.
                self._placeholders.delete(task)
        elif app.state == RUNNING or (app.state in (SUBMITTED, ACCEPTED) and not app.has_placeholders):
            self._tasks.submit(task)

    # -- notices of the core ------------------------------------------------------------------------

    def accepted(self, app_id: str) -> None:
        """Continue with an application that the core has accepted."""
        app = self._cluster.applications.get(app_id)
        if app is None or self._cluster.batches.is_stale(app.batch):
            return
        if not fire(APPLICATION, app, "AcceptApplication"):
            return
        real = (task for task in app.tasks.values() if not task.placeholder)
        if not app.has_placeholders or any(task.state != NEW for task in real):
            self._run(app)
        elif self._placeholders.missing(app) and self._placeholders.is_too_late(app):
            self._give_reservation_up(app)
        elif fire(APPLICATION, app, "TryReserve"):
            self._conditions.reserving(app.id)
            for task in app.placeholders():
                self._proceed(app, task)
            self._placeholders.create_missing(app)
            self._update_reservation(app)

    def _give_reservation_up(self, app: KubernetesApplication) -> None:
        self._notice(app, "PlaceholderTimeout", "the time for placeholders was over before a restart")
        if app.is_hard:
            self.failed(app, TIMED_OUT)
        else:
            self._run(app)

    def rejected(self, app_id: str, reason: str) -> None:
        """Give an application up that the core refuses."""
        app = self._cluster.applications.get(app_id)
        if app is None or self._cluster.batches.is_stale(app.batch):
            return
        _log.warning("%s was rejected: %s", app.label, reason)
        if self._refused(app_id, reason):
            return
        if fire(APPLICATION, app, "RejectApplication", reason):
            self.failed(app, f"{REJECTION}{reason}")

    def updated(self, app_id: str, state: str, message: str) -> None:
        """Follow a change of an application's state in the core."""
        app = self._cluster.applications.get(app_id)
        if app is None or self._cluster.batches.is_stale(app.batch):
            return
        app.core_state = state
        if state == "Resuming":
            self._resume(app)
        elif state in ("Failing", "Failed"):
            self.failed(app, message, over=state == "Failed")
        elif state == "Completed":
            self._complete(app)

    # -- gangs --------------------------------------------------------------------------------------

    def task_bound(self, task: Task) -> None:
        """Count a bound placeholder; a bound pod of an application that has ended counts as foreign."""
        app = self._cluster.applications.get(task.app_id)
        if app is None or app.tasks.get(task.uid) is not task or app.is_failing:
            self._cluster.treat_as_foreign(task)
        elif task.placeholder:
            self._events.pod(
                task.pod, "GangScheduling", "PlaceholderAllocated", f"Placeholder of {app.id} is allocated"
            )
            app.ever_bound += 1
            self._update_reservation(app)

    def _update_reservation(self, app: KubernetesApplication) -> None:
        if app.state != RESERVING or not fire(APPLICATION, app, "UpdateReservation"):
            return
        # Counting all placeholders at each binding would take a time that grows with their square.
        if app.gang is not None and app.ever_bound < app.gang.members:
            return
        if self._placeholders.is_complete(app):
            note = "All placeholders are bound, starting the real members"
            self._notice(app, "GangReservationComplete", note)
            self._run(app)

    def _resume(self, app: KubernetesApplication) -> None:
        if app.state != RESERVING or not fire(APPLICATION, app, "ResumingApplication"):
            return
        note = f"Application {app.id} resuming as non-gang application (SOFT)"
        self._notice(app, "GangSchedulingFailed", note)
        self._placeholders.delete_all(app)
        self._note_end(app)

    def placeholders_failed(self, app: KubernetesApplication, reason: str) -> None:
        """Let an application run without its gang, or fail it if its gang is Hard."""
        if app.state != RESERVING:
            return
        if app.is_hard:
            self.failed(app, reason)
        else:
            self._placeholders.delete_all(app)
            self._run(app)

    def _run(self, app: KubernetesApplication) -> None:
        if fire(APPLICATION, app, "RunApplication"):
            for task in [*app.tasks.values()]:
                self._proceed(app, task)

    def release(self, task: Task, termination: TerminationType) -> None:
        """Delete the pod of an allocation that the core wants to end."""
        app = self._cluster.applications.get(task.app_id)
        preempted = task.placeholder and termination == TerminationType.PREEMPTED_BY_SCHEDULER
        was_running = app is not None and app.state == RUNNING
        if app is None or app.tasks.get(task.uid) is not task:
            self._tasks.end(task, termination)
        elif preempted and app.state == RESERVING:
            # The gang continues to collect room: another placeholder follows when this one is gone.
            self._tasks.end(task, termination)
        elif fire(APPLICATION, app, "ReleaseAppAllocation", termination.name):
            if termination == TerminationType.TIMEOUT and task.placeholder:
                self._events.pod(
                    task.pod, "GangScheduling", "PlaceholderTimeOut", f"Placeholder of {app.id} timed out"
                )
            self._tasks.end(task, termination)
            if app.state == RUNNING and not was_running:
                for other in [*app.tasks.values()]:
                    self._proceed(app, other)

    def _notice(self, app: KubernetesApplication, action: str, note: str) -> None:
        originator = app.tasks.get(app.originator)
        if originator is not None:
            warning = "Fail" in action or "Time" in action
            self._events.pod(originator.pod, "GangScheduling", action, note, warning=warning)

    # -- the end ------------------------------------------------------------------------------------

    def failed(self, app: KubernetesApplication, message: str, *, over: bool = False) -> None:
        """Fail an application; `over` when the core has ended it.

        Its placeholders are deleted, and its pods that have no node fail with the reason.
        """
        if app.state == FAILED or (app.state == FAILING and not over):
            return
        began = app.state != FAILING
        if not fire(APPLICATION, app, "FailApplication", message):
            return
        app.reason = app.reason or message
        self._placeholders.delete_all(app)
        if began:
            for task in [*app.tasks.values()]:
                if task.is_unallocated and not task.placeholder:
                    self._failures.fail(task, app.reason)
        if app.state == FAILED:
            self._end(app)
        elif over:
            self.failed(app, message, over=True)

    def fail_task(self, app: KubernetesApplication, task: Task) -> None:
        """Fail a pod that has lost its place because its application fails."""
        if task.placeholder:
            self._placeholders.delete(task)
        else:
            self._failures.fail(task, app.reason)

    def _end(self, app: KubernetesApplication) -> None:
        """Part from an application that the core has ended; pods that came meanwhile begin it again."""
        late = [task for task in app.tasks.values() if task.state == NEW and not task.deleting]
        for task in [*app.tasks.values()]:
            if task.is_bound:
                # The room of a pod stays in use until the pod is gone.
                self._cluster.treat_as_foreign(task)
                if not app.reason.startswith(REJECTION):
                    self._tasks.end(task, task.termination)
        for task in late:
            del app.tasks[task.uid]
        if not app.tasks:
            self._forget(app)
        for task in late:
            self.add(task)

    def _complete(self, app: KubernetesApplication) -> None:
        if app.state == RUNNING:
            fire(APPLICATION, app, "CompleteApplication")
        self._placeholders.delete_all(app)
        self._forget(app)
        for task in [*app.tasks.values()]:
            if task.placeholder:
                continue
            if task.is_bound:
                self._cluster.treat_as_foreign(task)
            elif not (task.is_terminated or task.deleting):
                self._renew(task)

    def _renew(self, task: Task) -> None:
        """Begin again with a pod that arrived when the core completed its application."""
        renewed = Task(
            task.pod,
            task.app_id,
            group=task.group,
            priority=task.priority,
            resource=task.resource,
            tags=self._cluster.translation.tags(task.pod),
        )
        self._cluster.tasks[task.uid] = renewed
        self.add(renewed)

    def task_ended(self, task: Task) -> None:
        """Remove an ended task from its application, and the application if nothing is left of it."""
        app = self._cluster.applications.get(task.app_id)
        if app is None or app.tasks.get(task.uid) is not task:
            return
        del app.tasks[task.uid]
        if app.state == RESUMING:
            self._note_end(app)
        elif app.state == RESERVING and task.placeholder and not is_terminated(task.pod):
            if self._is_disrupted(task, app):
                self._placeholders.replace(app, task)
            else:
                app.deleted.append(task)
        if app.tasks:
            return
        if app.state in ENDED:
            self._forget(app)
        elif app.core_state in ("", "New"):
            # The core completes only applications that had requests.
            self._cluster.batches.remove_application(app.id, app.batch)
            self._forget(app)

    def node_removed(self, name: str) -> None:
        """Replace placeholders that ended with a node: pods and nodes are watched apart, in no order."""
        for app in [*self._cluster.applications.values()]:
            lost = [task for task in app.deleted if task.node == name]
            app.deleted = [task for task in app.deleted if task.node != name] if lost else app.deleted
            if app.state == RESERVING:
                for task in lost:
                    self._placeholders.replace(app, task)

    def _is_disrupted(self, task: Task, app: KubernetesApplication) -> bool:
        """Return True for a placeholder that was preempted, or that ended with its node or owner.

        Others are not replaced: one that failed would fail again, one that a person deleted is not wanted.
        """
        if task.termination == TerminationType.PREEMPTED_BY_SCHEDULER:
            return True
        if task.node and task.node not in self._cluster.nodes:
            return True
        if any(one.type == "DisruptionTarget" and one.status == "True" for one in task.pod.status.conditions):
            return True
        return not any(owner.uid in app.tasks for owner in task.pod.metadata.owner_references)

    def _note_end(self, app: KubernetesApplication) -> None:
        if fire(APPLICATION, app, "AppTaskCompleted") and not app.has_placeholder_tasks:
            self._run(app)

    def _forget(self, app: KubernetesApplication) -> None:
        if self._cluster.applications.get(app.id) is app:
            del self._cluster.applications[app.id]


def _begins_again(app: KubernetesApplication, task: Task) -> bool:
    """Return True if a pod begins the next run of a gang, although the core has not completed the last one.

    No pod of the last run is left. A pod of the same controller replaces a member of that run instead, and
    waits for no gang.
    """
    if app.tasks or task.placeholder or not task.group:
        return False
    is_other = controller_of(task.pod) not in app.controllers
    return app.state == RESERVING or (app.state == RUNNING and is_other)
