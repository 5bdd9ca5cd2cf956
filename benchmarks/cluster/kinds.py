"""Nodes and kinds of pods of the benchmark, and checks of what the schedulers decided.

A quarter of the nodes is the pool `batch`, whose taint keeps all pods away that do not tolerate it. Pods come
in groups of 100, each of which is an application of YuniKorn.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from benchmarks.failure import BenchmarkFailure
from tests.kubernetes.cluster import Obj
from tests.kubernetes.cluster.objects import node, pod

ZONES = 10
GROUP = 100
"""Pods of a group."""
ROOM = 32
"""Waiting pods that fit on a node."""
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
TAINT = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}


def zone_of(number: int) -> int:
    """Return the zone of a node."""
    return number % ZONES


def is_batch(number: int) -> bool:
    """Return True for a node of the tainted pool."""
    return number % 4 == 0


def node_objects(count: int) -> Iterator[Obj]:
    """Yield ready nodes `n-0`, `n-1`, ...; each has room for 32 waiting pods and 78 running ones."""
    for number in range(count):
        pool = "batch" if is_batch(number) else "general"
        labels = {ZONE: f"zone-{zone_of(number)}", "pool": pool}
        taints = [TAINT] if is_batch(number) else []
        yield node(f"n-{number}", cpu="24", memory="64Gi", labels=labels, taints=taints, ready=True)


def number_of(node_name: str) -> int:
    """Return the number of a node."""
    return int(node_name.removeprefix("n-"))


def running_pods(count: int, nodes: int) -> Iterator[Obj]:
    """Yield pods that are bound when they are created, dealt to the nodes."""
    for number in range(count):
        yield pod(
            f"running-{number}",
            application=f"running-{number // GROUP}",
            cpu="100m",
            memory="200Mi",
            nodeName=f"n-{number % nodes}",
        )


Groups = Mapping[int, list[int]]
"""Numbers of the nodes of a group's pods."""


def _no_fields(_: Mapping[str, str]) -> Obj:
    return {}


def _accept(_: Groups, __: int) -> str:
    return ""


@attrs.frozen
class Kind:
    """Kind of pods; `fields` returns what the spec has beyond the requests, for the labels of a group."""

    name: str
    fields: Callable[[Mapping[str, str]], Obj] = _no_fields
    problem: Callable[[Groups, int], str] = _accept
    """Returns what is wrong with the nodes of all groups among a number of nodes, or an empty text."""
    tolerates: bool = False
    """True if the pods tolerate the taint of the pool `batch`."""

    def pods(self, scheduler: str, first: int, count: int) -> Iterator[Obj]:
        """Yield pods with the numbers `first`, `first + 1`, ...

        Pods of another scheduler have other names: a deletion of many that the server has given up still
        deletes later pods of the same names.
        """
        for number in range(first, first + count):
            group = f"{self.name}-{number // GROUP}"
            labels = {"group": group}
            fields: dict[str, Any] = self.fields(labels)
            yield pod(
                f"{group}-{number % GROUP}-{scheduler}",
                application=group,
                labels=labels,
                cpu="500m",
                memory="1Gi",
                scheduler=scheduler,
                **fields,
            )

    def verify(self, places: Mapping[str, str], nodes: int) -> None:
        """Raise `BenchmarkFailure` if the nodes of pods, by name, break a rule of nodes or of this kind."""
        used = Counter(places.values())
        groups: dict[int, list[int]] = defaultdict(list)
        for name, place in places.items():
            groups[int(name.split("-")[1])].append(number_of(place))
        for place, count in used.items():
            if count > ROOM:
                raise BenchmarkFailure(f"node {place} was given {count} pods")
            if is_batch(number_of(place)) and not self.tolerates:
                raise BenchmarkFailure(f"pods do not tolerate the taint of node {place}")
        if problem := self.problem(groups, nodes):
            raise BenchmarkFailure(problem)


def _selector(_: Mapping[str, str]) -> Obj:
    return {"nodeSelector": {"pool": "batch"}, "tolerations": [{**TAINT, "operator": "Equal"}]}


def _outside_of_pool(groups: Groups, _: int) -> str:
    others = [number for group in groups.values() for number in group if not is_batch(number)]
    return f"{len(others)} pods are outside of the nodes they select" if others else ""


def _spread(labels: Mapping[str, str]) -> Obj:
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": dict(labels)},
    }
    return {"topologySpreadConstraints": [constraint]}


def _uneven(groups: Groups, _: int) -> str:
    for group, numbers in groups.items():
        counts = Counter(zone_of(number) for number in numbers)
        if max(counts.values()) - min(counts[zone] for zone in range(ZONES)) > 1:
            return f"the pods of group {group} are spread unevenly: {dict(sorted(counts.items()))}"
    return ""


def _apart(labels: Mapping[str, str]) -> Obj:
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": dict(labels)}}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def _together(groups: Groups, _: int) -> str:
    for group, numbers in groups.items():
        if len(set(numbers)) < len(numbers):
            return f"several pods of group {group} are on one node"
    return ""


KINDS = {
    kind.name: kind
    for kind in (
        Kind("plain"),
        Kind("selector", _selector, _outside_of_pool, tolerates=True),
        Kind("spread", _spread, _uneven),
        Kind("apart", _apart, _together),
    )
}
"""No constraints; node selector and toleration; even spread over zones; anti-affinity of hosts."""
