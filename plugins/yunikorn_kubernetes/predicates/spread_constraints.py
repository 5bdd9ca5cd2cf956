"""Topology spread constraints of a pod, and counts of matching pods by value of a label of the nodes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from yunikorn.api import Node, Task
from yunikorn_kubernetes import names
from yunikorn_kubernetes.predicates.node_affinity import NodeRequirements, label_key, requirements_of
from yunikorn_kubernetes.predicates.running_pods import Pair, RunningPods, required_pair, tags_of
from yunikorn_kubernetes.predicates.selectors import (
    IN,
    LabelRequirement,
    Selector,
    parse_label_selector,
    with_prefix,
)
from yunikorn_kubernetes.predicates.tag_reading import (
    TEXTS,
    UnreadableText,
    invalid_constraints,
    load,
    tables_of,
    text_of,
    texts_of,
    whole_of,
)
from yunikorn_kubernetes.predicates.taints import tolerations_of, untolerated

DO_NOT_SCHEDULE, SCHEDULE_ANYWAY = "DoNotSchedule", "ScheduleAnyway"
HONOR, IGNORE = "Honor", "Ignore"


class Constraint(NamedTuple):
    """One topology spread constraint."""

    key: str
    """Label of the nodes whose values are compared."""
    max_skew: int
    min_domains: int
    selector: Selector
    """Selects pods by the tags that have their labels."""
    match_tags: tuple[str, ...]
    """Tags whose values must be those of the incoming pod (`matchLabelKeys`)."""
    honors_affinity: bool
    honors_taints: bool

    def selector_for(self, tags: Mapping[str, str]) -> Selector:
        """Return the selector, with the labels of the incoming pod."""
        if self.selector.matches_nothing:
            return self.selector
        own = tuple(
            LabelRequirement(tag, IN, frozenset((tags[tag],))) for tag in self.match_tags if tag in tags
        )
        return Selector((*own, *self.selector.requirements)) if own else self.selector


@lru_cache(maxsize=TEXTS)
def read_constraints(text: str) -> tuple[Constraint, ...] | str:
    """Return the constraints with `DoNotSchedule` from a JSON list, or an error text."""
    try:
        return parse_constraints(load(text), DO_NOT_SCHEDULE)
    except UnreadableText as error:
        return invalid_constraints("topology spread", str(error))


def parse_constraints(value: Any, action: str) -> tuple[Constraint, ...]:
    """Return the constraints with one `whenUnsatisfiable` of a JSON list. Raises `UnreadableText`."""
    return tuple(
        _constraint(entry)
        for entry in tables_of(value, names.TOPOLOGY_SPREAD)
        if (text_of(entry, "whenUnsatisfiable") or DO_NOT_SCHEDULE) == action
    )


def _constraint(entry: Mapping[str, Any]) -> Constraint:
    selector = parse_label_selector(entry.get("labelSelector"), "labelSelector")
    return Constraint(
        label_key(text_of(entry, "topologyKey")),
        whole_of(entry, "maxSkew", 1),
        whole_of(entry, "minDomains", 1),
        with_prefix(selector, names.TAG_LABEL),
        tuple(names.TAG_LABEL + key for key in texts_of(entry.get("matchLabelKeys"), "matchLabelKeys")),
        _honors(entry, "nodeAffinityPolicy", HONOR),
        _honors(entry, "nodeTaintsPolicy", IGNORE),
    )


def _honors(entry: Mapping[str, Any], policy: str, default: str) -> bool:
    found = text_of(entry, policy) or default
    if found not in (HONOR, IGNORE):
        raise UnreadableText(f"{policy} is '{found}' instead of {HONOR} or {IGNORE}")
    return found == HONOR


class Eligible:
    """Number of nodes that count for a constraint, by value of the label."""

    def __init__(
        self,
        key: str,
        keys: tuple[str, ...],
        required: NodeRequirements | str | None,
        tolerations: str | None,
    ) -> None:
        """Create without nodes: those must have all `keys`, and meet affinity and taints if given."""
        self.key = key
        self._keys = keys
        self._required = required
        self._tolerations = tolerations
        self.domains: dict[str, int] = {}

    def value_of(self, node: Node) -> str | None:
        """Return the value of a node's label; None if the node does not count."""
        attributes = node.attributes
        for key in self._keys:
            if key not in attributes:
                return None
        required = self._required
        if required is not None and (isinstance(required, str) or not required.match(node)):
            return None
        if self._tolerations is not None and (
            untolerated(attributes.get(names.NODE_TAINTS, ""), self._tolerations) is not None
        ):
            return None
        return attributes[self.key]

    def add(self, node: Node) -> None:
        """Count a node."""
        value = self.value_of(node)
        if value is not None:
            self.domains[value] = self.domains.get(value, 0) + 1

    def remove(self, node: Node) -> None:
        """Count a node no more."""
        value = self.value_of(node)
        if value is not None:
            self.domains[value] -= 1
            if not self.domains[value]:
                del self.domains[value]


class SpreadCount:
    """Number of pods that match a constraint, by value of the label, and the smallest of these numbers."""

    def __init__(self, constraint: Constraint, selector: Selector, eligible: Eligible) -> None:
        self.constraint = constraint
        self.selector = selector
        self.eligible = eligible
        self.pair: Pair | None = required_pair(selector)
        self.counts: dict[str, int] = {}
        self._levels: dict[int, int] = {}
        """Number of values by number of pods, without those that have no pod."""
        self._least = 0

    @property
    def counts_pods(self) -> bool:
        """True if pods may match: a selector without conditions counts none, as in kube-scheduler."""
        return bool(self.selector.requirements) and not self.selector.matches_nothing

    @property
    def minimum(self) -> int:
        """Smallest number of pods over all values; 0 if there are fewer values than `minDomains`."""
        domains = len(self.eligible.domains)
        if domains < self.constraint.min_domains or len(self.counts) < domains:
            return 0
        return self._least

    def add(self, value: str, pods: int = 1) -> None:
        """Count pods; a negative number counts them no more."""
        before = self.counts.get(value, 0)
        after = before + pods
        levels = self._levels
        if before:
            levels[before] -= 1
            if not levels[before]:
                del levels[before]
        if after:
            self.counts[value] = after
            levels[after] = levels.get(after, 0) + 1
        else:
            del self.counts[value]
        if self._least not in levels or 0 < after < self._least:
            self._least = min(levels, default=0)

    def fill(self, running: RunningPods, namespace: str, nodes: Mapping[str, Node]) -> None:
        """Count the pods that run in a namespace."""
        if not self.counts_pods:
            return
        values: dict[str, str | None] = {}
        for kind, counts in running.by_namespace.get(namespace, {}).items():
            if self.selector.matches(tags_of(kind)):
                for node_id, pods in counts.items():
                    if node_id not in values:
                        values[node_id] = self.eligible.value_of(nodes[node_id])
                    value = values[node_id]
                    if value is not None:
                        self.add(value, pods)


def policies_of(constraint: Constraint, task: Task) -> tuple[NodeRequirements | str | None, str | None]:
    """Return the node requirements and the tolerations of a pod, each None if its policy is to ignore it."""
    return (
        requirements_of(task) if constraint.honors_affinity else None,
        tolerations_of(task) if constraint.honors_taints else None,
    )
