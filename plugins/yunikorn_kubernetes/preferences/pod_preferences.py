"""Node sort policy `pod-preferences`: what pods prefer, in the order of kube-scheduler.

Rules: the scoring plugins of kube-scheduler 1.36. Each of the five preferences gives a node 0 to 100 points,
relative to the nodes that the pod's node selector, required node affinity and tolerations admit; the points
are added with weights:

    partitions:
      - name: default
        nodesortpolicy:
          type: weighted
          scores:
            - {name: pod-preferences, weight: 10}
            - {name: fair, weight: 1}
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import attrs

from yunikorn.api import Ask, AskClass, Context, Node, NodeSortPolicy, Task, hookimpl
from yunikorn_kubernetes import names
from yunikorn_kubernetes.predicates.node_affinity import NodeRequirements, read_requirements
from yunikorn_kubernetes.predicates.running_pods import namespace_labels_of, namespace_of
from yunikorn_kubernetes.predicates.tag_reading import TEXTS, UnreadableText, section
from yunikorn_kubernetes.predicates.taints import (
    UNSCHEDULABLE,
    Toleration,
    read_tolerations,
    untolerated,
)
from yunikorn_kubernetes.preferences.near_pods import MOST_KEYS, NearPods, PodClass, texts_of_running
from yunikorn_kubernetes.preferences.preferred_terms import (
    NONE,
    Preferences,
    read_images,
    read_preferences,
    read_soft_taints,
)
from yunikorn_kubernetes.preferences.soft_spread import BEST, Column, SoftSpread, SpreadClass

TAINTS, NODE_AFFINITY, POD_AFFINITY = "taint-toleration", "node-affinity", "inter-pod-affinity"
SPREAD, IMAGES = "pod-topology-spread", "image-locality"
DEFAULT_WEIGHTS = {NODE_AFFINITY: 2.0, TAINTS: 3.0, POD_AFFINITY: 2.0, SPREAD: 2.0, IMAGES: 1.0}
"""Weights of kube-scheduler's default profile."""
MOST_SCORES = 1_000_000
"""Number of scores that are kept; beyond it, the oldest classes of pods are computed again when needed."""
MOST_CLASSES = 1024
"""Number of classes of pods whose scores are kept."""
MOST_CHANGES = 4096
"""Number of changed nodes that a class may lag behind."""
READING = "reading the preferences of a pod"
LAST = 1.0
"""Score of a node that is not compared, because the pod may not run there."""
MEGABYTE = 1 << 20
LEAST_SIZE, MOST_SIZE = 23 * MEGABYTE, 1000 * MEGABYTE
"""Bytes of images below which a node gets no points, and, for each container, above which it gets no more."""


def _weights(_: object, attribute: attrs.Attribute[dict[str, float]], weights: dict[str, float]) -> None:
    unknown = [name for name in weights if name not in DEFAULT_WEIGHTS]
    if unknown:
        raise ValueError(f"unknown: {', '.join(unknown)}; known: {', '.join(DEFAULT_WEIGHTS)}")
    for name, weight in weights.items():
        if weight < 0:
            raise ValueError(f"the weight of {name} is {weight:g}; weights are 0 or more")
    if not any((DEFAULT_WEIGHTS | weights).values()):
        raise ValueError("all weights are 0: give one preference a weight above 0")


def _unreported(_: str, __: BaseException | str) -> None:
    """Ignore a report before the policy is opened."""


class _Key(NamedTuple):
    """All that the scores for a pod depend on, besides nodes and running pods."""

    preferences: str
    node_selector: str
    node_affinity: str
    tolerations: str
    namespace: str = ""
    namespace_labels: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    """Tags of the labels that terms and constraints read, with their values."""


class _Standing(NamedTuple):
    """Facts about a node that only a change of the node changes."""

    affinity: int
    """Sum of the weights of the terms that match."""
    taints: int
    """Number of taints with PreferNoSchedule that are not tolerated."""


class _ScoredClass:
    """Pods that get the same scores."""

    def __init__(self, key: _Key) -> None:
        self.key = key
        self.preferences: Preferences = read_preferences(key.preferences, key.namespace)
        selector, affinity = key.node_selector, key.node_affinity
        self.required: NodeRequirements | str | None = (
            read_requirements(selector, affinity) if selector or affinity else None
        )
        tags = dict(key.labels)
        self.near = PodClass(key.namespace, key.namespace_labels, tags)
        constraints = self.preferences.constraints
        self.spread = (
            SpreadClass(key.namespace, constraints, tags, self.required, key.tolerations)
            if constraints
            else None
        )
        self.soft = (*self.preferences.tolerations, *_without_effect(key.tolerations))
        self.tolerates_unschedulable = any(one.tolerates(UNSCHEDULABLE) for one in _readable(key.tolerations))
        self.standings: dict[str, _Standing] = {}
        """Nodes that are compared."""
        self.known: dict[_Standing, _Standing] = {}
        """Facts that many nodes have in common."""
        self.ids: list[str] = []
        """Ids of the nodes that are compared; all lists are in this order."""
        self.columns: dict[str, Column] = {}
        """Values of labels."""
        self.totals: list[float] = []
        """Weighted points for what only changes of nodes change."""
        self.seen = -1
        """Number of changed nodes that are applied; -1 if none is."""
        self.scores: dict[str, float] = {}
        self.changes: list[str] = []
        """Ids of nodes whose scores have changed."""

    def standing(self, node: Node) -> _Standing | None:
        """Return the facts about a node; None if the pods may not run there."""
        attributes = node.attributes
        required = self.required
        if required is not None and (isinstance(required, str) or not required.match(node)):
            return None
        if attributes.get(names.NODE_UNSCHEDULABLE) == "true" and not self.tolerates_unschedulable:
            return None
        taints = attributes.get(names.NODE_TAINTS)
        if taints and untolerated(taints, self.key.tolerations) is not None:
            return None
        soft = attributes.get(names.NODE_SOFT_TAINTS)
        return _Standing(
            sum(weight for term, weight in self.preferences.node_terms if term.matches(node.id, attributes)),
            _intolerable(soft, self.soft) if soft else 0,
        )


@lru_cache(maxsize=TEXTS)
def _intolerable(taints: str, tolerations: tuple[Toleration, ...]) -> int:
    return sum(
        not any(toleration.tolerates(taint) for toleration in tolerations)
        for taint in read_soft_taints(taints)
    )


def _readable(tolerations: str) -> tuple[Toleration, ...]:
    found = read_tolerations(tolerations)
    return () if isinstance(found, str) else found


def _without_effect(tolerations: str) -> tuple[Toleration, ...]:
    return tuple(one for one in _readable(tolerations) if not one.effect)


@attrs.define(eq=False)
class PodPreferences(NodeSortPolicy):
    """The nodes that a pod prefers first, as kube-scheduler scores them."""

    name = names.POD_PREFERENCES
    score_range = (0.0, 1.0)
    counts_foreign = True

    weights: dict[str, float] = attrs.field(factory=dict, validator=_weights)
    """Weights of the preferences, instead of those of kube-scheduler."""
    _report: Callable[[str, BaseException | str], None] = attrs.field(init=False, default=_unreported)
    _nodes: dict[str, Node] = attrs.field(init=False, factory=dict)
    _images: dict[str, dict[str, int]] = attrs.field(init=False, factory=dict)
    """Sizes of images by name and node."""
    _near: NearPods = attrs.field(init=False, factory=NearPods)
    _spread: SoftSpread = attrs.field(init=False, factory=SoftSpread)
    _classes: dict[Hashable, _ScoredClass] = attrs.field(init=False, factory=dict)
    _changed: list[str] = attrs.field(init=False, factory=list)
    """Ids of nodes that were added or removed, as far as a class may not know of it."""
    _none: list[str] = attrs.field(init=False, factory=list)
    """Changes of requests without a class."""
    _weight: dict[str, float] = attrs.field(init=False, factory=dict)
    _latest: AskClass | None = attrs.field(init=False, default=None)
    """Ask class whose scores are in `_scores`; None after any change."""
    _scores: Mapping[str, float] = attrs.field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        """Take the weights."""
        self._weight = DEFAULT_WEIGHTS | self.weights

    def opened(self, context: Context) -> None:
        """Take the way to report what cannot be read."""
        self._report = context.report

    # -- requests -----------------------------------------------------------------------------------

    def ask_class(self, ask: Ask) -> Hashable:
        """Return what the scores for a pod depend on; preferences that cannot be read do not count."""
        tags = ask.tags
        text = tags.get(names.TAG_PREFERENCES, "")
        preferences = NONE
        try:
            preferences = read_preferences(text, namespace_of(ask))
        except UnreadableText as error:
            self._report(READING, f"{error}; pod {tags.get(names.TAG_POD_NAME, ask.key)}")
            text = ""
        texts = texts_of_running(ask)
        if texts is not None:
            self._near.know(texts)
        near = self._near
        # Not part of the key otherwise, so that as many pods as possible share one order of nodes.
        namespace = namespace_of(ask) if near.has_terms or preferences.constraints else ""
        read: dict[str, None] = dict.fromkeys(
            tag for one in preferences.constraints for tag in one.match_tags
        )
        if near.has_terms:
            many = len(near.read) > MOST_KEYS
            read |= (
                dict.fromkeys(tag for tag in tags if tag.startswith(names.TAG_LABEL)) if many else near.read
            )
        return tuple(
            _Key(
                text,
                section(ask, names.NODE_SELECTOR),
                section(ask, names.NODE_AFFINITY),
                section(ask, names.TOLERATIONS),
                namespace,
                namespace_labels_of(ask) if near.has_terms else "",
                tuple((tag, tags[tag]) for tag in sorted(read) if tag in tags),
            )
        )

    @property
    def classes_version(self) -> int:
        """Number of changes of the labels that distinguish classes of pods."""
        return self._near.version

    def score_changes(self, ask_class: AskClass) -> list[str]:
        """Return the ids of the nodes whose scores have changed for a class of pods."""
        found = self._class_of(ask_class)
        return self._none if found is None else found.changes

    def score(self, node: Node, ask_class: AskClass) -> float:
        """Return 0 for the nodes that the pod prefers most, and more by the points that another node lacks.

        Only differences are scored, so that a change of a few nodes leaves the others as they are.
        """
        if ask_class is not self._latest:
            found = self._class_of(ask_class)
            self._latest, self._scores = ask_class, {} if found is None else found.scores
        return self._scores.get(node.id, LAST)

    def _class_of(self, ask_class: AskClass | None) -> _ScoredClass | None:
        """Return a class of pods with its present scores; None for a request without a class."""
        value = None if ask_class is None else ask_class.value
        if not isinstance(value, tuple):
            return None
        found = self._classes.get(value)
        if found is None:
            found = self._new_class(value)
        self._refresh(found)
        return found

    def _new_class(self, value: tuple[str, ...]) -> _ScoredClass:
        most = min(MOST_CLASSES, MOST_SCORES // max(1, len(self._nodes)))
        while len(self._classes) >= max(1, most):
            oldest = self._classes.pop(next(iter(self._classes)))
            self._near.forget(oldest.near)
            if oldest.spread is not None:
                self._spread.forget(oldest.spread)
        made = self._classes[value] = _ScoredClass(_Key(*value))  # type: ignore[arg-type]
        self._near.look(made.near, made.preferences.pod_terms, self._nodes)
        if made.spread is not None:
            self._spread.look(made.spread, self._nodes)
        return made

    # -- scores -------------------------------------------------------------------------------------

    def _refresh(self, one: _ScoredClass) -> None:
        """Compute the scores again, if anything has changed that they depend on."""
        spread = one.spread
        is_moved = one.seen != len(self._changed)
        if not (is_moved or one.near.is_stale or (spread is not None and spread.is_stale)):
            return
        if is_moved:
            self._catch_up(one)
        one.near.is_stale = False
        if spread is not None:
            spread.is_stale = False
        before, scores = one.scores, self._computed(one)
        one.scores = scores
        changed = [node_id for node_id, score in scores.items() if before.get(node_id) != score]
        if len(one.changes) + len(changed) > MOST_CHANGES + 4 * len(scores):
            one.changes = []
        else:
            one.changes += changed

    def _catch_up(self, one: _ScoredClass) -> None:
        """Apply the changes of nodes."""
        changed = self._nodes if one.seen < 0 else dict.fromkeys(self._changed[one.seen :])
        for node_id in changed:
            node = self._nodes.get(node_id)
            standing = None if node is None else one.standing(node)
            if standing is not None:
                one.standings[node_id] = one.known.setdefault(standing, standing)
            else:
                one.standings.pop(node_id, None)
        one.seen = len(self._changed)
        one.ids = list(one.standings)
        one.columns.clear()
        standings = one.standings.values()
        one.totals = self._added(
            [0.0] * len(one.ids),
            (NODE_AFFINITY, _of_affinity([each.affinity for each in standings])),
            (TAINTS, _of_taints([each.taints for each in standings])),
            (IMAGES, self._of_images(one.preferences, one.ids)),
        )
        if one.spread is not None:
            one.spread.compare(one.ids, {key: self._column(one, key) for key in one.spread.keys})

    def _added(self, totals: list[float], *parts: tuple[str, Sequence[int] | None]) -> list[float]:
        """Return sums with the points of some preferences; None instead of points if all nodes are equal."""
        for name, points in parts:
            weight = self._weight[name]
            if points is not None and weight:
                totals = [total + weight * each for total, each in zip(totals, points, strict=True)]
        return totals

    def _column(self, one: _ScoredClass, key: str) -> Column:
        """Return the values of a label of the nodes that are compared."""
        found = one.columns.get(key)
        if found is None:
            nodes = self._nodes
            found = one.columns[key] = [nodes[node_id].attributes.get(key) for node_id in one.ids]
        return found

    def _computed(self, one: _ScoredClass) -> dict[str, float]:
        totals = self._added(
            one.totals,
            (POD_AFFINITY, self._of_pods(one)),
            (SPREAD, None if one.spread is None else one.spread.points()),
        )
        distinct = set(totals)
        best, most = max(distinct, default=0.0), BEST * sum(self._weight.values())
        score = {total: (best - total) / most for total in distinct}
        return dict(zip(one.ids, [score[total] for total in totals], strict=True))

    def _of_pods(self, one: _ScoredClass) -> Sequence[int] | None:
        """Return the points by pod affinity; None if all nodes are equal."""
        sums: Sequence[int] = [0] * len(one.ids)
        for key, values in one.near.points().items():
            if values:
                points: Callable[..., int] = values.get
                column = self._column(one, key)
                sums = [total + points(value, 0) for total, value in zip(sums, column, strict=True)]
        distinct = set(sums)
        if len(distinct) < 2:
            return None
        low, high = min(distinct), max(distinct)
        normal = {each: int(float(BEST) * ((each - low) / (high - low))) for each in distinct}
        return [normal[each] for each in sums]

    def _of_images(self, wanted: Preferences, ids: Sequence[str]) -> Sequence[int] | None:
        """Return the points by the images that nodes have; None if no node has one."""
        sums: dict[str, int] = {}
        nodes = len(self._nodes)
        for image in wanted.images:
            holders = self._images.get(image, {})
            spread = len(holders) / nodes if nodes else 0.0
            for node_id, size in holders.items():
                sums[node_id] = sums.get(node_id, 0) + int(size * spread)
        if not sums:
            return None
        most = MOST_SIZE * max(1, wanted.containers)
        points = {
            node_id: BEST * (max(LEAST_SIZE, min(most, size)) - LEAST_SIZE) // (most - LEAST_SIZE)
            for node_id, size in sums.items()
        }
        return [points.get(node_id, 0) for node_id in ids]

    # -- books --------------------------------------------------------------------------------------

    def placed(self, task: Task, node: Node) -> None:
        """Count a pod."""
        self._latest = None
        self._near.add(task, node)
        self._spread.add(task, node)

    def released(self, task: Task, node: Node) -> None:
        """Count a pod no more."""
        self._latest = None
        self._near.remove(task, node)
        self._spread.remove(task, node)

    def node_added(self, node: Node) -> None:
        """Note a node and its images."""
        self._nodes[node.id] = node
        for image, size in read_images(node.attributes.get(names.NODE_IMAGES, "")).items():
            self._images.setdefault(image, {})[node.id] = size
        self._note(node)

    def node_removed(self, node: Node) -> None:
        """Forget a node and its images."""
        self._nodes.pop(node.id, None)
        for image in read_images(node.attributes.get(names.NODE_IMAGES, "")):
            holders = self._images.get(image, {})
            holders.pop(node.id, None)
            if not holders:
                self._images.pop(image, None)
        self._note(node)

    def _note(self, node: Node) -> None:
        """Note a change of a node for the classes of pods that have scores."""
        self._latest = None
        if not self._classes:
            return
        if len(self._changed) >= MOST_CHANGES:
            self._changed.clear()
            for one in self._classes.values():
                one.seen = -1
                one.standings.clear()
        self._changed.append(node.id)


def _of_affinity(sums: Sequence[int]) -> Sequence[int] | None:
    """Return the points by node affinity; None if all nodes are equal."""
    most = max(sums, default=0)
    if not most:
        return None
    return [BEST * each // most for each in sums]


def _of_taints(numbers: Sequence[int]) -> Sequence[int] | None:
    """Return the points by taints; None if all nodes are equal."""
    most = max(numbers, default=0)
    if not most:
        return None
    return [BEST - BEST * each // most for each in numbers]


@hookimpl
def yunikorn_node_sort_policies() -> list[type[NodeSortPolicy]]:
    """Return the policy."""
    return [PodPreferences]
