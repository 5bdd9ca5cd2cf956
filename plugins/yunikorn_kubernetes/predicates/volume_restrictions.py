"""Predicate `volume-restrictions`: no volume is shared by pods that must not share it.

A claim with the access mode ReadWriteOncePod is used by one pod of the cluster. Inline disks of Google
Compute Engine, iSCSI and Ceph RBD are shared on a node only if all pods mount them read-only, those of
Amazon EBS never. The rules are those of the plugin VolumeRestrictions of kube-scheduler.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import ClassVar

import attrs

from yunikorn.api import Ask, Node, Predicate, Task, hookimpl
from yunikorn_kubernetes.predicates.refusal_sentences import RefusalSentence
from yunikorn_kubernetes.predicates.volume_tags import Disk, pod_volumes


@attrs.define(eq=False)
class VolumeRestrictions(Predicate):
    """No pod uses a ReadWriteOncePod claim of the pod, or a disk that the pod cannot share."""

    name = "volume-restrictions"
    on_reservation: ClassVar[bool] = False
    counts_foreign: ClassVar[bool] = True
    _claims: Counter[str] = attrs.field(init=False, factory=Counter)
    """Number of pods by ReadWriteOncePod claim."""
    _disks: dict[str, dict[tuple[str, str], Counter[Disk]]] = attrs.field(init=False, factory=dict)
    """Number of pods by disk, for each node, and for each kind and id."""
    _nodes: dict[str, None] = attrs.field(init=False, factory=dict)

    def check(self, ask: Ask, node: Node) -> str | None:
        """Return None if the pod shares no volume that it must not share, else the volume."""
        volumes = pod_volumes(ask.tags)
        if volumes.unreadable:
            return volumes.unreadable
        for disk in volumes.disks:
            for other in self._disks.get(node.id, {}).get((disk.kind, disk.id), ()):
                if conflicts(disk, other):
                    return RefusalSentence.DISK.because(
                        f"a pod on the node uses the {disk.kind} disk {disk.id}"
                    )
        for claim in volumes.once_pod:
            if self._claims[claim]:
                return RefusalSentence.ONCE_POD.because(f"claim {claim}")
        return None

    # -- what the answer depends on -----------------------------------------------------------------

    def ask_class(self, ask: Ask) -> Hashable:
        """Return the claims and disks that cannot be shared."""
        volumes = pod_volumes(ask.tags)
        if volumes.unreadable:
            return volumes.unreadable
        return (volumes.once_pod, volumes.disks) if volumes.once_pod or volumes.disks else None

    def domain(self, node: Node) -> str:
        """Return the node."""
        return node.id

    def subjects(self, task: Task) -> Iterable[Hashable]:
        """Return the claims and disks that cannot be shared."""
        volumes = pod_volumes(task.tags)
        return (*volumes.once_pod, *((disk.kind, disk.id) for disk in volumes.disks))

    # -- books --------------------------------------------------------------------------------------

    def node_added(self, node: Node) -> None:
        """Add a node, where the return of a claim may end a refusal."""
        self._nodes[node.id] = None

    def node_removed(self, node: Node) -> None:
        """Remove a node."""
        del self._nodes[node.id]

    def placed(self, task: Task, node: Node) -> None:
        """Count the claims and disks of a pod."""
        volumes = pod_volumes(task.tags)
        self._claims.update(volumes.once_pod)
        for disk in volumes.disks:
            of_node = self._disks.setdefault(node.id, {})
            of_node.setdefault((disk.kind, disk.id), Counter())[disk] += 1

    def released(self, task: Task, node: Node) -> Iterable[Hashable] | None:
        """Count the claims and disks of a pod no more; a claim becomes free on all nodes."""
        volumes = pod_volumes(task.tags)
        for claim in volumes.once_pod:
            self._claims[claim] -= 1
            if not self._claims[claim]:
                del self._claims[claim]
        for disk in volumes.disks:
            self._remove(disk, node.id)
        return tuple(self._nodes) if volumes.once_pod else None

    def _remove(self, disk: Disk, node_id: str) -> None:
        of_node = self._disks[node_id]
        same = of_node[disk.kind, disk.id]
        same[disk] -= 1
        if not same[disk]:
            del same[disk]
        if not same:
            del of_node[disk.kind, disk.id]
        if not of_node:
            del self._disks[node_id]


def conflicts(disk: Disk, other: Disk) -> bool:
    """Return True if two pods on one node cannot use these disks of the same kind and id."""
    if disk.kind == "rbd" and not set(disk.monitors).intersection(other.monitors):
        return False
    return disk.kind == "ebs" or not (disk.read_only and other.read_only)


@hookimpl
def yunikorn_predicates() -> list[type[Predicate]]:
    """Return the predicate."""
    return [VolumeRestrictions]
