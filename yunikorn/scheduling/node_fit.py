"""What the nodes say to a waiting request: how many refuse it for which reason, and which is the nearest.

For whoever asks why it waits. A node's answer is found out afresh; nothing is remembered or reported.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from yunikorn.api import Predicate
    from yunikorn.objects.ask import Ask
    from yunikorn.objects.atomic_gang import Members
    from yunikorn.objects.node import Node
    from yunikorn.resources import Tally
    from yunikorn.scheduling.predicate_chain import PredicateChain


@attrs.define
class NodeFit:
    """One node, as a request sees it."""

    node: Node
    drained: bool
    """Nothing new comes there; a request that requires the node comes all the same."""
    reserved: bool
    """Kept for another; that neither holds for one that requires the node."""
    lacking: Tally
    """What it has too little of now."""
    missing: Tally
    """What it would have too little of if nothing ran there."""
    refusal: tuple[Predicate, str] | None = None
    """Which predicate says no, and why."""

    @property
    def has_room(self) -> bool:
        """Whether it is open to the request and has room for it, whatever predicates say."""
        return not (self.drained or self.reserved or self.lacking)

    @property
    def takes_it(self) -> bool:
        """Whether the request could be placed there now."""
        return self.has_room and self.refusal is None

    @property
    def distance(self) -> tuple[int, int, int, float]:
        """How far it is from taking the request: the fewest things to change, then the least to free.

        A node that is too small, or that a predicate refuses, is further than all others.
        """
        never = (self.refusal is not None) + 2 * bool(self.missing)
        things = self.drained + self.reserved + bool(self.lacking)
        capacity = self.node.capacity
        share = max((amount / capacity.get(name, 1) for name, amount in self.lacking.items()), default=0.0)
        return (never, things, self.drained + 2 * self.reserved, share)


def evaluate(ask: Ask, node: Node) -> NodeFit:
    """How `node` looks to `ask`; predicates are not asked."""
    required = bool(ask.ask_class.required)
    lacking: Tally = {}
    missing: Tally = {}
    for name, amount in ask.ask_class.pairs:
        if node.available.get(name, 0) < amount:
            lacking[name] = amount - node.available.get(name, 0)
        empty = node.capacity.get(name, 0) - node.occupied.get(name, 0)
        if empty < amount:
            missing[name] = amount - empty
    others = bool(node.reservations) and ask not in node.reservations
    return NodeFit(node, not node.schedulable and not required, others and not required, lacking, missing)


@attrs.define
class FitSummary:
    """What nodes say to a request, counted."""

    nodes: int = 0
    drained: int = 0
    reserved: int = 0
    too_small: int = 0
    """Those that could not take it if nothing ran there."""
    lacking: Counter[str] = attrs.Factory(Counter)
    """By resource type: nodes with too little of it left."""
    short: int = 0
    refused: Counter[tuple[str, str]] = attrs.Factory(Counter)
    """By name of the predicate and its reason: nodes with room that it refuses."""

    def add(self, fit: NodeFit) -> None:
        """Count a node that does not take the request, under the first thing in the way."""
        self.nodes += 1
        self.too_small += bool(fit.missing)
        if fit.drained:
            self.drained += 1
        elif fit.reserved:
            self.reserved += 1
        elif fit.lacking:
            self.lacking.update(list(fit.lacking))
            self.short += 1
        elif fit.refusal is not None:
            predicate, reason = fit.refusal
            self.refused[predicate.name, reason] += 1

    @property
    def check(self) -> str:
        """Which check it is that most of all stops the request: `predicates` or `nodes`."""
        return "predicates" if self.refused and not self.short else "nodes"

    @property
    def summary(self) -> str:
        """In words that are equal for equal cases."""
        if not self.nodes:
            return "there are no nodes"
        if self.too_small == self.nodes:
            return "larger than any node"
        if self.refused and not self.short:
            return "no node is allowed: " + "; ".join(sorted({reason for _, reason in self.refused}))
        if self.drained == self.nodes:
            return "all nodes are drained"
        if self.refused:
            return "no node that is allowed has room"
        return "no node has room"

    @property
    def detail(self) -> str:
        """With the counts per missing resource, and per predicate and reason."""
        parts = [f"{count} lack {name}" for name, count in sorted(self.lacking.items())]
        parts += [
            f"{count} refused by {name}: {reason}" for (name, reason), count in sorted(self.refused.items())
        ]
        if self.reserved:
            parts.append(f"{self.reserved} reserved for others")
        if self.drained:
            parts.append(f"{self.drained} drained")
        if self.too_small:
            parts.append(f"{self.too_small} too small even when empty")
        return f"{self.summary} (of {self.nodes} nodes: {', '.join(parts)})" if parts else self.summary


def summarise_fit(ask: Ask, nodes: Collection[Node], predicates: PredicateChain) -> FitSummary | None:
    """What `nodes` say to `ask`; None when one of them takes it."""
    found = FitSummary()
    with predicates.expecting(ask, lambda: (node for node in nodes if evaluate(ask, node).has_room)):
        for node in nodes:
            fit = evaluate(ask, node)
            if fit.has_room:
                fit.refusal = predicates.look(ask, node)
                if fit.refusal is None:
                    return None
            found.add(fit)
    return found


def closest(ask: Ask, nodes: Collection[Node], predicates: PredicateChain) -> NodeFit | None:
    """The node that comes nearest to taking `ask`, of equals the first to join; None without nodes."""
    best: NodeFit | None = None
    with predicates.expecting(ask, lambda: iter(nodes)):
        for node in nodes:
            fit = evaluate(ask, node)
            fit.refusal = predicates.look(ask, node)
            if best is None or fit.distance < best.distance:
                best = fit
    return best


def count_fitting(members: Members, nodes: Iterable[Node], predicates: PredicateChain) -> int:
    """For how many of `members` there is room at once, each taken to the first node that would do."""
    rooms = [(node, dict(node.available)) for node in nodes]
    placed = 0
    for ask, count in members:
        left = count
        with predicates.expecting(ask, lambda: iter([node for node, _ in rooms])):
            for node, room in rooms:
                if left and _is_open(ask, node, predicates):
                    left -= _take(room, ask, left)
        placed += count - left
    return placed


def _is_open(ask: Ask, node: Node, predicates: PredicateChain) -> bool:
    if ask.ask_class.required not in ("", node.id):
        return False
    fit = evaluate(ask, node)
    return fit.has_room and predicates.look(ask, node) is None


def _take(room: Tally, ask: Ask, most: int) -> int:
    count = min([most, *(max(0, room.get(name, 0)) // amount for name, amount in ask.ask_class.pairs)])
    for name, amount in ask.ask_class.pairs:
        room[name] = room.get(name, 0) - amount * count
    return count
