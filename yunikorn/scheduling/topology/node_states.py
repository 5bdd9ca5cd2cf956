"""States of nodes: nodes with equal room and equal classes for predicates are counted once per ask class."""

from __future__ import annotations

from itertools import compress
from operator import attrgetter, ne
from typing import TYPE_CHECKING

from yunikorn.model.ask import REQUIRED_NODE_TAG
from yunikorn.resources import subtract

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Set

    from yunikorn.model.allocation import Allocation
    from yunikorn.model.application import Application
    from yunikorn.model.ask import Ask
    from yunikorn.model.node import Node
    from yunikorn.scheduling.topology.topology_tree import TopologyTree, TreeDomain

_VERSION = attrgetter("version")
UNKNOWN = -1
"""Version of a node that was not read yet."""
LONGEST_LOG = 4096
"""Largest number of changes of domains that are remembered; older counts are made again."""


def work_of_others(
    domain: TreeDomain, app: Application, gone: Set[Allocation | Ask] = frozenset()
) -> Allocation | Ask | None:
    """Return a task, or a reservation, that keeps a domain from being of an application alone; None for none.

    What requires its node, such as tasks of daemon sets, does not, and foreign allocations do not either.
    """
    for node in domain.nodes:
        for ask in node.reservations:
            if ask.app is not app and ask not in gone and not ask.ask_class.required:
                return ask
        for one in node.allocations.values():
            if one.app is not app and one not in gone and REQUIRED_NODE_TAG not in one.spec.tags:
                return one
    return None


class NodeState:
    """Room that some nodes have in common; empty for nodes that are closed."""

    __slots__ = ("nodes", "room")

    def __init__(self, room: Mapping[str, int]) -> None:
        self.room = room
        self.nodes = 0
        """Number of nodes in this state."""


class NodeStates:
    """States of the nodes of one tree, now or without the allocations of this partition."""

    def __init__(self, tree: TopologyTree, *, empty: bool = False, apart: bool = False) -> None:
        """Create without nodes; nodes are counted `apart` where predicates count their room."""
        self.tree, self._empty, self._apart = tree, empty, apart
        self.gone: set[Allocation | Ask] = set()
        """Allocations and owners of nodes that are taken away while a gang is being tried."""
        self.of: dict[Node, NodeState] = {}
        self.inside: dict[TreeDomain, dict[NodeState, dict[Node, None]]] = {}
        """Nodes of each innermost domain by state."""
        self.log: list[TreeDomain] = []
        """Innermost domains in which a node changed its state, in order."""
        self.logged = 0
        """Number of entries of the log so far, with those that were dropped."""
        self._by_key: dict[object, NodeState] = {}
        self._positions: dict[Node, int] = {}
        """Position of each node in `_versions`."""
        self._versions: list[int] = []
        """Latest version read of each node."""

    @property
    def number(self) -> int:
        """Number of states."""
        return len(self._by_key)

    def changed(self) -> list[Node]:
        """Return the nodes that joined, or changed since they were read."""
        positions = self._positions
        if len(positions) < len(self.tree.domain_of):
            for node in self.tree.domain_of:
                if node not in positions:
                    positions[node] = len(positions)
                    self._versions.append(UNKNOWN)
        versions = [*map(_VERSION, positions)]
        if versions == self._versions:
            return []
        return [*compress(positions, map(ne, versions, self._versions))]

    def read(self, nodes: Iterable[Node]) -> None:
        """Read the states of nodes."""
        for node in nodes:
            self._versions[self._positions[node]] = node.version
            is_open = node.schedulable
            if node.reservations and not self._empty:
                is_open = is_open and node.reservations.keys() <= self.gone
            key: object = None
            room: Mapping[str, int] = {}
            if is_open:
                room = subtract(node.capacity, node.occupied) if self._empty else node.available
                key = (tuple(room.items()), node.classes, (node, node.version) if self._apart else None)
            state = self._by_key.get(key)
            if state is None:
                state = self._by_key[key] = NodeState(dict(room))
            before = self.of.get(node)
            if before is not state:
                self._move(node, before, state)
        if len(self._by_key) > 2 * len(self.of) + 1:
            self._by_key = {key: state for key, state in self._by_key.items() if state.nodes}

    def _move(self, node: Node, before: NodeState | None, state: NodeState) -> None:
        innermost = self.tree.domain_of[node]
        here = self.inside.setdefault(innermost, {})
        if before is not None:
            before.nodes -= 1
            del here[before][node]
            if not here[before]:
                del here[before]
        state.nodes += 1
        self.of[node] = state
        here.setdefault(state, {})[node] = None
        if len(self.log) >= LONGEST_LOG:
            del self.log[: LONGEST_LOG // 2]
        self.log.append(innermost)
        self.logged += 1
