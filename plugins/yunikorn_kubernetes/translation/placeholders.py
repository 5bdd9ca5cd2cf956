"""Placeholder pods: they take the resources of a gang's members until the members themselves can start."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import attrs
from msgspec import to_builtins

from yunikorn_kubernetes import names
from yunikorn_kubernetes.objects import Json, OwnerReference, Pod
from yunikorn_kubernetes.shim_settings import DEFAULT_SETTINGS, ServiceSettings
from yunikorn_kubernetes.translation.pod_applications import owner_references
from yunikorn_kubernetes.translation.task_groups import AnnotatedGang, AnnotatedTaskGroup

CONTAINER = "pause"
LONGEST_APP, LONGEST_GROUP = 28, 20
"""Numbers of characters of application id and group in the name of a placeholder."""
SUFFIX_LENGTH = 10
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?\Z")


@attrs.frozen
class PlaceholderOwner:
    """Application of placeholders, as far as their pods show it."""

    application: str
    queue: str
    namespace: str
    references: tuple[OwnerReference, ...]
    """Originator of the application, whose deletion also deletes the placeholders."""
    priority_class_name: str = ""
    pull_secrets: tuple[str, ...] = ()

    @classmethod
    def of(cls, pod: Pod, application: str, queue: str) -> PlaceholderOwner:
        """Return the owner as the pod shows it that creates the application."""
        return cls(
            application,
            queue,
            pod.metadata.namespace or "default",
            owner_references(pod),
            pod.spec.priority_class_name,
            tuple(secret.name for secret in pod.spec.image_pull_secrets),
        )


def name_suffix(draw: Callable[[int], int]) -> str:
    """Return the random end of a placeholder's name; `draw(n)` returns a number below n."""
    return "".join(_ALPHABET[draw(len(_ALPHABET))] for _ in range(SUFFIX_LENGTH))


def placeholder_name(application: str, group: str, suffix: str) -> str:
    """Return the name of a placeholder: at most 63 characters, and valid for a pod whatever the id is."""
    return f"tg-{_name_part(application[:LONGEST_APP])}-{_name_part(group[:LONGEST_GROUP])}-{suffix}"


def placeholder_pod(
    owner: PlaceholderOwner,
    gang: AnnotatedGang,
    group: AnnotatedTaskGroup,
    suffix: str,
    settings: ServiceSettings = DEFAULT_SETTINGS,
) -> Json:
    """Return the body of a placeholder pod, as the API server takes it.

    The annotations repeat those of the originator, so that the application can be rebuilt from a placeholder
    alone. An application id or queue that is no valid label value is an annotation instead.
    """
    labels = dict(group.labels)
    annotations = {
        **group.annotations,
        names.PLACEHOLDER: "true",
        names.TASK_GROUP_NAME: group.name,
        names.TASK_GROUPS: gang.task_groups,
    }
    if gang.parameters:
        annotations[names.SCHEDULING_POLICY_PARAMETERS] = gang.parameters
    for name, value, others in (
        (names.APP_ID, owner.application, (names.APP_ID_LABEL_OLD, names.APP_ID_LABEL_SPARK)),
        (names.QUEUE, owner.queue, (names.QUEUE_LABEL_OLD,)),
    ):
        for place in (labels, annotations):
            place.pop(name, None)
        if value:
            (labels if _LABEL_VALUE.match(value) else annotations)[name] = value
            for other in others:
                # Two values would contradict each other, and the placeholder would not be scheduled.
                if labels.get(other, value) != value:
                    del labels[other]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": placeholder_name(owner.application, group.name, suffix),
            "namespace": owner.namespace,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [to_builtins(reference) for reference in owner.references],
        },
        "spec": _spec(owner, group, settings),
    }


def _spec(owner: PlaceholderOwner, group: AnnotatedTaskGroup, settings: ServiceSettings) -> Json:
    security: Json = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    ids = {
        "runAsUser": settings.placeholder_run_as_user,
        "runAsGroup": settings.placeholder_run_as_group,
        "fsGroup": settings.placeholder_fs_group,
    }
    security.update({name: value for name, value in ids.items() if value is not None})
    spec: Json = {
        "schedulerName": names.SCHEDULER_NAME,
        "restartPolicy": "Never",
        "hostNetwork": False,
        "terminationGracePeriodSeconds": 0,
        "securityContext": security,
        "containers": [_container(group.min_resource, settings.placeholder_image)],
    }
    optional: dict[str, Any] = {
        "nodeSelector": dict(group.node_selector),
        "tolerations": list(group.tolerations),
        "affinity": group.affinity,
        "topologySpreadConstraints": list(group.topology_spread_constraints),
        "priorityClassName": owner.priority_class_name,
        "imagePullSecrets": [{"name": name} for name in owner.pull_secrets],
    }
    spec.update({name: value for name, value in optional.items() if value})
    return spec


def _container(requests: Mapping[str, str], image: str) -> Json:
    return {
        "name": CONTAINER,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "resources": {"requests": dict(requests), "limits": dict(requests)},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "privileged": False,
            "readOnlyRootFilesystem": True,
        },
    }


def _name_part(text: str) -> str:
    """Return a part of a pod's name: lower case, and only characters that a name may have at that place."""
    clean = re.sub(r"[^a-z0-9.-]", "-", text.lower())
    return re.sub(r"\.(?=[.-]|\Z)|(?<=-)\.|\A\.", "-", clean)
