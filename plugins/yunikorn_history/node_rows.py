"""Rows of `nodes`: when nodes joined and left, and how they changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from yunikorn.accounting.event_batch import Entry, Source
from yunikorn.clock import MILLISECOND
from yunikorn.event_types import EventChange, EventDetail, EventType
from yunikorn_history.core_sample import SampledCore
from yunikorn_history.open_rows import json_text
from yunikorn_history.rows import Ids, Row

MISSING = 3
"""Number of samples in a row without a node after which it has left: its end was not observed."""
DRAIN, RESUME, CAPACITY = "drain", "resume", "capacity"
"""Kinds of changes."""
MOMENT = 100
"""Time (ms) between a change of the state and its reason at most."""
NodeKey = tuple[int, int, int]
"""Ids of the names of resource manager, partition and node."""
LONGEST_CHANGES = 200
"""Number of changes that a row has at most: the first and the latest ones."""


@attrs.define(eq=False)
class OpenNode:
    """A node whose row may change."""

    id: int
    rm: int
    partition: int
    name: int
    joined: int
    capacity: str = ""
    """JSON of the amounts."""
    left: int | None = None
    attributes: Mapping[str, str] | None = None
    changes: list[Any] = attrs.Factory(list)
    schedulable: bool = True
    missing: int = 0

    def note(self, time: int, kind: str, text: str) -> None:
        """Append a change."""
        self.changes.append([time, kind, text])
        if len(self.changes) > LONGEST_CHANGES:
            del self.changes[LONGEST_CHANGES // 2]

    def row(self, shapes: Ids) -> Row:
        """Return the row."""
        attributes = None if self.attributes is None else json.dumps(dict(self.attributes), sort_keys=True)
        changes = json.dumps(self.changes)
        place = (self.id, self.rm, self.partition, self.name)
        return (*place, self.joined, self.left, shapes.of(self.capacity), attributes, changes)


class RecordedNodes:
    """Nodes of a core, used by one thread."""

    def __init__(
        self, names: Ids, shapes: Ids, new_id: Callable[[], int], kept: Iterable[Sequence[Any]]
    ) -> None:
        """Continue from the rows of nodes that have not left, with their amounts."""
        self._names, self._shapes, self._new_id = names, shapes, new_id
        self._changed: dict[OpenNode, None] = {}
        self._open: dict[NodeKey, OpenNode] = {}
        self._switched: tuple[NodeKey, int] | None = None
        """Node and time (ms) of the latest event, if it was a change of the state."""
        for number, rm, partition, name, joined, _, _, attributes, changes, capacity in kept:
            key = rm, partition, name
            node = OpenNode(number, *key, joined, capacity, changes=json.loads(changes))
            node.attributes = json.loads(attributes) if attributes else None
            states = [kind for _, kind, _ in node.changes if kind in (DRAIN, RESUME)]
            node.schedulable = states[-1:] != [DRAIN]
            self._open[key] = node

    def observe(self, entries: Iterable[Entry], source: Source) -> None:
        """Follow the events of nodes."""
        for entry in entries:
            event: Any = entry
            switched, self._switched = self._switched, None
            if type(entry) is tuple or event.type != EventType.NODE or not event.object_id:
                continue
            key, time = self._key(*source, event.object_id), event.timestamp // MILLISECOND
            if event.change == EventChange.ADD and event.detail == EventDetail.DETAILS_NONE:
                self._join(key, time, event.resource)
            node = self._open.get(key)
            if node is None:
                continue
            if event.detail == EventDetail.NODE_DECOMISSION:
                node.left = max(time, node.joined)
                del self._open[key]
            elif event.detail == EventDetail.NODE_CAPACITY:
                self._resize(node, time, event.resource)
            elif event.detail == EventDetail.NODE_SCHEDULABLE:
                self._switch(node, time, event.message.endswith("true"))
                self._switched = key, time
            elif event.change == EventChange.SET and event.detail == EventDetail.DETAILS_NONE:
                # A change of the state comes right before its reason, but the state may have been the same.
                if switched is None or switched[0] != key or time - switched[1] > MOMENT:
                    continue
                node.changes[-1:] = [
                    [at, kind, event.message if kind in (DRAIN, RESUME) else text]
                    for at, kind, text in node.changes[-1:]
                ]
            else:
                continue
            self._changed[node] = None

    def add(self, sample: SampledCore) -> None:
        """Compare with what is there: events may have been lost, and nodes gone with a session."""
        found = {self._key(node.rm, node.partition, node.name): node for node in sample.nodes}
        for key, one in found.items():
            node = self._open.get(key) or self._join(key, sample.time, one.capacity)
            node.missing = 0
            if node.attributes is not one.attributes:
                if node.attributes != one.attributes:
                    self._changed[node] = None
                node.attributes = one.attributes
            self._resize(node, sample.time, one.capacity)
            self._switch(node, sample.time, one.schedulable)
        for key, node in [*self._open.items()]:
            if key not in found:
                node.missing += 1
                if node.missing >= MISSING:
                    node.left = max(sample.time, node.joined)
                    del self._open[key]
                    self._changed[node] = None

    def rows(self) -> Iterator[Row]:
        """Yield the rows that have changed."""
        changed, self._changed = self._changed, {}
        return (node.row(self._shapes) for node in changed)

    def repeat(self) -> None:
        """Yield all rows of nodes that have not left again."""
        self._changed |= dict.fromkeys(self._open.values())

    def _key(self, rm: str, partition: str, name: str) -> NodeKey:
        return self._names.of(rm), self._names.of(partition), self._names.of(name)

    def _join(self, key: NodeKey, time: int, capacity: Mapping[str, int] | None) -> OpenNode:
        """Add a node; one that a resource manager reports again after a restart continues its row."""
        node = self._open.get(key)
        if node is None:
            node = self._open[key] = OpenNode(self._new_id(), *key, time)
            self._changed[node] = None
        self._resize(node, time, capacity)
        return node

    def _resize(self, node: OpenNode, time: int, capacity: Mapping[str, int] | None) -> None:
        text = json_text(capacity or {})
        if text != node.capacity:
            if node.capacity:
                node.note(time, CAPACITY, node.capacity)
            node.capacity = text
            self._changed[node] = None

    def _switch(self, node: OpenNode, time: int, schedulable: bool) -> None:
        if schedulable != node.schedulable:
            node.schedulable = schedulable
            node.note(time, RESUME if schedulable else DRAIN, "")
            self._changed[node] = None
