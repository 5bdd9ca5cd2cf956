"""Table of nodes with their candidates for preemption, and amounts by column, in the order of node ids."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from yunikorn.scheduling.preemption.victim_policy import is_originator

if TYPE_CHECKING:
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.node import Node
    from yunikorn.resources import Tally
    from yunikorn.scheduling.preemption.snapshot import Pairs


class AmountColumn:
    """Amounts of one resource type on all nodes, by position."""

    __slots__ = ("largest", "reach", "room")

    def __init__(self) -> None:
        self.room: list[int] = []
        """Free room once all pending releases have ended."""
        self.largest: list[int] = []
        """Largest amount of a candidate."""
        self.reach: list[int] = []
        """Sum of both: the most that one victim makes room for; negative without candidates."""

    def set(self, position: int, room: int, largest: int, *, any_candidate: bool) -> None:
        """Set the amounts of a node."""
        self.room[position] = room
        self.largest[position] = largest
        self.reach[position] = room + largest if any_candidate else -1


class CandidateTable:
    """Candidates and free room of all nodes; a position is the place of a node in the order of ids."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.positions: dict[Node, int] = {}
        self.candidates: list[list[Allocation]] = []
        """Candidates in order, those included that are being released."""
        self.rooms: list[Tally] = []
        """Free room once all pending releases have ended."""
        self.originators: list[int] = []
        """Number of originators among the candidates."""
        self._columns: dict[str, AmountColumn] = {}
        self._log: list[int] = []
        """Positions of nodes that changed."""

    def arrange(self, nodes: Iterable[Node]) -> list[int | None]:
        """List the nodes, and return their former positions; None for new ones. The log is empty then."""
        known, candidates, rooms = self.positions, self.candidates, self.rooms
        originators = self.originators
        self.nodes = sorted(nodes, key=lambda node: node.id)
        places = [known.get(node) for node in self.nodes]
        self.candidates = [[] if place is None else candidates[place] for place in places]
        self.rooms = [{} if place is None else rooms[place] for place in places]
        self.originators = [0 if place is None else originators[place] for place in places]
        for column in self._columns.values():
            for name in AmountColumn.__slots__:
                former = getattr(column, name)
                setattr(column, name, [-1 if place is None else former[place] for place in places])
        self.positions = {node: position for position, node in enumerate(self.nodes)}
        self._log.clear()
        return places

    def set(self, position: int, candidates: list[Allocation], room: Tally) -> None:
        """Set what is known of a node."""
        self._log.append(position)
        self.candidates[position], self.rooms[position] = candidates, room
        self.originators[position] = sum(map(is_originator, candidates))
        amounts = [one.resource for one in candidates]
        for name, column in self._columns.items():
            largest = max([amount.get(name, 0) for amount in amounts], default=0)
            column.set(position, room.get(name, 0), largest, any_candidate=bool(candidates))

    def column(self, name: str) -> AmountColumn:
        """Return the amounts of a resource type."""
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = AmountColumn()
            column.room = [room.get(name, 0) for room in self.rooms]
            column.largest = [
                max((one.resource.get(name, 0) for one in there), default=0) for there in self.candidates
            ]
            column.reach = [
                room + most if there else -1
                for room, most, there in zip(column.room, column.largest, self.candidates, strict=True)
            ]
        return column

    def reached(self, pairs: Pairs, start: int = 0) -> Iterator[int]:
        """Yield the positions from `start` on of nodes where one victim may suffice."""
        columns = [(self.column(name).reach, amount) for name, amount in pairs]
        (first, least), *more = columns
        for position in range(start, len(first)):
            if first[position] >= least:
                for reach, amount in more:
                    if reach[position] < amount:
                        break
                else:
                    yield position

    def reaches(self, position: int, pairs: Pairs) -> bool:
        """Return True if one victim may suffice on a node."""
        for name, amount in pairs:
            if self.column(name).reach[position] < amount:
                return False
        return True

    # -- changes ------------------------------------------------------------------------------------

    def changed_since(self, number: int) -> Collection[int]:
        """Return the positions of nodes that changed since the log had `number` entries."""
        return set(self._log[number:])

    @property
    def changes(self) -> int:
        """Number of entries of the log."""
        return len(self._log)

    def clear_log(self) -> None:
        """Forget the changes, after all of them were applied."""
        self._log.clear()
