"""Writes of the scheduler to the API server: bindings first, each tried until its outcome is known."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from yunikorn.clock import Clock
from yunikorn_kubernetes.api_server.api_resources import PODS, ApiObject, ApiResource
from yunikorn_kubernetes.api_server.back_off import BackOff, RandomSource
from yunikorn_kubernetes.api_server.calls import MERGE_PATCH, STRATEGIC_PATCH, ApiError, ApiServer
from yunikorn_kubernetes.api_server.pod_binding import FORBIDDEN_TRIES, PAUSES, Binding, BindResult, PodRef
from yunikorn_kubernetes.api_server.pod_status import PodConditions
from yunikorn_kubernetes.api_server.write_queue import WORKERS, Priority, WriteQueue
from yunikorn_kubernetes.objects import Pod

_log = logging.getLogger("yunikorn.kubernetes")

T = TypeVar("T")
A = TypeVar("A", bound=ApiObject)


class QueuedWrites:
    """All writes of the shim, executed by a few workers while `run` runs.

    To be used in the event loop. The queue, and not a caller that is cancelled, ends a write. `pods` has
    the pods as the watch reports them, by `namespace/name`; `permitted` is asked before each attempt.
    """

    def __init__(
        self,
        server: ApiServer,
        pods: Mapping[str, Pod],
        *,
        clock: Clock,
        random: RandomSource,
        workers: int = WORKERS,
        permitted: Callable[[], bool] = lambda: True,
    ) -> None:
        self._server = server
        self._random = random
        self._queue = WriteQueue(workers=workers, permitted=permitted)
        self._bindings: dict[str, Binding] = {}
        """Incomplete bindings by UID."""
        self._conditions = PodConditions(server, self._queue, pods, clock=clock, random=random)

    @property
    def waiting(self) -> Mapping[Priority, int]:
        """Numbers of incomplete writes."""
        return self._queue.waiting

    async def run(self) -> None:
        """Execute writes until cancelled; writes that are left then are abandoned."""
        await self._queue.run()

    async def drain(self, seconds: float) -> bool:
        """Accept no more writes, and give the others one more attempt; return True if all ended in time."""
        return await self._queue.drain(seconds)

    def bind(self, pod: PodRef, node: str) -> asyncio.Future[BindResult]:
        """Bind a pod to a node; the future never has an exception.

        A pod has one binding at a time: a second call returns the future of the first, whose result names the
        node.
        """
        running = self._bindings.get(pod.uid)
        if running is not None and not running.result.done():
            return asyncio.shield(running.result)
        self._conditions.forget(pod.uid)
        binding = self._bindings[pod.uid] = Binding(self._server, pod, node, random=self._random)
        binding.result.add_done_callback(lambda _: self._ended(binding))
        self._queue.put(Priority.BIND, binding)
        return asyncio.shield(binding.result)

    def _ended(self, binding: Binding) -> None:
        if self._bindings.get(binding.pod.uid) is binding:
            del self._bindings[binding.pod.uid]

    def delete_pod(self, pod: PodRef) -> asyncio.Future[bool]:
        """Delete a pod with its own grace period; the result is False if the process ended before."""
        return self.delete(PODS, pod.namespace, pod.name, uid=pod.uid)

    def delete(
        self, resource: ApiResource[A], namespace: str, name: str, *, uid: str
    ) -> asyncio.Future[bool]:
        """Delete an object, in any number of attempts; the result is False if the process ended before."""
        job = _Deletion(self._server, resource, namespace, name, uid, BackOff(self._random))
        self._queue.put(Priority.DELETE, job)
        return asyncio.shield(job.result)

    def create(self, resource: ApiResource[T], namespace: str, body: Mapping[str, Any]) -> asyncio.Future[T]:
        """Create an object that has a name; the exception of the future is an `ApiError`.

        Temporary failures are tried again for two minutes, and a refusal with 403 for seven seconds.
        """
        job = _Creation(self._server, resource, namespace, body, self._random)
        self._queue.put(Priority.CREATE, job)
        return asyncio.shield(job.result)

    def set_condition(self, pod: PodRef, reason: str, message: str, *, status: str = "False") -> None:
        """Write the condition `PodScheduled` of a waiting pod: only the latest, and only if it differs."""
        if pod.uid not in self._bindings:
            self._conditions.set(pod, reason, message, status=status)

    def set_status(self, pod: PodRef, status: Mapping[str, Any]) -> asyncio.Future[bool]:
        """Merge fields into the status of a pod; the result is False if that was impossible."""
        self._conditions.forget(pod.uid)
        body = {"metadata": {"uid": pod.uid}, "status": status}
        job = _StatusWrite(
            self._server,
            PODS,
            pod.namespace,
            pod.name,
            lambda: body,
            BackOff(self._random),
            media_type=STRATEGIC_PATCH,
            # A conflict means that another pod has the name.
            ends_by_conflict=True,
        )
        self._queue.put(Priority.DELETE, job)
        return asyncio.shield(job.result)

    def update_status(
        self,
        resource: ApiResource[Any],
        namespace: str,
        name: str,
        body: Callable[[], Mapping[str, Any] | None],
        *,
        delay: float = 0.0,
    ) -> asyncio.Future[bool]:
        """Merge the answer of `body` into the status of an object after a delay; None for nothing to write.

        Each attempt calls `body` again, because a conflict means that the object has changed. The result is
        False if the server refuses.
        """
        job = _StatusWrite(self._server, resource, namespace, name, body, BackOff(self._random))
        self._queue.put(Priority.STATUS, job, delay)
        return asyncio.shield(job.result)

    def forget(self, uid: str) -> None:
        """End the writes for a pod that was deleted: its binding has the outcome GONE."""
        self._conditions.forget(uid)
        binding = self._bindings.get(uid)
        if binding is not None:
            binding.forget()


class _FutureJob(Generic[T]):
    """Job with a future."""

    def __init__(self) -> None:
        self.result: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def _end(self, value: T) -> None:
        if not self.result.done():
            self.result.set_result(value)


class _Deletion(_FutureJob[bool], Generic[A]):
    """Job that deletes an object."""

    def __init__(
        self,
        server: ApiServer,
        resource: ApiResource[A],
        namespace: str,
        name: str,
        uid: str,
        back_off: BackOff,
    ) -> None:
        super().__init__()
        self._server = server
        self._resource = resource
        self._namespace, self._name, self._uid = namespace, name, uid
        self._back_off = back_off
        self._is_reported = False

    async def attempt(self) -> float | None:
        """Delete the object; an object of another UID is another object. See `Job`."""
        try:
            await self._delete()
        except ApiError as error:
            if not error.is_not_found:
                self._report(error)
                return max(self._back_off.next_delay(), error.retry_after or 0.0)
        self._end(True)
        return None

    async def _delete(self) -> None:
        try:
            await self._server.delete(self._resource, self._namespace, self._name, uid=self._uid)
        except ApiError as error:
            if not error.is_conflict:
                raise
            present = await self._server.get(self._resource, self._namespace, self._name)
            if present.metadata.uid == self._uid:
                raise

    def _report(self, error: ApiError) -> None:
        if not self._is_reported and not error.is_temporary:
            self._is_reported = True
            name = f"{self._namespace}/{self._name}"
            _log.warning("%s %s cannot be deleted, to be tried again: %s", self._resource.kind, name, error)

    def abandon(self, why: str) -> None:
        """Give up; see `Job`."""
        self._end(False)


class _Creation(_FutureJob[T]):
    """Job that creates an object."""

    def __init__(
        self,
        server: ApiServer,
        resource: ApiResource[T],
        namespace: str,
        body: Mapping[str, Any],
        random: RandomSource,
    ) -> None:
        super().__init__()
        self._server = server
        self._resource = resource
        self._namespace = namespace
        self._body = body
        self._random = random
        self._failures = 0
        self._may_exist = False
        """True once an attempt may have created the object although it failed."""

    async def attempt(self) -> float | None:
        """Create the object, or read it if an earlier attempt has created it. See `Job`."""
        if self.result.done():
            return None
        try:
            self._end(await self._create())
        except ApiError as error:
            self._may_exist |= error.maybe_executed
            tries = len(PAUSES) if error.is_temporary else FORBIDDEN_TRIES if error.is_forbidden else 0
            if self._failures < tries:
                pause = PAUSES[self._failures] * self._random.uniform(0.9, 1.1)
                self._failures += 1
                return max(pause, error.retry_after or 0.0)
            if not self.result.done():
                self.result.set_exception(error)
        return None

    async def _create(self) -> T:
        try:
            return await self._server.create(self._resource, self._namespace, self._body)
        except ApiError as error:
            if not (error.is_conflict and self._may_exist):
                raise
            return await self._server.get(self._resource, self._namespace, self._body["metadata"]["name"])

    def abandon(self, why: str) -> None:
        """Give up; see `Job`."""
        if not self.result.done():
            self.result.set_exception(ApiError(0, "Abandoned", why, maybe_executed=self._may_exist))


class _StatusWrite(_FutureJob[bool]):
    """Job that merges what is current at each attempt into the status of an object."""

    def __init__(
        self,
        server: ApiServer,
        resource: ApiResource[Any],
        namespace: str,
        name: str,
        body: Callable[[], Mapping[str, Any] | None],
        back_off: BackOff,
        *,
        media_type: str = MERGE_PATCH,
        ends_by_conflict: bool = False,
    ) -> None:
        super().__init__()
        self._server, self._resource = server, resource
        self._namespace, self._name = namespace, name
        self._body, self._back_off = body, back_off
        self._media_type, self._ends_by_conflict = media_type, ends_by_conflict
        self._refusals = 0

    async def attempt(self) -> float | None:
        """Patch the status; see `Job`."""
        body = self._body()
        try:
            if body is not None:
                await self._server.patch(
                    self._resource,
                    self._namespace,
                    self._name,
                    body,
                    subresource="status",
                    media_type=self._media_type,
                )
        except ApiError as error:
            self._refusals += error.is_forbidden
            may_be_permitted = error.is_forbidden and self._refusals <= FORBIDDEN_TRIES
            is_outdated = error.is_conflict and not self._ends_by_conflict
            if error.is_temporary or is_outdated or may_be_permitted:
                return max(self._back_off.next_delay(), error.retry_after or 0.0)
            if not error.is_not_found:
                place = f"{self._namespace}/{self._name}"
                _log.warning("the status of %s %s cannot be written: %s", self._resource.kind, place, error)
            self._end(False)
            return None
        self._end(True)
        return None

    def abandon(self, why: str) -> None:
        """Give up; see `Job`."""
        self._end(False)
