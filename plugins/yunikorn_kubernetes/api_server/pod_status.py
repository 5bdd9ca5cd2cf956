"""Conditions of pods, written by patches: only the latest of each pod, and only if it differs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import attrs

from yunikorn.clock import Clock
from yunikorn_kubernetes.api_server.api_resources import PODS
from yunikorn_kubernetes.api_server.api_times import whole_seconds
from yunikorn_kubernetes.api_server.back_off import BackOff, RandomSource
from yunikorn_kubernetes.api_server.calls import STRATEGIC_PATCH, ApiError, ApiServer
from yunikorn_kubernetes.api_server.pod_binding import FORBIDDEN_TRIES, PodRef
from yunikorn_kubernetes.api_server.write_queue import Priority, WriteQueue
from yunikorn_kubernetes.objects import Condition, Json, Pod

SPACING = 15.0
"""Minimum seconds between two messages of the same reason for one pod, after the first change."""
POD_SCHEDULED = "PodScheduled"
FINISHED = ("Succeeded", "Failed")


@attrs.define(eq=False)
class _PodCondition:
    """Condition of a pod that is to be written, and the last one that was."""

    pod: PodRef
    wanted: Condition
    written: Condition | None = None
    written_at: float = 0.0
    changes: int = 0
    """Number of changes of the message since the reason was written first."""
    has_job: bool = False
    refusals: int = 0
    """Number of answers that the server forbids the condition."""


class PodConditions:
    """Writer of the condition `PodScheduled` of pods that wait.

    `pods` has the pods as the watch reports them, by `namespace/name`. A condition is a patch of the version
    that the watch has reported, so it never overwrites the condition of a pod that was bound meanwhile.
    """

    def __init__(
        self,
        server: ApiServer,
        queue: WriteQueue,
        pods: Mapping[str, Pod],
        *,
        clock: Clock,
        random: RandomSource,
    ) -> None:
        self._server = server
        self._queue = queue
        self._pods = pods
        self._clock = clock
        self._random = random
        self._entries: dict[str, _PodCondition] = {}
        """By UID."""

    def set(self, pod: PodRef, reason: str, message: str, *, status: str = "False") -> None:
        """Write the condition soon, unless the pod has it, is bound, or is gone."""
        wanted = Condition(POD_SCHEDULED, status, reason, message)
        entry = self._entries.get(pod.uid)
        if entry is None:
            entry = self._entries[pod.uid] = _PodCondition(pod, wanted)
        entry.wanted = wanted
        if not entry.has_job and wanted != entry.written:
            self._start(entry)

    def forget(self, uid: str) -> None:
        """Drop what is to be written for a pod that is bound or gone."""
        self._entries.pop(uid, None)

    def _start(self, entry: _PodCondition) -> None:
        entry.has_job = True
        self._queue.put(
            Priority.STATUS, _ConditionJob(self, entry, BackOff(self._random)), self._pause(entry)
        )

    @staticmethod
    def _pause(entry: _PodCondition) -> float:
        """Return the seconds to wait: a message may change with each decision about other pods.

        The first change is written at once: it often tells the result of what the first message announced,
        such as an attempt to preempt.
        """
        if entry.written is None or entry.written.reason != entry.wanted.reason or not entry.changes:
            return 0.0
        return max(0.0, entry.written_at + SPACING - asyncio.get_running_loop().time())

    async def write(self, entry: _PodCondition) -> None:
        """Write a condition. Raises `ApiError`, a conflict if the watch has not brought the latest pod."""
        pod = self._current(entry)
        if pod is None:
            if self._entries.get(entry.pod.uid) is entry:
                del self._entries[entry.pod.uid]
            return
        wanted = entry.wanted
        present = next((each for each in pod.status.conditions if each.type == POD_SCHEDULED), None)
        if present != wanted:
            condition: Json = {
                "type": wanted.type,
                "status": wanted.status,
                "reason": wanted.reason,
                "message": wanted.message,
            }
            if present is None or present.status != wanted.status:
                condition["lastTransitionTime"] = whole_seconds(self._clock)
            meta = {"uid": entry.pod.uid, "resourceVersion": pod.metadata.resource_version}
            body = {"metadata": meta, "status": {"conditions": [condition]}}
            namespace, name = entry.pod.namespace, entry.pod.name
            try:
                await self._server.patch(
                    PODS, namespace, name, body, subresource="status", media_type=STRATEGIC_PATCH
                )
            except ApiError as error:
                entry.refusals += error.is_forbidden
                may_be_permitted = error.is_forbidden and entry.refusals <= FORBIDDEN_TRIES
                if error.is_temporary or error.is_conflict or may_be_permitted:
                    raise
                # The pod is gone, or the server refuses this condition; it may accept the next one.
        entry.refusals = 0
        is_change = entry.written is not None and entry.written.reason == wanted.reason
        entry.changes = entry.changes + 1 if is_change else 0
        entry.written, entry.written_at = wanted, asyncio.get_running_loop().time()

    def _current(self, entry: _PodCondition) -> Pod | None:
        """Return the pod as the watch reports it, if it still waits for a node."""
        pod = self._pods.get(f"{entry.pod.namespace}/{entry.pod.name}")
        if pod is None or pod.metadata.uid != entry.pod.uid or self._entries.get(entry.pod.uid) is not entry:
            return None
        is_over = (
            pod.spec.node_name or pod.status.phase in FINISHED or pod.metadata.deletion_timestamp is not None
        )
        return None if is_over else pod

    def end(self, entry: _PodCondition) -> None:
        """Record the end of a job; write again if the condition has changed meanwhile."""
        entry.has_job = False
        if (
            self._entries.get(entry.pod.uid) is entry
            and entry.written is not None
            and entry.wanted != entry.written
        ):
            self._start(entry)


@attrs.define(eq=False)
class _ConditionJob:
    """Job that writes the latest condition of a pod."""

    owner: PodConditions
    entry: _PodCondition
    back_off: BackOff

    async def attempt(self) -> float | None:
        """Write the condition; see `Job`."""
        try:
            await self.owner.write(self.entry)
        except ApiError as error:
            return max(self.back_off.next_delay(), error.retry_after or 0.0)
        self.owner.end(self.entry)
        return None

    def abandon(self, why: str) -> None:
        """Give up; see `Job`."""
        self.entry.has_job = False
