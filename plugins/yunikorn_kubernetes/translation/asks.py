"""Tags and preemption settings of the asks and allocations of pods."""

from __future__ import annotations

from sys import intern

from yunikorn.interface.messages import PreemptionPolicy
from yunikorn_kubernetes import names
from yunikorn_kubernetes.objects import Pod, PriorityClass
from yunikorn_kubernetes.translation.constraints import pod_constraints, required_node
from yunikorn_kubernetes.translation.pod_applications import DEFAULT_NAMESPACE, creation_second
from yunikorn_kubernetes.translation.pod_preferences_text import preferences_text

NEVER = "Never"
"""Preemption policy of pods that do not preempt others."""


def pod_tags(pod: Pod, *, namespace_labels: str = "", images: bool = False) -> dict[str, str]:
    """Return the tags of a pod's ask or allocation, for predicates, node sort policies and displays.

    `namespace_labels` is the text for the tag of this name; it may be empty. With `images`, the images of the
    pod are among its preferences.
    """
    meta = pod.metadata
    tags = {
        names.TAG_NAMESPACE: meta.namespace or DEFAULT_NAMESPACE,
        names.TAG_POD_NAME: meta.name,
    }
    for key, value in meta.labels.items():
        tags[intern(names.TAG_LABEL + key)] = value
    optional = {
        names.TAG_CREATION_TIME: creation_second(meta),
        names.RUN_TIME_LIMIT: run_time_limit(pod),
        names.TAG_REQUIRED_NODE: required_node(pod),
        names.TAG_CONSTRAINTS: pod_constraints(pod),
        names.TAG_PREFERENCES: preferences_text(pod, images=images),
        names.TAG_NAMESPACE_LABELS: namespace_labels,
        names.TAG_TERMINATING: "true" if meta.deletion_timestamp is not None else "",
    }
    tags.update({name: value for name, value in optional.items() if value})
    return tags


def run_time_limit(pod: Pod) -> str:
    """Return how long a pod may run: what its annotation says, or the seconds of its active deadline."""
    deadline = pod.spec.active_deadline_seconds
    said = pod.metadata.annotations.get(names.RUN_TIME_LIMIT, "")
    return said or ("" if deadline is None else str(deadline))


def preemption_policy(pod: Pod, priority_class: PriorityClass | None = None) -> PreemptionPolicy:
    """Return whether a pod may be preempted, and may preempt others.

    The annotation of the pod takes precedence over that of its priority class. A value other than "true" and
    "false" counts as missing.
    """
    allowed = pod.metadata.annotations.get(names.ALLOW_PREEMPTION)
    if allowed not in ("true", "false") and priority_class is not None:
        allowed = priority_class.metadata.annotations.get(names.ALLOW_PREEMPTION)
    return PreemptionPolicy(
        allow_preempt_self=allowed != "false",
        allow_preempt_other=pod.spec.preemption_policy != NEVER,
    )


def foreign_kind(pod: Pod) -> str:
    """Return the value of the tag `foreign` of a pod that another scheduler placed, or none at all.

    A mirror pod, whose owner is its node, is static: it never moves.
    """
    static = any(owner.kind == "Node" for owner in pod.metadata.owner_references)
    return names.FOREIGN_STATIC if static else names.FOREIGN_DEFAULT


def task_group_name(pod: Pod) -> str:
    """Return the task group that a pod is a member of; empty for other pods."""
    return pod.metadata.annotations.get(names.TASK_GROUP_NAME, "")
