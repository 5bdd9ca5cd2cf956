"""Evaluation of nodes for a pending request: refusals by reason, and the closest node.

Used by explanations only. Answers of predicates are neither cached nor reported here.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import attrs

from yunikorn.scheduling.atomic_gangs import take_replicas

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from yunikorn.api import Predicate
    from yunikorn.model.ask import Ask
    from yunikorn.model.gang import Members
    from yunikorn.model.node import Node
    from yunikorn.resources import Tally
    from yunikorn.scheduling.predicate_chain import PredicateChain

    Home = tuple[dict[Node, None], str]
    """Nodes of the domain that a request must be placed in, and its name."""


@attrs.define
class NodeFit:
    """Fit of a request on one node."""

    node: Node
    drained: bool
    """True if the node is drained and the request does not require this node."""
    reserved: bool
    """True if the node is reserved for another request and the request does not require this node."""
    lacking: Tally
    """Missing amount per resource type, given the current allocations."""
    missing: Tally
    """Missing amount per resource type if the node were empty."""
    outside: str = ""
    """Domain of the topology that the request must be placed in, and that the node is outside of."""
    refusal: tuple[Predicate, str] | None = None
    """Refusing predicate and its reason."""

    @property
    def has_room(self) -> bool:
        """True if the node is open to the request and has room; ignores predicates."""
        return not (self.drained or self.reserved or self.lacking or self.outside)

    @property
    def takes_it(self) -> bool:
        """True if the request could be placed on the node now."""
        return self.has_room and self.refusal is None

    @property
    def distance(self) -> tuple[int, int, int, float]:
        """Distance from accepting the request: number of necessary changes first, then the share to free.

        Nodes that are too small or refused by a predicate are further away than all others.
        """
        never = (self.refusal is not None or bool(self.outside)) + 2 * bool(self.missing)
        things = self.drained + self.reserved + bool(self.lacking)
        capacity = self.node.capacity
        share = max((amount / capacity.get(name, 1) for name, amount in self.lacking.items()), default=0.0)
        return (never, things, self.drained + 2 * self.reserved, share)


def home_of(ask: Ask) -> Home | None:
    """Return the domain of the topology that a request must be placed in, found once for all nodes."""
    home = ask.ask_class.home
    if home is None:
        return None
    return dict.fromkeys(node for node in home.nodes() if home.suits(node)), home.label


def evaluate(ask: Ask, node: Node, home: Home | None) -> NodeFit:
    """Evaluate the fit of `ask` on `node`, without predicates; `home` is that of the request."""
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
    own = home is not None and node in home[0] and node.is_open_to(ask.app)
    drained, reserved = not node.schedulable and not required, others and not required and not own
    outside = "" if home is None or node in home[0] else home[1]
    return NodeFit(node, drained, reserved, lacking, missing, outside)


@attrs.define
class FitSummary:
    """Fit of a request on several nodes, as counts."""

    nodes: int = 0
    drained: int = 0
    reserved: int = 0
    reserved_node: str = ""
    """Id of the first node that is reserved for others."""
    outside: Counter[str] = attrs.Factory(Counter)
    """Number of nodes outside the domain that the request must be placed in, by domain."""
    too_small: int = 0
    """Number of nodes that would be too small even if empty."""
    lacking: Counter[str] = attrs.Factory(Counter)
    """Number of nodes that lack a resource type, by type."""
    short: int = 0
    refused: Counter[tuple[str, str]] = attrs.Factory(Counter)
    """Number of nodes with room that a predicate refuses, by predicate name and reason."""

    def add(self, fit: NodeFit) -> None:
        """Count a node that does not accept the request under the first condition that stops the request."""
        self.nodes += 1
        self.too_small += bool(fit.missing)
        if fit.outside:
            self.outside[fit.outside] += 1
        elif fit.drained:
            self.drained += 1
        elif fit.reserved:
            self.reserved += 1
            self.reserved_node = self.reserved_node or fit.node.id
        elif fit.lacking:
            self.lacking.update(list(fit.lacking))
            self.short += 1
        elif fit.refusal is not None:
            predicate, reason = fit.refusal
            self.refused[predicate.name, reason] += 1

    @property
    def check(self) -> str:
        """Name of the predominant check: `predicates` or `nodes`."""
        return "predicates" if self.refused and not self.short else "nodes"

    @property
    def summary(self) -> str:
        """Summary without numbers, equal for equal conditions."""
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
        """Summary with the counts per missing resource type, and per predicate and reason."""
        parts = [f"{count} lack {name}" for name, count in sorted(self.lacking.items())]
        parts += [
            f"{count} refused by {name}: {reason}" for (name, reason), count in sorted(self.refused.items())
        ]
        parts += [f"{count} outside {domain}" for domain, count in sorted(self.outside.items())]
        if self.reserved:
            parts.append(f"{self.reserved} reserved for others")
        if self.drained:
            parts.append(f"{self.drained} drained")
        if self.too_small:
            parts.append(f"{self.too_small} too small even when empty")
        return f"{self.summary} (of {self.nodes} nodes: {', '.join(parts)})" if parts else self.summary


def summarise_fit(ask: Ask, nodes: Collection[Node], predicates: PredicateChain) -> FitSummary | None:
    """Summarise the fit of `ask` on `nodes`; None if one of them accepts the request."""
    found, home = FitSummary(), home_of(ask)
    with (
        predicates.hypothetically(),
        predicates.expecting(ask, lambda: (node for node in nodes if evaluate(ask, node, home).has_room)),
    ):
        for node in nodes:
            fit = evaluate(ask, node, home)
            if fit.has_room:
                fit.refusal = predicates.evaluate(ask, node)
                if fit.refusal is None:
                    return None
            found.add(fit)
    return found


def closest(ask: Ask, nodes: Collection[Node], predicates: PredicateChain) -> NodeFit | None:
    """Return the fit on the closest node, of equals the first in `nodes`; None without nodes."""
    best: NodeFit | None = None
    home = home_of(ask)
    with predicates.hypothetically(), predicates.expecting(ask, lambda: iter(nodes)):
        for node in nodes:
            fit = evaluate(ask, node, home)
            fit.refusal = predicates.evaluate(ask, node)
            if best is None or fit.distance < best.distance:
                best = fit
    return best


def count_fitting(members: Members, nodes: Iterable[Node], predicates: PredicateChain) -> int:
    """Return how many `members` fit at once, each placed on the first suitable node."""
    rooms = [(node, dict(node.available)) for node in nodes]
    placed = 0
    for ask, count in members:
        left, home = count, home_of(ask)
        with (
            predicates.hypothetically(),
            predicates.expecting(ask, lambda: iter([node for node, _ in rooms])),
        ):
            for node, room in rooms:
                if left and is_open(ask, node, predicates, home):
                    left -= take_replicas(room, ask, left)
        placed += count - left
    return placed


def is_open(ask: Ask, node: Node, predicates: PredicateChain, home: Home | None) -> bool:
    """Return True if a node has room for a request, and no predicate refuses."""
    if ask.ask_class.required not in ("", node.id):
        return False
    fit = evaluate(ask, node, home)
    return fit.has_room and predicates.evaluate(ask, node) is None


class NodeScan:
    """Evaluation of the nodes for one request, made when it is needed."""

    def summary(self, ask: Ask, nodes: Collection[Node], predicates: PredicateChain) -> FitSummary | None:
        """Return the fit on the nodes; None if one of them accepts the request."""
        return summarise_fit(ask, nodes, predicates)

    def closest(self, ask: Ask, nodes: Collection[Node], predicates: PredicateChain) -> NodeFit | None:
        """Return the fit on the closest node; None without nodes."""
        return closest(ask, nodes, predicates)

    def room(self, members: Members, nodes: Collection[Node], predicates: PredicateChain) -> int:
        """Return how many members of a gang fit at once."""
        return count_fitting(members, nodes, predicates)


SCAN = NodeScan()
"""Scan at once."""
