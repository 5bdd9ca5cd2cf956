"""Counts of pods for spread constraints with ScheduleAnyway, and the scores that follow from them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from yunikorn.api import Node, Task
from yunikorn_kubernetes import names
from yunikorn_kubernetes.predicates.node_affinity import NodeRequirements
from yunikorn_kubernetes.predicates.running_pods import RunningPods, SelectorIndex, namespace_of
from yunikorn_kubernetes.predicates.spread_constraints import Constraint, Eligible, SpreadCount

Column = Sequence[str | None]
"""Values of a label, one for each node that is compared."""
BEST = 100
"""Points of the best node."""


class _EveryNode(Eligible):
    """Nodes that each count alone: pods of a host count wherever the pod itself could run."""

    def value_of(self, node: Node) -> str | None:
        """Return the id of the node."""
        return node.id


class SpreadClass:
    """Pods with equal constraints, labels and node requirements, and their counts."""

    __slots__ = ("_columns", "_domains", "_having", "counts", "is_stale", "keys", "namespace")

    def __init__(
        self,
        namespace: str,
        constraints: Sequence[Constraint],
        tags: Mapping[str, str],
        required: NodeRequirements | str | None,
        tolerations: str,
    ) -> None:
        self.namespace = namespace
        self.keys = tuple(dict.fromkeys(one.key for one in constraints))
        self.counts = [
            SpreadCount(one, one.selector_for(tags), self._eligible(one, required, tolerations))
            for one in constraints
        ]
        self.is_stale = True
        """True after a change of a count."""
        self._columns: list[Column] = []
        """Values by which pods are counted, for each constraint."""
        self._domains: list[int] = []
        """Number of values for each constraint."""
        self._having: list[bool] = []
        """True for each node with all labels."""

    def _eligible(
        self, one: Constraint, required: NodeRequirements | str | None, tolerations: str
    ) -> Eligible:
        if one.key == names.LABEL_HOSTNAME:
            return _EveryNode(one.key, (), None, None)
        return Eligible(
            one.key,
            self.keys,
            required if one.honors_affinity else None,
            tolerations if one.honors_taints else None,
        )

    def compare(self, ids: Sequence[str], columns: Mapping[str, Column]) -> None:
        """Compare these nodes from now on, with the values of their labels for each of the keys."""
        self._having = [
            None not in values for values in zip(*(columns[key] for key in self.keys), strict=True)
        ]
        self._columns, self._domains = [], []
        for count in self.counts:
            # Pods count by node where each node is a domain of its own.
            is_host = count.constraint.key == names.LABEL_HOSTNAME
            column = ids if is_host else columns[count.constraint.key]
            self._columns.append(column)
            self._domains.append(len({value for value, has in zip(column, self._having, strict=True) if has}))

    def points(self) -> list[int]:
        """Return the points of the nodes that are compared."""
        sums = [0.0] * len(self._having)
        for count, column, domains in zip(self.counts, self._columns, self._domains, strict=True):
            skew, weight = float(count.constraint.max_skew - 1), math.log(domains + 2)
            term = {value: pods * weight + skew for value, pods in count.counts.items()}.get
            sums = [total + term(value, skew) for total, value in zip(sums, column, strict=True)]  # type: ignore[arg-type]
        rounded = {total: _rounded(total) for total in set(sums)}
        if all(self._having):
            return _normalised([rounded[total] for total in sums])
        return _normalised(
            [rounded[total] if has else -1 for total, has in zip(sums, self._having, strict=True)]
        )


def _rounded(number: float) -> int:
    """Return the nearest whole number; a half is rounded up."""
    whole = int(number)
    return whole + (number - whole >= 0.5)


def _normalised(scores: Sequence[int]) -> list[int]:
    """Return points for scores, of which low ones are good; those below 0 get none."""
    found = set(scores)
    found.discard(-1)
    if not found:
        return [0] * len(scores)
    low, high = min(found), max(found)
    points = {one: BEST * (high + low - one) // high if high else BEST for one in found}
    points[-1] = 0
    return [points[one] for one in scores]


class SoftSpread:
    """Books of the pods that run, and of the classes of pods that are spread among them."""

    def __init__(self) -> None:
        self._running = RunningPods()
        """Running pods that are not being deleted."""
        self._indexes: dict[str, SelectorIndex[SpreadCount]] = {}
        """Counts by namespace and a label that they require."""
        self._users: dict[SpreadCount, SpreadClass] = {}

    def look(self, seen: SpreadClass, nodes: Mapping[str, Node]) -> None:
        """Count the pods that run for a new class."""
        for count in seen.counts:
            count.fill(self._running, seen.namespace, nodes)
            if count.counts_pods:
                self._users[count] = seen
                self._indexes.setdefault(seen.namespace, SelectorIndex()).add(count, count.pair)

    def forget(self, seen: SpreadClass) -> None:
        """Forget a class."""
        index = self._indexes.get(seen.namespace)
        for count in seen.counts:
            if self._users.pop(count, None) is not None and index is not None:
                index.discard(count, count.pair)
        if index is not None and not index:
            del self._indexes[seen.namespace]

    def add(self, task: Task, node: Node) -> None:
        """Count a pod."""
        if names.TAG_TERMINATING not in task.tags:
            self._running.add(task, node.id)
            self._count(task, node, 1)

    def remove(self, task: Task, node: Node) -> None:
        """Count a pod no more."""
        if names.TAG_TERMINATING not in task.tags:
            self._running.remove(task, node.id)
            self._count(task, node, -1)

    def _count(self, task: Task, node: Node, pods: int) -> None:
        index = self._indexes.get(namespace_of(task))
        for count in index.candidates(task.tags) if index is not None else ():
            if count.selector.matches(task.tags):
                value = count.eligible.value_of(node)
                if value is not None:
                    count.add(value, pods)
                    self._users[count].is_stale = True
