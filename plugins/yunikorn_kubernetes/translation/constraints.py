"""Constraints of a pod on its nodes, as one text for the predicates.

The text has only what excludes nodes; what a pod prefers is in a text of its own (`pod_preferences`).
Pods of one template have equal texts, and hence one class of requests in the core.
"""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins

from yunikorn_kubernetes import names
from yunikorn_kubernetes.objects import Json, Pod, PodSpec, Taint, Toleration
from yunikorn_kubernetes.translation.compact_json import compact_json

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
DO_NOT_SCHEDULE = "DoNotSchedule"
EFFECTS = ("NoSchedule", "NoExecute")
"""Effects of taints that exclude nodes."""


def pod_constraints(pod: Pod) -> str:
    """Return the constraints of a pod as compact JSON; an empty text if every node is allowed."""
    spec = pod.spec
    affinity = spec.affinity or {}
    found: dict[str, Any] = {
        names.NODE_SELECTOR: spec.node_selector,
        names.NODE_AFFINITY: _required_node_terms(affinity),
        names.TOLERATIONS: [
            toleration_table(each) for each in spec.tolerations if each.effect in (*EFFECTS, "")
        ],
        names.HOST_PORTS: host_ports(spec),
        names.TOPOLOGY_SPREAD: [
            constraint
            for constraint in spec.topology_spread_constraints
            if constraint.get("whenUnsatisfiable") == DO_NOT_SCHEDULE
        ],
        names.POD_AFFINITY: affinity_terms(affinity, "podAffinity"),
        names.POD_ANTI_AFFINITY: affinity_terms(affinity, "podAntiAffinity"),
        names.RESOURCE_CLAIMS: bool(spec.resource_claims),
    }
    return compact_json({key: value for key, value in found.items() if value})


def host_ports(spec: PodSpec) -> list[tuple[str, str, int]]:
    """Return the ports of the node that the containers take, each as address, protocol and port, sorted.

    Of the init containers only sidecars count, as in kube-scheduler. No address means all addresses.
    """
    containers = (
        *spec.containers,
        *(container for container in spec.init_containers if container.restart_policy == "Always"),
    )
    return sorted(
        {
            (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
            for container in containers
            for port in container.ports
            if port.host_port > 0
        }
    )


def required_node(pod: Pod) -> str:
    """Return the node that a pod of a DaemonSet must run on; empty for other pods."""
    if not any(owner.kind == "DaemonSet" for owner in pod.metadata.owner_references):
        return ""
    for term in _required_node_terms(pod.spec.affinity or {}):
        for field in term.get("matchFields") or ():
            values = list(field.get("values") or ())
            if field.get("key") == "metadata.name" and field.get("operator") == "In" and len(values) == 1:
                return str(values[0])
    return ""


def taints_text(taints: tuple[Taint, ...], effects: tuple[str, ...] = EFFECTS) -> str:
    """Return the taints with some effects as compact JSON; an empty text if there are none."""
    return compact_json([to_builtins(taint) for taint in taints if taint.effect in effects])


def toleration_table(toleration: Toleration) -> dict[str, str]:
    """Return what of a toleration says which taints it tolerates."""
    # The time until an eviction says nothing about the choice of a node.
    return {
        name: value for name in ("key", "operator", "value", "effect") if (value := getattr(toleration, name))
    }


def _required_node_terms(affinity: Json) -> list[Json]:
    required = (affinity.get("nodeAffinity") or {}).get(REQUIRED) or {}
    return list(required.get("nodeSelectorTerms") or ())


def affinity_terms(affinity: Json, kind: str, strictness: str = REQUIRED) -> list[Json]:
    """Return the required or the preferred terms of one kind of affinity."""
    return list((affinity.get(kind) or {}).get(strictness) or ())
