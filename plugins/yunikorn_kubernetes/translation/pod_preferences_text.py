"""Preferences of a pod about its node, as one text for the policy `pod-preferences`.

Pods of one template have equal texts, and hence one class of requests in the core.
"""

from __future__ import annotations

from typing import Any

from yunikorn_kubernetes import names
from yunikorn_kubernetes.objects import Pod, PodSpec
from yunikorn_kubernetes.translation.compact_json import compact_json
from yunikorn_kubernetes.translation.constraints import affinity_terms, toleration_table

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
SCHEDULE_ANYWAY = "ScheduleAnyway"
PREFER_NO_SCHEDULE = "PreferNoSchedule"


def preferences_text(pod: Pod, *, images: bool = False) -> str:
    """Return the preferences of a pod as compact JSON; an empty text if there are none.

    With `images`, the pod prefers nodes that have its images. Tolerations without effect also tolerate taints
    with PreferNoSchedule; they are among the constraints of the pod.
    """
    spec = pod.spec
    affinity = spec.affinity or {}
    found: dict[str, Any] = {
        names.TOLERATIONS: [
            toleration_table(each) for each in spec.tolerations if each.effect == PREFER_NO_SCHEDULE
        ],
        names.NODE_AFFINITY: affinity_terms(affinity, "nodeAffinity", PREFERRED),
        names.POD_AFFINITY: affinity_terms(affinity, "podAffinity", PREFERRED),
        names.POD_ANTI_AFFINITY: affinity_terms(affinity, "podAntiAffinity", PREFERRED),
        names.TOPOLOGY_SPREAD: [
            constraint
            for constraint in spec.topology_spread_constraints
            if constraint.get("whenUnsatisfiable") == SCHEDULE_ANYWAY
        ],
        **(_images(spec) if images else {}),
    }
    return compact_json({key: value for key, value in found.items() if value})


def _images(spec: PodSpec) -> dict[str, Any]:
    containers = (*spec.init_containers, *spec.containers)
    used = [image for image in (*(one.image for one in containers), *spec.image_volumes) if image]
    return {names.IMAGES: sorted(map(image_name, used)), names.CONTAINERS: len(containers)} if used else {}


def image_name(reference: str) -> str:
    """Return the name of an image as nodes report it: without tag and digest, the tag is `latest`."""
    return reference if reference.rfind(":") > reference.rfind("/") else f"{reference}:latest"
