"""Observation of all nodes and partitions of a simulation over time."""

from __future__ import annotations

from yunikorn.interface.messages import Allocation
from yunikorn.reporting.free_room import Room
from yunikorn.reporting.intervals import Timeline
from yunikorn.reporting.node_rows import NodeRows
from yunikorn.reporting.partition_observation import PartitionObservation
from yunikorn.resources import grow
from yunikorn.simulation.oversized import partition_name
from yunikorn.simulation.workload import NodeEvent, NodeEventKind


class ClusterObservation:
    """Usage of all nodes, grouped by partition."""

    def __init__(self, timeline: Timeline) -> None:
        self.partitions: dict[str, PartitionObservation] = {}
        self.rows = NodeRows(timeline)
        self._timeline = timeline
        self._nodes: dict[str, tuple[Room, PartitionObservation]] = {}
        self._numbers: dict[str, int] = {}
        """Numbers of all nodes in `rows`, by name; a node that returns keeps its number."""

    def partition(self, name: str) -> PartitionObservation:
        """Return the partition of this name; the empty name stands for `default`."""
        name = partition_name(name)
        observation = self.partitions.get(name)
        if observation is None:
            observation = self.partitions[name] = PartitionObservation(self._timeline)
        return observation

    def change(self, event: NodeEvent) -> None:
        """Note a node event."""
        name, moment = event.node.name, event.at
        if event.change is NodeEventKind.ADD:
            partition = self.partition(event.node.partition)
            number = self._numbers.get(name)
            if number is None:
                number = self._numbers[name] = self.rows.join(moment)
            room = Room(event.node.resources, number)
            self._nodes[name] = room, partition
            partition.rooms.add(name, room)
            self._resize(room, partition, moment, 1)
            return
        room, partition = self._nodes[name]
        if event.change is NodeEventKind.REMOVE:
            self._resize(room, partition, moment, -1)
            partition.rooms.remove(name)
            del self._nodes[name]
        elif event.change is NodeEventKind.CAPACITY:
            self._resize(room, partition, moment, -1)
            partition.rooms.resize(room, event.resources)
            self._resize(room, partition, moment, 1)
        else:
            room.switch(event.change is NodeEventKind.RESUME)
            partition.touched = True

    def _resize(self, room: Room, partition: PartitionObservation, moment: int, sign: int) -> None:
        grow(partition.capacity, room.capacity, sign)
        room.take(room.capacity, -sign)
        self.rows.capacity(room.index, room.capacity, sign, moment)
        partition.touched = True

    def hold(self, allocation: Allocation, sign: int, moment: int) -> None:
        """Note the start (`sign` 1) or the end (-1) of an allocation."""
        room, partition = self._nodes[allocation.node_id]
        amount = allocation.resource_per_alloc
        room.take(amount, sign)
        partition.hold(amount, sign)
        self.rows.use(room.index, amount, sign, moment)

    def settle(self, moment: int) -> None:
        """Record the state of all partitions; called after all changes of `moment`."""
        for partition in self.partitions.values():
            partition.settle(moment)

    def close(self, moment: int) -> None:
        """Complete all series at the end of the simulation."""
        for partition in self.partitions.values():
            partition.close(moment)
        self.rows.close(moment)

    def capacities(self) -> dict[str, dict[str, int]]:
        """Return the capacity integrated over time (amounts times nanoseconds), by partition."""
        return {
            name: {kind: series.total() for kind, series in observation.had.items()}
            for name, observation in self.partitions.items()
        }
