"""Watches of all objects that decisions depend on, and what their changes mean for the shim."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import attrs

from yunikorn_kubernetes.api_server.api_resources import (
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    STORAGE,
    ApiObject,
    ApiResource,
    key_of,
)
from yunikorn_kubernetes.api_server.back_off import RandomSource
from yunikorn_kubernetes.api_server.calls import ApiServer
from yunikorn_kubernetes.api_server.reflector import ChangeKind, ObjectChange, Reflector
from yunikorn_kubernetes.objects import Namespace, Node, Pod
from yunikorn_kubernetes.resource_claims.claim_objects import (
    DEVICE_RESOURCES,
    DEVICE_TAINT_RULES,
    RESOURCE_CLAIMS,
)
from yunikorn_kubernetes.resource_claims.cluster_claims import ClusterClaims
from yunikorn_kubernetes.shim.shim import Shim
from yunikorn_kubernetes.shim.translator import References
from yunikorn_kubernetes.translation.node_images import NodeWithImages
from yunikorn_kubernetes.translation.pod_applications import is_terminated
from yunikorn_kubernetes.volumes.cluster_volumes import ClusterVolumes
from yunikorn_kubernetes.workloads.pod_groups import POD_GROUPS, PodGroup

A = TypeVar("A", bound=ApiObject)


class Watches:
    """Reflectors of a cluster; their stores are the world that a shim recovers from."""

    def __init__(
        self,
        server: ApiServer,
        random: RandomSource,
        *,
        pod_groups: bool = False,
        devices: bool = False,
        taint_rules: bool = False,
        device_resources: Mapping[str, str] | None = None,
        images: bool = False,
    ) -> None:
        """Create watches that do not run.

        With `pod_groups` the API server has PodGroups, with `devices` claims to devices, which count in
        quotas as `device_resources` by their class, and with `taint_rules` DeviceTaintRules; with `images`,
        nodes are read with theirs.
        """
        self._shim: Shim | None = None
        self._server, self._random = server, random
        self.volumes = ClusterVolumes(self.spread)
        """Volumes of the cluster, kept up to date."""
        self.claims = ClusterClaims(self.spread, is_served=devices, resources=device_resources)
        """Devices of the cluster and claims to them, kept up to date."""
        self._spreading = False
        self._reflectors: list[Reflector[Any]] = []
        self._pods = self.add(PODS, self._pod)
        nodes = attrs.evolve(NODES, struct=NodeWithImages) if images else NODES
        self._nodes = self.add(nodes, self._node)
        namespaces = self.add(NAMESPACES, self._namespace)
        priority_classes = self.add(PRIORITY_CLASSES, lambda _: None)
        for resource in STORAGE:
            self.add(resource, self._storage)
        self.pod_groups = self.add(POD_GROUPS, self._pod_group).store if pod_groups else None
        """PodGroups by `namespace/name`; None if the API server has none."""
        if self.pod_groups is not None:
            self.claims.use_groups(self.pod_groups)
        for device_resource in DEVICE_RESOURCES if devices else ():
            made = self.add(device_resource, self._device)
            if device_resource is RESOURCE_CLAIMS:
                self.claims.written = made.written
        if taint_rules:
            self.add(DEVICE_TAINT_RULES, self._device)
        self.references = References(namespaces.store, priority_classes.store)

    @property
    def pods_by_name(self) -> Mapping[str, Pod]:
        """Return all pods by `namespace/name`."""
        return self._pods.store

    def add(
        self, resource: ApiResource[A], handler: Callable[[ObjectChange[A]], None], namespace: str = ""
    ) -> Reflector[A]:
        """Watch another resource; call before `run`."""
        # What a former leader has bound a moment ago must be in the first list.
        made = Reflector(
            self._server, resource, handler, random=self._random, namespace=namespace, latest=True
        )
        self._reflectors.append(made)
        return made

    async def run(self) -> None:
        """Watch until this is cancelled."""
        async with asyncio.TaskGroup() as group:
            for reflector in self._reflectors:
                group.create_task(reflector.run())

    async def synced(self) -> None:
        """Wait until every resource was listed."""
        for reflector in self._reflectors:
            await reflector.synced.wait()

    def report_to(self, shim: Shim) -> None:
        """Report changes to a shim from now on; it has to recover in the same turn of the event loop."""
        self._shim = shim

    # -- the world ----------------------------------------------------------------------------------

    def nodes(self) -> Iterable[Node]:
        """Return all nodes."""
        return self._nodes.store.values()

    def pods(self) -> Iterable[Pod]:
        """Return all pods."""
        return self._pods.store.values()

    # -- changes ------------------------------------------------------------------------------------

    def _pod(self, change: ObjectChange[Pod]) -> None:
        pod = change.object
        ended = change.kind is ChangeKind.DELETED
        if ended or is_terminated(pod):
            self.volumes.remove_pod(pod.metadata.uid)
            self.claims.remove_pod(pod.metadata.uid)
        else:
            self.volumes.add_pod(pod)
            self.claims.add_pod(pod)
        if pod.spec.volumes or pod.spec.resource_claims or pod.status.extended_resource_claim_status:
            # Other pods may use the same claims.
            self.spread()
        if self._shim is None:
            return
        if ended:
            self._shim.pod_removed(pod)
        else:
            self._shim.pod_changed(pod)

    def _node(self, change: ObjectChange[Node]) -> None:
        node = change.object
        if change.kind is ChangeKind.DELETED:
            self.volumes.remove_node(node.metadata.name)
            self.claims.remove_node(node.metadata.name)
            if self._shim is not None:
                self._shim.node_removed(node)
        else:
            self.volumes.add_node(node)
            self.claims.add_node(node)
            if self._shim is not None:
                self._shim.node_changed(node)

    def _namespace(self, change: ObjectChange[Namespace]) -> None:
        before = change.previous.metadata.labels if change.previous is not None else None
        if self._shim is None or change.kind is ChangeKind.DELETED:
            return
        # Pods of a new namespace have waited for it.
        if before != change.object.metadata.labels:
            name = change.object.metadata.name
            pods = self._pods.store.values()
            self._shim.refresh(pod.metadata.uid for pod in pods if pod.metadata.namespace == name)

    def _pod_group(self, change: ObjectChange[PodGroup]) -> None:
        if self._shim is not None and change.kind is not ChangeKind.MODIFIED:
            self._shim.pod_group_changed(key_of(change.object.metadata))

    def _storage(self, change: ObjectChange[Any]) -> None:
        self.volumes.update(change.object, exists=change.kind is not ChangeKind.DELETED)
        self.spread()

    def _device(self, change: ObjectChange[Any]) -> None:
        self.claims.update(change.object, exists=change.kind is not ChangeKind.DELETED)
        self.spread()

    def spread(self) -> None:
        """Report what changes of volumes and claims mean, once for all changes of this turn."""
        if self._shim is not None and not self._spreading:
            self._spreading = True
            asyncio.get_running_loop().call_soon(self._spread)

    def flush(self) -> None:
        """Report at once what `spread` would report in a later turn."""
        self._spread()

    def _spread(self) -> None:
        is_due, self._spreading = self._spreading, False
        shim = self._shim
        if shim is None or not is_due:
            return
        of_volumes, of_claims = self.volumes.changes(), self.claims.changes()
        pods = dict.fromkeys((*of_volumes.pods, *of_claims.pods))
        if pods:
            shim.refresh(pods)
        for name in dict.fromkeys((*of_volumes.nodes, *of_claims.nodes)):
            node = self._nodes.store.get(name)
            if node is not None:
                shim.node_changed(node)
