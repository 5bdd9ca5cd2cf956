"""Terms of affinity and anti-affinity between pods, and counts of the pods that match them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from yunikorn.api import Node, Task
from yunikorn_kubernetes import names
from yunikorn_kubernetes.predicates.node_affinity import label_key
from yunikorn_kubernetes.predicates.running_pods import (
    Pair,
    RunningPods,
    namespace_labels_of,
    namespace_of,
    required_pair,
    tags_of,
)
from yunikorn_kubernetes.predicates.selectors import Selector, parse_label_selector, with_prefix
from yunikorn_kubernetes.predicates.tag_reading import (
    TEXTS,
    UnreadableText,
    invalid_constraints,
    load,
    pairs_of,
    tables_of,
    text_of,
    texts_of,
)

NO_LABELS: Mapping[str, str] = {}


@lru_cache(maxsize=TEXTS)
def read_namespace_labels(text: str) -> Mapping[str, str]:
    """Return the labels of a namespace from a JSON object; none if they cannot be read."""
    try:
        return dict(pairs_of(load(text), "the labels"))
    except UnreadableText:
        return NO_LABELS


class AffinityTerm(NamedTuple):
    """One required term."""

    key: str
    """Label of the nodes: nodes with the same value are near each other."""
    namespaces: frozenset[str]
    of_namespaces: Selector
    """Selects further namespaces by their labels."""
    selector: Selector
    """Selects pods by the tags that have their labels."""

    def matches(self, namespace: str, namespace_labels: str, tags: Mapping[str, str]) -> bool:
        """Return True for a pod that the term is about."""
        if namespace not in self.namespaces:
            chosen = self.of_namespaces
            if chosen.matches_nothing:
                return False
            if chosen.requirements and not chosen.matches(read_namespace_labels(namespace_labels)):
                return False
        return self.selector.matches(tags)

    def matches_task(self, task: Task) -> bool:
        """Return True if the term is about the pod."""
        return self.matches(namespace_of(task), namespace_labels_of(task), task.tags)


@lru_cache(maxsize=TEXTS)
def read_terms(text: str, namespace: str) -> tuple[AffinityTerm, ...] | str:
    """Return the terms of a pod in a namespace, from a JSON list, or an error text.

    A term without namespaces and without a selector of namespaces is about the namespace of the pod. The
    API server has merged `matchLabelKeys` and `mismatchLabelKeys` into the selector.
    """
    try:
        entries = tables_of(load(text), "the terms") if text else ()
        return tuple(parse_term(entry, namespace) for entry in entries)
    except UnreadableText as error:
        return invalid_constraints("affinity", str(error))


def parse_term(entry: Mapping[str, Any], namespace: str) -> AffinityTerm:
    """Return a term of a pod in a namespace. Raises `UnreadableText`."""
    named = texts_of(entry.get("namespaces"), "namespaces")
    if not named and entry.get("namespaceSelector") is None:
        named = [namespace]
    selector = parse_label_selector(entry.get("labelSelector"), "labelSelector")
    return AffinityTerm(
        label_key(text_of(entry, "topologyKey")),
        frozenset(named),
        parse_label_selector(entry.get("namespaceSelector"), "namespaceSelector"),
        with_prefix(selector, names.TAG_LABEL),
    )


class PodCount:
    """Number of pods that match all of some terms, by label of the nodes and its value."""

    def __init__(self, terms: tuple[AffinityTerm, ...]) -> None:
        self.terms = terms
        self.keys = tuple(dict.fromkeys(term.key for term in terms))
        self.pair: Pair | None = next(filter(None, (required_pair(term.selector) for term in terms)), None)
        self.counts: dict[str, dict[str, int]] = {key: {} for key in self.keys}

    @property
    def is_empty(self) -> bool:
        """True if no pod matches on a node that has one of the labels."""
        return not any(self.counts.values())

    def matches(self, task: Task) -> bool:
        """Return True if a pod matches all terms."""
        return all(term.matches_task(task) for term in self.terms)

    def add(self, node: Node, pods: int = 1) -> None:
        """Count pods on a node; a negative number counts them no more."""
        attributes = node.attributes
        for key, counts in self.counts.items():
            value = attributes.get(key)
            if value is not None:
                after = counts.get(value, 0) + pods
                if after:
                    counts[value] = after
                else:
                    del counts[value]

    def fill(self, running: RunningPods, nodes: Mapping[str, Node]) -> None:
        """Count the pods that run."""
        for namespace, kinds in running.by_namespace.items():
            for kind, counts in kinds.items():
                tags = tags_of(kind)
                if all(term.matches(namespace, kind[0], tags) for term in self.terms):
                    for node_id, pods in counts.items():
                        self.add(nodes[node_id], pods)
