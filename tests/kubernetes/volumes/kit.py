"""A small cluster with volumes: its tags and attributes are given to predicates as the shim would."""

from __future__ import annotations

from typing import Any

from yunikorn.api import Predicate
from yunikorn_kubernetes.objects import Node, Pod
from yunikorn_kubernetes.predicates.node_volume_limits import NodeVolumeLimits
from yunikorn_kubernetes.predicates.volume_binding import VolumeBinding
from yunikorn_kubernetes.predicates.volume_restrictions import VolumeRestrictions
from yunikorn_kubernetes.predicates.volume_zone import VolumeZone
from yunikorn_kubernetes.volumes.cluster_volumes import ClusterVolumes
from yunikorn_testing.samples import AllocationSample, AskSample, NodeSample, allocation, ask, node

PREDICATES: tuple[type[Predicate], ...] = (VolumeRestrictions, NodeVolumeLimits, VolumeBinding, VolumeZone)


class Cluster:
    """Storage objects, nodes and pods, and the four predicates with their books."""

    def __init__(self, *things: Any) -> None:
        self.volumes = ClusterVolumes()
        self.predicates = {kind.name: kind() for kind in PREDICATES}
        self.nodes: dict[str, Node] = {}
        self._running: dict[str, tuple[AllocationSample, NodeSample]] = {}
        self._known: dict[str, NodeSample] = {}
        self.add(*things)

    def add(self, *things: Any) -> None:
        """Add objects of any kind."""
        for thing in things:
            match thing:
                case Node():
                    self.nodes[thing.metadata.name] = thing
                    self.volumes.add_node(thing)
                case Pod():
                    self.volumes.add_pod(thing)
                case _:
                    self.volumes.update(thing)
        self._send_changes()

    def ask(self, pod: str) -> AskSample:
        """Return the ask of a pod."""
        return ask(pod, tags=self.volumes.tags(pod).tags)

    def node(self, name: str) -> NodeSample:
        """Return a node as the core knows it."""
        labels = self.nodes[name].metadata.labels
        return node(name, {**labels, **self.volumes.attributes(name)})

    def problems(self, pod: str) -> tuple[str, ...]:
        """Return the reasons why a pod cannot be scheduled."""
        return self.volumes.tags(pod).problems

    def refusal(self, pod: str, name: str) -> str | None:
        """Return the first refusal of a predicate, with its name."""
        for predicate in self.predicates.values():
            reason = predicate.check(self.ask(pod), self.node(name))
            if reason is not None:
                return f"{predicate.name}: {reason}"
        return None

    def fits(self, pod: str) -> str:
        """Return the nodes on which a pod fits, separated by blanks."""
        return " ".join(name for name in self.nodes if self.refusal(pod, name) is None)

    def place(self, pod: str, name: str) -> None:
        """Place a pod: its task enters the books, as after a decision of the core."""
        task = allocation(self.ask(pod), self.node(name))
        self._running[pod] = task, self.node(name)
        for predicate in self.predicates.values():
            predicate.placed(*self._running[pod])

    def release(self, pod: str) -> None:
        """Release a pod: its task leaves the books."""
        for predicate in self.predicates.values():
            predicate.released(*self._running[pod])
        del self._running[pod]

    def _send_changes(self) -> None:
        """Give new tags and attributes to the books, as the shim sends them to the core."""
        known, self._known = self._known, {name: self.node(name) for name in self.nodes}
        gone = [
            one
            for one in known.values()
            if one.id not in self._known or one.attributes != self._known[one.id].attributes
        ]
        moved = [
            pod
            for pod, (task, at) in self._running.items()
            if dict(task.tags) != dict(self.ask(pod).tags) or any(at.id == one.id for one in gone)
        ]
        places = {pod: self._running[pod][1].id for pod in moved}
        for pod in moved:
            self.release(pod)
        for predicate in self.predicates.values():
            for one in gone:
                predicate.node_removed(one)
            for name, one in self._known.items():
                if name not in known or any(name == old.id for old in gone):
                    predicate.node_added(one)
        for pod, name in places.items():
            self.place(pod, name)
