"""Nodes of a cluster as nodes of the scheduler.

Every label is an attribute under its own name. Taints and cordons are attributes, too, since they act through
predicates, which see nothing else of a node.
"""

from __future__ import annotations

from sys import intern

from yunikorn.resources import Resource
from yunikorn_kubernetes import names
from yunikorn_kubernetes.objects import Node
from yunikorn_kubernetes.translation.constraints import taints_text
from yunikorn_kubernetes.translation.kubernetes_quantities import amounts_of
from yunikorn_kubernetes.translation.node_images import images_text

RESERVED = ("si/", "si.io/")
"""Prefixes of attributes that the scheduler interprets; labels cannot set them."""
OURS = (
    names.NODE_TAINTS,
    names.NODE_SOFT_TAINTS,
    names.NODE_IMAGES,
    names.NODE_UNSCHEDULABLE,
    names.NODE_VOLUME_LIMITS,
)
SOFT_EFFECTS = ("PreferNoSchedule",)
"""Effects of taints that nodes are only preferred without."""
INSTANCE_TYPES = (names.LABEL_INSTANCE_TYPE, names.LABEL_INSTANCE_TYPE_OLD)
WELL_KNOWN = (
    (names.NODE_ZONE, (names.LABEL_ZONE, names.LABEL_ZONE_OLD)),
    (names.NODE_REGION, (names.LABEL_REGION, names.LABEL_REGION_OLD)),
)
"""Attributes that well-known labels set, the current label first."""


def node_attributes(node: Node, *, instance_type_label: str = names.LABEL_INSTANCE_TYPE) -> dict[str, str]:
    """Return the attributes of a node.

    Where the label of the instance type is the usual one, its name of earlier versions counts as well.
    """
    labels = node.metadata.labels
    found = {
        intern(key): intern(value)
        for key, value in labels.items()
        if key not in OURS and not key.startswith(RESERVED)
    }
    found[names.NODE_HOSTNAME] = node.metadata.name
    found[names.NODE_RACK] = names.DEFAULT_RACK
    usual = instance_type_label == names.LABEL_INSTANCE_TYPE
    instance_types = INSTANCE_TYPES if usual else (instance_type_label,)
    for attribute, keys in ((names.NODE_INSTANCE_TYPE, instance_types), *WELL_KNOWN):
        value = next((labels[key] for key in keys if labels.get(key)), "")
        if value:
            found[attribute] = intern(value)
    texts = {
        names.NODE_TAINTS: taints_text(node.spec.taints),
        names.NODE_SOFT_TAINTS: taints_text(node.spec.taints, SOFT_EFFECTS),
        names.NODE_IMAGES: images_text(node),
    }
    found.update({name: text for name, text in texts.items() if text})
    if node.spec.unschedulable:
        found[names.NODE_UNSCHEDULABLE] = "true"
    return found


def node_resource(node: Node) -> Resource:
    """Return what the pods of a node can use in all. Raises `QuantityError` with all problems."""
    return Resource(amounts_of(node.status.allocatable, "status.allocatable"))
