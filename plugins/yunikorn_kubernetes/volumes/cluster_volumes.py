"""Volumes of the cluster as the shim uses them: tags of pods, attributes of nodes, and what has changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from yunikorn_kubernetes.objects import Node, Pod
from yunikorn_kubernetes.predicates.volume_choice import PROVISION, affinity_refusal, choose, place
from yunikorn_kubernetes.predicates.volume_tags import UnreadableTag, pod_volumes
from yunikorn_kubernetes.volumes.claims import ClaimReader, VolumeTags, claim_names
from yunikorn_kubernetes.volumes.node_attributes import is_in_topology, volume_attributes
from yunikorn_kubernetes.volumes.stores import Index, Touched, VolumeObject, VolumeObjects, host_of
from yunikorn_kubernetes.volumes.volume_json import compact, is_bound

NOTHING = VolumeTags()


class VolumeConflict(Exception):
    """The claims of a pod cannot be served on its node: other pods got the volumes, or objects changed."""


@attrs.frozen
class Assumption:
    """Volumes chosen for the open claims of a pod on its node."""

    node: str
    bindings: Mapping[str, str] = attrs.field(factory=dict)
    """Existing volume by claim."""
    provisions: tuple[str, ...] = ()
    """Claims for which a volume is made."""

    def __bool__(self) -> bool:
        return bool(self.bindings or self.provisions)


@attrs.define
class _PodEntry:
    """A pod with its dependencies."""

    pod: Pod
    claims: tuple[str, ...]
    classes: tuple[str, ...] = ()
    given: VolumeTags | None = None
    """Tags of the latest answer; None before the first."""
    assumption: Assumption | None = None


@attrs.define
class _NodeEntry:
    """A node with its attributes of the latest answer; None before the first."""

    labels: Mapping[str, str]
    given: Mapping[str, str] | None = None


@attrs.frozen
class VolumeChanges:
    """Results that differ from those given before."""

    pods: Mapping[str, VolumeTags]
    """Tags and problems by uid."""
    nodes: Mapping[str, Mapping[str, str]]
    """Attributes that concern volumes, by name of the node."""

    def __bool__(self) -> bool:
        return bool(self.pods or self.nodes)


class ClusterVolumes:
    """Volumes of all pods and nodes.

    Call `update` for every change of a storage object, `add_pod` and `add_node` for every
    version of a pod that is not terminated and of a node, and then `changes` for what has to be sent to the
    core. `on_change` is called when a choice of volumes may have changed what other pods can use.
    """

    def __init__(self, on_change: Callable[[], object] = lambda: None) -> None:
        self._on_change = on_change
        self.objects = VolumeObjects()
        self._pods: dict[str, _PodEntry] = {}
        self._nodes: dict[str, _NodeEntry] = {}
        self._pods_of_claim: Index[str] = Index()
        self._pods_of_class: Index[str] = Index()
        self._nodes_of_host: Index[str] = Index()
        self._stale_pods: dict[str, None] = {}
        self._stale_nodes: dict[str, None] = {}
        self._candidates: dict[tuple[str, ...], str] = {}
        """Texts of free volumes by storage classes, shared by pods."""
        self._watches: dict[str, Callable[[], None]] = {}
        """Functions to call when something has changed for a pod, by uid."""
        self._owners: Index[str] = Index()
        """Pods that rely on the reservation of each volume, or on the selected node of each claim."""

    # -- objects ------------------------------------------------------------------------------------------

    def update(self, thing: VolumeObject, *, exists: bool = True) -> None:
        """Add a storage object, or replace its earlier version; remove it if it does not exist any more."""
        self.objects.update(thing, exists=exists)
        if self._watches:
            self._spread_changes()

    def add_pod(self, pod: Pod) -> None:
        """Add a pod that is not terminated, of any scheduler, or replace its earlier version."""
        uid, claims = pod.metadata.uid, tuple(claim_names(pod))
        old = self._pods.get(uid)
        if old is not None:
            # The volumes of a pod cannot be changed.
            old.pod = pod
            return
        if not pod.spec.volumes:
            return
        self._pods[uid] = _PodEntry(pod, claims)
        for claim in claims:
            self._pods_of_claim.add(claim, uid)
            self._share(claim, 2)

    def remove_pod(self, uid: str) -> None:
        """Remove a pod that is terminated or deleted, with its assumption."""
        self.forget(uid)
        self._call(uid)
        entry = self._pods.pop(uid, None)
        if entry is None:
            return
        self._stale_pods.pop(uid, None)
        for storage_class in entry.classes:
            self._pods_of_class.discard(storage_class, uid)
        for claim in entry.claims:
            self._pods_of_claim.discard(claim, uid)
            self._share(claim, 1)

    def _share(self, claim: str, count: int) -> None:
        """Recompute the pods of a claim if it has just begun (2) or ceased (1) to be shared."""
        if self._pods_of_claim.count(claim) == count:
            self._touch_pods(self._pods_of_claim, claim)

    def add_node(self, node: Node) -> None:
        """Add a node, or replace its earlier version."""
        name, labels = node.metadata.name, node.metadata.labels
        old = self._nodes.get(name)
        if old is not None:
            if old.labels == labels:
                return
            self._nodes_of_host.discard(host_of(name, old.labels), name)
            old.labels = labels
        else:
            self._nodes[name] = _NodeEntry(labels)
        self._nodes_of_host.add(host_of(name, labels), name)
        self._stale_nodes[name] = None

    def remove_node(self, name: str) -> None:
        """Remove a node."""
        entry = self._nodes.pop(name, None)
        if entry is not None:
            self._nodes_of_host.discard(host_of(name, entry.labels), name)
        self._stale_nodes.pop(name, None)
        for uid in list(self._watches):
            self._call(uid)

    # -- results --------------------------------------------------------------------------------------------

    def tags(self, uid: str) -> VolumeTags:
        """Return tags and problems of a pod; no tags for a pod that has not been added or has no volumes."""
        self._spread_changes()
        entry = self._pods.get(uid)
        if entry is None:
            return NOTHING
        entry.given = self._present_tags(uid, entry)
        self._stale_pods.pop(uid, None)
        return entry.given

    def _present_tags(self, uid: str, entry: _PodEntry) -> VolumeTags:
        """Return tags and problems of a pod, without counting them as given."""
        if entry.given is None or uid in self._stale_pods:
            return self._read(uid, entry)
        return entry.given

    def _read(self, uid: str, entry: _PodEntry) -> VolumeTags:
        reader = ClaimReader(entry.pod, self.objects, self._is_shared)
        found = reader.read(self._candidates_of)
        classes = tuple(reader.classes)
        if classes != entry.classes:
            for old in entry.classes:
                self._pods_of_class.discard(old, uid)
            for new in classes:
                self._pods_of_class.add(new, uid)
            entry.classes = classes
        return found

    def attributes(self, name: str) -> Mapping[str, str]:
        """Return the attributes of a node that concern volumes; none for a node that has not been added."""
        self._spread_changes()
        entry = self._nodes.get(name)
        if entry is None:
            return {}
        entry.given = self._present_attributes(name, entry)
        self._stale_nodes.pop(name, None)
        return entry.given

    def _present_attributes(self, name: str, entry: _NodeEntry) -> Mapping[str, str]:
        """Return the attributes of a node that concern volumes, without counting them as given."""
        if entry.given is None or name in self._stale_nodes:
            return volume_attributes(name, entry.labels, self.objects)
        return entry.given

    def changes(self) -> VolumeChanges:
        """Return the results that differ from those that `tags`, `attributes` and this method gave before.

        Results that have never been asked for are left out. Send those of pods before those of nodes.
        """
        self._spread_changes()
        pods: dict[str, VolumeTags] = {}
        nodes: dict[str, Mapping[str, str]] = {}
        for uid in list(self._stale_pods):
            before = self._pods[uid].given
            if before is not None and self.tags(uid) != before:
                pods[uid] = self.tags(uid)
        for name in list(self._stale_nodes):
            known = self._nodes[name].given
            if known is not None and self.attributes(name) != known:
                nodes[name] = self.attributes(name)
        return VolumeChanges(pods, nodes)

    def _is_shared(self, claim: str) -> bool:
        return self._pods_of_claim.count(claim) > 1

    def _candidates_of(self, classes: tuple[str, ...]) -> str:
        text = self._candidates.get(classes)
        if text is None:
            free = self.objects.free_of(classes)
            text = self._candidates[classes] = compact(free) if free else ""
        return text

    # -- what depends on what ----------------------------------------------------------------------------

    def _spread_changes(self) -> None:
        """Note the pods and nodes whose results depend on objects that have changed."""
        touched = self.objects.touched
        if touched == _UNTOUCHED:
            return
        self.objects.touched = Touched()
        for claim in touched.claims:
            self._touch_pods(self._pods_of_claim, claim)
        for storage_class in touched.classes:
            self._touch_pods(self._pods_of_class, storage_class)
        if touched.classes:
            for classes in [one for one in self._candidates if not touched.classes.keys().isdisjoint(one)]:
                del self._candidates[classes]
        for host in touched.hosts:
            for name in self._nodes_of_host[host]:
                self._stale_nodes[name] = None
        for name in touched.nodes:
            if name in self._nodes:
                self._stale_nodes[name] = None
        if touched.topologies:
            self._touch_topologies(touched)

    def _touch_pods(self, index: Index[str], key: str) -> None:
        for uid in index[key]:
            self._stale_pods[uid] = None
            self._call(uid)

    def _touch_topologies(self, touched: Touched) -> None:
        texts = {compact(topology): topology for topology in touched.topologies}
        # One topology per node is usual: nodes are then found by the label instead of one by one.
        by_label: dict[str, dict[str, list[str]]] = {}
        for topology in texts.values():
            exact = topology.get("matchLabels") or {}
            if not exact:
                names = list(self._nodes)
            else:
                label, value = min(exact.items())
                if label not in by_label:
                    by_label[label] = self._nodes_by_value(label)
                names = by_label[label].get(value, [])
            for name in names:
                if is_in_topology(self._nodes[name].labels, topology):
                    self._stale_nodes[name] = None

    def _nodes_by_value(self, label: str) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name, entry in self._nodes.items():
            value = entry.labels.get(label)
            if value is not None:
                found.setdefault(value, []).append(name)
        return found

    # -- watches -----------------------------------------------------------------------------------------

    def watch(self, uid: str, changed: Callable[[], None]) -> None:
        """Call a function after every change of the claims of a pod, of the pod's end, and of lost nodes."""
        self._watches[uid] = changed

    def unwatch(self, uid: str, changed: Callable[[], None]) -> None:
        """End the watch with this function, if there still is one."""
        if self._watches.get(uid) is changed:
            del self._watches[uid]

    def _call(self, uid: str) -> None:
        changed = self._watches.get(uid)
        if changed is not None:
            changed()

    # -- assumptions -------------------------------------------------------------------------------------

    def assume(self, uid: str, node: str) -> Assumption:
        """Choose volumes for the open claims of a pod that has been placed on a node, and reserve them.

        The choice is the one whose existence the predicate `volume-binding` checked. The result is empty if
        all claims are bound to volumes that the node can use. Raises `VolumeConflict` if the claims cannot
        be served; nothing is reserved then.
        """
        self.forget(uid)
        entry = self._pods.get(uid)
        if entry is None:
            return Assumption(node)
        self._spread_changes()
        found = self._present_tags(uid, entry)
        if found.problems:
            raise VolumeConflict("; ".join(found.problems))
        volumes = pod_volumes(found.tags)
        if volumes.unreadable:
            raise VolumeConflict(volumes.unreadable)
        attributes = self.all_attributes(node)
        if attributes is None:
            raise VolumeConflict(f"node {node} does not exist any more")
        # Claims may have been bound to volumes elsewhere since the core decided.
        refusal = affinity_refusal(volumes.affinity, attributes)
        if refusal is not None:
            raise VolumeConflict(refusal)
        if not volumes.claims:
            return Assumption(node)
        where = place(node, attributes, found.tags)
        if isinstance(where, UnreadableTag):
            raise VolumeConflict(where)
        chosen = choose(volumes.claims, where)
        if isinstance(chosen, UnreadableTag):
            raise VolumeConflict(chosen)
        assumption = Assumption(
            node,
            {claim: volume for claim, volume in chosen.items() if volume != PROVISION},
            tuple(claim for claim, volume in chosen.items() if volume == PROVISION),
        )
        entry.assumption = assumption
        for claim, volume in assumption.bindings.items():
            self._owners.add(f"volume {volume}", uid)
            self.objects.reserve(volume, claim)
        for claim in assumption.provisions:
            self._owners.add(f"claim {claim}", uid)
            self.objects.select(claim, node)
        self._on_change()
        return assumption

    def forget(self, uid: str) -> None:
        """Cancel the reservations of a pod, if there are any, unless other pods rely on them.

        What has been written to the API server stays: a volume that refers to a claim remains reserved for
        the claim, and a node selected for a claim remains selected until the provisioner gives up.
        """
        entry = self._pods.get(uid)
        if entry is None or entry.assumption is None:
            return
        assumption, entry.assumption = entry.assumption, None
        for volume in assumption.bindings.values():
            self._owners.discard(f"volume {volume}", uid)
            if not self._owners.count(f"volume {volume}"):
                self.objects.free(volume)
        for claim in assumption.provisions:
            self._owners.discard(f"claim {claim}", uid)
            if not self._owners.count(f"claim {claim}"):
                self.objects.deselect(claim)
        self._on_change()

    def assumption(self, uid: str) -> Assumption | None:
        """Return the assumption of a pod, or None."""
        entry = self._pods.get(uid)
        return None if entry is None else entry.assumption

    def has_open_claims(self, uid: str) -> bool:
        """Return True if claims of a pod are not bound."""
        entry = self._pods.get(uid)
        if entry is None:
            return False
        claims = (self.objects.claims.get(claim) for claim in entry.claims)
        return any(claim is None or not is_bound(claim) for claim in claims)

    def knows_pod(self, uid: str) -> bool:
        """Return True if a pod has been added and not been removed."""
        return uid in self._pods

    def all_attributes(self, node: str) -> Mapping[str, str] | None:
        """Return the labels of a node and its attributes that concern volumes; None if it does not exist."""
        self._spread_changes()
        entry = self._nodes.get(node)
        return None if entry is None else {**entry.labels, **self._present_attributes(node, entry)}


_UNTOUCHED = Touched()
