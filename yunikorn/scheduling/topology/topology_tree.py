"""Trees of domains, such as blocks of racks of hosts, and the nodes in them.

A partition has a tree for each topology source. Every node is in one domain of each level: a node that lacks
a level is in a domain without a name, which has no room for gangs that require the level.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from typing import TYPE_CHECKING, Any

from yunikorn.containment import MOST_ITEMS, WrongAnswer, contained, entries_of, safe_repr, text_or_none
from yunikorn.errors import PluginError

if TYPE_CHECKING:
    from yunikorn.api import TopologySource
    from yunikorn.framework.instances import PluginInstance
    from yunikorn.framework.plugin_failures import PluginFailures
    from yunikorn.model.node import Node

ROOT = -1
"""Level of the whole tree."""


def _texts(values: Any, most: int = MOST_ITEMS) -> list[str | None]:
    """Return the entries of a list of texts, with None for others; raises `TypeError` without an order."""
    if issubclass(type(values), (str, Set)):
        raise TypeError(f"{safe_repr(values)} is no list of texts in order")
    return [text_or_none(value) for value in entries_of(values, most)]


class TreeDomain:
    """A domain of a tree, or the whole tree."""

    __slots__ = ("children", "level", "name", "nodes", "parent", "path")

    def __init__(self, name: str, level: int, parent: TreeDomain | None) -> None:
        self.name = name
        """Name among the siblings; empty for the nodes that lack the level."""
        self.level = level
        """Number of the level, 0 for the outermost; `ROOT` for the whole tree."""
        self.parent = parent
        self.path: str = f"{parent.path}/{name}" if parent is not None and parent.path else name
        self.children: dict[str, TreeDomain] = {}
        self.nodes: dict[Node, None] = {}

    @property
    def chain(self) -> Iterator[TreeDomain]:
        """The domain and those above it, up to the whole tree."""
        domain: TreeDomain | None = self
        while domain is not None:
            yield domain
            domain = domain.parent


class TopologyTree:
    """Domains of one topology source."""

    def __init__(
        self, source: TopologySource, levels: Sequence[str], origin: str, failures: PluginFailures
    ) -> None:
        self._source, self._origin, self._failures = source, origin, failures
        self._start(levels)

    def _start(self, levels: Sequence[str]) -> None:
        self.levels = tuple(levels)
        """Names of the levels, the outermost first."""
        self.numbers = {level: number for number, level in enumerate(levels)}
        self._named: list[dict[TreeDomain, None]] = [{} for _ in levels]
        """Domains of each level that have a name."""
        self.root = TreeDomain("", ROOT, None)
        self.domain_of: dict[Node, TreeDomain] = {}
        """Innermost domain of each node."""
        self.departures = 0
        """Number of nodes that have left, or moved."""

    def join(self, node: Node) -> None:
        """Add a node to its domains."""
        domain = self.root
        domain.nodes[node] = None
        for level, name in enumerate(self._path(node)):
            child = domain.children.get(name)
            if child is None:
                child = domain.children[name] = TreeDomain(name, level, domain)
                if name:
                    self._named[level][child] = None
            domain = child
            domain.nodes[node] = None
        self.domain_of[node] = domain

    def leave(self, node: Node) -> None:
        """Remove a node; domains without nodes end."""
        self.departures += 1
        for domain in self.domain_of.pop(node).chain:
            del domain.nodes[node]
            if not domain.nodes and domain.parent is not None:
                del domain.parent.children[domain.name]
                self._named[domain.level].pop(domain, None)

    def domains(self, level: int, outer: TreeDomain | None = None) -> Iterable[TreeDomain]:
        """Return the named domains of a level, or the whole tree as its own; those in `outer` if given."""
        if outer is None:
            return self._named[level] if level != ROOT else (self.root,)
        return self._inside(level, outer)

    def above(self, node: Node, level: str) -> TreeDomain | None:
        """Return the domain of a level that a node is in; None if the node lacks the level."""
        domain = self.domain_of.get(node)
        if domain is None:
            return None
        while domain.level > self.numbers[level] and domain.parent is not None:
            domain = domain.parent
        return domain if domain.name else None

    def _inside(self, level: int, domain: TreeDomain) -> Iterator[TreeDomain]:
        if domain.level < level:
            for child in domain.children.values():
                yield from self._inside(level, child)
        elif domain.name:
            yield domain

    def _path(self, node: Node) -> list[str]:
        """Return the names of the domains of a node; a node whose source fails lacks all levels."""
        try:
            names = _texts(self._source.path(node), len(self.levels))
            known = [name for name in names if name is not None]
            if len(known) != len(self.levels):
                raise WrongAnswer(f"{safe_repr(names)} is not a text for each of {len(self.levels)} levels")
            return known
        except contained() as error:
            self._failures.report(self._origin, "finding the domains of", error, node.label)
            return [""] * len(self.levels)


class FlatTree(TopologyTree):
    """Tree without levels, for gangs without requirements."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._start(())
        for node in nodes:
            self.join(node)

    def _path(self, node: Node) -> list[str]:
        return []


class Topology:
    """Trees of one partition."""

    def __init__(self, trees: Iterable[TopologyTree]) -> None:
        self.trees = tuple(trees)
        self._by_level = {level: tree for tree in self.trees for level in tree.levels}

    @classmethod
    def of(cls, sources: Iterable[PluginInstance], failures: PluginFailures) -> Topology:
        """Return the trees of these sources; raises `PluginError` if levels are invalid, or not unique."""
        trees: list[TopologyTree] = []
        known: dict[str, None] = {}
        for one in sources:
            try:
                levels = [level or "" for level in _texts(one.plugin.levels)]
            except contained() as error:
                raise PluginError(one.origin, "reading its levels", error) from None
            if not levels or "" in levels or len({*levels, *known}) < len(levels) + len(known):
                text = "no level, one without a name, or one that occurs twice in the topology"
                raise PluginError(one.origin, "reading its levels", f"{safe_repr(levels)} has {text}")
            known.update(dict.fromkeys(levels))
            trees.append(TopologyTree(one.plugin, levels, one.origin, failures))
        return cls(trees)

    @property
    def levels(self) -> list[str]:
        """Names of the levels of all trees."""
        return list(self._by_level)

    def tree_of(self, level: str) -> TopologyTree | None:
        """Return the tree with a level; None if there is no such level."""
        return self._by_level.get(level)

    def above(self, node: Node, level: str) -> TreeDomain | None:
        """Return the domain of a level that a node is in; None if either lacks the level."""
        tree = self.tree_of(level)
        return None if tree is None else tree.above(node, level)

    def join(self, node: Node) -> None:
        """Add a node, or move it after a change of its attributes."""
        for tree in self.trees:
            if node in tree.domain_of:
                tree.leave(node)
            tree.join(node)

    def leave(self, node: Node) -> None:
        """Remove a node."""
        for tree in self.trees:
            tree.leave(node)
