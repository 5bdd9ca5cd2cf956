"""Applications: the pods that share an application id, as Apache YuniKorn derives it from a pod."""

from __future__ import annotations

import json
from collections.abc import Mapping

import attrs
import msgspec

from yunikorn.errors import printable
from yunikorn.interface.messages import AddApplicationRequest, UserGroupInformation
from yunikorn_kubernetes import names
from yunikorn_kubernetes.objects import ObjectMeta, OwnerReference, Pod
from yunikorn_kubernetes.translation.task_groups import AnnotatedGang

PARTITION = "default"
UNKNOWN_USER = "nobody"
"""User of pods without a usable `user.info`, as in YuniKorn."""
DEFAULT_NAMESPACE = "default"
LONGEST_ID = 63
LONGEST_NAMESPACE = 26
"""Number of characters of the namespace in a generated id."""
APP_ID_SOURCES = (
    ("label", names.APP_ID),
    ("annotation", names.APP_ID),
    ("label", names.APP_ID_LABEL_OLD),
    ("label", names.APP_ID_LABEL_SPARK),
)
"""Labels and annotations with the application id, the first non-empty one applies."""
QUEUE_SOURCES = (
    ("label", names.QUEUE),
    ("annotation", names.QUEUE),
    ("label", names.QUEUE_LABEL_OLD),
)


def is_ours(pod: Pod) -> bool:
    """Return True for a pod that this scheduler places; the pods of other schedulers are foreign."""
    return pod.spec.scheduler_name == names.SCHEDULER_NAME


def is_terminated(pod: Pod) -> bool:
    """Return True for a pod whose containers have ended, so that it takes no resources."""
    return pod.status.phase in ("Failed", "Succeeded")


def is_placeholder(pod: Pod) -> bool:
    """Return True for a pod that only reserves resources for a member of a gang."""
    return pod.metadata.annotations.get(names.PLACEHOLDER, "") in _TRUE


_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))


def is_gang_member(pod: Pod) -> bool:
    """Return True for a pod of ours that belongs to a task group, and is no placeholder."""
    return is_ours(pod) and names.TASK_GROUP_NAME in pod.metadata.annotations and not is_placeholder(pod)


def controller_of(pod: Pod) -> str:
    """Return the uid of the controller that made a pod, "" if none did."""
    return next((owner.uid for owner in pod.metadata.owner_references if owner.controller), "")


def application_id(pod: Pod, *, unique: bool = False) -> str:
    """Return the id of the pod's application; generated if the pod names none.

    `unique` generates an id for each pod instead of one for each namespace.
    """
    meta = pod.metadata
    found = _first(meta, APP_ID_SOURCES)
    if found.endswith(names.UNIQUE_SUFFIX):
        return f"{found.removesuffix(names.UNIQUE_SUFFIX)}-{meta.uid}"
    if found:
        return found
    if unique:
        return f"{meta.namespace[:LONGEST_NAMESPACE]}-{meta.uid}"[:LONGEST_ID]
    return id_of_namespace(meta.namespace)


def id_of_namespace(namespace: str) -> str:
    """Return the id of the application of all pods of a namespace that name none; a valid label value."""
    return f"yunikorn-{namespace}-autogen"[:LONGEST_ID].rstrip("-")


def generated_ids(namespace: str) -> tuple[str, str]:
    """Return the ids that the admission controller writes into pods of a namespace that name none."""
    return id_of_namespace(namespace), f"{namespace[:LONGEST_NAMESPACE]}{names.UNIQUE_SUFFIX}"


def queue_name(pod: Pod) -> str:
    """Return the queue that a pod names; empty where placement rules have to choose."""
    return _first(pod.metadata, QUEUE_SOURCES)


def metadata_conflicts(pod: Pod) -> list[str]:
    """Return a text for each value that the pod gives twice with different texts.

    Empty values count as missing. Apache YuniKorn reports such a pod and does not schedule it.
    """
    conflicts = []
    for what, sources in (("application id", APP_ID_SOURCES), ("queue", QUEUE_SOURCES)):
        given = [(kind, name, text) for kind, name in sources if (text := _value(pod.metadata, kind, name))]
        if len({text for _, _, text in given}) > 1:
            listed = ", ".join(f"{kind} {name}={text}" for kind, name, text in given)
            conflicts.append(printable(f"contradictory {what}: {listed}: use one value"))
    return conflicts


def user_of(pod: Pod) -> tuple[UserGroupInformation, str]:
    """Return the owner of a pod, and why the annotation is ignored; without one, the unknown user."""
    text = pod.metadata.annotations.get(names.USER_INFO, "")
    unknown = UserGroupInformation(UNKNOWN_USER)
    if not text:
        return unknown, ""
    expected = 'expected {"user": "NAME", "groups": ["NAME"]}'
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        return unknown, f"{names.USER_INFO} is ignored: {error}: {expected}"
    fields = {key.lower(): value for key, value in given.items()} if isinstance(given, dict) else {}
    user, groups = fields.get("user"), fields.get("groups") or []
    if not isinstance(user or "", str) or not isinstance(groups, list):
        return unknown, f"{names.USER_INFO} is ignored: {expected}"
    if not isinstance(given, dict) or not all(isinstance(group, str) for group in groups):
        return unknown, f"{names.USER_INFO} is ignored: {expected}"
    if not user:
        return unknown, f"{names.USER_INFO} is ignored, because it has no user: {expected}"
    return UserGroupInformation(user, groups), ""


def creation_second(meta: ObjectMeta) -> str:
    """Return the creation time of an object in whole seconds since 1970; empty if it has none."""
    created = meta.creation_timestamp
    return str(int(created.timestamp())) if created is not None else ""


def application_tags(pod: Pod, of_namespace: Mapping[str, str]) -> dict[str, str]:
    """Return the tags of the application that a pod creates; `of_namespace` as `namespace_tags` has them."""
    annotations = pod.metadata.annotations
    tags = {
        names.APP_TAG_NAMESPACE: pod.metadata.namespace or DEFAULT_NAMESPACE,
        names.APP_TAG_FORCE: "true" if pod.spec.node_name else "false",
        **of_namespace,
    }
    secrets = ",".join(secret.name for secret in pod.spec.image_pull_secrets)
    optional = {
        names.APP_TAG_PULL_SECRETS: secrets,
        names.APP_TAG_CREATION_TIME: creation_second(pod.metadata),
        names.TASK_GROUPS: annotations.get(names.TASK_GROUPS, ""),
        names.SCHEDULING_POLICY_PARAMETERS: annotations.get(names.SCHEDULING_POLICY_PARAMETERS, ""),
        names.GANG_TOPOLOGY: annotations.get(names.GANG_TOPOLOGY, ""),
        names.GANG_STEP: annotations.get(names.GANG_STEP, ""),
    }
    tags.update({name: value for name, value in optional.items() if value})
    return tags


def owner_references(pod: Pod) -> tuple[OwnerReference, ...]:
    """Return the owners of the placeholders of the application that a pod creates.

    The originator, which is the pod itself, owns them. A placeholder that is found first, after a restart,
    names the originator as its own owner. No owner is blocked: for that some clusters demand a right to the
    finalizers of pods (`docs/decisions/archive/0152`).
    """
    if is_placeholder(pod):
        found = pod.metadata.owner_references
        return tuple(msgspec.structs.replace(each, block_owner_deletion=False) for each in found)
    meta = pod.metadata
    return (
        OwnerReference(
            api_version="v1",
            kind="Pod",
            name=meta.name,
            uid=meta.uid,
            controller=False,
            block_owner_deletion=False,
        ),
    )


@attrs.frozen
class ApplicationTerms:
    """Id, gang and further tags of an application, where the owner of its pods determines them."""

    app_id: str
    gang: AnnotatedGang | None = None
    tags: Mapping[str, str] = attrs.Factory(dict)


@attrs.frozen
class NewApplication:
    """Application of its first pod, with what was ignored in the pod."""

    request: AddApplicationRequest
    problems: tuple[str, ...] = ()


def new_application(
    pod: Pod,
    of_namespace: Mapping[str, str],
    gang: AnnotatedGang | None = None,
    terms: ApplicationTerms | None = None,
    *,
    unique: bool = False,
) -> NewApplication:
    """Return the application that a pod creates; `gang` is None without (usable) task groups.

    With `terms`, id, gang and further tags are those of the owner of the pod.
    """
    owner, problem = user_of(pod)
    request = AddApplicationRequest(
        application_id(pod, unique=unique) if terms is None else terms.app_id,
        queue_name(pod),
        PARTITION,
        owner,
        application_tags(pod, of_namespace),
    )
    if terms is not None:
        gang = terms.gang
        for name in (names.TASK_GROUPS, names.SCHEDULING_POLICY_PARAMETERS):
            request.tags.pop(name, None)
        request.tags.update(terms.tags)
    if gang is not None:
        request.placeholder_ask = gang.total
        request.execution_timeout_ms = gang.timeout_seconds * 1000
        request.gang_scheduling_style = gang.style
    return NewApplication(request, (problem,) if problem else ())


def _first(meta: ObjectMeta, sources: tuple[tuple[str, str], ...]) -> str:
    return next((text for kind, name in sources if (text := _value(meta, kind, name))), "")


def _value(meta: ObjectMeta, kind: str, name: str) -> str:
    return (meta.labels if kind == "label" else meta.annotations).get(name, "")
