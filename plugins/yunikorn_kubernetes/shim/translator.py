"""Translation of Kubernetes objects with what they refer to: namespaces, priority classes, volumes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from sys import intern

import attrs

from yunikorn.errors import QuantityError
from yunikorn.interface.messages import AddApplicationRequest, PreemptionPolicy
from yunikorn.resources import NOTHING, Resource, add, without_zeros
from yunikorn_kubernetes import names
from yunikorn_kubernetes.objects import Json, Namespace, Node, Pod, PriorityClass
from yunikorn_kubernetes.resource_claims.cluster_claims import ClusterClaims
from yunikorn_kubernetes.shim_settings import DEFAULT_SETTINGS, ServiceSettings
from yunikorn_kubernetes.translation.asks import foreign_kind, pod_tags, preemption_policy, task_group_name
from yunikorn_kubernetes.translation.namespaces import namespace_labels, namespace_tags
from yunikorn_kubernetes.translation.placeholders import (
    PlaceholderOwner,
    name_suffix,
    placeholder_pod,
)
from yunikorn_kubernetes.translation.pod_applications import (
    DEFAULT_NAMESPACE,
    ApplicationTerms,
    application_id,
    metadata_conflicts,
    new_application,
    queue_name,
)
from yunikorn_kubernetes.translation.pod_resources import pod_resource
from yunikorn_kubernetes.translation.task_groups import AnnotatedGang, AnnotatedTaskGroup, read_gang
from yunikorn_kubernetes.translation.translated_nodes import node_attributes, node_resource
from yunikorn_kubernetes.volumes.claims import VolumeTags
from yunikorn_kubernetes.volumes.cluster_volumes import ClusterVolumes

NO_VOLUME_TAGS = VolumeTags()
_log = logging.getLogger("yunikorn.kubernetes.translation")


@attrs.define
class References:
    """Objects that pods and nodes refer to, by name; the stores of reflectors."""

    namespaces: Mapping[str, Namespace] = attrs.Factory(dict)
    priority_classes: Mapping[str, PriorityClass] = attrs.Factory(dict)


@attrs.frozen
class PodSubmission:
    """An application as its first pod describes it."""

    request: AddApplicationRequest
    owner: PlaceholderOwner
    gang: AnnotatedGang | None = None
    problems: tuple[str, ...] = ()
    """Reasons for which the gang that the pod describes is not used."""
    ignored: tuple[str, ...] = ()
    """Other settings of the pod and its namespace that are ignored."""


class Translator:
    """Translates the objects of one cluster."""

    def __init__(
        self,
        references: References,
        volumes: ClusterVolumes,
        draw: Callable[[int], int],
        settings: ServiceSettings = DEFAULT_SETTINGS,
        claims: ClusterClaims | None = None,
        *,
        images: bool = False,
    ) -> None:
        """Create a translator.

        `draw(n)` returns a random number below n, for names of placeholders. Images of pods matter only with
        `images`.
        """
        self._references, self._volumes, self._draw = references, volumes, draw
        self._settings, self._images = settings, images
        self._claims = claims or ClusterClaims(is_served=False)
        self._labels: dict[str, tuple[Namespace | None, str]] = {}
        """Namespaces with the text of their labels, by name."""

    # -- applications -------------------------------------------------------------------------------

    def app_id(self, pod: Pod) -> str:
        """Return the id of the application of a pod."""
        return intern(application_id(pod, unique=self._settings.unique_app_ids))

    def task_group(self, pod: Pod) -> str:
        """Return the task group of a pod; empty for a pod outside of gangs, and without gang scheduling."""
        return "" if self._settings.disable_gang_scheduling else task_group_name(pod)

    def knows_namespace(self, pod: Pod) -> bool:
        """Return True if the namespace of a pod has been reported."""
        return (pod.metadata.namespace or DEFAULT_NAMESPACE) in self._references.namespaces

    def submission(self, pod: Pod, terms: ApplicationTerms | None = None) -> PodSubmission:
        """Return the application that a pod begins, with the `terms` of its owner if there are any."""
        has_gang = terms is None and not self._settings.disable_gang_scheduling
        reading = read_gang(pod) if has_gang else None
        gang = reading.gang if reading is not None else None
        namespace = self._references.namespaces.get(pod.metadata.namespace or DEFAULT_NAMESPACE)
        of_namespace = namespace_tags(namespace) if namespace is not None else None
        tags = of_namespace.tags if of_namespace is not None else {}
        made = new_application(pod, tags, gang, terms, unique=self._settings.unique_app_ids)
        ignored = made.problems + (of_namespace.problems if of_namespace is not None else ())
        return PodSubmission(
            made.request,
            PlaceholderOwner.of(pod, made.request.application_id, queue_name(pod)),
            gang if terms is None else terms.gang,
            reading.problems if reading is not None else (),
            ignored + (reading.ignored if reading is not None else ()),
        )

    def placeholder(self, owner: PlaceholderOwner, gang: AnnotatedGang, group: AnnotatedTaskGroup) -> Json:
        """Return the body of one more placeholder of a task group."""
        suffix = name_suffix(self._draw)
        return placeholder_pod(owner, gang, group, suffix, self._settings)

    # -- pods ---------------------------------------------------------------------------------------

    def conflicts(self, pod: Pod) -> list[str]:
        """Return why a pod cannot be scheduled as it is written; empty if it can."""
        found = metadata_conflicts(pod)
        try:
            pod_resource(pod)
        except QuantityError as error:
            found.append(str(error))
        found += self._of_volumes(pod).problems
        found += self._claims.tags(pod).problems
        return found

    def resource(self, pod: Pod, devices: str = "") -> Resource:
        """Return the resources of a pod, with the `devices` that the core has chosen, as in the tag.

        Those of a pod whose amounts cannot be read do not count.
        """
        try:
            amounts, of_devices = pod_resource(pod), self._claims.pod_amounts(pod, devices)
            return without_zeros(add(amounts, of_devices)) if of_devices else amounts
        except QuantityError as error:
            _log.error("pod %s/%s is not counted: %s", pod.metadata.namespace, pod.metadata.name, error)
            return NOTHING

    def tags(self, pod: Pod) -> dict[str, str]:
        """Return the tags of the ask or allocation of a pod of ours."""
        return self._tags(pod, images=self._images)

    def _tags(self, pod: Pod, *, images: bool) -> dict[str, str]:
        labels = self._labels_of(pod.metadata.namespace or DEFAULT_NAMESPACE)
        tags = pod_tags(pod, namespace_labels=labels, images=images)
        tags.update(self._of_volumes(pod).tags)
        tags.update(self._claims.tags(pod).tags)
        return tags

    def _of_volumes(self, pod: Pod) -> VolumeTags:
        return self._volumes.tags(pod.metadata.uid) if pod.spec.volumes else NO_VOLUME_TAGS

    def foreign_tags(self, pod: Pod) -> dict[str, str]:
        """Return the tags of the allocation of a pod of another scheduler."""
        # Its images say nothing about the nodes of others.
        return {**self._tags(pod, images=False), names.TAG_FOREIGN: foreign_kind(pod)}

    def preemption_policy(self, pod: Pod) -> PreemptionPolicy:
        """Return whether a pod may be preempted, and may preempt others."""
        priority_class = self._references.priority_classes.get(pod.spec.priority_class_name)
        return preemption_policy(pod, priority_class)

    def _labels_of(self, name: str) -> str:
        namespace = self._references.namespaces.get(name)
        known = self._labels.get(name)
        if known is None or known[0] is not namespace:
            known = self._labels[name] = namespace, namespace_labels(namespace)
        return known[1]

    # -- nodes --------------------------------------------------------------------------------------

    def node_resource(self, node: Node) -> Resource:
        """Return the allocatable resources of a node; none if they cannot be read."""
        try:
            amounts, of_devices = node_resource(node), self._claims.node_amounts(node.metadata.name)
            if not of_devices:
                return amounts
            # A device plugin says itself how many devices it has; 0 means that it is gone.
            return Resource({**of_devices, **{k: v for k, v in amounts.items() if v or k not in of_devices}})
        except QuantityError as error:
            _log.error("node %s gets no pods: %s", node.metadata.name, error)
            return NOTHING

    def node_attributes(self, node: Node) -> dict[str, str]:
        """Return the attributes of a node."""
        found = node_attributes(node, instance_type_label=self._settings.instance_type_label)
        name = node.metadata.name
        return {**found, **self._volumes.attributes(name), **self._claims.attributes(name)}
