"""Running pods by namespace and labels, and an index of selectors by the labels that they require.

Pods of one template have equal labels. They are kept as numbers by node, so that counts for a new selector
come from a few sets of labels and not from all pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from yunikorn.api import Task
from yunikorn_kubernetes import names
from yunikorn_kubernetes.predicates.selectors import IN, Selector

Kind = tuple[str, ...]
"""Labels of the namespace as JSON, then tags and values of the labels of the pod, in order."""
Pair = tuple[str, str]
"""Tag of a label, and its value."""
NO_LABELS = "{}"


def namespace_of(task: Task) -> str:
    """Return the namespace of a pod."""
    return task.tags.get(names.TAG_NAMESPACE, "")


def namespace_labels_of(task: Task) -> str:
    """Return the labels of the namespace of a pod as JSON."""
    return task.tags.get(names.TAG_NAMESPACE_LABELS, NO_LABELS)


def labels_of(task: Task) -> Iterator[Pair]:
    """Yield the tags with the labels of a pod, and their values."""
    for pair in task.tags.items():
        if pair[0].startswith(names.TAG_LABEL):
            yield pair


def kind_of(task: Task) -> Kind:
    """Return namespace labels and labels of a pod."""
    tags = task.tags
    labels = sorted(tag for tag in tags if tag.startswith(names.TAG_LABEL))
    found = [namespace_labels_of(task)]
    for tag in labels:
        found += (tag, tags[tag])
    return tuple(found)


def tags_of(kind: Kind) -> dict[str, str]:
    """Return the tags with the labels of a kind of pods."""
    return dict(zip(kind[1::2], kind[2::2], strict=True))


class RunningPods:
    """Number of pods by namespace, kind and node."""

    def __init__(self) -> None:
        self.by_namespace: dict[str, dict[Kind, dict[str, int]]] = {}

    def add(self, task: Task, node_id: str) -> None:
        """Count a pod."""
        counts = self.by_namespace.setdefault(namespace_of(task), {}).setdefault(kind_of(task), {})
        counts[node_id] = counts.get(node_id, 0) + 1

    def remove(self, task: Task, node_id: str) -> None:
        """Count a pod no more."""
        namespace, kind = namespace_of(task), kind_of(task)
        kinds = self.by_namespace[namespace]
        counts = kinds[kind]
        counts[node_id] -= 1
        if not counts[node_id]:
            del counts[node_id]
            if not counts:
                del kinds[kind]
                if not kinds:
                    del self.by_namespace[namespace]


def required_pair(selector: Selector) -> Pair | None:
    """Return a tag with the value that every match of a selector of tags has; None if there is none."""
    for requirement in selector.requirements:
        if requirement.operator == IN and len(requirement.values) == 1:
            return requirement.key, next(iter(requirement.values))
    return None


T = TypeVar("T")


class SelectorIndex(Generic[T]):
    """Entries by a label that the pods they are about must have."""

    def __init__(self) -> None:
        self._by_pair: dict[Pair, dict[T, None]] = {}
        self._others: dict[T, None] = {}
        """Entries without such a label."""

    def __bool__(self) -> bool:
        return bool(self._by_pair or self._others)

    def add(self, entry: T, pair: Pair | None) -> None:
        """Add an entry."""
        entries = self._others if pair is None else self._by_pair.setdefault(pair, {})
        entries[entry] = None

    def discard(self, entry: T, pair: Pair | None) -> None:
        """Remove an entry."""
        if pair is None:
            self._others.pop(entry, None)
            return
        entries = self._by_pair.get(pair, {})
        entries.pop(entry, None)
        if not entries:
            self._by_pair.pop(pair, None)

    def clear(self) -> None:
        """Remove all entries."""
        self._by_pair.clear()
        self._others.clear()

    def candidates(self, tags: Mapping[str, str]) -> Iterator[T]:
        """Yield the entries that may be about a pod with these tags."""
        yield from self._others
        by_pair = self._by_pair
        if by_pair:
            for pair in tags.items():
                if pair in by_pair:
                    yield from by_pair[pair]
