"""The nodes in a policy's order, searched without walking past those that cannot fit.

Three levels: groups of blocks of nodes, each in order. Blocks and groups keep, per resource type, an
upper bound of what any node in them has free, and the shapes for which none of their nodes would do
("barren"). Bounds rise at once and are tightened only after a search in vain, so a change of a node
costs two short binary searches, and a search looks into few blocks that have nothing for it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from yunikorn.clock import SECOND
from yunikorn.errors import CONTAINED

if TYPE_CHECKING:
    from yunikorn.api import NodeSortPolicy
    from yunikorn.objects.ask import Ask
    from yunikorn.objects.node import Node
    from yunikorn.objects.shape import Shape, ShapeTable
    from yunikorn.scheduling.faults import FaultLog
    from yunikorn.scheduling.predicate_chain import PredicateChain

BLOCK, GROUP = 20, 32
"""Nodes of a block, and blocks of a group, before they are split in two."""

Rank = tuple[float, str]


class Block:
    """A short run of nodes."""

    __slots__ = ("barren", "group", "most", "nodes", "ranks")

    def __init__(self, group: Group, ranks: list[Rank], nodes: list[Node]) -> None:
        self.group = group
        self.ranks = ranks
        self.nodes = nodes
        self.most: dict[str, int] = {}
        self.barren = 0

    def tighten(self) -> None:
        """Compute the bound exactly."""
        most: dict[str, int] = {}
        for node in self.nodes:
            for name, amount in node.available.items():
                if amount > most.get(name, 0):
                    most[name] = amount
        self.most = most


class Group:
    """A run of blocks."""

    __slots__ = ("barren", "blocks", "most", "tops")

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.tops: list[Rank] = []
        self.most: dict[str, int] = {}
        self.barren = 0

    def tighten(self) -> None:
        """Compute the bound from those of the blocks."""
        most: dict[str, int] = {}
        for block in self.blocks:
            for name, amount in block.most.items():
                if amount > most.get(name, 0):
                    most[name] = amount
        self.most = most


class NodeOrder:
    """Schedulable nodes by score, then id; for one shape only, if the policy looks at the request."""

    def __init__(
        self,
        policy: NodeSortPolicy,
        origin: str,
        faults: FaultLog,
        shapes: ShapeTable,
        shape: Shape | None = None,
    ) -> None:
        self._score: Callable[..., Any] = policy.score
        self._origin = origin
        self._faults = faults
        self._shapes = shapes
        self.shape = shape
        self._groups: list[Group] = []
        self._tops: list[Rank] = []
        self._places: dict[str, tuple[Rank, Block]] = {}
        every = policy.refresh_every
        self.ages = bool(every)
        """Whether scores change with the time alone."""
        self._refresh = round(every * SECOND) if every else 0
        self._tick = -1

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Node]:
        for group in self._groups:
            for block in group.blocks:
                yield from block.nodes

    def __reversed__(self) -> Iterator[Node]:
        for group in reversed(self._groups):
            for block in reversed(group.blocks):
                yield from reversed(block.nodes)

    def is_due(self, now: int) -> bool:
        """Whether the policy's scores age and it is time to compute all anew; asks once a tick."""
        if self._refresh and now // self._refresh != self._tick:
            self._tick = now // self._refresh
            return True
        return False

    def rank(self, node: Node) -> Rank:
        """Where `node` stands; a node whose score fails stands behind all others."""
        try:
            score = self._score(node) if self.shape is None else self._score(node, self.shape)
            if score == score and isinstance(score, (int, float)):
                return (score, node.id)
            cause: BaseException | str = f"{score!r} is not a number"
        except CONTAINED as error:
            cause = error
        self._faults.report(self._origin, "computing the score of", cause, node.label)
        return (float("inf"), node.id)

    def forget_shapes(self, bits: int) -> None:
        """These shapes are no more; their bits will serve for others."""
        for group in self._groups:
            if group.barren & bits:
                group.barren &= ~bits
            for block in group.blocks:
                if block.barren & bits:
                    block.barren &= ~bits

    # -- keeping order ------------------------------------------------------------------------------

    def put(self, node: Node, *, gained: bool) -> None:
        """Have `node` stand where it belongs; `gained` when it may take more than before."""
        rank = self.rank(node)
        place = self._places.get(node.id)
        if place is not None:
            old, block = place
            if old == rank or self._stays(block, old, rank):
                if gained:
                    self._raise(block, node)
                return
            self.remove(node.id)
        self._raise(self._insert(node, rank), node)

    def _raise(self, block: Block, node: Node) -> None:
        """`node` came into the block or gained room: what was learnt of the block may hold no more."""
        group = block.group
        barren = block.barren | group.barren
        if barren:
            hopeful = ~self._shapes.fitting(node, barren)
            block.barren &= hopeful
            group.barren &= hopeful
        most, above = block.most, group.most
        for name, amount in node.available.items():
            if amount > most.get(name, 0):
                most[name] = amount
            if amount > above.get(name, 0):
                above[name] = amount

    def _stays(self, block: Block, old: Rank, rank: Rank) -> bool:
        """Move within the block if the new rank belongs there: the block has learnt nothing less."""
        ranks = block.ranks
        if not ranks[0] <= rank <= ranks[-1]:
            return False
        index = bisect_left(ranks, old)
        node = block.nodes.pop(index)
        del ranks[index]
        at = bisect_left(ranks, rank)
        ranks.insert(at, rank)
        block.nodes.insert(at, node)
        self._places[node.id] = (rank, block)
        if index == len(ranks) - 1:
            self._retop(block, old)
        return True

    def _retop(self, block: Block, old: Rank) -> None:
        """The last node of the block, which stood at `old`, is another now."""
        group, top = block.group, block.ranks[-1]
        at = bisect_left(group.tops, old)
        if at == len(group.tops) - 1:
            self._tops[bisect_left(self._tops, old)] = top
        group.tops[at] = top

    def _insert(self, node: Node, rank: Rank) -> Block:
        if not self._groups:
            group = Group()
            block = Block(group, [rank], [node])
            group.blocks.append(block)
            group.tops.append(rank)
            self._groups.append(group)
            self._tops.append(rank)
            self._places[node.id] = (rank, block)
            return block
        where = min(bisect_left(self._tops, rank), len(self._groups) - 1)
        group = self._groups[where]
        at = min(bisect_left(group.tops, rank), len(group.blocks) - 1)
        block = group.blocks[at]
        index = bisect_left(block.ranks, rank)
        block.ranks.insert(index, rank)
        block.nodes.insert(index, node)
        self._places[node.id] = (rank, block)
        if index == len(block.ranks) - 1:
            group.tops[at] = rank
            if at == len(group.tops) - 1:
                self._tops[where] = rank
        if len(block.ranks) > BLOCK:
            self._split(group, at, where)
            return self._places[node.id][1]
        return block

    def _split(self, group: Group, at: int, where: int) -> None:
        block = group.blocks[at]
        half = len(block.ranks) // 2
        upper = Block(group, block.ranks[half:], block.nodes[half:])
        upper.most, upper.barren = dict(block.most), block.barren
        del block.ranks[half:], block.nodes[half:]
        for rank, node in zip(upper.ranks, upper.nodes, strict=True):
            self._places[node.id] = (rank, upper)
        group.blocks.insert(at + 1, upper)
        group.tops[at] = block.ranks[-1]
        group.tops.insert(at + 1, upper.ranks[-1])
        if len(group.blocks) > GROUP:
            self._split_group(where)

    def _split_group(self, where: int) -> None:
        group = self._groups[where]
        half = len(group.blocks) // 2
        upper = Group()
        upper.blocks, upper.tops = group.blocks[half:], group.tops[half:]
        upper.most, upper.barren = dict(group.most), group.barren
        for block in upper.blocks:
            block.group = upper
        del group.blocks[half:], group.tops[half:]
        self._groups.insert(where + 1, upper)
        self._tops[where] = group.tops[-1]
        self._tops.insert(where + 1, upper.tops[-1])

    def remove(self, node_id: str) -> None:
        """Take a node out; harmless when it is not in."""
        place = self._places.pop(node_id, None)
        if place is None:
            return
        rank, block = place
        index = bisect_left(block.ranks, rank)
        del block.ranks[index], block.nodes[index]
        if block.ranks:
            if index == len(block.ranks):
                self._retop(block, rank)
            return
        group = block.group
        at = bisect_left(group.tops, rank)
        del group.blocks[at], group.tops[at]
        where = bisect_left(self._tops, rank)
        if not group.blocks:
            del self._groups[where], self._tops[where]
        else:
            self._tops[where] = group.tops[-1]

    # -- searching ----------------------------------------------------------------------------------

    def find(self, shape: Shape, ask: Ask, predicates: PredicateChain | None) -> Node | None:
        """The first node in order that has room for `ask` and that no predicate refuses."""
        if predicates is not None and predicates.asks_ahead and not predicates.expects:
            with predicates.expecting(ask, lambda: self._with_room(shape)):
                return self.find(shape, ask, predicates)
        bit, pairs = shape.bit, shape.pairs
        for group in self._groups:
            if group.barren & bit or not _may_fit(group.most, pairs):
                continue
            barren = True
            for block in group.blocks:
                if block.barren & bit:
                    continue
                if not _may_fit(block.most, pairs):
                    continue
                node, nothing = _scan(block, shape, ask, predicates)
                if node is not None:
                    return node
                barren &= nothing
            if barren:
                group.barren |= bit
                group.tighten()
        return None

    def _with_room(self, shape: Shape) -> Iterator[Node]:
        """The nodes that a search for a request of this shape looks at, in order."""
        bit, pairs = shape.bit, shape.pairs
        for group in self._groups:
            if not group.barren & bit and _may_fit(group.most, pairs):
                for block in group.blocks:
                    if not block.barren & bit:
                        yield from (node for node in block.nodes if _may_fit(node.available, pairs))


def _may_fit(most: Mapping[str, int], pairs: tuple[tuple[str, int], ...]) -> bool:
    for name, amount in pairs:
        if most.get(name, 0) < amount:
            return False
    return True


def _scan(
    block: Block, shape: Shape, ask: Ask, predicates: PredicateChain | None
) -> tuple[Node | None, bool]:
    """The first node of the block that will do; else whether that holds until one of them changes."""
    pairs = shape.pairs
    unsettled = 0 if predicates is None else predicates.unsettled
    for node in block.nodes:
        available = node.available
        for name, amount in pairs:
            if available.get(name, 0) < amount:
                break
        else:
            if predicates is None:
                return node, False
            if predicates.refusal(ask, node) is None:
                return node, False
    lasting = predicates is None or predicates.unsettled == unsettled
    if lasting:
        block.tighten()
        block.barren |= shape.bit
    return None, lasting
