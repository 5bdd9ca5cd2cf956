"""Predicate `pod-topology-spread`: the spread of pods over zones, hosts, or other values of a label.

Rules: Kubernetes documentation, "Pod Topology Spread Constraints", for constraints with `DoNotSchedule`. A
node is refused if the number of matching pods with its value of the label, the pod included if it matches
itself, would exceed the smallest number over all values by more than `maxSkew`. Only nodes that have the
labels of all constraints, and that the policies for affinity and taints admit, have values and pods that
count. Pods count in the namespace of the pod, unless they are being deleted.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from yunikorn.api import Ask, Node, Predicate, Task, Where, hookimpl
from yunikorn_kubernetes import names
from yunikorn_kubernetes.predicates.refusal_sentences import RefusalSentence
from yunikorn_kubernetes.predicates.running_pods import (
    RunningPods,
    SelectorIndex,
    labels_of,
    namespace_of,
)
from yunikorn_kubernetes.predicates.spread_constraints import (
    Eligible,
    SpreadCount,
    policies_of,
    read_constraints,
)
from yunikorn_kubernetes.predicates.tag_reading import section

MOST_GROUPS = 4096
"""Number of groups whose counts are kept; beyond it, half of them are counted again when they are needed."""


class _Group:
    """Pods whose constraints are counted together."""

    __slots__ = ("counts", "namespace")

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.counts: list[SpreadCount] = []


class PodTopologySpread(Predicate):
    """Pods spread evenly over the values of labels of nodes."""

    name = "pod-topology-spread"
    counts_foreign = True

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._running = RunningPods()
        self._groups: dict[Hashable, _Group] = {}
        self._eligible: dict[Hashable, Eligible] = {}
        """Nodes that count, by key, policies and what these read of the pod."""
        self._by_namespace: dict[str, SelectorIndex[SpreadCount]] = {}
        self._general: set[str] = set()
        """Namespaces that have had a constraint that requires no label."""
        self._uncounted: set[str] = set()
        """Namespaces that have groups without counts: a refusal may end without notice."""
        self._last: tuple[Mapping[str, str], _Group | str | None] | None = None
        """Tags of the latest request, and its group."""

    def check(self, ask: Ask, node: Node) -> str | None:
        """Return None if all constraints admit the node, else the first that does not."""
        if not section(ask, names.TOPOLOGY_SPREAD):
            return None
        group = self._group_of(ask)
        if group is None or isinstance(group, str):
            return group
        attributes = node.attributes
        for count in group.counts:
            constraint = count.constraint
            value = attributes.get(constraint.key)
            if value is None:
                return RefusalSentence.SPREAD_LABEL.because(f"the node has no label {constraint.key}")
            pods = count.counts.get(value, 0) + count.selector.matches(ask.tags)
            if pods - count.minimum > constraint.max_skew:
                return RefusalSentence.SPREAD.because(
                    f"the pod would exceed the skew of {constraint.max_skew} over {constraint.key}"
                )
        return None

    # -- what the answer depends on -----------------------------------------------------------------

    def ask_class(self, ask: Ask) -> Hashable:
        """Return constraints, namespace, what the policies read, and which constraints match the pod."""
        if not section(ask, names.TOPOLOGY_SPREAD):
            return None
        group = self._group_of(ask)
        if group is None or isinstance(group, str):
            return group
        return _key_of(ask), tuple(count.selector.matches(ask.tags) for count in group.counts)

    def scope(self, ask: Ask, node: Node) -> Hashable:
        """Return the key of the constraint that refuses the node."""
        group = self._group_of(ask)
        if group is None or isinstance(group, str):
            return None
        for count in group.counts:
            value = node.attributes.get(count.constraint.key)
            pods = 0 if value is None else count.counts.get(value, 0) + count.selector.matches(ask.tags)
            if value is None or pods - count.minimum > count.constraint.max_skew:
                return count.constraint.key
        return None

    def domain_in(self, node: Node, scope: Hashable) -> Hashable:
        """Return the value of the label; the same for all nodes if the constraints cannot be read."""
        return node.attributes.get(scope) if isinstance(scope, str) else None

    def subjects(self, task: Task) -> Iterable[Hashable]:
        """Return namespace and labels, and the labels that the constraints require.

        Constraints that require no label may count every pod: then all pods of the namespace have one subject
        in common.
        """
        namespace = namespace_of(task)
        found: list[Hashable] = [(namespace, *pair) for pair in labels_of(task)]
        group = self._group_of(task) if section(task, names.TOPOLOGY_SPREAD) else None
        if isinstance(group, _Group):
            found += [(namespace, *count.pair) for count in group.counts if count.pair is not None]
        if namespace in self._general:
            found.append(namespace)
        return found

    def wanted(self, ask: Ask) -> str | None:
        """Return the constraints as the requirement."""
        found = read_constraints(section(ask, names.TOPOLOGY_SPREAD) or "null")
        if isinstance(found, str) or not found:
            return None
        texts = [f"{one.key} (maxSkew {one.max_skew})" for one in found]
        return f"room by the topology spread over {', '.join(texts)}"

    # -- books --------------------------------------------------------------------------------------

    def placed(self, task: Task, node: Node) -> Where | None:
        """Count a pod; refusals may end everywhere if the smallest number has grown."""
        if names.TAG_TERMINATING in task.tags:
            return None
        self._running.add(task, node.id)
        namespace = namespace_of(task)
        raised = namespace in self._uncounted
        for count, value in self._matching(task, namespace, node):
            before = count.minimum
            count.add(value)
            raised = raised or count.minimum > before
        return Where.EVERYWHERE if raised else None

    def released(self, task: Task, node: Node) -> None:
        """Count a pod no more."""
        if names.TAG_TERMINATING in task.tags:
            return
        self._running.remove(task, node.id)
        for count, value in self._matching(task, namespace_of(task), node):
            count.add(value, -1)

    def node_added(self, node: Node) -> Where | None:
        """Count a node; with another value there may be as many as `minDomains` requires."""
        self._nodes[node.id] = node
        return self._recount(node, 1)

    def node_removed(self, node: Node) -> Where | None:
        """Count a node no more; the smallest number may have been that of its value."""
        self._nodes.pop(node.id, None)
        return self._recount(node, -1)

    def _recount(self, node: Node, nodes: int) -> Where | None:
        before = [count.minimum for group in self._groups.values() for count in group.counts]
        for eligible in self._eligible.values():
            if nodes > 0:
                eligible.add(node)
            else:
                eligible.remove(node)
        after = [count.minimum for group in self._groups.values() for count in group.counts]
        raised = any(new > old for old, new in zip(before, after, strict=True))
        return Where.EVERYWHERE if raised or self._uncounted else None

    def _matching(self, task: Task, namespace: str, node: Node) -> list[tuple[SpreadCount, str]]:
        """Return the counts that a pod changes, with the value of the node."""
        index = self._by_namespace.get(namespace)
        if index is None:
            return []
        found = []
        for count in index.candidates(task.tags):
            if count.selector.matches(task.tags):
                value = count.eligible.value_of(node)
                if value is not None:
                    found.append((count, value))
        return found

    # -- groups -------------------------------------------------------------------------------------

    def _group_of(self, task: Task) -> _Group | str | None:
        """Return the group of a pod; an error text, or None without constraints."""
        last, tags = self._last, task.tags
        if last is not None and last[0] is tags:
            return last[1]
        constraints = read_constraints(section(task, names.TOPOLOGY_SPREAD))
        found: _Group | str | None = None
        if isinstance(constraints, str):
            found = constraints
        elif constraints:
            key = _key_of(task)
            found = self._groups.get(key)
            if found is None:
                found = self._count(task, key)
        self._last = tags, found
        return found

    def _count(self, task: Task, key: Hashable) -> _Group:
        """Create a group, and count the pods that run."""
        if len(self._groups) >= MOST_GROUPS:
            self._drop_half()
        namespace = namespace_of(task)
        group = _Group(namespace)
        constraints = read_constraints(section(task, names.TOPOLOGY_SPREAD))
        assert not isinstance(constraints, str)
        keys = tuple(dict.fromkeys(one.key for one in constraints))
        index = self._by_namespace.get(namespace)
        for constraint in constraints:
            required, tolerations = policies_of(constraint, task)
            counted_by = constraint.key, keys, required, tolerations
            eligible = self._eligible.get(counted_by)
            if eligible is None:
                eligible = self._eligible[counted_by] = Eligible(*counted_by)
                for node in self._nodes.values():
                    eligible.add(node)
            count = SpreadCount(constraint, constraint.selector_for(task.tags), eligible)
            count.fill(self._running, namespace, self._nodes)
            group.counts.append(count)
            if count.counts_pods:
                if index is None:
                    index = self._by_namespace[namespace] = SelectorIndex()
                index.add(count, count.pair)
                if count.pair is None:
                    self._general.add(namespace)
        self._groups[key] = group
        return group

    def _drop_half(self) -> None:
        """Drop the older half of the groups."""
        for key in list(self._groups)[: MOST_GROUPS // 2]:
            group = self._groups.pop(key)
            self._uncounted.add(group.namespace)
            index = self._by_namespace.get(group.namespace)
            if index is not None:
                for count in group.counts:
                    index.discard(count, count.pair)
                if not index:
                    del self._by_namespace[group.namespace]
        used = {id(count.eligible) for group in self._groups.values() for count in group.counts}
        self._eligible = {key: one for key, one in self._eligible.items() if id(one) in used}
        self._last = None


def _key_of(task: Task) -> Hashable:
    """Return all that the counts for a pod depend on, but the pods."""
    text = section(task, names.TOPOLOGY_SPREAD)
    constraints = read_constraints(text)
    assert not isinstance(constraints, str)
    tags = task.tags
    affinity = any(one.honors_affinity for one in constraints)
    return (
        namespace_of(task),
        text,
        section(task, names.NODE_SELECTOR) if affinity else "",
        section(task, names.NODE_AFFINITY) if affinity else "",
        section(task, names.TOLERATIONS) if any(one.honors_taints for one in constraints) else "",
        tuple(tags.get(tag) for one in constraints for tag in one.match_tags),
    )


@hookimpl
def yunikorn_predicates() -> list[type[Predicate]]:
    """Return the predicate."""
    return [PodTopologySpread]
