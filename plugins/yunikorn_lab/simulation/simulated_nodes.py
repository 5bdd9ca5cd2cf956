"""Node messages of the simulated resource manager."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from yunikorn.clock import Clock
from yunikorn.interface.messages import (
    NewNodeInfo,
    NodeAction,
    UpdateNodeInfo,
    UpdateRequest,
    UpdateResponse,
)
from yunikorn_lab.simulation.counters import Counters
from yunikorn_lab.simulation.recorder import Recorder
from yunikorn_lab.simulation.rm_state import SLICES, partition_name, slices_text
from yunikorn_lab.simulation.workload import NodeEvent, NodeEventKind, WorkloadNode

NODE_PARTITION = "si/node-partition"

_ACTIONS = {
    NodeEventKind.DRAIN: NodeAction.DRAIN_NODE,
    NodeEventKind.RESUME: NodeAction.DRAIN_TO_SCHEDULABLE,
    NodeEventKind.REMOVE: NodeAction.DECOMMISSION,
    NodeEventKind.CAPACITY: NodeAction.UPDATE,
}


class SimulatedNodes:
    """Reports node changes to the core, and applies the changes that the core accepts."""

    def __init__(
        self, nodes: list[WorkloadNode], counters: Counters, recorder: Recorder, clock: Clock
    ) -> None:
        self._counters = counters
        self._recorder = recorder
        self._clock = clock
        self._events = [NodeEvent(clock.now(), NodeEventKind.ADD, node) for node in reversed(nodes)]
        """Events that are not yet sent, in reverse order."""
        self._present: dict[str, WorkloadNode] = {}
        self.speeds_differ = False
        """True once nodes of different speeds have been registered."""
        self._speeds: set[float] = set()
        self._sent: list[NodeEvent] = []
        self._rejected: set[str] = set()
        self._failed: set[str] = set()

    @property
    def is_behind(self) -> bool:
        """True if node changes wait to be sent."""
        return bool(self._events)

    def speed(self, name: str) -> float:
        """Return the speed of a node."""
        node = self._present.get(name)
        return 1.0 if node is None else node.speed

    def know(self, events: Iterable[NodeEvent]) -> None:
        """Enter nodes that the core has already, without a message."""
        for event in events:
            self._enter(event)

    def report(self, happened: list[NodeEvent], request: UpdateRequest) -> None:
        """Add node changes to a message, as far as one message can express them in order.

        The core processes new nodes before changes within one message, so a node that joins after a change
        waits for the next message. A second change of one node also waits, because the core's response does
        not distinguish the two changes.
        """
        events = self._events
        events[:0] = reversed(happened)
        changed: set[str] = set()
        while events:
            event = events[-1]
            if changed and (event.change is NodeEventKind.ADD or event.node.name in changed):
                return
            if event.change is NodeEventKind.ADD:
                request.new_schedulable_nodes.append(
                    NewNodeInfo(event.node.name, _attributes(event.node), event.node.resources)
                )
            else:
                changed.add(event.node.name)
                request.updated_nodes.append(
                    UpdateNodeInfo(
                        event.node.name,
                        _ACTIONS[event.change],
                        _attributes(event.node),
                        event.resources if event.change is NodeEventKind.CAPACITY else None,
                    )
                )
            self._sent.append(events.pop())

    def note_refusals(self, response: UpdateResponse) -> None:
        """Note the node changes that the core refuses."""
        for node in response.rejected_nodes:
            self._rejected.add(node.node_id)
            self._counters.node_troubles.append(f"node {node.node_id} was rejected: {node.reason}")
        for change in response.failed_node_updates:
            self._failed.add(change.node_id)
            self._counters.node_troubles.append(f"node {change.node_id} was not changed: {change.reason}")

    def apply(self) -> None:
        """Apply the changes that the core accepted; called after each update."""
        for event in self._sent:
            refused = self._rejected if event.change is NodeEventKind.ADD else self._failed
            if event.node.name not in refused:
                self._enter(event)
        self._sent.clear()
        self._rejected.clear()
        self._failed.clear()

    def leave(self, is_gone: Callable[[str], bool]) -> None:
        """Remove the nodes of partitions that are gone; called after a reload of the configuration."""
        partitions = {partition_name(node.partition) for node in self._present.values()}
        gone = {partition for partition in partitions if is_gone(partition)}
        for node in [node for node in self._present.values() if partition_name(node.partition) in gone]:
            self._enter(NodeEvent(self._clock.now(), NodeEventKind.REMOVE, node))

    def _enter(self, event: NodeEvent) -> None:
        name = event.node.name
        capacity = self._counters.capacity(event.node.partition)
        moment = self._clock.now()
        before = self._present.pop(name, None)
        if event.change is NodeEventKind.ADD:
            self._present[name] = event.node
            self._speeds.add(event.node.speed)
            self.speeds_differ = len(self._speeds) > 1
            self._counters.nodes += 1
            capacity.change(moment, event.node.resources, 1)
        elif before is None:
            return
        elif event.change is NodeEventKind.CAPACITY:
            self._present[name] = attrs.evolve(before, resources=event.resources)
            capacity.change(moment, before.resources, -1)
            capacity.change(moment, event.resources, 1)
        elif event.change is NodeEventKind.REMOVE:
            capacity.change(moment, before.resources, -1)
        else:
            self._present[name] = before
        self._recorder.node_changed(attrs.evolve(event, at=moment, node=before or event.node))


def _attributes(node: WorkloadNode) -> dict[str, str]:
    found = dict(node.attributes)
    if node.devices:
        found[SLICES] = slices_text(node.name, tuple(node.devices.items()))
    if node.partition:
        found[NODE_PARTITION] = node.partition
    return found
