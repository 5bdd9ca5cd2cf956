"""PodGroups of Kubernetes 1.36 (`scheduling.k8s.io/v1alpha2`): the gang that pods name themselves.

The next release of Kubernetes renames parts of this version, so that each version has a reader of its own.
"""

from __future__ import annotations

import json
from typing import Any

import attrs

from yunikorn_kubernetes.api_server.api_resources import ApiResource
from yunikorn_kubernetes.names import GANG_TOPOLOGY
from yunikorn_kubernetes.objects import ApiStruct, Json, ObjectMeta, Pod
from yunikorn_kubernetes.workloads.workload_reader import MEMBERS, WorkloadGang, WorkloadRole

TAG_DISRUPTION = "yunikorn.apache.org/gang-disruption"
"""Tag of applications: `Pod` or `PodGroup`, whether members are disrupted one by one or together."""


class GangPolicy(ApiStruct, frozen=True):
    """All pods are scheduled together, at least `min_count`."""

    min_count: int = 1


class SchedulingPolicy(ApiStruct, frozen=True):
    """One of the policies; without `gang` each pod is scheduled by itself."""

    gang: GangPolicy | None = None


class WorkloadReference(ApiStruct, frozen=True):
    """Workload with the template of a PodGroup."""

    workload_name: str = ""


class PodGroupTemplateReference(ApiStruct, frozen=True):
    """Template from which a controller has made a PodGroup."""

    workload: WorkloadReference | None = None


class PodGroupSpec(ApiStruct, frozen=True):
    """Desired state of a PodGroup."""

    pod_group_template_ref: PodGroupTemplateReference | None = None
    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    scheduling_constraints: Json | None = None
    disruption_mode: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    resource_claims: tuple[Json, ...] = ()


class PodGroupStatus(ApiStruct, frozen=True):
    """Observed state of a PodGroup; conditions stay as they are, because a patch replaces them all."""

    conditions: tuple[Json, ...] = ()


class PodGroup(ApiStruct, frozen=True):
    """PodGroup, the gang of the pods with its name in `spec.schedulingGroup`."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


POD_GROUPS: ApiResource[PodGroup] = ApiResource(
    "scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup", True, PodGroup
)


@attrs.frozen
class GroupTerms:
    """Requirements of a PodGroup, in the terms of the scheduler."""

    gang: WorkloadGang | None
    """None for the policy `basic`."""
    tags: dict[str, str] = attrs.Factory(dict)
    """Tags of the application."""
    priority: int | None = None


def group_name(pod: Pod) -> str:
    """Return the name of the PodGroup of a pod; empty for pods without one."""
    group = pod.spec.scheduling_group
    return "" if group is None else group.pod_group_name or ""


def label_of(group: PodGroup) -> str:
    """Return the name of a PodGroup for users, with that of its Workload."""
    template = group.spec.pod_group_template_ref
    workload = template.workload if template is not None else None
    made_from = f" of Workload {workload.workload_name}" if workload is not None else ""
    return f"PodGroup {group.metadata.namespace}/{group.metadata.name}{made_from}"


def terms_of(group: PodGroup) -> GroupTerms:
    """Return what a PodGroup asks for."""
    spec, gang = group.spec, None
    if spec.scheduling_policy.gang is not None:
        count = spec.scheduling_policy.gang.min_count
        gang = WorkloadGang((WorkloadRole(MEMBERS, count),), f"minCount is {count}")
    tags = {}
    keys = _topology_keys(spec.scheduling_constraints)
    if keys:
        tags[GANG_TOPOLOGY] = json.dumps({"required": keys[0]})
    if spec.disruption_mode:
        tags[TAG_DISRUPTION] = spec.disruption_mode
    # Without a class the API server writes 0, also for the groups of Jobs whose pods have a class.
    return GroupTerms(gang, tags, spec.priority if spec.priority_class_name else None)


def _topology_keys(constraints: Any) -> list[str]:
    topology = (constraints or {}).get("topology") or ()
    return [one["key"] for one in topology if isinstance(one, dict) and one.get("key")]
