"""Predicate `volume-zone`: the node is in the zone and region of the pod's bound volumes.

Only labels of the volume count, such as `topology.kubernetes.io/zone: a__b`, as in the plugin VolumeZone of
kube-scheduler. A node without any zone or region label takes every volume.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

import attrs

from yunikorn.api import Ask, Node, Predicate, hookimpl
from yunikorn_kubernetes.names import LABEL_REGION, LABEL_REGION_OLD, LABEL_ZONE, LABEL_ZONE_OLD
from yunikorn_kubernetes.predicates.refusal_sentences import RefusalSentence
from yunikorn_kubernetes.predicates.volume_tags import pod_volumes

TOPOLOGY_LABELS = (LABEL_ZONE_OLD, LABEL_REGION_OLD, LABEL_ZONE, LABEL_REGION)
_NEW = {LABEL_ZONE_OLD: LABEL_ZONE, LABEL_REGION_OLD: LABEL_REGION}


@attrs.define(eq=False)
class VolumeZone(Predicate):
    """The zone and region of the node are among those in the labels of each bound volume."""

    name = "volume-zone"
    on_reservation: ClassVar[bool] = False

    def check(self, ask: Ask, node: Node) -> str | None:
        """Return None if zones and regions agree, else the label in which they differ."""
        volumes = pod_volumes(ask.tags)
        if volumes.unreadable:
            return volumes.unreadable
        if not volumes.zones or not any(label in node.attributes for label in TOPOLOGY_LABELS):
            return None
        for label, values in volumes.zones:
            value = node.attributes.get(label, node.attributes.get(_NEW.get(label, label)))
            if value not in values:
                places = " or ".join(sorted(values))
                return RefusalSentence.VOLUME_ZONE.because(f"a volume of the pod is in {label}={places}")
        return None

    def ask_class(self, ask: Ask) -> Hashable:
        """Return the zones and regions of the volumes."""
        volumes = pod_volumes(ask.tags)
        return volumes.unreadable or volumes.zones or None

    def node_class(self, node: Node) -> tuple[str | None, ...]:
        """Return the zone and region of the node."""
        return tuple(node.attributes.get(label) for label in TOPOLOGY_LABELS)

    def wanted(self, ask: Ask) -> str | None:
        """Return the zones and regions of the volumes."""
        volumes = pod_volumes(ask.tags)
        return ", ".join(f"{label}={'|'.join(sorted(values))}" for label, values in volumes.zones) or None


@hookimpl
def yunikorn_predicates() -> list[type[Predicate]]:
    """Return the predicate."""
    return [VolumeZone]
