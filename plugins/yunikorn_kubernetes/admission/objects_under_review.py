"""Access to the members of objects under review, whose types are not certain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

NO_MEMBERS: Mapping[str, Any] = {}
TEMPLATES = {
    "Deployment": ("spec", "template"),
    "ReplicaSet": ("spec", "template"),
    "ReplicationController": ("spec", "template"),
    "StatefulSet": ("spec", "template"),
    "DaemonSet": ("spec", "template"),
    "Job": ("spec", "template"),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}
"""Paths of the pod templates of workloads, by kind."""


@attrs.frozen
class PodLike:
    """A pod, or the template of the pods of a workload."""

    path: tuple[str, ...]
    """Path in the object under review; empty for a pod."""
    content: Mapping[str, Any]

    @property
    def labels(self) -> Mapping[str, str]:
        """Labels."""
        return members(self.content, "metadata", "labels")

    @property
    def annotations(self) -> Mapping[str, str]:
        """Annotations."""
        return members(self.content, "metadata", "annotations")

    @property
    def has_metadata(self) -> bool:
        """True if there is metadata that a patch can add to."""
        return isinstance(self.content.get("metadata"), Mapping)


def members(content: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """Return the object at `path` below `content`; an empty one if there is none."""
    found: Any = content
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else NO_MEMBERS


def pod_like(kind: str, content: Mapping[str, Any] | None) -> PodLike | None:
    """Return the pod or the pod template of an object of this kind; None for other kinds."""
    if content is None:
        return None
    if kind == "Pod":
        return PodLike((), content)
    path = TEMPLATES.get(kind)
    return None if path is None else PodLike(path, members(content, *path))
