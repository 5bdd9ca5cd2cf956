"""Binding of the volumes that were chosen for a pod: writes to the API server, and the wait for the result.

Kubernetes binds: its controllers complete what the scheduler has begun. The order and the conditions are
those of kube-scheduler (plugin VolumeBinding); see `docs/decisions/archive/0127-binding-of-volumes.md`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

import attrs

from yunikorn.errors import YunikornError
from yunikorn_kubernetes.api_server.api_resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from yunikorn_kubernetes.api_server.back_off import BackOff, RandomSource
from yunikorn_kubernetes.api_server.calls import ApiError, ApiServer
from yunikorn_kubernetes.objects import Json, ObjectMeta, PersistentVolume, PersistentVolumeClaim
from yunikorn_kubernetes.predicates.volume_choice import affinity_refusal
from yunikorn_kubernetes.predicates.volume_tags import VolumeAffinity
from yunikorn_kubernetes.predicates.volume_terms import read_terms
from yunikorn_kubernetes.volumes.cluster_volumes import Assumption, ClusterVolumes
from yunikorn_kubernetes.volumes.migration import node_affinity, plugin_of, translated_affinity
from yunikorn_kubernetes.volumes.volume_json import SELECTED_NODE, is_bound, names_claim

BIND_TIMEOUT = 600.0
"""Seconds until all volumes of a pod must be bound, unless configured otherwise."""
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
"""Annotation of volumes and claims that were bound by a program and not by hand."""
LONGEST_PAUSE = 30.0


class VolumeBindError(YunikornError):
    """The volumes of a pod cannot be bound on its node; the message says why."""


@attrs.frozen
class _Written:
    """Resource versions of the objects that were written for a pod, by name."""

    volumes: dict[str, str] = attrs.field(factory=dict)
    claims: dict[str, str] = attrs.field(factory=dict)


class VolumeBinder:
    """Binds the volumes of pods that have been placed."""

    def __init__(
        self,
        server: ApiServer,
        volumes: ClusterVolumes,
        *,
        random: RandomSource,
        timeout: float = BIND_TIMEOUT,
    ) -> None:
        """Create a binder; `timeout` is the time in seconds for the binding of one pod."""
        self._server = server
        self.volumes = volumes
        self._random = random
        self._timeout = timeout

    async def bind(self, uid: str) -> None:
        """Bind the volumes that `ClusterVolumes.assume` chose for a pod, and wait until all are bound.

        Raises `VolumeBindError` if that fails. The assumption ends in any case.
        """
        assumption = self.volumes.assumption(uid)
        if not assumption:
            if self.volumes.has_open_claims(uid):
                raise VolumeBindError("no volumes have been chosen for the claims of the pod")
            return
        changed = asyncio.Event()
        note = changed.set
        self.volumes.watch(uid, note)
        waiting = "the API server"
        try:
            async with asyncio.timeout(self._timeout):
                written = await self._write(assumption)
                while True:
                    changed.clear()
                    found = self._awaited(uid, assumption, written)
                    if found is None:
                        return
                    waiting = found
                    await changed.wait()
        except TimeoutError:
            raise VolumeBindError(
                f"the volumes were not bound within {self._timeout:g} s: still waiting for {waiting}"
            ) from None
        finally:
            self.volumes.unwatch(uid, note)
            if self.volumes.assumption(uid) is assumption:
                # After a cancellation the pod may have been placed elsewhere already.
                self.volumes.forget(uid)

    # -- writes -----------------------------------------------------------------------------------------

    async def _write(self, assumption: Assumption) -> _Written:
        written = _Written()
        for claim, volume in sorted(assumption.bindings.items()):
            bind = partial(self._write_binding, claim, volume)
            written.volumes[volume] = await self._retried(bind, f"volume {volume}")
        for claim in sorted(assumption.provisions):
            select = partial(self._write_selection, claim, assumption.node)
            written.claims[claim] = await self._retried(select, f"claim {claim}")
        return written

    async def _retried(self, write: Callable[[bool], Awaitable[str]], what: str) -> str:
        """Return the resource version after a write, which is repeated after conflicts and outages."""
        back_off = BackOff(self._random, first=0.1, largest=LONGEST_PAUSE)
        read_again = False
        while True:
            try:
                return await write(read_again)
            except ApiError as error:
                if error.is_not_found:
                    raise VolumeBindError(f"{what} does not exist any more") from error
                if not (error.is_conflict or error.is_temporary):
                    raise VolumeBindError(f"{what} cannot be written: {error}") from error
                read_again = True
                await asyncio.sleep(error.retry_after or back_off.next_delay())

    async def _write_binding(self, key: str, name: str, read_again: bool) -> str:
        """Make a volume refer to a claim; return the resource version of the volume."""
        claim, volume = self._claim(key), self._volume(name)
        if read_again:
            volume = await self._server.get(PERSISTENT_VOLUMES, "", name)
        ref, meta = volume.spec.claim_ref, claim.metadata
        is_reserved = names_claim(volume, claim)
        if ref is not None and not is_reserved:
            raise VolumeBindError(f"volume {name} was given to claim {ref.namespace}/{ref.name}")
        if ref is not None and ref.uid:
            return volume.metadata.resource_version
        changes: Json = {"resourceVersion": volume.metadata.resource_version}
        if not is_reserved:
            changes["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
        new_ref = {
            "apiVersion": "v1",
            "kind": PERSISTENT_VOLUME_CLAIMS.kind,
            "namespace": meta.namespace,
            "name": meta.name,
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
        }
        body = {"metadata": changes, "spec": {"claimRef": new_ref}}
        volume = await self._server.patch(PERSISTENT_VOLUMES, "", name, body)
        return volume.metadata.resource_version

    async def _write_selection(self, key: str, node: str, read_again: bool) -> str:
        """Select the node for which the volume of a claim is made; return the claim's resource version."""
        claim = self._claim(key)
        namespace, name = claim.metadata.namespace, claim.metadata.name
        if read_again:
            uid = claim.metadata.uid
            claim = await self._server.get(PERSISTENT_VOLUME_CLAIMS, namespace, name)
            if claim.metadata.uid != uid:
                raise VolumeBindError(f"claim {key} was replaced by another of the same name")
        selected = claim.metadata.annotations.get(SELECTED_NODE)
        if selected == node:
            return claim.metadata.resource_version
        if selected is not None:
            raise VolumeBindError(f"the volume of claim {key} is being made for node {selected}")
        changes = {
            "resourceVersion": claim.metadata.resource_version,
            "annotations": {SELECTED_NODE: node},
        }
        claim = await self._server.patch(PERSISTENT_VOLUME_CLAIMS, namespace, name, {"metadata": changes})
        return claim.metadata.resource_version

    # -- the wait ---------------------------------------------------------------------------------------

    def _awaited(self, uid: str, assumption: Assumption, written: _Written) -> str | None:
        """Return what a pod still waits for, None if all its claims are bound; raises `VolumeBindError`."""
        if not self.volumes.knows_pod(uid):
            raise VolumeBindError("the pod does not exist any more")
        attributes = self.volumes.all_attributes(assumption.node)
        if attributes is None:
            raise VolumeBindError(f"node {assumption.node} does not exist any more")
        waiting = None
        for claim, volume in assumption.bindings.items():
            found = self._awaited_of_binding(claim, volume, attributes, written)
            waiting = waiting or found
        for claim in assumption.provisions:
            found = self._awaited_of_provision(claim, assumption.node, attributes, written)
            waiting = waiting or found
        return waiting

    def _awaited_of_binding(
        self, key: str, name: str, attributes: Mapping[str, str], written: _Written
    ) -> str | None:
        volume, claim = self._volume(name), self._claim(key)
        if _is_older(volume.metadata, written.volumes[name]):
            return f"the change of volume {name}"
        _check_affinity(volume, attributes)
        ref = volume.spec.claim_ref
        if ref is None or not ref.uid or not names_claim(volume, claim):
            raise VolumeBindError(f"volume {name} was taken from claim {key}")
        return None if is_bound(claim) else f"claim {key} to be bound to volume {name}"

    def _awaited_of_provision(
        self, key: str, node: str, attributes: Mapping[str, str], written: _Written
    ) -> str | None:
        claim = self._claim(key)
        if _is_older(claim.metadata, written.claims[key]):
            return f"the change of claim {key}"
        if claim.metadata.annotations.get(SELECTED_NODE) != node:
            raise VolumeBindError(f"no volume could be made for claim {key} on node {node}")
        if claim.spec.volume_name:
            volume = self.volumes.objects.volumes.get(claim.spec.volume_name)
            if volume is None:
                return f"volume {claim.spec.volume_name} of claim {key}"
            _check_affinity(volume, attributes)
        return None if is_bound(claim) else f"a volume for claim {key}"

    # -- objects ------------------------------------------------------------------------------------------

    def _volume(self, name: str) -> PersistentVolume:
        """Return a volume. Raises `VolumeBindError` if it is gone."""
        volume = self.volumes.objects.volumes.get(name)
        if volume is None:
            raise VolumeBindError(f"volume {name} does not exist any more")
        return volume

    def _claim(self, key: str) -> PersistentVolumeClaim:
        """Return a claim. Raises `VolumeBindError` if it is gone."""
        claim = self.volumes.objects.claims.get(key)
        if claim is None:
            raise VolumeBindError(f"claim {key} does not exist any more")
        return claim


def _check_affinity(volume: PersistentVolume, attributes: Mapping[str, str]) -> None:
    """Raise `VolumeBindError` if a volume cannot be used on a node with these attributes."""
    plugin, terms = plugin_of(volume.spec), read_terms(node_affinity(volume))
    affinity = VolumeAffinity(volume.metadata.name, terms)
    if plugin is not None:
        translated = read_terms(translated_affinity(volume, plugin))
        affinity = affinity._replace(plugin=plugin.name, translated=translated)
    refusal = affinity_refusal([affinity], attributes)
    if refusal is not None:
        raise VolumeBindError(refusal)


def _is_older(meta: ObjectMeta, written: str) -> bool:
    """Return True if an object is older than the version that was written; such versions are numbers."""
    version = meta.resource_version
    return version.isdecimal() and written.isdecimal() and int(version) < int(written)
