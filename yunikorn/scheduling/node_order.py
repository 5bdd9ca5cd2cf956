"""Nodes in the order of a node sort policy, with an index that skips nodes without room.

The order has three levels: groups of blocks of nodes. Nodes, blocks and groups each keep a bit set `unfit`:
the ask classes that do not fit the node, or do not fit any node below. A bit is cleared as soon as a node
gains room, and set when a search finds no room; that search updates the bits of all ask classes. A change of
a node therefore costs three short binary searches, and a search visits few blocks without room.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from yunikorn.clock import SECOND
from yunikorn.containment import (
    LARGEST,
    SMALLEST,
    contained,
    is_plugin_of,
    number_or_none,
    read_attribute,
    safe_repr,
)
from yunikorn.framework.plugin_failures import read_seconds
from yunikorn.index.sorted_blocks import Block, Border, SortedBlocks, SortKey
from yunikorn.scheduling.normalised_scores import NormalisedScores

if TYPE_CHECKING:
    from yunikorn.framework.plugin_failures import PluginFailures
    from yunikorn.model.ask import Ask
    from yunikorn.model.ask_class import AskClass, AskClasses
    from yunikorn.model.node import Node
    from yunikorn.scheduling.node_policies import ReadChanges, Scorer
    from yunikorn.scheduling.predicate_chain import PredicateChain

BLOCK, GROUP = 32, 16
"""Largest number of nodes per block, and of blocks per group; a larger block or group is split in two."""

Change = tuple["Node", bool]
"""A changed node, and True if it may have more room than before."""


class NodeBlock(Block):
    """A block of nodes, with the bits of the ask classes that none of the nodes can take.

    An entry is (score, node id, node, position); the position refers back to the entry.
    """

    __slots__ = ("group",)

    def __init__(self, group: NodeGroup, entries: list[SortKey], unfit: int) -> None:
        super().__init__(entries, unfit)
        self.group = group

    def beside(self, entries: list[SortKey]) -> NodeBlock:
        """Return a block with the upper nodes of this one."""
        upper = NodeBlock(self.group, entries, self.bits)
        for entry in entries:
            position: NodePosition = entry[3]
            position.block = upper
        return upper

    def border_below(self, entry: SortKey) -> Border:
        """Return score and node id of an entry."""
        return entry[:2]

    def tighten(self) -> None:
        """Set the bits of the ask classes that are unfit on every node."""
        unfit = -1
        for entry in self.entries:
            node: Node = entry[2]
            unfit &= node.unfit
        self.bits |= unfit


class NodeGroup(SortedBlocks[NodeBlock]):
    """A run of consecutive blocks, with the bits of the ask classes that no node can take."""

    __slots__ = ("bits",)

    def __init__(self, blocks: list[NodeBlock], borders: list[Border], unfit: int) -> None:
        super().__init__(blocks, borders)
        self.bits = unfit

    def halve(self) -> tuple[NodeGroup, Border]:
        """Cut off and return the upper half, with the border below it."""
        half = len(self.blocks) // 2
        upper = NodeGroup(self.blocks[half:], self.borders[half:], self.bits)
        for block in upper.blocks:
            block.group = upper
        border = self.borders[half - 1]
        del self.blocks[half:], self.borders[half - 1 :]
        return upper, border

    def tighten(self) -> None:
        """Set the bits of the ask classes that are unfit in every block."""
        unfit = -1
        for block in self.blocks:
            unfit &= block.bits
        self.bits |= unfit


class NodePosition:
    """Position of one node in an order."""

    __slots__ = ("block", "entry", "order")
    __deletable__ = ("entry",)  # required by mypyc for `del`

    entry: SortKey
    block: NodeBlock

    def __init__(self, order: NodeOrder) -> None:
        self.order: NodeOrder | None = order
        """Order of this position; None after the node has left the order."""


class NodeOrder:
    """Schedulable nodes by score, then id; one order per ask class if the policy depends on the request."""

    def __init__(
        self,
        policy: Scorer,
        origin: str,
        failures: PluginFailures,
        ask_classes: AskClasses,
        ask_class: AskClass | None = None,
        view: Any = None,
        changes: ReadChanges | None = None,
    ) -> None:
        """Create an empty order; `view` is what the policy and `changes` receive as `ask_class`."""
        self._score: Callable[..., Any] = read_attribute(policy, "score")
        self._origin = origin
        self._failures = failures
        self._ask_classes = ask_classes
        self.ask_class = ask_class
        self._view: Any = view
        only = NodeGroup([], [], 0)
        self._first = NodeBlock(only, [], 0)
        only.blocks.append(self._first)
        self._groups = SortedBlocks([only], [])
        self._positions: dict[str, NodePosition] = {}
        self.seen = 0
        """Number of change log entries applied so far (see `catch_up`); for orders per ask class only."""
        self._deferred: dict[str, tuple[Node, bool]] = {}
        """Changed nodes without room, by id, and True if they gained room; their score is not computed."""
        self.normalised = policy if is_plugin_of(policy, NormalisedScores) else None
        """Scores that depend on those of all nodes in the order; None for scores of one node alone."""
        every = read_seconds(policy, "refresh_every", origin, failures)
        self._changes = changes
        self.is_independent = not every and changes is None and self.normalised is None
        """True if the score of a node changes with the node alone."""
        self._refresh = round(every * SECOND) if every else 0
        self._tick = -1
        self._read: list[tuple[list[str], int]] = []
        """Lists of changed scores, and how much of them has been read."""

    def __len__(self) -> int:
        return len(self._positions.keys() | self._deferred.keys())

    def __iter__(self) -> Iterator[Node]:
        self._position_deferred()
        for group in self._groups.blocks:
            for block in group.blocks:
                for entry in block.entries:
                    yield entry[2]

    def __reversed__(self) -> Iterator[Node]:
        self._position_deferred()
        for group in reversed(self._groups.blocks):
            for block in reversed(group.blocks):
                for entry in reversed(block.entries):
                    yield entry[2]

    def outdated(self, nodes: Mapping[str, Node], now: int) -> Iterable[Node]:
        """Return the nodes whose scores must be computed again, once per interval and change."""
        known, self._read = self._read, []
        if self._changes is not None:
            self._read = [(log, len(log)) for log in self._changes(self._view)]
        if self._refresh and now // self._refresh != self._tick:
            self._tick = now // self._refresh
            return nodes.values()
        if len(known) != len(self._read):
            return nodes.values()
        found: dict[Node, None] = {}
        for (log, end), (before, start) in zip(self._read, known, strict=True):
            if log is not before:
                return nodes.values()
            for node_id in log[start:end]:
                node = nodes.get(node_id) if type(node_id) is str else None
                if node is not None:
                    found[node] = None
        return found

    def _checked(self, score: Any, node: Node) -> float:
        """Return a score as a number of Python itself; infinity for a score that is none."""
        number = number_or_none(score)
        if number is None:
            return self._failed(node, f"{safe_repr(score)} is not a number")
        return number

    def _failed(self, node: Node, cause: BaseException | str) -> float:
        self._failures.report(self._origin, "computing the score of", cause, node.label)
        return float("inf")

    def score(self, node: Node) -> float:
        """Return the score of `node` now; infinity, the last position, if computing it fails."""
        try:
            score = self._score(node) if self.ask_class is None else self._score(node, self._view)
        except contained() as error:
            return self._failed(node, error)
        return self._checked(score, node)

    def forget_ask_classes(self, bits: int) -> None:
        """Clear the bits of ask classes that no longer exist, before new ask classes reuse these bits."""
        for group in self._groups.blocks:
            group.bits &= ~bits
            for block in group.blocks:
                block.bits &= ~bits

    def open_to(self, node: Node, bit: int) -> None:
        """Clear the bit of an ask class above a node that may fit the class again."""
        position = self._positions.get(node.id)
        if position is not None:
            position.block.bits &= ~bit
            position.block.group.bits &= ~bit

    # -- keeping order ------------------------------------------------------------------------------

    def put(self, node: Node, gained: bool) -> None:
        """Move `node` to its current position; `gained` means that it may have more room than before."""
        try:
            score = self._score(node) if self.ask_class is None else self._score(node, self._view)
        except contained() as error:
            score = self._failed(node, error)
        if (type(score) is not float or score != score) and (
            type(score) is not int or not SMALLEST < score < LARGEST
        ):
            score = self._checked(score, node)
        node_id = node.id
        position: NodePosition | None = node.position
        if position is None or position.order is not self:
            position = self._positions.get(node_id)
        if position is None:
            position = self._positions[node_id] = NodePosition(self)
            if node.position is None and self.ask_class is None:
                # Usually there is a single order, and the node itself can hold its position: no lookup by id.
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
                    # The node stays in its block, so the unfit bits of the block still hold.
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
        unfit = block.bits | group.bits
        if unfit:
            # The node is new in the block, or has more room: bits of ask classes that now fit must be
            # cleared.
            unfit = self._ask_classes.refresh_unfit(node)
            block.bits &= unfit
            group.bits &= unfit

    def reposition(self) -> None:
        """Move all nodes to their positions after a change of the ranges of scores."""
        assert self.normalised is not None
        self.normalised.use_known(known=True)
        try:
            for position in list(self._positions.values()):
                self.put(position.entry[2], False)
        finally:
            self.normalised.use_known(known=False)

    def catch_up(self, log: Sequence[Change]) -> None:
        """Apply the log of changed nodes to an order for one ask class.

        There may be many such orders, most of them rarely used. The score of a node without room for the ask
        class is therefore not computed until the node gains room.
        """
        changed: dict[Node, bool] = {}
        for node, gained in log[self.seen :]:
            changed[node] = gained or changed.get(node, False)
        self.seen = len(log)
        for node, gained in changed.items():
            before = self._deferred.pop(node.id, None) if self._deferred else None
            gained = gained or (before is not None and before[1])
            if not node.is_free:
                self.remove(node.id)
            elif self.ask_class is None or self.ask_class.fits(node):
                self.put(node, gained)
            else:
                self._deferred[node.id] = (node, gained)

    def _position_deferred(self) -> None:
        """Position all deferred nodes, including those without room."""
        dozing, self._deferred = self._deferred, {}
        for node, gained in dozing.values():
            self.put(node, gained)

    def _insert(self, entry: SortKey) -> NodeBlock:
        where = bisect_left(self._groups.borders, entry)
        group = self._groups.blocks[where]
        at = bisect_left(group.borders, entry)
        block = group.blocks[at]
        entries = block.entries
        insort(entries, entry)
        if len(entries) > BLOCK:
            upper = group.split(at)
            if len(group.blocks) > GROUP:
                self._groups.split(where)
            if upper.entries[0] <= entry:
                return upper
        return block

    def remove(self, node_id: str) -> None:
        """Remove a node; no effect if the order does not contain it."""
        self._deferred.pop(node_id, None)
        if self.normalised is not None:
            self.normalised.forget(node_id)
        position = self._positions.pop(node_id, None)
        if position is not None:
            entries = position.block.entries
            node: Node = position.entry[2]
            del entries[bisect_left(entries, position.entry)]
            if node.position is position:
                node.position = None
            # Break the reference cycle of position and entry.
            del position.entry
            position.order = None
            if not entries:
                self._drop(position.block)

    def dissolve(self) -> None:
        """Detach all nodes from this order, which is no longer used."""
        for position in self._positions.values():
            position.order = None
            node: Node = position.entry[2]
            if node.position is position:
                node.position = None

    def _drop(self, block: NodeBlock) -> None:
        """Remove an empty block, and its group if that becomes empty; the last group always stays."""
        group = block.group
        if len(group.blocks) > 1:
            group.drop(block)
        else:
            self._groups.drop(group)
        self._first = self._groups.blocks[0].blocks[0]

    # -- searching ----------------------------------------------------------------------------------

    def find(self, ask_class: AskClass, ask: Ask, predicates: PredicateChain | None) -> Node | None:
        """Return the first node in order that has room for `ask` and that no predicate refuses, or None."""
        bit = ask_class.bit
        if predicates is not None:
            if predicates.has_domains and predicates.refuses_everywhere(ask_class):
                return None
            if predicates.asks_ahead and not predicates.expects:
                with predicates.expecting(ask, lambda: self._with_room(ask_class)):
                    return self.find(ask_class, ask, predicates)
        elif self._first.entries:
            first: Node = self._first.entries[0][2]
            if not first.unfit & bit:
                available = first.available
                for name, amount in ask_class.pairs:
                    if available.get(name, 0) < amount:
                        break
                else:
                    # The most frequent case if the policy spreads the load.
                    return first
        for group in self._groups.blocks:
            if group.bits & bit:
                continue
            unfit = True
            for block in group.blocks:
                if block.bits & bit:
                    continue
                node = self._scan(block, ask_class, ask, predicates)
                if node is not None:
                    return node
                if not block.bits & bit:
                    unfit = False
                    if predicates is not None and predicates.exhausted:
                        return None
            if unfit:
                group.tighten()
        return None

    def _scan(
        self, block: NodeBlock, ask_class: AskClass, ask: Ask, predicates: PredicateChain | None
    ) -> Node | None:
        """Return the first node of the block that accepts `ask`; if there is none, record lasting reasons."""
        if predicates is not None and predicates.has_domains:
            return self._scan_by_domain(block, ask_class, ask, predicates)
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
            # Refusals that may soon change say nothing lasting about the block.
            block.tighten()
            block.bits |= bit
        return None

    def _scan_by_domain(
        self, block: NodeBlock, ask_class: AskClass, ask: Ask, predicates: PredicateChain
    ) -> Node | None:
        """As `_scan`; marks nodes of refusing domains, and ends when all domains of a predicate refuse."""
        bit, pairs = ask_class.bit, ask_class.pairs
        unsettled = predicates.unsettled
        for entry in block.entries:
            node: Node = entry[2]
            if node.unfit & bit:
                continue
            for domain in node.domains:
                closing = domain.closed.get(ask_class)
                if closing is not None:
                    node.unfit |= bit
                    closing.marked.append(node)
                    break
            else:
                available = node.available
                for name, amount in pairs:
                    if available.get(name, 0) < amount:
                        node.unfit |= bit
                        self._ask_classes.refresh_unfit(node)
                        break
                else:
                    if predicates.accepts(ask, node):
                        return node
                    if predicates.exhausted:
                        return None
        if predicates.unsettled == unsettled:
            block.tighten()
            block.bits |= bit
        return None

    def _with_room(self, ask_class: AskClass) -> Iterator[Node]:
        """Yield the nodes with room for this ask class in the order of a search."""
        bit = ask_class.bit
        for group in self._groups.blocks:
            if not group.bits & bit:
                for block in group.blocks:
                    if not block.bits & bit:
                        yield from (entry[2] for entry in block.entries if ask_class.fits(entry[2]))
