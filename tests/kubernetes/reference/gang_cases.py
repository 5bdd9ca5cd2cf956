"""Gangs and the nodes for them, drawn at random, for the comparison with kube-scheduler.

All cases are in one cluster: the nodes of a case have its label, and its pods select that label.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.kubernetes.cluster.kubectl import Obj
from tests.kubernetes.cluster.objects import container, node, pod

CASE, DISK, GROUP = "tests.yunikorn/case", "tests.yunikorn/disk", "tests.yunikorn/group"
"""Labels of nodes and pods."""
RACK = "rack"
"""Label of the level that gangs may require."""
HOST = "kubernetes.io/hostname"


@dataclass(frozen=True)
class Member:
    """Pod of a gang; the pods of a gang are created in their order."""

    cpu: int
    disk: bool = False
    """True if the pod selects nodes with a disk."""
    port: bool = False
    """True if the pod has a port of its host, so that no other one with the port is on its node."""
    apart: bool = False
    """True if no two such members may be on one node."""


@dataclass(frozen=True)
class Place:
    """Node of a case."""

    cpu: int
    rack: str = ""
    """Empty for a node without the label."""
    disk: bool = False
    used: int = 0
    """CPUs that a pod uses which runs there already."""


@dataclass(frozen=True)
class GangCase:
    """Gang with the nodes for it."""

    name: str
    places: Sequence[Place]
    members: Sequence[Member]
    least: int
    """Number of members that start together."""
    rack: bool = False
    """True if all members have to be in one rack."""
    is_feasible: bool = field(default=False, compare=False)
    """True if the gang is known to fit."""

    def nodes(self) -> list[Obj]:
        """Return the nodes."""
        return [
            node(
                self.node_name(number),
                cpu=str(place.cpu),
                labels={
                    CASE: self.name,
                    **({RACK: f"{self.name}-{place.rack}"} if place.rack else {}),
                    **({DISK: "yes"} if place.disk else {}),
                },
                ready=True,
            )
            for number, place in enumerate(self.places)
        ]

    def node_name(self, number: int) -> str:
        """Return the name of a node."""
        return f"{self.name}-n{number}"

    def fillers(self) -> list[Obj]:
        """Return the pods that run already."""
        return [
            pod(
                f"{self.name}-filler-{number}",
                cpu=str(place.used),
                memory="1Mi",
                scheduler="none",
                nodeName=self.node_name(number),
            )
            for number, place in enumerate(self.places)
            if place.used
        ]

    def pods(self, namespace: str, scheduler: str) -> list[Obj]:
        """Return the pods of the gang."""
        return [self.pod(number, namespace, scheduler) for number in range(len(self.members))]

    def pod(self, number: int, namespace: str, scheduler: str, suffix: str = "") -> Obj:
        """Return one pod of the gang."""
        member = self.members[number]
        apart = {"labelSelector": {"matchLabels": {GROUP: self.name, "apart": "yes"}}, "topologyKey": HOST}
        terms = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
        ports = [{"containerPort": 80, "hostPort": 8080, "protocol": "TCP"}] if member.port else ()
        return pod(
            f"{self.name}-{number}{suffix}",
            namespace,
            labels={GROUP: self.name, **({"apart": "yes"} if member.apart else {})},
            scheduler=scheduler,
            containers=[container(cpu=str(member.cpu), memory="1Mi", ports=ports)],
            nodeSelector={CASE: self.name, **({DISK: "yes"} if member.disk else {})},
            schedulingGroup={"podGroupName": self.name},
            affinity=terms if member.apart else None,
        )

    def group(self, namespace: str) -> Obj:
        """Return the PodGroup."""
        constraints = {"schedulingConstraints": {"topology": [{"key": RACK}]}} if self.rack else {}
        return {
            "apiVersion": "scheduling.k8s.io/v1alpha2",
            "kind": "PodGroup",
            "metadata": {"name": self.name, "namespace": namespace},
            "spec": {"schedulingPolicy": {"gang": {"minCount": self.least}}, **constraints},
        }

    def faults(self, bound: Mapping[int, str]) -> list[str]:
        """Return what is wrong with the nodes of the members that are bound, by number."""
        places = {self.node_name(number): place for number, place in enumerate(self.places)}
        free = {name: place.cpu - place.used for name, place in places.items()}
        unique: set[tuple[str, str]] = set()
        found = []
        for number, name in bound.items():
            member, place = self.members[number], places[name]
            free[name] -= member.cpu
            if free[name] < 0:
                found.append(f"{name} is overcommitted")
            if member.disk and not place.disk:
                found.append(f"member {number} has no disk on {name}")
            for what, is_wanted in (("port", member.port), ("apart", member.apart)):
                if is_wanted and (what, name) in unique:
                    found.append(f"two members with {what} are on {name}")
                if is_wanted:
                    unique.add((what, name))
        if bound and len(bound) < self.least:
            found.append(f"{len(bound)} of {self.least} members are bound")
        racks = {places[name].rack for name in bound.values()}
        if self.rack and bound and (len(racks) > 1 or "" in racks):
            found.append(f"the racks are {sorted(racks)}")
        return found


def any_gang(name: str, rng: random.Random) -> GangCase:
    """Draw a gang that may fit or not."""
    racks = ["a", "b", "c"][: rng.randint(1, 3)]
    places = [
        Place(
            cpu := rng.randint(2, 8),
            rng.choice([*racks, *racks, ""]),
            rng.random() < 0.4,
            rng.choice([0, 0, rng.randint(1, cpu)]),
        )
        for _ in range(rng.randint(2, 7))
    ]
    equal = Member(rng.randint(1, 4)) if rng.random() < 0.3 else None
    members = [equal or _any_member(rng) for _ in range(rng.randint(2, 8))]
    least = len(members) if rng.random() < 0.6 else rng.randint(2, len(members))
    return GangCase(name, places, members, least, rng.random() < 0.4)


def _any_member(rng: random.Random) -> Member:
    return Member(rng.randint(1, 5), rng.random() < 0.25, rng.random() < 0.15, rng.random() < 0.2)


def tight_gang(name: str, rng: random.Random) -> GangCase:
    """Draw a gang that fits, often with no CPU to spare: the pieces of its nodes, the smallest ones first."""
    rack = rng.random() < 0.3
    places: list[Place] = []
    members: list[Member] = []
    for _ in range(rng.randint(2, 4)):
        used = rng.choice([0, 1, 2])
        room, disk, ported = rng.randint(3, 9), rng.random() < 0.4, False
        places.append(Place(room + used, "a" if rack else "", disk, used))
        while room:
            cpu = min(room, rng.randint(1, 6))
            room -= cpu
            port = not ported and rng.random() < 0.2
            ported = ported or port
            if rng.random() < 0.9 or not members:
                members.append(Member(cpu, disk and rng.random() < 0.5, port))
    if rack:
        places += [Place(rng.randint(1, 4), "b"), Place(9)]
    if len(members) == 1:
        members.append(Member(1))
        places.append(Place(1, "a" if rack else ""))
    members.sort(key=lambda one: (one.disk, one.cpu))
    return GangCase(name, places, members, len(members), rack, is_feasible=True)
