"""Writes of the shim to the API server, through the queue of writes."""

from __future__ import annotations

import asyncio

from yunikorn_kubernetes.api_server.api_resources import PODS
from yunikorn_kubernetes.api_server.calls import ApiError
from yunikorn_kubernetes.api_server.pod_binding import BindOutcome, PodRef
from yunikorn_kubernetes.api_server.writes import QueuedWrites
from yunikorn_kubernetes.objects import Json, Pod

GONE, CONFLICT = 404, 409


class ServerWrites:
    """Implementation of `ports.Writes`.

    The futures of the queue are shielded: the queue, and not a caller that is cancelled, ends a write.
    """

    def __init__(self, writes: QueuedWrites) -> None:
        self._writes = writes

    async def bind(self, pod: Pod, node: str) -> None:
        """Bind a pod to a node."""
        result = await asyncio.shield(self._writes.bind(_ref(pod), node))
        if result.outcome is BindOutcome.BOUND and result.node == node:
            return
        if result.outcome in (BindOutcome.BOUND, BindOutcome.ELSEWHERE):
            raise ApiError(CONFLICT, "Conflict", f"the pod is bound to node {result.node}")
        if result.outcome is BindOutcome.GONE:
            raise ApiError(GONE, "NotFound", result.message)
        raise ApiError(0, result.outcome.name, result.message)

    async def delete_pod(self, pod: Pod) -> None:
        """Delete this pod; a pod that is gone, or whose name another pod has, is no error."""
        await asyncio.shield(self._writes.delete_pod(_ref(pod)))

    async def create_pod(self, namespace: str, body: Json) -> None:
        """Create a pod."""
        await asyncio.shield(self._writes.create(PODS, namespace, body))

    async def set_status(self, pod: Pod, status: Json) -> None:
        """Merge fields into the status of a pod."""
        await asyncio.shield(self._writes.set_status(_ref(pod), status))

    def set_condition(self, pod: Pod, reason: str, message: str) -> None:
        """Write the condition `PodScheduled` of a waiting pod soon."""
        self._writes.set_condition(_ref(pod), reason, message)

    def forget(self, uid: str) -> None:
        """End the writes for a pod."""
        self._writes.forget(uid)


def _ref(pod: Pod) -> PodRef:
    meta = pod.metadata
    return PodRef(meta.namespace, meta.name, meta.uid)
