"""Predicate `inter-pod-affinity`: required affinity and anti-affinity between pods.

Rules: Kubernetes documentation, "Inter-pod affinity and anti-affinity". A pod runs only near pods that match
all terms of its affinity, where each term names the label of nodes that says what is near. The first pod of a
series may run anywhere with the labels: if no running pod matches, and the pod matches its own terms. A pod
runs neither near a pod that a term of its anti-affinity matches, nor near a pod with a term that matches it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from yunikorn.api import Ask, Node, Predicate, Task, Where, hookimpl
from yunikorn_kubernetes import names
from yunikorn_kubernetes.predicates.affinity_terms import AffinityTerm, PodCount, read_terms
from yunikorn_kubernetes.predicates.refusal_sentences import RefusalSentence
from yunikorn_kubernetes.predicates.running_pods import (
    RunningPods,
    SelectorIndex,
    labels_of,
    namespace_labels_of,
    namespace_of,
)
from yunikorn_kubernetes.predicates.tag_reading import section

MOST_GROUPS = 4096
"""Number of groups whose pods are counted; beyond it, half of them are counted again when they are needed."""
MOST_KEYS = 256
"""Number of labels that distinguish classes of requests; beyond it, all labels do."""

Texts = tuple[str, str, str]
"""Namespace, terms of affinity, and terms of anti-affinity as JSON."""


class _Group:
    """Counts for pods with equal terms in one namespace."""

    __slots__ = ("affinity", "anti_affinity")

    def __init__(self, affinity: tuple[AffinityTerm, ...], anti_affinity: tuple[AffinityTerm, ...]) -> None:
        self.affinity = PodCount(affinity) if affinity else None
        self.anti_affinity = [PodCount((term,)) for term in anti_affinity]

    @property
    def counts(self) -> list[PodCount]:
        """All counts."""
        return [*([] if self.affinity is None else [self.affinity]), *self.anti_affinity]


class _Avoiding:
    """Running pods with equal anti-affinity in one namespace."""

    __slots__ = ("pods", "terms")

    def __init__(self, terms: tuple[AffinityTerm, ...]) -> None:
        self.terms = [PodCount((term,)) for term in terms]
        self.pods = 0


class InterPodAffinity(Predicate):
    """Pods near those that they need, and away from those that they, or which them, avoid."""

    name = "inter-pod-affinity"
    counts_foreign = True

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._running = RunningPods()
        self._groups: dict[Texts, _Group] = {}
        self._counts: SelectorIndex[PodCount] = SelectorIndex()
        self._dropped = False
        """True after groups were dropped: a refusal may then end without notice."""
        self._avoiding: dict[tuple[str, str], _Avoiding] = {}
        """Running pods with anti-affinity, by namespace and terms as JSON."""
        self._avoided: SelectorIndex[PodCount] = SelectorIndex()
        self._changes = 0
        """Number of changes of `_avoided`."""
        self._tags: dict[str, None] = {}
        """Tags that terms of anti-affinity have read so far, of pending pods as well."""
        self._is_avoided = False
        """True if there has been anti-affinity."""
        self._is_general = False
        """True if there has been a term that requires no label."""
        self._known: set[tuple[str, str]] = set()
        """Namespaces and terms whose tags are known."""
        self._version = 0
        self._last: tuple[Mapping[str, str], _Group | str | None] | None = None
        """Tags of the latest request, and its group."""
        self._last_avoided: tuple[Mapping[str, str], int, list[PodCount]] | None = None
        """Tags of the latest request, the number of changes, and the terms of running pods that match it."""

    # -- checks -------------------------------------------------------------------------------------

    def check(self, ask: Ask, node: Node) -> str | None:
        """Return None if affinity and anti-affinity, of the pod and of those that run, admit the node."""
        return self._refusal(ask, node)[0]

    def _refusal(self, ask: Ask, node: Node) -> tuple[str | None, str]:
        """Return the reason, and the label that it depends on."""
        attributes = node.attributes
        group = self._group_of(ask)
        if isinstance(group, str):
            return group, ""
        if group is not None:
            if group.affinity is not None:
                reason, key = self._far(ask, group.affinity, attributes)
                if reason is not None:
                    return reason, key
            for count in group.anti_affinity:
                key = count.keys[0]
                if attributes.get(key) in count.counts[key]:
                    detail = f"the pod's anti-affinity excludes a pod in the same {key}"
                    return RefusalSentence.ANTI_AFFINITY.because(detail), key
        if self._avoided:
            for avoided in self._avoiding_it(ask):
                key = avoided.keys[0]
                if attributes.get(key) in avoided.counts[key]:
                    detail = f"a pod in the same {key} excludes the pod by its anti-affinity"
                    return RefusalSentence.ANTI_AFFINITY_OF_OTHERS.because(detail), key
        return None, ""

    def _far(self, ask: Ask, count: PodCount, attributes: Mapping[str, str]) -> tuple[str | None, str]:
        """Return why a node is not near the pods that a pod needs."""
        far = ""
        for key in count.keys:
            value = attributes.get(key)
            if value is None:
                detail = f"the node has no label {key}, which the pod's affinity needs"
                return RefusalSentence.AFFINITY.because(detail), key
            if not far and value not in count.counts[key]:
                far = key
        if not far or (count.is_empty and count.matches(ask)):
            return None, ""
        detail = f"no pod that the pod's affinity needs runs in the same {far}"
        return RefusalSentence.AFFINITY.because(detail), far

    def _avoiding_it(self, ask: Task) -> list[PodCount]:
        """Return the terms of running pods that match a pod."""
        last, tags = self._last_avoided, ask.tags
        if last is not None and last[0] is tags and last[1] == self._changes:
            return last[2]
        found = [one for one in self._avoided.candidates(tags) if one.matches(ask)]
        self._last_avoided = tags, self._changes, found
        return found

    # -- what the answer depends on -----------------------------------------------------------------

    def ask_class(self, ask: Ask) -> Hashable:
        """Return the terms with the namespace, and what terms of other pods may read of the pod."""
        texts = self._texts(ask)
        own: Hashable = None
        if texts is not None:
            self._know(texts)
            group = self._group_of(ask)
            own = group if isinstance(group, str) else (texts, _matches_itself(ask, group))
        if not self._is_avoided:
            return own
        tags = ask.tags
        if len(self._tags) > MOST_KEYS:
            read = tuple(sorted(pair for pair in tags.items() if pair[0].startswith(names.TAG_LABEL)))
        else:
            read = tuple((tag, tags[tag]) for tag in self._tags if tag in tags)
        return own, namespace_of(ask), namespace_labels_of(ask), read

    @property
    def classes_version(self) -> int:
        """Number of changes of the labels that distinguish classes of requests."""
        return self._version

    def scope(self, ask: Ask, node: Node) -> Hashable:
        """Return the label that the refusal depends on."""
        return self._refusal(ask, node)[1]

    def domain_in(self, node: Node, scope: Hashable) -> Hashable:
        """Return the value of the label; the same for all nodes if the terms cannot be read."""
        return node.attributes.get(scope) if isinstance(scope, str) and scope else None

    def subjects(self, task: Task) -> Iterable[Hashable]:
        """Return the labels of a pod, and those that its terms require of others.

        Terms that require no label may be about every pod: then all pods have one subject in common.
        """
        found: list[Hashable] = list(labels_of(task))
        group = self._group_of(task)
        if isinstance(group, _Group):
            found += [count.pair for count in group.counts if count.pair is not None]
        if self._is_general:
            found.append(None)
        return found

    def wanted(self, ask: Ask) -> str | None:
        """Return the terms as the requirement."""
        group = self._group_of(ask)
        if not isinstance(group, _Group):
            return None
        near = "" if group.affinity is None else _shown(group.affinity.terms)
        apart = _shown([term for count in group.anti_affinity for term in count.terms])
        return " and ".join([f"pods near ({near})"] * bool(near) + [f"no pods near ({apart})"] * bool(apart))

    # -- books --------------------------------------------------------------------------------------

    def placed(self, task: Task, node: Node) -> Where | None:
        """Count a pod; a refusal may end where a pod waits for one to be near."""
        self._running.add(task, node.id)
        changed: Where | None = Where.EVERYWHERE if self._dropped else None
        for count in self._counts.candidates(task.tags):
            if count.matches(task):
                count.add(node)
                changed = changed or Where.HERE
        self._avoid(task, node, 1)
        return changed

    def released(self, task: Task, node: Node) -> Where | None:
        """Count a pod no more; without a match anywhere, the first pod of a series may run anywhere."""
        self._running.remove(task, node.id)
        changed = self._dropped
        for count in self._counts.candidates(task.tags):
            if count.matches(task):
                count.add(node, -1)
                changed = changed or count.is_empty
        self._avoid(task, node, -1)
        return Where.EVERYWHERE if changed else None

    def node_added(self, node: Node) -> None:
        """Note a node."""
        self._nodes[node.id] = node

    def node_removed(self, node: Node) -> None:
        """Forget a node."""
        self._nodes.pop(node.id, None)

    def _avoid(self, task: Task, node: Node, pods: int) -> None:
        """Count the terms of anti-affinity of a pod."""
        text = section(task, names.POD_ANTI_AFFINITY)
        if not text:
            return
        namespace = namespace_of(task)
        self._know((namespace, "", text))
        terms = read_terms(text, namespace)
        if isinstance(terms, str):
            return
        key = namespace, text
        avoiding = self._avoiding.get(key)
        if avoiding is None:
            avoiding = self._avoiding[key] = _Avoiding(terms)
            self._changes += 1
            for avoided in avoiding.terms:
                self._is_general = self._is_general or avoided.pair is None
                self._avoided.add(avoided, avoided.pair)
        for avoided in avoiding.terms:
            avoided.add(node, pods)
        avoiding.pods += pods
        if not avoiding.pods:
            del self._avoiding[key]
            self._changes += 1
            for avoided in avoiding.terms:
                self._avoided.discard(avoided, avoided.pair)

    # -- groups -------------------------------------------------------------------------------------

    def _texts(self, task: Task) -> Texts | None:
        affinity, anti = section(task, names.POD_AFFINITY), section(task, names.POD_ANTI_AFFINITY)
        return (namespace_of(task), affinity, anti) if affinity or anti else None

    def _group_of(self, task: Task) -> _Group | str | None:
        """Return the group of a pod; an error text, or None without terms."""
        last, tags = self._last, task.tags
        if last is not None and last[0] is tags:
            return last[1]
        texts = self._texts(task)
        found: _Group | str | None = None
        if texts is not None:
            found = self._groups.get(texts)
            if found is None:
                found = self._count(texts)
        self._last = tags, found
        return found

    def _count(self, texts: Texts) -> _Group | str:
        """Create a group, and count the pods that run; return an error text for terms that are unreadable."""
        namespace, affinity, anti = texts
        near, apart = read_terms(affinity, namespace), read_terms(anti, namespace)
        if isinstance(near, str):
            return near
        if isinstance(apart, str):
            return apart
        if len(self._groups) >= MOST_GROUPS:
            self._drop_half()
        group = self._groups[texts] = _Group(near, apart)
        for count in group.counts:
            self._is_general = self._is_general or count.pair is None
            count.fill(self._running, self._nodes)
            self._counts.add(count, count.pair)
        return group

    def _drop_half(self) -> None:
        """Drop the older half of the groups."""
        self._dropped, self._last = True, None
        for texts in list(self._groups)[: MOST_GROUPS // 2]:
            for count in self._groups.pop(texts).counts:
                self._counts.discard(count, count.pair)

    def _know(self, texts: Texts) -> None:
        """Note which labels the anti-affinity of a pod reads of other pods."""
        namespace, _, anti = texts
        if not anti or (namespace, anti) in self._known:
            return
        if len(self._known) >= MOST_GROUPS:
            self._known.clear()
        self._known.add((namespace, anti))
        terms = read_terms(anti, namespace)
        if isinstance(terms, str):
            return
        new = {
            requirement.key: None
            for term in terms
            for requirement in term.selector.requirements
            if requirement.key not in self._tags
        }
        if not self._is_avoided or (new and len(self._tags) <= MOST_KEYS):
            self._is_avoided = True
            self._tags |= new
            self._version += 1


def _matches_itself(ask: Ask, group: _Group | None) -> bool:
    return group is not None and group.affinity is not None and group.affinity.matches(ask)


def _shown(terms: Iterable[AffinityTerm]) -> str:
    start = len(names.TAG_LABEL)
    return "; ".join(
        f"{', '.join(str(one._replace(key=one.key[start:])) for one in term.selector.requirements) or 'any'}"
        f" by {term.key}"
        for term in terms
    )


@hookimpl
def yunikorn_predicates() -> list[type[Predicate]]:
    """Return the predicate."""
    return [InterPodAffinity]
