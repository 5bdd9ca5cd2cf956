"""Owners of pods, read by name along the references of controllers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import attrs
import msgspec

from yunikorn_kubernetes.api_server.api_resources import ApiResource
from yunikorn_kubernetes.api_server.calls import ApiError, ApiServer
from yunikorn_kubernetes.objects import Json, ObjectMeta, OwnerReference, Pod
from yunikorn_kubernetes.workloads.reader_calls import ReaderCalls
from yunikorn_kubernetes.workloads.workload_reader import api_group, controller_reference

BETWEEN: Mapping[tuple[str, str], str] = {
    ("", "Pod"): "pods",
    ("batch", "Job"): "jobs",
    ("apps", "StatefulSet"): "statefulsets",
    ("apps", "ReplicaSet"): "replicasets",
}
"""Resources that may stand between a workload and its pods, by API group and kind."""
MOST_STEPS = 8
"""Length of the longest chain of owners that is followed."""

ReadObject = Callable[[OwnerReference, str, str], Awaitable[Json | None]]
"""Reads an object by reference, plural name and namespace; None if there is none of this name."""


class NoOwner(Exception):
    """The owner of a pod cannot be known; the text is the reason."""

    def __init__(self, reason: str, *, is_refused: bool = False) -> None:
        super().__init__(reason)
        self.is_refused = is_refused
        """True if the API server refuses to show an object."""


@attrs.frozen
class FoundOwner:
    """Owner as JSON, with its metadata."""

    meta: ObjectMeta
    content: Json


def object_reader(server: ApiServer) -> ReadObject:
    """Return a reader of objects of an API server."""

    async def read(reference: OwnerReference, plural: str, namespace: str) -> Json | None:
        group, _, version = reference.api_version.rpartition("/")
        resource: ApiResource[dict[str, Any]] = ApiResource(
            group, version, plural, reference.kind, True, dict[str, Any]
        )
        return await server.find(resource, namespace, reference.name)

    return read


async def find_owner(
    pod: Pod, reader: ReaderCalls, read: ReadObject, plurals: Mapping[tuple[str, str], str]
) -> FoundOwner:
    """Return the owner of a pod that is of the kind of `reader`.

    Every object has the uid by which it is referred to: one of the same name that was made later is another
    one. Raises `NoOwner` if the chain ends before, and `ApiError` if the server does not answer.
    """
    namespace = pod.metadata.namespace
    references = pod.metadata.owner_references
    for _ in range(MOST_STEPS):
        reference = controller_reference(references)
        if reference is None:
            break
        place = api_group(reference.api_version), reference.kind
        plural = plurals.get(place) or BETWEEN.get(place)
        if plural is None:
            break
        named = f"{reference.kind} {reference.name}"
        try:
            found = await read(reference, plural, namespace)
        except ApiError as error:
            if error.is_temporary:
                raise
            raise NoOwner(f"{named} cannot be read: {error}", is_refused=True) from error
        meta = msgspec.convert((found or {}).get("metadata", {}), ObjectMeta)
        if found is None or meta.uid != reference.uid:
            raise NoOwner(f"{named} is gone")
        if place == reader.place:
            return FoundOwner(meta, found)
        references = meta.owner_references
    raise NoOwner(f"no {reader.kind} controls the pod")
