"""Choice of volumes for the claims of a pod on one node.

The predicate `volume-binding` asks whether a choice exists, and the shim makes the same choice when it binds
the volumes. As in Kubernetes, a claim gets the smallest free volume that suits (storage class, capacity,
access modes, volume mode, attributes class, selector, node affinity), else a volume is made for it, where
the storage class has a provisioner, the node is in the allowed topologies and the storage capacity suffices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from yunikorn_kubernetes.predicates.refusal_sentences import RefusalSentence
from yunikorn_kubernetes.predicates.volume_matching import Names, assigned
from yunikorn_kubernetes.predicates.volume_tags import (
    Claim,
    Demand,
    FreeByClass,
    FreeVolume,
    Texts,
    UnreadableTag,
    VolumeAffinity,
    candidates,
    free_volumes,
    migrated_plugins,
    storage_capacity,
)
from yunikorn_kubernetes.predicates.volume_terms import matches


class Place(NamedTuple):
    """A node, and the free volumes that a pod may get there."""

    node_id: str
    attributes: Texts
    local: FreeByClass
    """Free volumes of the node's host."""
    wide: FreeByClass
    """Free volumes that are accessible from more than one host."""


def place(
    node_id: str, attributes: Texts, tags: Texts, local: FreeByClass | UnreadableTag | None = None
) -> Place | UnreadableTag:
    """Return a node with its free volumes, from the node's attributes and the tags of a pod's task.

    `local` are the free volumes of the node's host if they have been read before.
    """
    local, wide = free_volumes(attributes) if local is None else local, candidates(tags)
    if isinstance(local, UnreadableTag):
        return local
    return wide if isinstance(wide, UnreadableTag) else Place(node_id, attributes, local, wide)


def affinity_refusal(affinity: Sequence[VolumeAffinity], attributes: Texts) -> str | None:
    """Return None if all bound volumes can be used on a node, else the reason."""
    for volume in affinity:
        terms = volume.terms
        if volume.plugin and volume.plugin in migrated_plugins(attributes):
            terms = volume.translated
        if not matches(terms, attributes):
            return RefusalSentence.VOLUME_AFFINITY.because(
                f"the node affinity of volume {volume.volume} excludes the node"
            )
    return None


def suitable(demand: Demand, where: Place) -> Names:
    """Return the free volumes for a claim on a node, the smallest first."""
    if demand.selected_node:
        return ()
    if demand.volume:
        return (demand.volume,) if matches(demand.volume_terms, where.attributes) else ()
    local = where.local.get(demand.storage_class, ())
    wide = where.wide.get(demand.storage_class, ())
    found = [one for one in local if demand.takes(one) and matches(one.terms, where.attributes)]
    if wide:
        found += [one for one in _wide(demand, wide) if matches(one.terms, where.attributes)]
        found.sort(key=_size)
    return tuple(one.name for one in found)


@lru_cache(maxsize=256)
def _wide(demand: Demand, volumes: tuple[FreeVolume, ...]) -> tuple[FreeVolume, ...]:
    return tuple(one for one in volumes if demand.takes(one))


def _size(volume: FreeVolume) -> tuple[int, str]:
    return volume.size, volume.name


def provisioning_refusal(demand: Demand, where: Place) -> str | None:
    """Return None if a volume can be made for a claim on a node, else the reason."""
    if demand.selected_node and demand.selected_node != where.node_id:
        return RefusalSentence.NO_VOLUME.because(f"a volume is being made for node {demand.selected_node}")
    if not demand.provisioned:
        if demand.volume:
            return RefusalSentence.NO_VOLUME.because(
                f"the node affinity of volume {demand.volume} excludes the node"
            )
        return RefusalSentence.NO_VOLUME.because(f"no free volume{_of_class(demand)} suits")
    if not matches(demand.topologies, where.attributes):
        return RefusalSentence.NO_VOLUME.because(
            f"the node is outside the topologies of storage class {demand.storage_class}"
        )
    if demand.watches_capacity and demand.size:
        capacity = storage_capacity(where.attributes)
        if isinstance(capacity, UnreadableTag):
            return capacity
        largest = capacity.get(demand.storage_class)
        if largest is None or largest < demand.size:
            return RefusalSentence.NO_STORAGE.because(f"not enough storage capacity{_of_class(demand)}")
    return None


def shortage(demands: Iterable[Demand]) -> str:
    """Return the reason if several claims want the same volumes."""
    classes = sorted({demand.storage_class for demand in demands})
    return RefusalSentence.NO_VOLUME.because(
        f"too few free volumes of storage class {', '.join(classes)} suit"
    )


def _of_class(demand: Demand) -> str:
    return f" of storage class {demand.storage_class}" if demand.storage_class else " without a storage class"


PROVISION = ""
"""Choice of a volume that is yet to be made."""


def choose(claims: Sequence[Claim], where: Place) -> Mapping[str, str] | UnreadableTag:
    """Return the name of a volume, or `PROVISION`, by claim; a text if the claims cannot be served.

    Claims without a way to make a volume come first, so that the others leave volumes to them; among these,
    small claims come first.
    """
    chosen: dict[str, str] = {}
    needing: list[tuple[Claim, Names]] = []
    others: list[tuple[Claim, Names]] = []
    for claim in sorted(claims, key=lambda one: (one.demand.size, one.key)):
        names, refusal = suitable(claim.demand, where), provisioning_refusal(claim.demand, where)
        if claim.demand.volume and names:
            chosen[claim.key] = names[0]
        elif refusal is None:
            others.append((claim, names))
        elif names:
            needing.append((claim, names))
        else:
            return UnreadableTag(refusal)
    for (claim, _), volume in zip(needing, assigned([names for _, names in needing]), strict=True):
        if volume is None:
            return UnreadableTag(shortage(one.demand for one, _ in needing))
        chosen[claim.key] = volume
    taken = set(chosen.values())
    for claim, names in others:
        volume = next((name for name in names if name not in taken), PROVISION)
        chosen[claim.key] = volume
        taken.add(volume)
    return chosen
