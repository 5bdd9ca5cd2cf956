"""Placeholder pods: created for the missing members of task groups, and deleted."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from itertools import chain, islice, repeat

import attrs

from yunikorn.clock import SECOND, Clock
from yunikorn.containment import describe_error
from yunikorn.errors import CONTAINED, YunikornError
from yunikorn.interface.messages import TerminationType
from yunikorn_kubernetes.api_server.api_resources import PODS
from yunikorn_kubernetes.api_server.pod_events import PodEvents
from yunikorn_kubernetes.api_server.writes import QueuedWrites
from yunikorn_kubernetes.names import APP_TAG_CREATION_TIME
from yunikorn_kubernetes.objects import Json
from yunikorn_kubernetes.shim.deletions import Deletions
from yunikorn_kubernetes.shim.shim_applications import KubernetesApplication
from yunikorn_kubernetes.shim.shim_cluster import ShimCluster
from yunikorn_kubernetes.shim.tasks import Task
from yunikorn_kubernetes.translation.pod_applications import owner_references
from yunikorn_kubernetes.translation.task_groups import AnnotatedTaskGroup
from yunikorn_service.background import BackgroundTasks

_log = logging.getLogger("yunikorn.kubernetes.gangs")

DEFAULT_TIMEOUT_MS = 900_000
"""Time for which placeholders may be held if the application names none, as in the core."""
AT_ONCE = 64
"""Placeholders of an application that are being created at the same time."""
Missing = list[tuple[AnnotatedTaskGroup, int]]
"""Task groups with the number of placeholders that do not exist."""


class Placeholders:
    """Creates and deletes the placeholders of applications."""

    def __init__(
        self,
        cluster: ShimCluster,
        writes: QueuedWrites,
        deletions: Deletions,
        events: PodEvents,
        clock: Clock,
        on_failure: Callable[[KubernetesApplication, str], object],
    ) -> None:
        """Create none; `on_failure` is called with an application whose placeholder cannot be created."""
        self._cluster, self._writes, self._deletions = cluster, writes, deletions
        self._events, self._clock, self._on_failure = events, clock, on_failure
        self._creating = BackgroundTasks(_log)
        """Creations by id of the application."""

    def is_too_late(self, app: KubernetesApplication) -> bool:
        """Return True if the time of the placeholders is over: a restart must not begin it again."""
        created = app.request.tags.get(APP_TAG_CREATION_TIME, "")
        if not created.isdecimal():
            return False
        timeout = app.request.execution_timeout_ms or DEFAULT_TIMEOUT_MS
        return int(created) * 1000 + timeout < self._clock.now() // (SECOND // 1000)

    def missing(self, app: KubernetesApplication) -> Missing:
        """Return the task groups that lack placeholders, each with their number."""
        present = Counter(task.group for task in app.placeholders())
        groups = app.gang.groups if app.gang is not None else ()
        lacking = ((group, group.min_member - present[group.name]) for group in groups)
        return [(group, number) for group, number in lacking if number > 0]

    def is_complete(self, app: KubernetesApplication) -> bool:
        """Return True if every task group has its bound placeholders."""
        bound = Counter(task.group for task in app.placeholders() if task.is_bound)
        groups = app.gang.groups if app.gang is not None else ()
        return all(bound[group.name] >= group.min_member for group in groups)

    def create_missing(self, app: KubernetesApplication) -> None:
        """Create the placeholders that do not exist, in the background."""
        missing = self.missing(app)
        if not missing or app.id in self._creating:
            return
        originator = self._originator(app)
        if originator is not None:
            self._begin(app, originator, missing)

    @staticmethod
    def _originator(app: KubernetesApplication) -> Task | None:
        """Return the pod that owns new placeholders: the first one, or after its end the first that is left.

        None if there is no pod but placeholders, which the cluster deletes with their owner.
        """
        known = app.tasks.get(app.originator)
        if known is not None:
            return known
        heir = next((task for task in app.tasks.values() if not task.placeholder), None)
        if heir is not None:
            app.originator, heir.originator = heir.uid, True
            app.owner = attrs.evolve(app.owner, references=owner_references(heir.pod))
        return heir

    def replace(self, app: KubernetesApplication, lost: Task) -> None:
        """Create a placeholder in place of one that was preempted, or deleted by the cluster."""
        originator = self._originator(app)
        group = next((group for group, _ in self.missing(app) if group.name == lost.group), None)
        if originator is not None and group is not None:
            self._begin(app, originator, [(group, 1)])

    def _begin(self, app: KubernetesApplication, originator: Task, missing: Missing) -> None:
        note = f"Application {app.id} creating placeholders"
        self._events.pod(originator.pod, "GangScheduling", "CreatingPlaceholders", note)
        work = self._create(app, originator, missing)
        self._creating.begin(work, f"the creation of placeholders of {app.label}", key=app.id)

    async def _create(self, app: KubernetesApplication, originator: Task, missing: Missing) -> None:
        translation, owner = self._cluster.translation, app.owner
        assert app.gang is not None
        wanted = chain.from_iterable(repeat(group, number) for group, number in missing)
        try:
            while portion := [*islice(wanted, AT_ONCE)]:
                async with asyncio.TaskGroup() as creations:
                    for group in portion:
                        body = translation.placeholder(owner, app.gang, group)
                        creations.create_task(self._create_pod(owner.namespace, body))
        except* CONTAINED as problems:
            error = problems.exceptions[0]
            is_bug = not isinstance(error, YunikornError)
            why = f"bug of the scheduler, see its log: {describe_error(error)}" if is_bug else error
            note = f"failed to create placeholders: {why}"
            _log.error("%s: %s", app.label, note, exc_info=error if is_bug else None)
            self._events.pod(originator.pod, "GangScheduling", "PlaceholderCreateFailed", note, warning=True)
            self._on_failure(app, note)

    async def _create_pod(self, namespace: str, body: Json) -> None:
        await self._writes.create(PODS, namespace, body)

    def delete_all(self, app: KubernetesApplication) -> None:
        """Delete the placeholders of an application, and create no more."""
        self._creating.cancel(app.id)
        for task in app.placeholders():
            self.delete(task)

    def delete(self, task: Task) -> None:
        """Delete a placeholder that is not needed any more."""
        if task.termination == TerminationType.STOPPED_BY_RM:
            self._deletions.delete(task)

    def close(self) -> None:
        """Create no more placeholders."""
        self._creating.cancel_all()
