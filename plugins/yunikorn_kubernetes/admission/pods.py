"""Mutation of pods and of the workloads that make them.

The rules are those of Apache YuniKorn 1.9: who owns a pod, which pods YuniKorn schedules, and the labels that
make an application of pods without one. `docs/kubernetes/admission.md` describes them for users.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from yunikorn_kubernetes.admission.admission_rules import gives_labels, processes
from yunikorn_kubernetes.admission.objects_under_review import NO_MEMBERS, PodLike, members, pod_like
from yunikorn_kubernetes.admission.owners import is_missing, owner_text, refusal
from yunikorn_kubernetes.admission.reviews import (
    ALLOWED,
    Patch,
    Request,
    ReviewAnswer,
    Submitter,
    put,
    put_members,
)
from yunikorn_kubernetes.names import (
    ALLOW_PREEMPTION,
    APP_ID,
    APP_ID_LABEL_OLD,
    APP_ID_LABEL_SPARK,
    NAMESPACE_ENABLE,
    NAMESPACE_GENERATE_APP_ID,
    QUEUE,
    QUEUE_LABEL_OLD,
    SCHEDULER_NAME,
    UNIQUE_SUFFIX,
    USER_INFO,
)
from yunikorn_kubernetes.objects import Namespace, PriorityClass
from yunikorn_kubernetes.patterns import matches
from yunikorn_kubernetes.shim_settings import AdmissionSettings
from yunikorn_kubernetes.translation.pod_applications import id_of_namespace

CREATE, UPDATE = "CREATE", "UPDATE"
APP_LABEL, OWN_APP = "app", "yunikorn"
"""Label of the pods of the scheduler itself, which must not wait for the scheduler."""
MAX_NAMESPACE = 26
"""Length to which a namespace is cut in unique ids, so that a uid fits behind it."""


@attrs.frozen
class ReviewedCluster:
    """Part of the cluster that the rules for one pod read."""

    namespace: Namespace | None
    classes: Mapping[str, PriorityClass]

    def namespace_annotations(self, namespace: str) -> Mapping[str, str]:
        """Return the annotations of the pod's namespace; none if it is not known."""
        return NO_MEMBERS if self.namespace is None else self.namespace.metadata.annotations

    def priority_class_annotations(self, name: str) -> Mapping[str, str]:
        """Return the annotations of a priority class; none if it is not known."""
        found = self.classes.get(name)
        return NO_MEMBERS if found is None else found.metadata.annotations


def review_pod(request: Request, settings: AdmissionSettings, cluster: ReviewedCluster) -> ReviewAnswer:
    """Return the answer to the creation or update of a pod or a workload."""
    kind = request.kind.kind
    pod = pod_like(kind, request.object)
    if pod is None:
        return ALLOWED
    if request.operation == UPDATE:
        review = _review_update if kind == "Pod" else _review_workload_update
        return review(request, pod, settings, cluster)
    if request.operation != CREATE:
        return ALLOWED
    review = _review_new_pod if kind == "Pod" else _review_workload
    return review(request, pod, settings, cluster)


def _review_new_pod(
    request: Request, pod: PodLike, settings: AdmissionSettings, cluster: ReviewedCluster
) -> ReviewAnswer:
    if reason := refusal(pod.annotations, request.user_info, settings):
        return ReviewAnswer(allowed=False, reason=reason)
    namespace = request.effective_namespace
    overrides = cluster.namespace_annotations(namespace)
    if pod.labels.get(APP_LABEL) == OWN_APP:
        return ALLOWED
    if not _is_processed(namespace, settings, cluster):
        return ALLOWED
    labels: dict[str, str] = {}
    annotations = _owner(pod, request.user_info, settings)
    if gives_labels(settings, namespace, _tri_state(overrides, NAMESPACE_GENERATE_APP_ID)):
        labels = _labels(pod, namespace, settings)
        annotations |= _preemption(pod, cluster)
    scheduler = put(("spec", "schedulerName"), SCHEDULER_NAME)
    return ReviewAnswer(allowed=True, patch=[*_metadata(pod, labels, annotations), scheduler])


def _review_workload(
    request: Request, pod: PodLike, settings: AdmissionSettings, cluster: ReviewedCluster
) -> ReviewAnswer:
    """Let a workload carry the owner in its template; a controller makes the pods later."""
    submitter = request.user_info
    if request.kind.kind == "ReplicaSet" and matches(settings.system_users, submitter.username):
        # A Deployment would find that this replica set is not the one that it wants, and make another.
        return ALLOWED
    processed = _is_processed(request.effective_namespace, settings, cluster)
    # Controllers may name any owner, so a template is the last place where the owner of its pods is checked.
    if (processed or _is_ours(pod)) and (reason := refusal(pod.annotations, submitter, settings)):
        return ReviewAnswer(allowed=False, reason=reason)
    if not processed:
        return ALLOWED
    return ReviewAnswer(allowed=True, patch=_metadata(pod, {}, _owner(pod, submitter, settings)))


def _review_update(
    request: Request, pod: PodLike, settings: AdmissionSettings, cluster: ReviewedCluster
) -> ReviewAnswer:
    """Refuse another owner. The pod before counts: an update could change its labels with the owner."""
    before = pod_like("Pod", request.old_object) or pod
    if pod.annotations.get(USER_INFO, "") == before.annotations.get(USER_INFO, ""):
        return ALLOWED
    if before.labels.get(APP_LABEL) == OWN_APP:
        # Such a pod has no owner that others rely on, until an update removes the label.
        reason = refusal(pod.annotations, request.user_info, settings)
        return ReviewAnswer(allowed=not reason, reason=reason)
    if not (
        _is_processed(request.effective_namespace, settings, cluster) or _is_ours(before) or _is_ours(pod)
    ):
        return ALLOWED
    return ReviewAnswer(allowed=False, reason=f"the annotation {USER_INFO} of a pod cannot be changed")


def _review_workload_update(
    request: Request, pod: PodLike, settings: AdmissionSettings, cluster: ReviewedCluster
) -> ReviewAnswer:
    """Review an update that changes the owner in the template as the creation of the workload.

    Another template keeps the owner: a patch would replace all pods of workloads that are older than the
    admission controller. The owner of a template that turns to this scheduler was not checked before.
    """
    before = pod_like(request.kind.kind, request.old_object) or PodLike((), {})
    is_checked = _is_ours(before) or _is_processed(request.effective_namespace, settings, cluster)
    is_same = pod.annotations.get(USER_INFO) == before.annotations.get(USER_INFO)
    if is_same and (is_checked or not _is_ours(pod)):
        return ALLOWED
    return _review_workload(request, pod, settings, cluster)


def _is_processed(namespace: str, settings: AdmissionSettings, cluster: ReviewedCluster) -> bool:
    """Return True if YuniKorn schedules the pods of a namespace, whether or not they name an application."""
    return processes(
        settings, namespace, _tri_state(cluster.namespace_annotations(namespace), NAMESPACE_ENABLE)
    )


def _is_ours(pod: PodLike) -> bool:
    """Return True for a pod that names this scheduler, which is possible in every namespace."""
    return members(pod.content, "spec").get("schedulerName") == SCHEDULER_NAME


def _owner(pod: PodLike, submitter: Submitter, settings: AdmissionSettings) -> dict[str, str]:
    return {USER_INFO: owner_text(submitter)} if is_missing(pod.annotations, settings) else {}


def _labels(pod: PodLike, namespace: str, settings: AdmissionSettings) -> dict[str, str]:
    labels: dict[str, str] = {}
    given = pod.labels
    others = (given.get(APP_ID_LABEL_OLD), given.get(APP_ID_LABEL_SPARK), pod.annotations.get(APP_ID))
    if named := given.get(APP_ID):
        labels[APP_ID_LABEL_OLD] = named
    elif not any(others):
        labels[APP_ID] = labels[APP_ID_LABEL_OLD] = generated_id(namespace, unique=settings.unique_app_ids)
    if queue := given.get(QUEUE):
        labels[QUEUE_LABEL_OLD] = queue
    return labels


def generated_id(namespace: str, *, unique: bool) -> str:
    """Return the id of the application of pods that name none.

    The scheduler replaces the end of a unique id by the uid of the pod, which does not exist yet.
    """
    if unique:
        return f"{namespace[:MAX_NAMESPACE]}{UNIQUE_SUFFIX}"
    return id_of_namespace(namespace)


def _preemption(pod: PodLike, cluster: ReviewedCluster) -> dict[str, str]:
    if pod.annotations.get(ALLOW_PREEMPTION) in ("true", "false"):
        return {}
    spec = pod.content.get("spec")
    name = spec.get("priorityClassName") if isinstance(spec, Mapping) else None
    annotations = cluster.priority_class_annotations(name if isinstance(name, str) else "")
    return {ALLOW_PREEMPTION: "false" if annotations.get(ALLOW_PREEMPTION) == "false" else "true"}


def _metadata(pod: PodLike, labels: dict[str, str], annotations: dict[str, str]) -> Patch:
    path = (*pod.path, "metadata")
    if not labels and not annotations:
        return []
    start: Patch = [] if pod.has_metadata else [put(path, {})]
    return [
        *start,
        *put_members((*path, "labels"), pod.labels, labels),
        *put_members((*path, "annotations"), pod.annotations, annotations),
    ]


def _tri_state(annotations: Mapping[str, str], name: str) -> bool | None:
    """Return True for the value "true", False for any other value, None without the annotation."""
    return annotations[name] == "true" if name in annotations else None
