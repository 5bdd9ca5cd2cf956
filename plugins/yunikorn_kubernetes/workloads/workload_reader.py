"""Workload readers: what an object that owns pods tells about the gang of its pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import attrs

from yunikorn_kubernetes.objects import Json, OwnerReference, Pod

MEMBERS = "members"
"""Name of the role of gangs whose members are all alike."""


@attrs.frozen
class WorkloadRole:
    """Equal members of a gang, such as the workers of a training."""

    name: str
    size: int
    """Number of pods that the owner makes."""
    minimum: int | None = None
    """Number of pods without which none starts; None for all."""

    @property
    def needed(self) -> int:
        """Number of pods that start together; the others follow when these have started."""
        return max(0, self.size if self.minimum is None else min(self.minimum, self.size))


@attrs.frozen
class WorkloadGang:
    """Pods of a workload that start together."""

    roles: tuple[WorkloadRole, ...]
    reason: str
    """Fields that determine the sizes, for users, such as `parallelism and completions are 8`."""
    has_started: bool = False
    """True if the owner says that pods of the gang ran before: then each pod starts by itself."""

    @property
    def needed(self) -> int:
        """Number of pods that start together."""
        return sum(role.needed for role in self.roles)


class WorkloadReader:
    """Reader of one kind of owner: whether its pods start together, in which roles, and how many.

    Packages offer readers as entry points of the group `yunikorn.workload_readers`. A reader has no state,
    and calls nothing. Where the object does not determine the sizes, `gang` returns the reason as a text, and
    each pod starts by itself.
    """

    group: ClassVar[str]
    """API group of the owner; empty for the core group."""
    kind: ClassVar[str]
    plural: ClassVar[str]
    """Name of the resource in paths of the API, such as `jobs`."""
    name_label: ClassVar[str] = ""
    """Label of the pods with the name of the owner, where other objects stand between the owner and a pod.
    Empty if the owner is the controller of its pods."""
    index_label: ClassVar[str] = ""
    """Label of the pods with their number; the lowest numbers are the members that start together."""

    def recognises(self, pod: Pod) -> bool:
        """Return False for a pod of the owner that never belongs to a gang, without reading the owner."""
        return True

    def part(self, pod: Pod) -> str:
        """Return the name of the pod's gang among those of the owner; empty if the owner has only one."""
        return ""

    def role(self, pod: Pod) -> str:
        """Return the name of the pod's role; a pod whose role the gang does not have starts by itself."""
        return MEMBERS

    def gang(self, owner: Json, pod: Pod) -> WorkloadGang | str:
        """Return the gang of a pod, or why the pod starts by itself.

        `owner` is the object as JSON. Its fields may be missing or have other types than expected: then the
        reader may raise, and the pod starts by itself.
        """
        raise TypeError(f"{type(self).__name__} has no gang(owner, pod)")

    def place_in_order(self, pod: Pod) -> int:
        """Return the number of a pod in its gang; 0 without one."""
        text = pod.metadata.labels.get(self.index_label, "")
        return int(text) if text.isdecimal() and len(text) < 10 else 0


class WorkloadReaders:
    """Readers by API group and kind; a later one takes the place of an earlier one of its kind."""

    def __init__(self, readers: Iterable[WorkloadReader]) -> None:
        self._by_kind = {(reader.group, reader.kind): reader for reader in readers}
        self._by_label = {reader.name_label: reader for reader in self._by_kind.values() if reader.name_label}

    @property
    def all(self) -> tuple[WorkloadReader, ...]:
        """All readers, in the order of their registration."""
        return tuple(self._by_kind.values())

    @property
    def plurals(self) -> Mapping[tuple[str, str], str]:
        """Names of the resources by API group and kind."""
        return {place: reader.plural for place, reader in self._by_kind.items()}

    def reader_of(self, pod: Pod) -> WorkloadReader | None:
        """Return the reader of the workload that a pod belongs to; None for other pods.

        A label of the pod is followed rather than its controller: the Jobs of a JobSet belong to the JobSet.
        """
        controller = controller_reference(pod.metadata.owner_references)
        if controller is None:
            return None
        labels = pod.metadata.labels
        found = next((reader for label, reader in self._by_label.items() if label in labels), None)
        return found or self._by_kind.get((api_group(controller.api_version), controller.kind))


def controller_reference(references: Iterable[OwnerReference]) -> OwnerReference | None:
    """Return the reference to the controller of an object; None if there is no controller."""
    return next((one for one in references if one.controller), None)


def api_group(api_version: str) -> str:
    """Return the group of an `apiVersion`; empty for the core group."""
    return api_version.rpartition("/")[0]


def number_in(fields: Mapping[str, Any], name: str, default: int) -> int:
    """Return a number of an object, or the default of the API where it is missing.

    Raises `TypeError` for other types.
    """
    value = fields.get(name)
    if value is None:
        return default
    if type(value) is not int:
        raise TypeError(f"{name} is no number")
    return value
