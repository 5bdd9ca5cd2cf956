"""Bindings under way: claims get their devices, volumes are bound, then the pod is bound to its node.

Members of a gang that were placed together are bound when the claims of all of them have their devices: a
claim that fails costs no pod that has started.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from yunikorn.containment import describe_error
from yunikorn.errors import CONTAINED, YunikornError
from yunikorn_kubernetes.api_server.pod_binding import BindOutcome, PodRef
from yunikorn_kubernetes.api_server.writes import QueuedWrites
from yunikorn_kubernetes.resource_claims.claim_binder import ClaimBinder
from yunikorn_kubernetes.shim.gang_claims import GangClaims
from yunikorn_kubernetes.shim.tasks import Task
from yunikorn_kubernetes.volumes.cluster_volumes import VolumeConflict
from yunikorn_kubernetes.volumes.volume_binder import VolumeBinder
from yunikorn_service.background import BackgroundTasks

_log = logging.getLogger("yunikorn.kubernetes.binding")

FINDABLE = (BindOutcome.BOUND, BindOutcome.ELSEWHERE, BindOutcome.GONE)
"""Outcomes of which the watch reports where the pod is."""


class Binder:
    """Binds pods in the background."""

    def __init__(
        self,
        writes: QueuedWrites,
        volume_binder: VolumeBinder,
        bound: Callable[[Task], object],
        failed: Callable[[Task, str, str], object],
        claim_binder: ClaimBinder | None = None,
    ) -> None:
        """Create without bindings; without `claim_binder`, pods have no claims to devices.

        `bound` is called with a task whose pod was bound, and `failed` with a task, a reason and a text if
        the binding has failed for good.
        """
        self._writes, self._volume_binder, self._volumes = writes, volume_binder, volume_binder.volumes
        self._bound, self._failed = bound, failed
        self._claim_binder = claim_binder
        self._running = BackgroundTasks(_log)
        """Bindings by uid of the pod."""

    def begin(self, task: Task, together: GangClaims | None = None) -> None:
        """Begin the binding of a task to `task.node`, `together` with other members of its gang."""
        problem = ""
        try:
            self._volumes.assume(task.uid, task.node)
        except VolumeConflict as conflict:
            problem = str(conflict) or "the volumes of the pod cannot be used on the node"
        except CONTAINED as error:
            _log.exception("bug: the volumes of %s could not be chosen", task.label)
            problem = _bug(error)
        if problem:
            self._end(task, "AssumePodError" if task.placeholder else "AssumePodFailed", problem)
            return
        if self._claim_binder is not None:
            self._claim_binder.claims.assume(task.uid)
        self._running.begin(
            self._bind(task, task.node, together), f"the binding of {task.label}", key=task.uid
        )

    def cancel(self, task: Task) -> None:
        """End the binding of a task, if there is one; a call to the API server may still succeed."""
        if self._running.cancel(task.uid):
            self._writes.forget(task.uid)
        self._volumes.forget(task.uid)
        self._give_back(task)

    def _give_back(self, task: Task) -> None:
        """Take the devices of a task back that is not bound."""
        if self._claim_binder is not None:
            self._claim_binder.give_back(task.uid)
            self._claim_binder.claims.forget(task.uid)

    async def _bind(self, task: Task, node: str, together: GangClaims | None) -> None:
        reason, act = "PodClaimsBindFailure", "allocating devices"
        try:
            pod = task.pod
            has_claims = pod.spec.resource_claims or pod.status.extended_resource_claim_status
            if task.devices or has_claims or together is not None:
                await self._allocate(task, together)
            reason, act = "PodVolumesBindFailure", "binding volumes"
            await self._volume_binder.bind(task.uid)
            reason, act = "PodBindFailure", f"bind to node {node} failed"
            result = await self._writes.bind(PodRef.of(task.pod), node)
        except YunikornError as error:
            self._end(task, reason, f"{act}: {error}")
            return
        except CONTAINED as error:
            _log.exception("bug: %s could not be bound", task.label)
            self._end(task, reason, f"{act}: {_bug(error)}")
            return
        if result.outcome is BindOutcome.BOUND and result.node == node:
            self._running.cancel(task.uid)
            self._volumes.forget(task.uid)
            if self._claim_binder is not None:
                self._claim_binder.bound(task.uid)
            self._bound(task)
        elif result.outcome in FINDABLE:
            # The pod is gone, or another party has bound it: the watch will report which.
            _log.info("%s was not bound to node %s: %s", task.label, node, result.message or result.node)
        else:
            self._end(task, reason, f"{act}: {result.message}")

    async def _allocate(self, task: Task, together: GangClaims | None) -> None:
        """Give the claims of a task their devices, and wait for those of other members of its gang."""
        binder = self._claim_binder
        try:
            if binder is not None:
                await binder.write(task.pod, task.devices)
                await binder.wait_until_ready(task.uid)
            if together is not None:
                await together.wait(task)
        except BaseException:
            if together is not None:
                together.fail(task)
            raise

    def _end(self, task: Task, reason: str, note: str) -> None:
        self._running.cancel(task.uid)
        self._volumes.forget(task.uid)
        self._give_back(task)
        self._failed(task, reason, note)

    def close(self) -> None:
        """End all bindings."""
        self._running.cancel_all()
        if self._claim_binder is not None:
            self._claim_binder.close()


def _bug(error: BaseException) -> str:
    return f"bug of the scheduler, see its log: {describe_error(error)}"
