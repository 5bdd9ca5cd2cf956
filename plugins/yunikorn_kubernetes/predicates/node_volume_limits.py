"""Predicate `node-volume-limits`: the node can attach the pod's volumes.

A CSI driver states in the CSINode object how many volumes it can attach to the node. Counted are the
different volumes of the pods on the node, and those that are still attached although no pod uses them
(VolumeAttachment). A volume of an old in-tree plugin counts as that of the CSI driver that replaced the
plugin. The rules are those of the plugin NodeVolumeLimits of kube-scheduler.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import ClassVar

import attrs

from yunikorn.api import Ask, Node, Predicate, Task, hookimpl
from yunikorn_kubernetes.names import NODE_VOLUME_ATTACHMENTS
from yunikorn_kubernetes.predicates.refusal_sentences import RefusalSentence
from yunikorn_kubernetes.predicates.volume_tags import (
    Attached,
    PerNode,
    TaggedVolumes,
    UnreadableTag,
    pod_volumes,
    volume_attachments,
    volume_limits,
)

Counted = tuple[str, str, bool]
"""Driver and handle of a volume; True and the claim for a volume that is yet to be made."""


@attrs.define(eq=False)
class NodeVolumeLimits(Predicate):
    """The node has not more volumes of any CSI driver than the driver can attach."""

    name = "node-volume-limits"
    on_reservation: ClassVar[bool] = False
    counts_foreign: ClassVar[bool] = True
    _volumes: dict[str, Counter[Counted]] = attrs.field(init=False, factory=dict)
    """Number of pods by volume, for each node."""
    _attachments: PerNode[frozenset[Attached] | UnreadableTag] = attrs.field(
        init=False, factory=lambda: PerNode(NODE_VOLUME_ATTACHMENTS, volume_attachments)
    )

    def check(self, ask: Ask, node: Node) -> str | None:
        """Return None if all volumes of the pod can be attached, else the driver with its limit."""
        volumes = pod_volumes(ask.tags)
        if volumes.unreadable:
            return volumes.unreadable
        if not volumes.attached and not volumes.unmade:
            return None
        limits = volume_limits(node.attributes)
        if isinstance(limits, UnreadableTag):
            return str(limits)
        if not limits:
            return None
        attachments = self._attachments.get(node.id, node.attributes)
        if isinstance(attachments, UnreadableTag):
            return str(attachments)
        used: Mapping[Counted, int] = self._volumes.get(node.id, {})
        new = Counter(driver for driver, _, _ in _new(volumes, used))
        for driver in sorted(new):
            limit = limits.get(driver)
            if limit is None:
                continue
            present = sum(one[0] == driver for one in used)
            present += sum(one.driver == driver and (*one[:2], False) not in used for one in attachments)
            if present + new[driver] > limit:
                use = f"{present} of {limit} volumes of the driver {driver} are in use"
                return RefusalSentence.VOLUME_COUNT.because(f"{use}, the pod has {new[driver]}")
        return None

    # -- what the answer depends on -----------------------------------------------------------------

    def ask_class(self, ask: Ask) -> Hashable:
        """Return the volumes; those that are yet to be made for one pod only have no name."""
        volumes = pod_volumes(ask.tags)
        if volumes.unreadable:
            return volumes.unreadable
        unmade = tuple(one if one.shared else one._replace(claim="") for one in volumes.unmade)
        return (volumes.attached, unmade) if volumes.attached or unmade else None

    def domain(self, node: Node) -> str:
        """Return the node."""
        return node.id

    def subjects(self, task: Task) -> Iterable[str]:
        """Return the drivers of the volumes."""
        volumes = pod_volumes(task.tags)
        return sorted(_drivers(volumes))

    def wanted(self, ask: Ask) -> str | None:
        """Return the number of volumes by driver."""
        volumes = pod_volumes(ask.tags)
        counts = _drivers(volumes)
        return ", ".join(f"{counts[driver]} volumes of driver {driver}" for driver in sorted(counts)) or None

    # -- books --------------------------------------------------------------------------------------

    def node_added(self, node: Node) -> None:
        """Read the volumes that are attached to a node."""
        self._attachments.add(node.id, node.attributes)

    def node_removed(self, node: Node) -> None:
        """Forget the volumes that are attached to a node."""
        self._attachments.remove(node.id)

    def placed(self, task: Task, node: Node) -> None:
        """Count the volumes of a pod."""
        volumes = pod_volumes(task.tags)
        if not (volumes.attached or volumes.unmade):
            return
        counts = Counter(_counted(volumes))
        if counts:
            self._volumes.setdefault(node.id, Counter()).update(counts)

    def released(self, task: Task, node: Node) -> None:
        """Count the volumes of a pod no more."""
        volumes = pod_volumes(task.tags)
        if not (volumes.attached or volumes.unmade):
            return
        for counted in _counted(volumes):
            of_node = self._volumes[node.id]
            of_node[counted] -= 1
            if not of_node[counted]:
                del of_node[counted]
            if not of_node:
                del self._volumes[node.id]


def _new(volumes: TaggedVolumes, used: Mapping[Counted, int]) -> Iterator[Counted]:
    """Yield each volume of a pod that pods on the node do not use; nameless ones are always new."""
    nameless = {one.claim for one in volumes.unmade if not one.shared}
    for counted in dict.fromkeys(_counted(volumes)):
        if (counted[2] and counted[1] in nameless) or counted not in used:
            yield counted


def _drivers(volumes: TaggedVolumes) -> Counter[str]:
    """Return the number of volumes by driver."""
    return Counter([*(one.driver for one in volumes.attached), *(one.driver for one in volumes.unmade)])


def _counted(volumes: TaggedVolumes) -> Iterator[Counted]:
    """Yield the volumes of a pod."""
    for one in volumes.attached:
        yield one.driver, one.handle, False
    for made in volumes.unmade:
        yield made.driver, made.claim, True


@hookimpl
def yunikorn_predicates() -> list[type[Predicate]]:
    """Return the predicate."""
    return [NodeVolumeLimits]
