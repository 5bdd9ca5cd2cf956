"""Expected ends of the tasks that run on the nodes of a partition, kept up to date as tasks start and end."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import attrs

from yunikorn.api import Node, Task

SECOND = 1_000_000_000
NEVER = 2**62
"""Time (ns) of what is not expected to happen."""
SHORTEST_OVERRUN = 60 * SECOND
"""Shortest time by which the estimate of a task is extended that runs longer."""
Amounts = dict[str, int]


@attrs.define(eq=False)
class RunningTask:
    """A task that runs."""

    task: Task
    node: str
    placed: int
    expected: int
    """End (ns) by the estimate at its start."""
    end: int
    """End (ns) that counts: a later one if the task is late."""


def end_of(run: RunningTask) -> int:
    """Return the end (ns) that counts."""
    return run.end


@attrs.define(eq=False)
class ExpectedEnds:
    """The nodes, and what runs on them, with its expected ends."""

    nodes: dict[str, Node] = attrs.field(factory=dict)
    runs: dict[str, RunningTask] = attrs.field(factory=dict)
    """Tasks by uuid."""
    version: int = 0
    """Number of changes."""
    _by_node: dict[str, dict[str, RunningTask]] = attrs.field(factory=dict)
    _sorted: dict[str, list[RunningTask]] = attrs.field(factory=dict)
    """Tasks of nodes in order of their ends; those of changed nodes are missing."""
    _due: list[tuple[int, int, str]] = attrs.field(factory=list)
    """Heap of ends, with a number and a uuid; an entry with another end than the task counts no more."""
    _count: int = 0
    _renewed: list[tuple[RunningTask, int]] | None = None
    """Late tasks with their former ends, during a trial."""

    def add(self, uuid: str, run: RunningTask) -> None:
        """Add a task that runs."""
        self.runs[uuid] = self._by_node.setdefault(run.node, {})[uuid] = run
        self._move(uuid, run, run.end)

    def remove(self, uuid: str) -> RunningTask | None:
        """Remove a task and return it; None if it is unknown."""
        run = self.runs.pop(uuid, None)
        if run is not None:
            del self._by_node[run.node][uuid]
            self._sorted.pop(run.node, None)
            self.version += 1
        return run

    def _move(self, uuid: str, run: RunningTask, end: int) -> None:
        run.end = end
        self._sorted.pop(run.node, None)
        self._count += 1
        self.version += 1
        heapq.heappush(self._due, (end, self._count, uuid))

    def renew(self, now: int, time_of: Callable[[Task, float], int]) -> bool:
        """Expect later ends of the tasks that should have ended; return True if there are any.

        A task that runs longer than estimated is expected to run on for as long as it is late.
        """
        is_late = False
        while self._due and self._due[0][0] < now:
            former, _, uuid = heapq.heappop(self._due)
            run = self.runs.get(uuid)
            if run is None or run.end != former:
                continue
            is_late = True
            if self._renewed is not None:
                self._renewed.append((run, former))
            end = run.placed + time_of(run.task, (now - run.placed) / SECOND)
            self._move(uuid, run, end if end > now else now + max(now - run.expected, SHORTEST_OVERRUN))
        return is_late

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Undo each `renew` at the end of the context."""
        due, self._renewed = [*self._due], []
        try:
            yield
        finally:
            for run, former in reversed(self._renewed):
                run.end = former
                self._sorted.pop(run.node, None)
                self.version += 1
            self._due, self._renewed = due, None

    def on(self, node_id: str) -> list[RunningTask]:
        """Return the tasks of a node, the first end first."""
        found = self._sorted.get(node_id)
        if found is None:
            found = self._sorted[node_id] = sorted(self._by_node.get(node_id, {}).values(), key=end_of)
        return found

    def room_at(self, node: Node, time: int) -> Amounts:
        """Return the amounts of a node that are free at a time (ns), as far as tasks have ended by then."""
        room = dict(node.available)
        for run in self.on(node.id):
            if run.end > time:
                break
            for name, amount in run.task.resource.items():
                room[name] = room.get(name, 0) + amount
        return room

    def freed_last(self, time: int) -> list[Node]:
        """Return the nodes, those first on which a task ends last, but not after a time (ns)."""

        def latest(node: Node) -> int:
            runs = self.on(node.id)
            place = bisect_right(runs, time, key=end_of)
            return -runs[place - 1].end if place else 1

        return sorted(self.nodes.values(), key=latest)


class NodeRooms:
    """Free amounts of nodes, from which members of gangs are taken."""

    def __init__(self, room_of: Callable[[Node], Mapping[str, int]]) -> None:
        self._room_of = room_of
        self._known: dict[str, Mapping[str, int]] = {}
        self.taken: dict[str, Amounts] = {}
        """Amounts by node that were taken."""

    def of(self, node: Node) -> Mapping[str, int]:
        """Return what is free on a node, and not taken."""
        found = self._known.get(node.id)
        if found is None:
            found = self._known[node.id] = self._room_of(node)
        return found

    def take(self, node: Node, amounts: Mapping[str, int], times: int = 1) -> None:
        """Take amounts; a negative number of times gives them back."""
        room = self._known[node.id] = dict(self.of(node))
        subtract(room, amounts, times)
        subtract(self.taken.setdefault(node.id, {}), amounts, -times)


def subtract(room: Amounts, amounts: Mapping[str, int], times: int = 1) -> None:
    """Subtract amounts a number of times."""
    for name, amount in amounts.items():
        room[name] = room.get(name, 0) - amount * times


def gains_of(
    ends: ExpectedEnds, node: Node, amounts: Mapping[str, int], most: int
) -> Iterator[tuple[int, int]]:
    """Yield times (ns) from which more requests of these amounts fit on a node, with their numbers.

    The first time is 0 for those that fit now. `most` is the number of requests.
    """
    size = [(name, amount) for name, amount in amounts.items() if amount]
    room, known, time = dict(node.available), 0, 0
    runs = iter(ends.on(node.id))
    while True:
        fitting = min([most, *(room.get(name, 0) // amount for name, amount in size)])
        if fitting > known:
            yield time, fitting - known
            known = fitting
        run = None if known >= most else next(runs, None)
        if run is None:
            return
        time = run.end
        subtract(room, run.task.resource, -1)
