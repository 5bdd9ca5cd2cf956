"""Needs of the shim's flows: writes to the API server, events, volumes, and translation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import attrs

from yunikorn.interface.messages import AddApplicationRequest, PreemptionPolicy
from yunikorn.resources import Resource
from yunikorn_kubernetes.objects import Json, Node, Pod
from yunikorn_kubernetes.translation.placeholders import PlaceholderOwner
from yunikorn_kubernetes.translation.task_groups import AnnotatedGang, AnnotatedTaskGroup


class Writes(Protocol):
    """Writes to the API server. Each raises `ApiError`, or another `YunikornError`, when it has failed.

    A write that the server or the network fails temporarily is repeated by the implementation.
    """

    async def bind(self, pod: Pod, node: str) -> None:
        """Bind a pod to a node."""
        ...

    async def delete_pod(self, pod: Pod) -> None:
        """Delete this pod, not another of the same name; a pod that is gone already is no error."""
        ...

    async def create_pod(self, namespace: str, body: Json) -> None:
        """Create a pod; one of the same name that exists already is no error."""
        ...

    async def set_status(self, pod: Pod, status: Json) -> None:
        """Merge fields into the status of a pod; a pod that is gone is no error."""
        ...

    def set_condition(self, pod: Pod, reason: str, message: str) -> None:
        """Write the condition `PodScheduled` of a waiting pod soon, if it differs; only the latest."""
        ...

    def forget(self, uid: str) -> None:
        """End the writes for a pod that is gone, or that is not to be bound to the chosen node any more."""
        ...


class Notices(Protocol):
    """Events of the Kubernetes API; recording never blocks and never fails."""

    def pod(self, pod: Pod, reason: str, action: str, note: str, *, warning: bool = False) -> None:
        """Record an event of a pod."""
        ...

    def node(self, name: str, uid: str, reason: str, note: str, *, warning: bool = False) -> None:
        """Record an event of a node."""
        ...


class Volumes(Protocol):
    """Volumes of pods."""

    def tags(self, pod: Pod) -> Mapping[str, str]:
        """Return the tags about the volumes of a pod."""
        ...

    def problems(self, pod: Pod) -> Sequence[str]:
        """Return why a pod cannot be scheduled before its claims change; empty if it can."""
        ...

    def attributes(self, node: str) -> Mapping[str, str]:
        """Return the attributes of a node that concern volumes."""
        ...

    def assume(self, pod: Pod, node: str) -> str:
        """Choose volumes for a pod that the core has placed; return why that is not possible, or ""."""
        ...

    async def bind(self, pod: Pod) -> None:
        """Bind the chosen volumes, and wait for them; raises `YunikornError`."""
        ...

    def forget(self, uid: str) -> None:
        """Drop what was chosen for a pod."""
        ...


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


class Translation(Protocol):
    """Translation of Kubernetes objects to the terms of the scheduler interface."""

    def app_id(self, pod: Pod) -> str:
        """Return the id of the application of a pod."""
        ...

    def task_group(self, pod: Pod) -> str:
        """Return the task group of a pod; empty for a pod outside of gangs."""
        ...

    def knows_namespace(self, pod: Pod) -> bool:
        """Return True if the namespace of a pod has been reported."""
        ...

    def submission(self, pod: Pod) -> PodSubmission:
        """Return the application that a pod begins."""
        ...

    def resource(self, pod: Pod) -> Resource:
        """Return the resources of a pod."""
        ...

    def tags(self, pod: Pod) -> dict[str, str]:
        """Return the tags of the ask or allocation of a pod of ours."""
        ...

    def foreign_tags(self, pod: Pod) -> dict[str, str]:
        """Return the tags of the allocation of a pod of another scheduler."""
        ...

    def preemption_policy(self, pod: Pod) -> PreemptionPolicy:
        """Return whether a pod may be preempted, and may preempt others."""
        ...

    def conflicts(self, pod: Pod) -> list[str]:
        """Return why a pod cannot be scheduled as it is written; empty if it can."""
        ...

    def placeholder(self, owner: PlaceholderOwner, gang: AnnotatedGang, group: AnnotatedTaskGroup) -> Json:
        """Return the body of one more placeholder of a task group."""
        ...

    def node_resource(self, node: Node) -> Resource:
        """Return the allocatable resources of a node."""
        ...

    def node_attributes(self, node: Node) -> Mapping[str, str]:
        """Return the attributes of a node."""
        ...
