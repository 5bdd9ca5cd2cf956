"""Reader of the preferences of a pod, from the text that the shim writes into a tag."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from yunikorn_kubernetes import names
from yunikorn_kubernetes.predicates.affinity_terms import AffinityTerm, parse_term
from yunikorn_kubernetes.predicates.node_affinity import NodeTerm, parse_node_term
from yunikorn_kubernetes.predicates.spread_constraints import (
    SCHEDULE_ANYWAY,
    Constraint,
    parse_constraints,
)
from yunikorn_kubernetes.predicates.tag_reading import (
    TEXTS,
    UnreadableText,
    load,
    table_of,
    tables_of,
    texts_of,
    whole_of,
)
from yunikorn_kubernetes.predicates.taints import Taint, Toleration, parse_taints, parse_tolerations

LARGEST_WEIGHT = 100
"""Largest weight of a preferred term."""
LARGEST_IMAGE = 1 << 50
"""Largest size of an image in bytes; larger ones do not count."""
WeightedTerm = tuple[AffinityTerm, int]
"""Term about other pods with its weight, which is negative for anti-affinity."""


class Preferences(NamedTuple):
    """Preferences of a pod."""

    tolerations: tuple[Toleration, ...] = ()
    """Tolerations of taints with PreferNoSchedule alone."""
    node_terms: tuple[tuple[NodeTerm, int], ...] = ()
    """Terms about nodes, with their weights."""
    pod_terms: tuple[WeightedTerm, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    """Spread constraints with ScheduleAnyway."""
    images: tuple[str, ...] = ()
    containers: int = 0
    """Number of containers and init containers."""


NONE = Preferences()


@lru_cache(maxsize=TEXTS)
def read_preferences(text: str, namespace: str) -> Preferences:
    """Return the preferences of a pod in a namespace. Raises `UnreadableText` that names the tag."""
    if not text:
        return NONE
    try:
        table = table_of(load(text), "the preferences")
        return Preferences(
            parse_tolerations(table.get(names.TOLERATIONS)),
            tuple(_node_terms(table)),
            (
                *_pod_terms(table, names.POD_AFFINITY, namespace, 1),
                *_pod_terms(table, names.POD_ANTI_AFFINITY, namespace, -1),
            ),
            parse_constraints(table.get(names.TOPOLOGY_SPREAD), SCHEDULE_ANYWAY),
            tuple(texts_of(table.get(names.IMAGES), names.IMAGES)),
            whole_of(table, names.CONTAINERS, 0),
        )
    except (UnreadableText, RecursionError) as error:
        raise UnreadableText(
            f"the pod's preferences cannot be read: {error} (tag {names.TAG_PREFERENCES})"
        ) from None


def _weight(entry: Mapping[str, Any]) -> int:
    weight = whole_of(entry, "weight", 0)
    if not 0 <= weight <= LARGEST_WEIGHT:
        raise UnreadableText(f"weight is {weight} instead of a number from 1 to {LARGEST_WEIGHT}")
    return weight


def _node_terms(table: Mapping[str, Any]) -> list[tuple[NodeTerm, int]]:
    found = []
    for entry in tables_of(table.get(names.NODE_AFFINITY), names.NODE_AFFINITY):
        weight = _weight(entry)
        preference = table_of(entry.get("preference"), "preference")
        # A preference without conditions is about no node.
        if weight and (preference.get("matchExpressions") or preference.get("matchFields")):
            term = parse_node_term(preference)
            if term.fault:
                raise UnreadableText(term.fault)
            found.append((term, weight))
    return found


def _pod_terms(table: Mapping[str, Any], name: str, namespace: str, sign: int) -> list[WeightedTerm]:
    return [
        (parse_term(table_of(entry.get("podAffinityTerm"), "podAffinityTerm"), namespace), sign * weight)
        for entry in tables_of(table.get(name), name)
        if (weight := _weight(entry))
    ]


@lru_cache(maxsize=TEXTS)
def read_soft_taints(text: str) -> tuple[Taint, ...]:
    """Return the taints with PreferNoSchedule of a node; none if they cannot be read."""
    try:
        return parse_taints(load(text))
    except UnreadableText:
        return ()


@lru_cache(maxsize=TEXTS)
def read_images(text: str) -> Mapping[str, int]:
    """Return the sizes in bytes of the images of a node by name; none if they cannot be read."""
    try:
        table = table_of(load(text), "the images") if text else {}
        sizes = {name: whole_of(table, name, 0) for name in table}
        return {name: size for name, size in sizes.items() if 0 < size <= LARGEST_IMAGE}
    except UnreadableText:
        return {}
