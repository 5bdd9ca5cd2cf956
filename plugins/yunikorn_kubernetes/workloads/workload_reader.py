"""Workload readers: what an object that owns pods tells about the gang of its pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from yunikorn.api import Plugin

if TYPE_CHECKING:
    # Readers are plugins, which `yunikorn plugins` imports also without the library of these objects.
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
    step: int = 1
    """Number of further pods that are placed together, such as the hosts of one worker."""

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


_TEXTS = ("group", "kind", "plural", "name_label", "index_label")
"""Attributes of a reader that are texts."""


class WorkloadReader(Plugin):
    """Reader of one kind of owner: whether its pods start together, in which roles, and how many.

    A reader has no options and no state, and calls nothing. Where the object does not determine the sizes,
    `gang` returns the reason as a text, and each pod starts by itself.
    """

    group: ClassVar[str]
    """API group of the owner; empty for the core group."""
    kind: ClassVar[str]
    """Kind of the owner."""
    plural: ClassVar[str]
    """Name of the resource in paths of the API, such as `jobs`."""
    name_label: ClassVar[str] = ""
    """Label of the pods with the name of the owner, where other objects stand between the owner and a pod.
    Empty if the owner is the controller of its pods."""
    index_label: ClassVar[str] = ""
    """Label of the pods with their number; the lowest numbers are the members that start together."""

    def __init_subclass__(cls) -> None:
        """Refuse a reader that does not say which objects it reads."""
        super().__init_subclass__()
        for attribute in _TEXTS if hasattr(cls, "name") else ():
            text = getattr(cls, attribute, None)
            if not isinstance(text, str):
                raise TypeError(f"{cls.__name__} has no {attribute}: set the class attribute to a text")
            is_label = attribute.endswith("_label")
            if ("/" in text and not is_label) or (attribute in ("kind", "plural") and not text):
                raise TypeError(f"{attribute} of {cls.__name__} is {text!r}: without a slash and a version")

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


def controller_reference(references: Iterable[OwnerReference]) -> OwnerReference | None:
    """Return the reference to the controller of an object; None if there is no controller."""
    return next((one for one in references if one.controller), None)


def api_group(api_version: str) -> str:
    """Return the group of an `apiVersion`; empty for the core group."""
    return api_version.rpartition("/")[0]


def annotations_of(owner: Json) -> Mapping[str, str]:
    """Return the annotations of an object or a template."""
    found: Mapping[str, str] = (owner.get("metadata") or {}).get("annotations") or {}
    return found


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
