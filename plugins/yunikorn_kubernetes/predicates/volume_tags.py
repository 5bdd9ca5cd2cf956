"""Tags and node attributes that describe volumes to the predicates, as immutable structures.

The shim writes them (`yunikorn_kubernetes.volumes`), and the predicates read nothing else, so that recordings
and simulations contain all that a decision depends on. Texts are compact JSON. Tag `pod-volumes`, each key
absent where empty:

- `affinity`: node affinity of each bound volume that has one: `{"volume": NAME, "terms": [...]}`, and for a
  volume of an old in-tree plugin `"plugin"` and `"translated"`, the terms where the plugin is migrated.
- `zones`: zone and region labels of bound volumes, as `[LABEL, [VALUE, ...]]`.
- `attached`: volumes that count against the limits of a node, as `[DRIVER, HANDLE]`; a volume of an in-tree
  plugin counts as that of the CSI driver that replaced the plugin.
- `unmade`: volumes that do not exist yet and will count, as `[DRIVER, CLAIM, SHARED]`.
- `oncePod`: claims that only one pod of the cluster may use.
- `disks`: inline disks that pods on one node cannot share.
- `claims`: claims that are bound when the pod gets its node; see `Claim`.
- `problems`: reasons why the pod fits on no node, such as a claim that does not exist.

Tag `volume-candidates`: free volumes by storage class that are accessible from more than one host.
Node attribute `free-volumes`: free volumes by storage class of this host only; see `FreeVolume`.
Node attribute `storage-capacity`: size of the largest volume that can be made, by storage class.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

from yunikorn_kubernetes.names import (
    NODE_FREE_VOLUMES,
    NODE_MIGRATED_PLUGINS,
    NODE_STORAGE_CAPACITY,
    NODE_VOLUME_ATTACHMENTS,
    NODE_VOLUME_LIMITS,
    TAG_VOLUME_CANDIDATES,
    TAG_VOLUMES,
)
from yunikorn_kubernetes.predicates.selectors import Selector
from yunikorn_kubernetes.predicates.volume_terms import Terms, read_selector, read_terms

FILESYSTEM = "Filesystem"
F = TypeVar("F")
T = TypeVar("T")
Texts = Mapping[str, str]


class VolumeAffinity(NamedTuple):
    """Node affinity of a bound volume."""

    volume: str
    terms: Terms | None
    plugin: str = ""
    """In-tree plugin of the volume; empty for any other volume."""
    translated: Terms | None = None
    """Terms on nodes where the plugin is migrated to a CSI driver."""


class Attached(NamedTuple):
    """Volume that counts against the limit of a node."""

    driver: str
    handle: str


class Unmade(NamedTuple):
    """Volume that is yet to be made or chosen, and counts against the limit of a node."""

    driver: str
    claim: str
    shared: bool


class Disk(NamedTuple):
    """Inline disk that pods on one node cannot share."""

    kind: str
    """`gce`, `ebs`, `iscsi` or `rbd`."""
    id: str
    read_only: bool
    monitors: tuple[str, ...] = ()
    """Monitors of an `rbd` disk; two disks are the same if they have a monitor in common."""


class FreeVolume(NamedTuple):
    """Volume without a claim."""

    name: str
    size: int
    """Capacity in bytes."""
    modes: frozenset[str]
    volume_mode: str
    attributes_class: str
    labels: tuple[tuple[str, str], ...]
    terms: Terms | None


class Demand(NamedTuple):
    """Properties of a claim that decide which volumes suit; claims with equal demands are alike."""

    storage_class: str
    size: int
    """Requested bytes."""
    modes: frozenset[str]
    volume_mode: str
    attributes_class: str
    selector: Selector | None
    volume: str
    """The only volume that suits because it is bound to the claim already; empty without one."""
    volume_terms: Terms | None
    selected_node: str
    """The only node on which the volume may be made; empty if none has been selected."""
    provisioned: bool
    """True if a volume can be made where none suits."""
    topologies: Terms | None
    """Topologies in which a volume can be made; None for all."""
    watches_capacity: bool
    """True if a volume can only be made where the capacity suffices."""

    def takes(self, volume: FreeVolume) -> bool:
        """Return True if a free volume of the storage class suits, regardless of the node."""
        return (
            volume.size >= self.size
            and volume.volume_mode == self.volume_mode
            and volume.attributes_class == self.attributes_class
            and self.modes <= volume.modes
            and (self.selector is None or self.selector.matches(dict(volume.labels)))
        )


class Claim(NamedTuple):
    """Claim that is bound when the pod gets its node."""

    key: str
    """`NAMESPACE/NAME`."""
    shared: bool
    """True if another pod uses the claim as well."""
    demand: Demand


class TaggedVolumes(NamedTuple):
    """Volumes of a pod."""

    affinity: tuple[VolumeAffinity, ...] = ()
    zones: tuple[tuple[str, frozenset[str]], ...] = ()
    attached: tuple[Attached, ...] = ()
    unmade: tuple[Unmade, ...] = ()
    once_pod: tuple[str, ...] = ()
    disks: tuple[Disk, ...] = ()
    claims: tuple[Claim, ...] = ()
    problems: tuple[str, ...] = ()
    """Reasons why the pod fits on no node before its claims change."""
    unreadable: str = ""
    """Reason why the tag cannot be read: every check refuses, and the books count no volumes."""


NO_VOLUMES = TaggedVolumes()
FreeByClass = Mapping[str, tuple[FreeVolume, ...]]


class UnreadableTag(str):
    """Text that says why a tag or attribute cannot be read; a predicate then refuses."""


class PerNode(Generic[T]):
    """Values read from an attribute of each node in the books, so that a search need not read them again."""

    def __init__(self, attribute: str, read: Callable[[Texts], T]) -> None:
        self._attribute = attribute
        self._read = read
        self._known: dict[str, tuple[str, T]] = {}

    def add(self, node_id: str, attributes: Texts) -> None:
        """Read the attribute of a node that is added to the books."""
        text = attributes.get(self._attribute)
        if text is not None:
            self._known[node_id] = text, self._read(attributes)

    def remove(self, node_id: str) -> None:
        """Forget a node."""
        self._known.pop(node_id, None)

    def get(self, node_id: str, attributes: Texts) -> T:
        """Return the value of a node."""
        known = self._known.get(node_id)
        if known is not None and known[0] is attributes.get(self._attribute):
            return known[1]
        return self._read(attributes)


# -- reading JSON -----------------------------------------------------------------------------------------


def _attachments_from(given: Any) -> frozenset[Attached]:
    return frozenset(Attached(driver, handle) for driver, handles in given.items() for handle in handles)


def _counts_from(given: Any) -> Mapping[str, int]:
    return {str(name): int(count) for name, count in given.items()}


def _free_from(given: Any) -> FreeByClass:
    return {
        name: tuple(sorted((_free_volume(one) for one in volumes), key=lambda one: (one.size, one.name)))
        for name, volumes in given.items()
    }


def _free_volume(given: Any) -> FreeVolume:
    return FreeVolume(
        given["name"],
        int(given["size"]),
        frozenset(given.get("modes", ())),
        given.get("volumeMode", FILESYSTEM),
        given.get("attributesClass", ""),
        tuple(sorted(given.get("labels", {}).items())),
        read_terms(given.get("terms")),
    )


def _pod_from(given: Any) -> TaggedVolumes:
    return TaggedVolumes(
        tuple(
            VolumeAffinity(
                one["volume"],
                read_terms(one.get("terms")),
                one.get("plugin", ""),
                read_terms(one.get("translated")),
            )
            for one in given.get("affinity", ())
        ),
        tuple((label, frozenset(values)) for label, values in given.get("zones", ())),
        tuple(Attached(*one) for one in given.get("attached", ())),
        tuple(Unmade(*one) for one in given.get("unmade", ())),
        tuple(given.get("oncePod", ())),
        tuple(_disk(one) for one in given.get("disks", ())),
        tuple(_claim(one) for one in given.get("claims", ())),
        tuple(given.get("problems", ())),
    )


def _unreadable(reason: str) -> TaggedVolumes:
    return TaggedVolumes(unreadable=reason)


def _disk(given: Any) -> Disk:
    return Disk(
        given["kind"], given["id"], given.get("readOnly", False), tuple(sorted(given.get("monitors", ())))
    )


def _claim(given: Any) -> Claim:
    topologies = read_terms(given.get("topologies") or None, "matchLabelExpressions")
    demand = Demand(
        given.get("class", ""),
        int(given.get("size", 0)),
        frozenset(given.get("modes", ())),
        given.get("volumeMode", FILESYSTEM),
        given.get("attributesClass", ""),
        read_selector(given.get("selector")),
        given.get("volume", ""),
        read_terms(given.get("terms")),
        given.get("selectedNode", ""),
        given.get("provisioned", False),
        topologies,
        given.get("watchesCapacity", False),
    )
    return Claim(given["claim"], given.get("shared", False), demand)


def _reader(
    what: str, name: str, read: Callable[[Any], T], nothing: T, failed: Callable[[str], F], texts: int = 1024
) -> Callable[[Texts], T | F]:
    """Return a function that reads the JSON of a tag or attribute and remembers the result of some texts.

    The result is `nothing` without the text, and `failed` makes it from the reason if the text is unreadable.
    """

    @lru_cache(maxsize=texts)
    def read_text(text: str) -> T | F:
        try:
            return read(json.loads(text))
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            return failed(f"the {what} {name} cannot be read: {type(error).__name__}: {error}")

    def value_in(given: Texts) -> T | F:
        text = given.get(name)
        return nothing if text is None else read_text(text)

    return value_in


NO_FREE: FreeByClass = {}
NO_COUNTS: Mapping[str, int] = {}

# -- tags of a task ---------------------------------------------------------------------------------------

pod_volumes = _reader("tag", TAG_VOLUMES, _pod_from, NO_VOLUMES, _unreadable)
"""Volumes of a pod."""
candidates = _reader("tag", TAG_VOLUME_CANDIDATES, _free_from, NO_FREE, UnreadableTag, texts=64)
"""Free volumes of no single host that a pod may get, by storage class, smallest first."""

# -- attributes of a node ---------------------------------------------------------------------------------

_free_volumes = _reader("node attribute", NODE_FREE_VOLUMES, _free_from, NO_FREE, UnreadableTag)


def free_volumes(attributes: Texts) -> FreeByClass | UnreadableTag:
    """Return the free volumes of a node's host by storage class, smallest first.

    Plugins keep this function, and a snapshot can name it only by its module.
    """
    return _free_volumes(attributes)


storage_capacity = _reader("node attribute", NODE_STORAGE_CAPACITY, _counts_from, NO_COUNTS, UnreadableTag)
"""Size of the largest volume that can be made for a node, by storage class."""
volume_limits = _reader("node attribute", NODE_VOLUME_LIMITS, _counts_from, NO_COUNTS, UnreadableTag)
"""Number of volumes that a node can attach, by driver."""
_volume_attachments = _reader(
    "node attribute", NODE_VOLUME_ATTACHMENTS, _attachments_from, frozenset[Attached](), UnreadableTag
)


def volume_attachments(attributes: Texts) -> frozenset[Attached] | UnreadableTag:
    """Return the volumes that are attached to a node; a function for the reason of `free_volumes`."""
    return _volume_attachments(attributes)


def migrated_plugins(attributes: Texts) -> Sequence[str]:
    """Return the in-tree plugins that a CSI driver serves on a node."""
    text = attributes.get(NODE_MIGRATED_PLUGINS)
    return text.split(",") if text else ()
