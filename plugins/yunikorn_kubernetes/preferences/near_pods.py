"""Running pods that matter to the preferred pod affinity of others, as sums of weights by label of the nodes.

Both directions count, as in kube-scheduler: the terms of the pod that is placed, about pods that run, and the
terms of those, about the pod that is placed. Required affinity of a running pod counts with the weight 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from yunikorn.api import Node, Task
from yunikorn_kubernetes import names
from yunikorn_kubernetes.predicates.affinity_terms import AffinityTerm, PodCount, read_terms
from yunikorn_kubernetes.predicates.running_pods import RunningPods, SelectorIndex, namespace_of
from yunikorn_kubernetes.predicates.tag_reading import UnreadableText, section
from yunikorn_kubernetes.preferences.preferred_terms import WeightedTerm, read_preferences

REQUIRED_WEIGHT = 1
"""Weight of the required affinity of running pods (`hardPodAffinityWeight` of kube-scheduler)."""
MOST_KEYS = 256
"""Number of labels that distinguish classes of pods; beyond it, all labels do."""
MOST_TEXTS = 1024
"""Number of texts whose terms have been read, as far as that is remembered."""
Texts = tuple[str, str, str]
"""Namespace, preferences, and terms of required affinity as JSON."""
Points = Mapping[str, Mapping[str, int]]
"""Sums of weights by label of the nodes and its value."""


def terms_of_running(texts: Texts) -> list[WeightedTerm]:
    """Return the terms by which a running pod attracts and repels others; none if they cannot be read."""
    namespace, preferences, affinity = texts
    required = read_terms(affinity, namespace)
    found = [] if isinstance(required, str) else [(term, REQUIRED_WEIGHT) for term in required]
    # Unreadable preferences were reported when the class of the request was computed.
    with suppress(UnreadableText):
        found += read_preferences(preferences, namespace).pod_terms
    return found


def texts_of_running(task: Task) -> Texts | None:
    """Return what may have terms about other pods; None for most pods."""
    preferences = task.tags.get(names.TAG_PREFERENCES, "")
    affinity = section(task, names.POD_AFFINITY)
    return (namespace_of(task), preferences, affinity) if preferences or affinity else None


class PodClass:
    """Pods with equal terms and labels that are placed next, and the counts that they look at."""

    __slots__ = ("counts", "is_stale", "namespace", "namespace_labels", "tags")

    def __init__(self, namespace: str, namespace_labels: str, tags: Mapping[str, str]) -> None:
        self.namespace, self.namespace_labels, self.tags = namespace, namespace_labels, tags
        self.counts: list[tuple[PodCount, int]] = []
        """Counts of pods, with their weights."""
        self.is_stale = True
        """True after a change of a count."""

    def is_meant_by(self, term: AffinityTerm) -> bool:
        """Return True if a term is about these pods."""
        return term.matches(self.namespace, self.namespace_labels, self.tags)

    def points(self) -> dict[str, dict[str, int]]:
        """Return the sums of weights by label and value."""
        found: dict[str, dict[str, int]] = {}
        for count, weight in self.counts:
            for key, values in count.counts.items():
                sums = found.setdefault(key, {})
                for value, pods in values.items():
                    sums[value] = sums.get(value, 0) + weight * pods
        return found


class _Attracting:
    """Running pods with equal terms in one namespace."""

    __slots__ = ("pods", "terms")

    def __init__(self, terms: Iterable[WeightedTerm]) -> None:
        self.terms = [(PodCount((term,)), weight) for term, weight in terms]
        self.pods = 0


class NearPods:
    """Books of the pods that run, and of the classes of pods that look at them."""

    def __init__(self) -> None:
        self._running = RunningPods()
        self._index: SelectorIndex[PodCount] = SelectorIndex()
        """Counts for the terms of classes, by a label that they require."""
        self._counts: dict[AffinityTerm, PodCount] = {}
        self._users: dict[PodCount, list[PodClass]] = {}
        """Classes by the counts that they look at."""
        self._attracting: dict[Texts, _Attracting] = {}
        """Running pods with terms about others."""
        self._classes: dict[PodClass, None] = {}
        self._known: dict[Texts, bool] = {}
        """True for texts with terms."""
        self.read: dict[str, None] = {}
        """Tags that the terms of running and waiting pods read of the pods that are placed."""
        self.has_terms = False
        """True if there have been such terms."""
        self.version = 0
        """Number of changes of `read` and `has_terms`."""

    def know(self, texts: Texts) -> bool:
        """Note which labels the terms of a pod read of others; return True if it has terms."""
        known = self._known.get(texts)
        if known is not None:
            return known
        if len(self._known) >= MOST_TEXTS:
            del self._known[next(iter(self._known))]
        terms = terms_of_running(texts)
        self._known[texts] = bool(terms)
        new = {
            requirement.key: None
            for term, _ in terms
            for requirement in term.selector.requirements
            if requirement.key not in self.read
        }
        if terms and (not self.has_terms or (new and len(self.read) <= MOST_KEYS)):
            self.has_terms = True
            self.read |= new
            self.version += 1
        return bool(terms)

    # -- classes ------------------------------------------------------------------------------------

    def look(self, seen: PodClass, terms: Iterable[WeightedTerm], nodes: Mapping[str, Node]) -> None:
        """Count the pods that a new class is about, and those that are about the class."""
        self._classes[seen] = None
        for term, weight in terms:
            count = self._counts.get(term)
            if count is None:
                count = self._counts[term] = PodCount((term,))
                count.fill(self._running, nodes)
                self._index.add(count, count.pair)
            self._use(seen, count, weight)
        for attracting in self._attracting.values():
            self._attract(seen, attracting)

    def _use(self, seen: PodClass, count: PodCount, weight: int) -> None:
        seen.counts.append((count, weight))
        seen.is_stale = True
        self._users.setdefault(count, []).append(seen)

    def _attract(self, seen: PodClass, attracting: _Attracting) -> None:
        for count, weight in attracting.terms:
            if seen.is_meant_by(count.terms[0]):
                self._use(seen, count, weight)

    def forget(self, seen: PodClass) -> None:
        """Forget a class."""
        del self._classes[seen]
        for count, _ in seen.counts:
            users = self._users.get(count)
            if users is None:
                continue
            users.remove(seen)
            if not users:
                del self._users[count]
                if self._counts.get(count.terms[0]) is count:
                    del self._counts[count.terms[0]]
                    self._index.discard(count, count.pair)

    # -- pods ---------------------------------------------------------------------------------------

    def add(self, task: Task, node: Node) -> None:
        """Count a pod."""
        self._running.add(task, node.id)
        self._count(task, node, 1)
        texts = texts_of_running(task)
        if texts is not None and self.know(texts):
            attracting = self._attracting.get(texts)
            if attracting is None:
                attracting = self._attracting[texts] = _Attracting(terms_of_running(texts))
                for seen in self._classes:
                    self._attract(seen, attracting)
            self._change(attracting, node, 1)

    def remove(self, task: Task, node: Node) -> None:
        """Count a pod no more."""
        self._running.remove(task, node.id)
        self._count(task, node, -1)
        texts = texts_of_running(task)
        attracting = None if texts is None else self._attracting.get(texts)
        if texts is None or attracting is None:
            return
        self._change(attracting, node, -1)
        if not attracting.pods:
            del self._attracting[texts]
            for count, weight in attracting.terms:
                for seen in self._users.pop(count, ()):
                    seen.counts.remove((count, weight))

    def _count(self, task: Task, node: Node, pods: int) -> None:
        for count in self._matching(task):
            count.add(node, pods)
            self._mark(count)

    def _matching(self, task: Task) -> Iterator[PodCount]:
        for count in self._index.candidates(task.tags):
            if count.matches(task):
                yield count

    def _change(self, attracting: _Attracting, node: Node, pods: int) -> None:
        attracting.pods += pods
        for count, _ in attracting.terms:
            count.add(node, pods)
            self._mark(count)

    def _mark(self, count: PodCount) -> None:
        for seen in self._users.get(count, ()):
            seen.is_stale = True
