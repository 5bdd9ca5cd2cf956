"""Writes of the devices that the core has chosen for a pod to its claims, and their return.

A claim gets the finalizer first, then devices and consumer in one write, as from kube-scheduler. All writes
of one claim follow each other; each is made on the version that was read, so that no write of others is lost.
An annotation marks the claim from the first write on: what a process leaves behind that ends between two
writes is given back by the next one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import attrs

from yunikorn.clock import Clock
from yunikorn.errors import YunikornError
from yunikorn_kubernetes.api_server.api_resources import PODS
from yunikorn_kubernetes.api_server.api_times import whole_seconds
from yunikorn_kubernetes.api_server.back_off import BackOff, RandomSource
from yunikorn_kubernetes.api_server.calls import ApiError, ApiServer
from yunikorn_kubernetes.devices.device_tags import AllocatedClaim, read_device_allocations
from yunikorn_kubernetes.objects import Json, Pod
from yunikorn_kubernetes.predicates.tag_reading import UnreadableText
from yunikorn_kubernetes.resource_claims.binding_conditions import awaited_condition
from yunikorn_kubernetes.resource_claims.claim_objects import (
    ALLOCATED_BY_US,
    EXTENDED_CLAIM,
    FINALIZER,
    MOST_CONSUMERS,
    RESOURCE_CLAIMS,
    ResourceClaimObject,
    claims_of,
    consumer_of,
    results_of,
)
from yunikorn_kubernetes.resource_claims.cluster_claims import ClusterClaims
from yunikorn_kubernetes.resource_claims.extended_resources import (
    EXTENDED_ANNOTATION,
    claim_body,
    device_allocation,
    pod_status,
)
from yunikorn_service.background import BackgroundTasks, begin_shared

_log = logging.getLogger("yunikorn.kubernetes.claims")

LONGEST_PAUSE = 30.0
LONGEST_PREFIX = 220
"""Number of characters of a pod's name in that of its claim for extended resources."""
SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
REFUSED_TRIES = 6
"""Attempts after a 403, in some 10 seconds: a server that has just started knows no rights yet."""
READY_TIMEOUT = 600.0
"""Seconds until the devices of a pod must be ready, as in kube-scheduler."""


class ClaimBindError(YunikornError):
    """The claims of a pod cannot get the devices that were chosen; the message says why."""


@attrs.frozen
class _ClaimWrite:
    """Devices and consumer that a claim is to get; no devices for one that only loses its consumer."""

    key: str
    consumer: Json
    allocation: Json = attrs.field(factory=dict)
    uid: str = ""
    made_for: Pod | None = None
    """Pod for whose extended resources the claim is made."""


class ClaimBinder:
    """Gives claims the devices of pods that have been placed, and takes them back."""

    def __init__(
        self,
        server: ApiServer,
        claims: ClusterClaims,
        *,
        random: RandomSource,
        clock: Clock,
        timeout: float = READY_TIMEOUT,
    ) -> None:
        """Create a binder; `timeout` is the time in seconds for the devices of one pod to be ready."""
        self._server, self.claims = server, claims
        self._random, self._clock, self._timeout = random, clock, timeout
        self._locks: dict[str, asyncio.Lock] = {}
        self._written: dict[str, list[_ClaimWrite]] = {}
        """Writes that have begun, by uid of the pod, until the pod is bound."""
        self._named: set[str] = set()
        """Uids of pods in whose status a claim for extended resources has been named; they are not bound."""
        self._returns = BackgroundTasks(_log)

    # -- before a binding -------------------------------------------------------------------------------

    async def write(self, pod: Pod, text: str) -> None:
        """Give the claims of a pod the devices in the tag `device-allocations`. Raises `ClaimBindError`.

        A caller that is cancelled ends no write; `give_back` waits for it.
        """
        try:
            chosen = {one.id.pod_claim: one for one in read_device_allocations(text)} if text else {}
        except UnreadableText as error:
            raise ClaimBindError(f"the devices that were chosen cannot be read: {error}") from error
        writes = self._written[pod.metadata.uid] = [*self._planned(pod, chosen)]
        extended = chosen.get(EXTENDED_CLAIM)
        allocation = device_allocation(extended.json) if extended is not None else None
        if allocation is not None:
            prefix = pod.metadata.name[:LONGEST_PREFIX].rstrip("-.")
            name = f"{prefix}-extended-resources-{self._suffix()}"
            key = f"{pod.metadata.namespace}/{name}"
            writes.append(_ClaimWrite(key, consumer_of(pod), allocation, made_for=pod))
        elif pod.metadata.uid in self._named or pod.status.extended_resource_claim_status is not None:
            # A kubelet would wait for the claim of an earlier attempt.
            unnamed = partial(self._set_status, pod, {"extendedResourceClaimStatus": None})
            await self._retried(unnamed, f"pod {pod.metadata.namespace}/{pod.metadata.name}")
        await asyncio.shield(begin_shared(self._write_all(writes)))

    def _planned(self, pod: Pod, chosen: Mapping[str, AllocatedClaim]) -> Iterator[_ClaimWrite]:
        for reference in claims_of(pod):
            one = chosen.get(reference.pod_claim)
            if one is None:
                raise ClaimBindError(
                    f"no devices have been chosen for the claim {reference.pod_claim!r} of the pod"
                )
            consumer = self.claims.consumer(pod, reference)
            yield _ClaimWrite(reference.key, consumer, one.json, one.id.uid)

    async def _write_all(self, writes: Iterable[_ClaimWrite]) -> None:
        for one in writes:
            what = f"the resource claim {one.key}"
            async with self._lock(one.key):
                if one.made_for is not None:
                    await self._retried(partial(self._create, one, one.made_for), what)
                await self._retried(partial(self._write, one), what)

    def _suffix(self) -> str:
        return "".join(SUFFIX_LETTERS[int(self._random.uniform(0, 26.999)) % 27] for _ in range(5))

    async def _create(self, one: _ClaimWrite, pod: Pod) -> None:
        """Create the claim for the extended resources of a pod, and name it in the pod's status."""
        namespace, _, name = one.key.partition("/")
        results = {result["request"] for result in one.allocation["devices"]["results"]}
        requests = [each for each in self.claims.extended.requests_of(pod) if each.name in results]
        if await self._server.find(RESOURCE_CLAIMS, namespace, name) is None:
            body = claim_body(pod, requests, name, ALLOCATED_BY_US)
            self.claims.written(await self._server.create(RESOURCE_CLAIMS, namespace, body))
        self._named.add(pod.metadata.uid)
        await self._set_status(pod, pod_status(requests, name))

    async def _set_status(self, pod: Pod, status: Json) -> None:
        meta = pod.metadata
        patch = {"metadata": {"uid": meta.uid}, "status": status}
        await self._server.patch(PODS, meta.namespace, meta.name, patch, subresource="status")

    def _lock(self, key: str) -> asyncio.Lock:
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        return lock

    async def _retried(self, write: Callable[[], Awaitable[Any]], what: str) -> None:
        """Repeat a write after conflicts and outages; each attempt reads the claim again."""
        back_off, refusals = BackOff(self._random, first=0.1, largest=LONGEST_PAUSE), 0
        while True:
            try:
                await write()
                return
            except ApiError as error:
                if error.is_not_found:
                    raise ClaimBindError(f"{what} does not exist any more") from error
                refusals += error.is_forbidden
                may_be_permitted = error.is_forbidden and refusals <= REFUSED_TRIES
                if not (error.is_conflict or error.is_temporary or may_be_permitted):
                    raise ClaimBindError(f"{what} cannot be written: {error}") from error
                await asyncio.sleep(error.retry_after or back_off.next_delay())

    async def _write(self, one: _ClaimWrite) -> None:
        claim = await self._read(one.key)
        if one.uid and claim.metadata.uid != one.uid:
            raise ClaimBindError(f"the resource claim {one.key} was replaced by another of the same name")
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimBindError(f"the resource claim {one.key} is being deleted")
        allocation, consumers = claim.allocation, claim.consumers
        if allocation is not None:
            if _devices(allocation) != _devices(one.allocation):
                raise ClaimBindError(f"the resource claim {one.key} got other devices meanwhile")
            if one.consumer in consumers:
                return
            if len(consumers) >= MOST_CONSUMERS:
                raise ClaimBindError(
                    f"the resource claim {one.key} is used by {MOST_CONSUMERS} pods, which is the maximum"
                )
        else:
            claim = await self._mark(claim)
            allocation = one.allocation | {"allocationTimestamp": whole_seconds(self._clock)}
        await self._patch(
            claim, {"status": {"allocation": allocation, "reservedFor": [*consumers, one.consumer]}}
        )

    async def _read(self, key: str) -> ResourceClaimObject:
        namespace, _, name = key.partition("/")
        return await self._server.get(RESOURCE_CLAIMS, namespace, name)

    async def _mark(self, claim: ResourceClaimObject) -> ResourceClaimObject:
        """Add the finalizer and our annotation."""
        meta = claim.metadata
        if FINALIZER in meta.finalizers and ALLOCATED_BY_US in meta.annotations:
            return claim
        finalizers = [one for one in meta.finalizers if one != FINALIZER]
        return await self._patch(
            claim,
            {"metadata": {"finalizers": [*finalizers, FINALIZER], "annotations": {ALLOCATED_BY_US: "true"}}},
        )

    async def _patch(self, claim: ResourceClaimObject, change: Json) -> ResourceClaimObject:
        """Change a claim if the version is still the one that was read."""
        meta = claim.metadata
        precondition = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        body = {**change, "metadata": {**change.get("metadata", {}), **precondition}}
        written = await self._server.patch(
            RESOURCE_CLAIMS,
            meta.namespace,
            meta.name,
            body,
            subresource="status" if "status" in change else "",
        )
        self.claims.written(written)
        return written

    async def wait_until_ready(self, uid: str) -> None:
        """Wait until drivers have made the devices of a pod ready. Raises `ClaimBindError`."""
        keys = [one.key for one in self._written.get(uid, ()) if _has_conditions(one.allocation)]
        if not keys:
            return
        changed, waiting = asyncio.Event(), ""
        self.claims.watch(uid, changed.set)
        try:
            async with asyncio.timeout(self._timeout):
                while True:
                    changed.clear()
                    waiting = next(filter(None, map(self._awaited, keys)), "")
                    if not waiting:
                        return
                    if self.claims.pod(uid) is None:
                        raise ClaimBindError("the pod does not exist any more")
                    await changed.wait()
        except TimeoutError:
            raise ClaimBindError(
                f"the devices were not ready within {self._timeout:g} s: still waiting for {waiting}"
            ) from None
        finally:
            self.claims.unwatch(uid)

    def _awaited(self, key: str) -> str:
        """Return the condition that a claim waits for; empty if its devices are ready."""
        claim = self.claims.claims.get(key)
        if claim is None:
            raise ClaimBindError(f"the resource claim {key} does not exist any more")
        if claim.allocation is None:
            # The watch has not told of the write yet.
            return f"the devices in the status of claim {key}"
        awaited = awaited_condition(claim)
        if awaited.has_failed:
            raise ClaimBindError(f"the resource claim {key}: {awaited.text}")
        return awaited.text

    # -- after a binding --------------------------------------------------------------------------------

    def bound(self, uid: str) -> None:
        """Note that a pod is bound: others take the devices back when the pod has ended."""
        self._named.discard(uid)
        for one in self._written.pop(uid, ()):
            lock = self._locks.get(one.key)
            if lock is not None and not lock.locked():
                del self._locks[one.key]

    def give_back(self, uid: str) -> None:
        """Begin to take the devices of a pod back, unless the pod is bound."""
        pod = self.claims.pod(uid)
        if pod is not None and pod.spec.node_name:
            self.bound(uid)
            return
        if pod is None:
            self._named.discard(uid)
        for one in self._written.pop(uid, ()):
            self._begin_return(one.key)

    def _begin_return(self, key: str) -> None:
        self.claims.begin_return(key)
        self._returns.begin(self._return(key), f"the return of the devices of claim {key}", key=key)

    async def _return(self, key: str) -> None:
        try:
            async with self._lock(key):
                await self._retried(partial(self._take_back, key), f"the resource claim {key}")
        except ClaimBindError as error:
            _log.warning("the devices are not given back: %s", error)
        finally:
            self.claims.end_return(key)

    async def _take_back(self, key: str) -> None:
        """Remove consumers that are not bound; without consumers, also the devices and the finalizer."""
        claim = await self._server.find(RESOURCE_CLAIMS, *key.split("/"))
        if claim is None:
            return
        left = [one for one in claim.consumers if self.claims.is_consumer(key, one)]
        if left:
            if left != claim.consumers:
                await self._patch(claim, {"status": {"reservedFor": left}})
            return
        if claim.allocation is not None:
            claim = await self._patch(claim, {"status": {"allocation": None, "reservedFor": None}})
        meta = claim.metadata
        if EXTENDED_ANNOTATION in meta.annotations:
            if FINALIZER in meta.finalizers:
                finalizers = [one for one in meta.finalizers if one != FINALIZER]
                await self._patch(claim, {"metadata": {"finalizers": finalizers}})
            await self._server.delete(RESOURCE_CLAIMS, meta.namespace, meta.name, uid=meta.uid)
        elif FINALIZER in meta.finalizers or ALLOCATED_BY_US in meta.annotations:
            finalizers = [one for one in meta.finalizers if one != FINALIZER]
            await self._patch(
                claim, {"metadata": {"finalizers": finalizers, "annotations": {ALLOCATED_BY_US: None}}}
            )

    # -- the start of a process -------------------------------------------------------------------------

    def recover(self) -> None:
        """Begin to take back what an earlier process has given to pods that it did not bind.

        To be called when all objects are known, before the start. Pods wait until their claims are free. What
        bound pods have stays as it is, and so does what another scheduler has allocated.
        """
        for key, claim in [*self.claims.claims.items()]:
            consumers = claim.consumers
            if ALLOCATED_BY_US in claim.metadata.annotations and not (
                consumers and all(self.claims.is_consumer(key, one) for one in consumers)
            ):
                _log.info("claim %s has devices for pods that an earlier process has not bound", key)
                self._begin_return(key)

    def close(self) -> None:
        """End the work in the background."""
        self._returns.cancel_all()


def _devices(allocation: Json) -> list[Any]:
    """Return the devices of an allocation, in a form that the API server leaves as it is."""
    names = ("request", "driver", "pool", "device")
    return [tuple(one.get(name) for name in names) for one in results_of(allocation)]


def _has_conditions(allocation: Json) -> bool:
    return any(one.get("bindingConditions") for one in results_of(allocation))
