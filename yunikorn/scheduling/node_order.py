"""The nodes in a policy's order, searched without walking past those that cannot fit.

Three levels: groups of blocks of nodes, each in order. Nodes know ask classes for which they have no room
(`Node.unfit`), blocks and groups those for which none of their nodes would do ("unfit"), as bits. What
a node gains is taken out at once; what it lost is found out by a search in vain, for all ask classes in one
go.
So a change of a node costs three short binary searches, and a search looks into few blocks that have
nothing for it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from yunikorn.clock import SECOND
from yunikorn.errors import CONTAINED
from yunikorn.scheduling.plugin_timing import read_seconds

if TYPE_CHECKING:
    from yunikorn.api import NodeSortPolicy
    from yunikorn.objects.ask import Ask
    from yunikorn.objects.ask_class import AskClass, AskClasses
    from yunikorn.objects.node import Node
    from yunikorn.scheduling.plugin_failures import PluginFailures
    from yunikorn.scheduling.predicate_chain import PredicateChain

BLOCK, GROUP = 32, 16
"""Nodes of a block, and blocks of a group, before they are split in two."""

Entry = tuple[Any, ...]
"""Where a node stands: its score, then its id; the node; and its seat, which knows that of it.

Typed no closer, or it would not stay one object where this is compiled.
"""
Change = tuple["Node", bool]
"""A node that has changed, and whether it may take more than before."""
Border = tuple[Any, ...]
"""What parts two neighbours: less than whatever stands behind it, and no less than what is before."""


class NodeBlock:
    """A short run of nodes."""

    __slots__ = ("entries", "group", "unfit")

    def __init__(self, group: NodeGroup, entries: list[Entry], unfit: int) -> None:
        self.group = group
        self.entries = entries
        self.unfit = unfit
        """Bits of the ask classes that none of its nodes would do for."""

    def tighten(self) -> None:
        """Learn from the nodes which ask classes none of them has room for."""
        unfit = -1
        for entry in self.entries:
            node: Node = entry[2]
            unfit &= node.unfit
        self.unfit |= unfit


class NodeGroup:
    """A run of blocks."""

    __slots__ = ("blocks", "borders", "unfit")

    def __init__(self, blocks: list[NodeBlock], borders: list[Border], unfit: int) -> None:
        self.blocks = blocks
        self.borders = borders
        self.unfit = unfit

    def tighten(self) -> None:
        """Learn from the blocks which ask classes none of their nodes would do for."""
        unfit = -1
        for block in self.blocks:
            unfit &= block.unfit
        self.unfit |= unfit


class NodePosition:
    """Where one node stands in an order."""

    __slots__ = ("block", "entry", "order")
    __deletable__ = ("entry",)  # mypyc asks to be told

    entry: Entry
    block: NodeBlock

    def __init__(self, order: NodeOrder) -> None:
        self.order: NodeOrder | None = order
        """None once the node has left it."""


class NodeOrder:
    """Schedulable nodes by score, then id; for one ask class only, if the policy looks at the request."""

    def __init__(
        self,
        policy: NodeSortPolicy,
        origin: str,
        failures: PluginFailures,
        ask_classes: AskClasses,
        ask_class: AskClass | None = None,
    ) -> None:
        self._score: Callable[..., Any] = policy.score
        self._origin = origin
        self._failures = failures
        self._ask_classes = ask_classes
        self.ask_class = ask_class
        only = NodeGroup([], [], 0)
        self._first = NodeBlock(only, [], 0)
        """The block before all others."""
        only.blocks.append(self._first)
        self._groups = [only]
        self._borders: list[Border] = []
        self._seats: dict[str, NodePosition] = {}
        self.seen = 0
        """How much of the log of changes it knows, where it reads one (see `catch_up`)."""
        self._dozing: dict[str, tuple[Node, bool]] = {}
        """By id: nodes that changed, and whether they gained, but have no room: none needs their place."""
        every = read_seconds(policy, "refresh_every", origin, failures)
        self.ages = bool(every)
        """Whether scores change with the time alone."""
        self._refresh = round(every * SECOND) if every else 0
        self._tick = -1

    def __len__(self) -> int:
        return len(self._seats.keys() | self._dozing.keys())

    def __iter__(self) -> Iterator[Node]:
        self._rouse()
        for group in self._groups:
            for block in group.blocks:
                for entry in block.entries:
                    yield entry[2]

    def __reversed__(self) -> Iterator[Node]:
        self._rouse()
        for group in reversed(self._groups):
            for block in reversed(group.blocks):
                for entry in reversed(block.entries):
                    yield entry[2]

    def is_due(self, now: int) -> bool:
        """Whether the policy's scores age and it is time to compute all anew; asks once a tick."""
        if self._refresh and now // self._refresh != self._tick:
            self._tick = now // self._refresh
            return True
        return False

    def score(self, node: Node) -> float:
        """Where `node` stands; a node whose score fails stands behind all others."""
        try:
            score = self._score(node) if self.ask_class is None else self._score(node, self.ask_class)
            if score == score and (type(score) is float or isinstance(score, (int, float))):
                return score
            cause: BaseException | str = f"{score!r} is not a number"
        except CONTAINED as error:
            cause = error
        self._failures.report(self._origin, "computing the score of", cause, node.label)
        return float("inf")

    def forget_ask_classes(self, bits: int) -> None:
        """These ask classes are no more; their bits will serve for others."""
        for group in self._groups:
            group.unfit &= ~bits
            for block in group.blocks:
                block.unfit &= ~bits

    # -- keeping order ------------------------------------------------------------------------------

    def put(self, node: Node, gained: bool) -> None:
        """Have `node` stand where it belongs; `gained` when it may take more than before."""
        try:
            score = self._score(node) if self.ask_class is None else self._score(node, self.ask_class)
        except CONTAINED:
            score = None
        if (type(score) is not float and type(score) is not int) or score != score:
            score = self.score(node)
        node_id = node.id
        position: NodePosition | None = node.position
        if position is None or position.order is not self:
            position = self._seats.get(node_id)
        if position is None:
            position = self._seats[node_id] = NodePosition(self)
            if node.position is None and self.ask_class is None:
                # Mostly there is but one order: then nobody has to look the seat up by name.
                node.position = position
            position.entry = entry = (score, node_id, node, position)
            position.block = self._insert(entry)
        else:
            old = position.entry
            if score != old[0]:
                position.entry = entry = (score, node_id, node, position)
                block = position.block
                entries = block.entries
                last = entries[-1]
                del entries[0 if entries[0] is old else bisect_left(entries, old)]
                if entries and entry < last and (block is self._first or entries[0] < entry):
                    # It stays in the block, which has learnt nothing less.
                    insort(entries, entry)
                    if not gained:
                        return
                else:
                    if not entries:
                        self._drop(block)
                    position.block = self._insert(entry)
            elif not gained:
                return
        block = position.block
        group = block.group
        unfit = block.unfit | group.unfit
        if unfit:
            # It came into the block, or gained room: what was learnt of the block may hold no more.
            cramped = self._ask_classes.refresh_unfit(node)
            block.unfit &= cramped
            group.unfit &= cramped

    def catch_up(self, log: Sequence[Change]) -> None:
        """Bring an order for one ask class up to date with what changed since it was last looked at.

        There may be many such orders, and most are seldom looked at. A node without room for the ask class is
        not even asked for its score until it has gained some.
        """
        changed: dict[Node, bool] = {}
        for node, gained in log[self.seen :]:
            changed[node] = gained or changed.get(node, False)
        self.seen = len(log)
        for node, gained in changed.items():
            before = self._dozing.pop(node.id, None) if self._dozing else None
            gained = gained or (before is not None and before[1])
            if not node.is_free:
                self.remove(node.id)
            elif self.ask_class is None or self.ask_class.fits(node):
                self.put(node, gained)
            else:
                self._dozing[node.id] = (node, gained)

    def _rouse(self) -> None:
        """Have all nodes stand where they belong, also those without room."""
        dozing, self._dozing = self._dozing, {}
        for node, gained in dozing.values():
            self.put(node, gained)

    def _insert(self, entry: Entry) -> NodeBlock:
        where = bisect_left(self._borders, entry)
        group = self._groups[where]
        at = bisect_left(group.borders, entry)
        block = group.blocks[at]
        entries = block.entries
        insort(entries, entry)
        if len(entries) > BLOCK:
            upper = self._split(group, at, where)
            if upper.entries[0] <= entry:
                return upper
        return block

    def _split(self, group: NodeGroup, at: int, where: int) -> NodeBlock:
        block = group.blocks[at]
        entries = block.entries
        half = len(entries) // 2
        upper = NodeBlock(group, entries[half:], block.unfit)
        del entries[half:]
        for entry in upper.entries:
            position: NodePosition = entry[3]
            position.block = upper
        group.blocks.insert(at + 1, upper)
        group.borders.insert(at, entries[-1][:2])
        if len(group.blocks) > GROUP:
            self._split_group(where)
        return upper

    def _split_group(self, where: int) -> None:
        group = self._groups[where]
        half = len(group.blocks) // 2
        upper = NodeGroup(group.blocks[half:], group.borders[half:], group.unfit)
        for block in upper.blocks:
            block.group = upper
        self._groups.insert(where + 1, upper)
        self._borders.insert(where, group.borders[half - 1])
        del group.blocks[half:], group.borders[half - 1 :]

    def remove(self, node_id: str) -> None:
        """Take a node out; harmless when it is not in."""
        self._dozing.pop(node_id, None)
        position = self._seats.pop(node_id, None)
        if position is not None:
            entries = position.block.entries
            node: Node = position.entry[2]
            del entries[bisect_left(entries, position.entry)]
            if node.position is position:
                node.position = None
            # It names its seat, and its seat names it.
            del position.entry
            position.order = None
            if not entries:
                self._drop(position.block)

    def dissolve(self) -> None:
        """Nobody looks at it any more: the nodes forget their seats in it."""
        for position in self._seats.values():
            position.order = None
            node: Node = position.entry[2]
            if node.position is position:
                node.position = None

    def _drop(self, block: NodeBlock) -> None:
        """A block has no node left: it goes, and its group if it was the last there; one always stays."""
        group = block.group
        if len(group.blocks) > 1:
            at = group.blocks.index(block)
            del group.blocks[at], group.borders[min(at, len(group.borders) - 1)]
        elif len(self._groups) > 1:
            where = self._groups.index(group)
            del self._groups[where], self._borders[min(where, len(self._borders) - 1)]
        self._first = self._groups[0].blocks[0]

    # -- searching ----------------------------------------------------------------------------------

    def find(self, ask_class: AskClass, ask: Ask, predicates: PredicateChain | None) -> Node | None:
        """The first node in order that has room for `ask` and that no predicate refuses."""
        if predicates is not None and predicates.asks_ahead and not predicates.expects:
            with predicates.expecting(ask, lambda: self._with_room(ask_class)):
                return self.find(ask_class, ask, predicates)
        bit = ask_class.bit
        if predicates is None and self._first.entries:
            first: Node = self._first.entries[0][2]
            if not first.unfit & bit:
                available = first.available
                for name, amount in ask_class.pairs:
                    if available.get(name, 0) < amount:
                        break
                else:
                    # Nearly always where the load is spread.
                    return first
        for group in self._groups:
            if group.unfit & bit:
                continue
            unfit = True
            for block in group.blocks:
                if block.unfit & bit:
                    continue
                node = self._scan(block, ask_class, ask, predicates)
                if node is not None:
                    return node
                if not block.unfit & bit:
                    unfit = False
            if unfit:
                group.tighten()
        return None

    def _scan(
        self, block: NodeBlock, ask_class: AskClass, ask: Ask, predicates: PredicateChain | None
    ) -> Node | None:
        """The first node of the block that will do; if there is none the block learns what lasts of that."""
        bit, pairs = ask_class.bit, ask_class.pairs
        roomy: list[Node] = []
        for entry in block.entries:
            node: Node = entry[2]
            if node.unfit & bit:
                continue
            available = node.available
            for name, amount in pairs:
                if available.get(name, 0) < amount:
                    node.unfit |= bit
                    self._ask_classes.refresh_unfit(node)
                    break
            else:
                if predicates is None:
                    return node
                roomy.append(node)
        unsettled = 0
        if predicates is not None:
            unsettled = predicates.unsettled
            taking = predicates.first(ask, roomy)
            if taking is not None:
                return taking
        if predicates is None or predicates.unsettled == unsettled:
            # Otherwise it is searched again before long, and learns nothing by it.
            block.tighten()
            block.unfit |= bit
        return None

    def _with_room(self, ask_class: AskClass) -> Iterator[Node]:
        """The nodes that a search for a request of this ask class looks at, in order."""
        bit = ask_class.bit
        for group in self._groups:
            if not group.unfit & bit:
                for block in group.blocks:
                    if not block.unfit & bit:
                        yield from (entry[2] for entry in block.entries if _has_room(entry[2], ask_class))


def _has_room(node: Node, ask_class: AskClass) -> bool:
    available = node.available
    for name, amount in ask_class.pairs:
        if available.get(name, 0) < amount:
            return False
    return True
