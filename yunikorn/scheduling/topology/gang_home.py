"""Home of a gang: the domain in which its members run, and in which further ones must be placed.

A replacement of a member that ended follows the others. If none runs, any domain of the level is possible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

from yunikorn.scheduling.topology.node_states import work_of_others

if TYPE_CHECKING:
    from collections.abc import Iterable

    from yunikorn.model.application import Application
    from yunikorn.model.node import Node
    from yunikorn.scheduling.topology.topology_tree import Topology, TopologyTree, TreeDomain


class TopologyHolder(Protocol):
    """Holder of the topology in use, which a reload replaces."""

    @property
    def topology(self) -> Topology:
        """The topology."""
        ...


@attrs.frozen(slots=True)
class GangHome:
    """Domain of one level that has all members of a gang, or of a task group."""

    _holder: TopologyHolder = attrs.field(eq=False, repr=False)
    _app: Application
    _level: str
    _task_group: str
    """Task group with a domain of its own; empty for all members."""
    _outer: GangHome | None = None
    """Home of the whole gang, which contains that of a task group; None without one."""
    _alone: str = ""
    """Level of which requests must have their domain alone; empty for none."""

    @property
    def label(self) -> str:
        """Name of the domain in messages."""
        tree = self._holder.topology.tree_of(self._level)
        domain = None if tree is None else self.domain(tree)
        return f"{self._level} {domain.path}" if domain is not None else f"any {self._level}"

    def has(self, node: Node) -> bool:
        """Return True if a node is in the domain."""
        tree = self._holder.topology.tree_of(self._level)
        if tree is None or not self.suits(node):
            return False
        domain = self.domain(tree)
        found = tree.above(node, self._level)
        if found is None or domain not in (None, found):
            return False
        return domain is not None or self._outer is None or self._outer.has(node)

    def nodes(self) -> Iterable[Node]:
        """Return the nodes of the domain; those of all domains of the level while no member runs."""
        tree = self._holder.topology.tree_of(self._level)
        if tree is None:
            return ()
        domain = self.domain(tree)
        if domain is not None:
            return domain.nodes
        if self._outer is not None:
            inside = self._outer.nodes()
            return [node for node in inside if tree.above(node, self._level) is not None]
        return [node for each in tree.domains(tree.numbers[self._level]) for node in each.nodes]

    def suits(self, node: Node) -> bool:
        """Return True if requests may use a node of these, because no others do where that matters."""
        domain = self._holder.topology.above(node, self._alone)
        if not self._alone or any(owner.app is self._app for owner in node.owners):
            return True
        return domain is not None and work_of_others(domain, self._app) is None

    def domain(self, tree: TopologyTree) -> TreeDomain | None:
        """Return the domain of the first member; tasks without a task group count where no member runs."""
        found: TreeDomain | None = None
        for one in self._app.allocations.values():
            if self._task_group in ("", one.task_group) and (found is None or one.task_group):
                found = tree.above(one.node, self._level) or found
                if found is not None and one.task_group:
                    break
        return found
