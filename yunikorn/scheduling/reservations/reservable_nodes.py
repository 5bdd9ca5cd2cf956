"""Choice of the node that is reserved for a request: the best fit, or the one that the policy ranks lowest.

Full node scans are limited to one ask class at a time, with a pause proportional to the number of nodes. A
reservation needs a full scan if none of the sampled nodes fits. Its time is proportional to the number of
nodes, and many ask classes may need a scan at the same moment. The others wait in order of arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from yunikorn.clock import SECOND

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.model.ask import Ask
    from yunikorn.model.ask_class import AskClass
    from yunikorn.model.node import Node
    from yunikorn.resources import Tally
    from yunikorn.scheduling.node_orders import NodeOrders

Rank = Callable[["Ask", "Node"], "float | None"]
"""Function that ranks a node for a request, the lowest first; None for a node that must not be reserved."""
PAUSE = SECOND // 100_000
"""Pause (ns) per scanned node: several times the duration of the scan itself."""


class FullScanLimiter:
    """Queue of the ask classes of one partition that wait for a full node scan."""

    def __init__(self, partition: Partition, retry: Callable[[AskClass], None]) -> None:
        self._partition = partition
        self._retry = retry
        """Retries the pending requests of an ask class."""
        self._waiting: dict[AskClass, None] = {}
        """Waiting ask classes in order of arrival; while there are any, a timer admits the next."""
        self._next: AskClass | None = None
        """Ask class that may scan next, until it has done so or the next ask class is admitted."""
        self._pause_until = 0

    def try_acquire(self, ask_class: AskClass) -> bool:
        """Return True if a request of `ask_class` may scan all nodes now; otherwise it is retried later."""
        now = self._partition.clock.now()
        if ask_class is self._next or (now >= self._pause_until and not self._waiting):
            self._next = None
            self._pause_until = now + PAUSE * len(self._partition.nodes)
            return True
        if not self._waiting:
            self._partition.timers.at(self._pause_until, self._advance)
        self._waiting[ask_class] = None
        return False

    def _advance(self) -> None:
        self._next = None
        while self._waiting:
            ask_class = next(iter(self._waiting))
            del self._waiting[ask_class]
            if ask_class.waiting and ask_class.reserving_ask is None:
                self._next = ask_class
                break
        if self._waiting:
            # The pause starts now: after a late timer, several ask classes would otherwise scan in one round.
            self._partition.timers.after(PAUSE * len(self._partition.nodes), self._advance)
        if self._next is not None:
            self._retry(self._next)


SAMPLE = 16
"""Number of free nodes at either end of the node order that are examined before a full scan."""


class ReservableNodes:
    """Chooses nodes of a partition to reserve."""

    def __init__(self, partition: Partition, orders: NodeOrders, retry: Callable[[AskClass], None]) -> None:
        """Create for a partition; `retry` tries the requests of an ask class again."""
        self._partition, self._orders = partition, orders
        self._largest: Tally = {}
        """Largest capacity of any single node, per resource type."""
        self._largest_at = -1
        """Value of `capacity_version` for which `_largest` was computed."""
        self._full_scans = FullScanLimiter(partition, retry)

    def best(self, ask: Ask, rank: Rank | None) -> Node | None:
        """Return the node to reserve for `ask`: the best fit, or that of lowest rank; None if there is none.

        None is also returned, and the requests of the class are tried again later, if all nodes would have to
        be examined, and the turn of others comes first.
        """
        ask_class = ask.ask_class
        if self._exceeds_all(ask_class):
            return None
        order = self._orders.of(ask_class)
        if rank is not None:
            if len(self._partition.nodes) > 2 * SAMPLE and not self._full_scans.try_acquire(ask_class):
                return None
            return self._lowest(ask, _free(order), rank)
        # Orders still contain nodes that were reserved a moment ago: several ask classes may reserve at once.
        ends = (*islice(_free(order), SAMPLE), *islice(_free(reversed(order)), SAMPLE))
        node = self._nearest(ask, ends)
        if node is not None:
            return node
        # With fewer nodes than this, all free nodes have been examined.
        if len(ends) < 2 * SAMPLE or not self._full_scans.try_acquire(ask_class):
            return None
        return self._nearest(ask, _free(order))

    def _exceeds_all(self, ask_class: AskClass) -> bool:
        """Return True if the request exceeds the capacity of every node; no node is examined for this."""
        if self._largest_at != self._partition.accounting.node_reservations.capacity_version:
            self._largest_at = self._partition.accounting.node_reservations.capacity_version
            self._largest = {}
            for node in self._partition.nodes.values():
                for name, amount in node.capacity.items():
                    self._largest[name] = max(amount, self._largest.get(name, 0))
        return any(amount > self._largest.get(name, 0) for name, amount in ask_class.pairs)

    def _hosts(self, ask: Ask, candidates: Iterable[Node]) -> Iterator[Node]:
        """Yield the nodes that could run `ask` if they were free, and that no predicate refuses."""
        ask_class, predicates = ask.ask_class, self._orders.predicates
        fitting = [node for node in candidates if node.could_host(ask_class.pairs)]
        hosts = [node for node in fitting if not ask_class.rules_out(node)]
        predicates.expect(ask, lambda: iter(hosts))
        for node in hosts:
            if not predicates or predicates.judge_reservation(ask, node) is None:
                yield node
        predicates.forget()

    def _lowest(self, ask: Ask, candidates: Iterable[Node], rank: Rank) -> Node | None:
        """Return the node with the lowest rank, the first of equals."""
        best: tuple[float, Node] | None = None
        for node in self._hosts(ask, candidates):
            number = rank(ask, node)
            if number is not None and (best is None or number < best[0]):
                best = number, node
        return None if best is None else best[1]

    def _nearest(self, ask: Ask, candidates: Iterable[Node]) -> Node | None:
        """Return the node with the best fit; if several fit equally well, the one that lacks the least."""
        ask_class = ask.ask_class
        best: Node | None = None
        spare = lack = 0.0
        for node in self._hosts(ask, candidates):
            looser = excess(ask_class, node)
            if best is None or looser <= spare:
                lacking = shortfall(ask_class, node)
                if best is None or looser < spare or lacking < lack:
                    best, spare, lack = node, looser, lacking
        return best


def _free(nodes: Iterable[Node]) -> Iterator[Node]:
    return (node for node in nodes if node.is_free)


def excess(ask_class: AskClass, node: Node) -> float:
    """Return how loosely a request fits `node`: 0 for an exact or too small fit, larger if looser.

    This is `Resource.FitInScore` of YuniKorn 1.9: the sum over all resource types of the share of the node's
    available amount that the request leaves unused.
    """
    score = 0.0
    for name, amount in node.available.items():
        if amount > 0:
            wanted = ask_class.resource.get(name, 0)
            if wanted <= 0:
                score += 1
            elif amount > wanted:
                score += (amount - wanted) / amount
    return score


def shortfall(ask_class: AskClass, node: Node) -> float:
    """Return the sum over all resource types of the share of the request that `node` lacks."""
    available = node.available
    lacking = [(amount - available.get(name, 0), amount) for name, amount in ask_class.pairs]
    return sum(missing / amount for missing, amount in lacking if missing > 0)
