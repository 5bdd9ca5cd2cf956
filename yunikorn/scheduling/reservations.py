"""Reservations: a node is kept free of other requests until the request that it is reserved for fits.

When a request that has waited long enough finds no room, the best-fitting node is reserved for it: hidden
from all other requests, and tried for this request whenever the node gains room. Unlike YuniKorn 1.9, there
is one reservation per ask class, held by its first request and inherited by the next. Pending requests
therefore reserve as many nodes as they have ask classes, and not the whole cluster. A request that requires a
node reserves that node at once, and replaces the reservations of other requests there.

A reservation policy may restrict who reserves, how many do, and for how long: see `policy_reservations`.

Full node scans are limited to one ask class at a time, with a pause proportional to the number of nodes. A
reservation needs a full scan if none of the sampled nodes fits. Its time is proportional to the number of
nodes, and many ask classes may need a scan at the same moment. The others wait in order of arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from yunikorn.clock import SECOND
from yunikorn.model.gang import GangClass
from yunikorn.scheduling.obstacles import obstacles
from yunikorn.scheduling.policy_reservations import PolicyReservations, Rank
from yunikorn.states import STOPPED

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.ask import Ask
    from yunikorn.model.ask_class import AskClass
    from yunikorn.model.node import Node
    from yunikorn.model.queue import Queue
    from yunikorn.resources import Tally
    from yunikorn.scheduling.allocator import Allocator
    from yunikorn.scheduling.node_orders import NodeOrders
    from yunikorn.scheduling.reservation_rules import ReservationRules

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


class Reservations:
    """Makes, serves and cancels the reservations of a partition."""

    def __init__(
        self,
        partition: Partition,
        orders: NodeOrders,
        allocator: Allocator,
        foremost: Callable[[int], Ask | None],
        put_in_order: Callable[[Queue], None],
    ) -> None:
        """Create for a cycle: `foremost` returns the first request in order with any of the given bits.

        `put_in_order` brings the order of a queue's members up to date.
        """
        self._partition, self._allocator = partition, allocator
        self._first, self._put_in_order = foremost, put_in_order
        self._node_reservations = partition.accounting.node_reservations
        self._orders = orders
        self._largest: Tally = {}
        """Largest capacity of any single node, per resource type."""
        self._largest_at = -1
        """Value of `capacity_version` for which `_largest` was computed."""
        self._waiting: set[AskClass] = set()
        """Ask classes whose first request has not waited long enough; a timer retries each of them."""
        self._full_scans = FullScanLimiter(partition, self.retry)
        self.by_policy: PolicyReservations | None = None
        """The reservations under a policy that restricts them; None without restrictions."""

    def use(self, rules: ReservationRules) -> None:
        """Use this reservation policy from now on.

        A reload has ended the reservations of all pending requests before, so that the policy decides about
        each of them.
        """
        if self.by_policy is not None:
            self.by_policy.close()
            self.by_policy = None
        if not rules.unrestricted:
            self.by_policy = PolicyReservations(self._partition, rules, self, self._put_in_order)

    # -- making -------------------------------------------------------------------------------------

    def consider(self, ask: Ask) -> None:
        """Reserve a node for `ask`, which found no room, or set a timer if `ask` has not waited enough."""
        delay = self._partition.timeouts.reservation
        if ask.ask_class.required:
            self._require(ask)
            return
        holder = ask.ask_class.reserving_ask
        if ask.reserved is not None or (delay is None and self.by_policy is None):
            return
        if holder is not None and holder not in self._node_reservations.inheritable:
            return
        if self.by_policy is not None:
            self.by_policy.consider(ask)
        elif delay is None:
            return
        elif self._partition.clock.now() < ask.created + delay:
            self._try_again(ask, ask.created + delay)
        elif holder is not None:
            self._node_reservations.transfer(holder, ask)
        else:
            node = self.best_node(ask)
            if node is not None:
                self.reserve(ask, node)

    def _require(self, ask: Ask) -> None:
        node = self._partition.nodes.get(ask.ask_class.required)
        if node is None or ask.reserved is not None or not node.could_host(ask.ask_class.pairs):
            return
        if ask.ask_class.fits(node):
            return  # A predicate refuses the request, so that keeping room free would not help.
        for other in [other for other in node.reservations if not other.ask_class.required]:
            self._node_reservations.unreserve(other)
        self.reserve(ask, node)

    def reserve(self, ask: Ask, node: Node) -> None:
        """Reserve `node` for `ask`; a previous reservation of `ask` is cancelled."""
        if ask.reserved is not None:
            self._node_reservations.unreserve(ask)
        self._node_reservations.reserve(ask, node)

    def keep_for_victims(self, ask: Ask, node: Node) -> None:
        """Reserve `node`, on which victims make room for `ask`, whatever the policy says."""
        if ask.reserved is not node:
            self.reserve(ask, node)
        elif self.by_policy is not None:
            self.by_policy.forget(ask)

    def _try_again(self, ask: Ask, due: int) -> None:
        ask_class = ask.ask_class
        if ask_class not in self._waiting:
            self._waiting.add(ask_class)
            self._partition.timers.at(due, lambda: self._become_eligible(ask_class))

    def _become_eligible(self, ask_class: AskClass) -> None:
        self._waiting.discard(ask_class)
        self.retry(ask_class)

    def reconsider(self) -> None:
        """Retry requests that lost their reservation, or that may reserve a new or changed node."""
        ask_classes = dict(self._node_reservations.lost)
        hosts = list(self._node_reservations.changed_hosts)
        if hosts and (self._partition.timeouts.reservation is not None or self.by_policy is not None):
            most = _largest_amounts(hosts)
            waiting = (
                ask_class
                for ask_class in self._partition.ask_classes
                if ask_class.waiting
                and ask_class.reserving_ask is None
                and all([amount <= most.get(name, 0) for name, amount in ask_class.pairs])
            )
            ask_classes |= {
                ask_class: None
                for ask_class in waiting
                if any(may_reserve(node, ask_class) for node in hosts)
            }
        self._node_reservations.changed_hosts.clear()
        self._node_reservations.lost.clear()
        for ask_class in ask_classes:
            if ask_class.reserving_ask is None:
                self.retry(ask_class)

    def give_up_stopped(self) -> None:
        """Cancel the reservations of requests in stopped queues."""
        for node in self._partition.nodes.values():
            for ask in list(node.reservations):
                if any(queue.state == STOPPED for queue in ask.app.chain):
                    self._node_reservations.unreserve(ask)

    def retry(self, ask_class: AskClass) -> None:
        """Try the requests of an ask class again."""
        if ask_class.waiting:
            self._partition.pending_classes.mark_schedulable(ask_class)
            root = self._partition.queues.root
            for pending_class in ask_class.pending_classes.values():
                root.retry(pending_class)

    # -- choosing -----------------------------------------------------------------------------------

    def best_node(self, ask: Ask, rank: Rank | None = None) -> Node | None:
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
        if self._largest_at != self._node_reservations.capacity_version:
            self._largest_at = self._node_reservations.capacity_version
            self._largest = {}
            for node in self._partition.nodes.values():
                for name, amount in node.capacity.items():
                    self._largest[name] = max(amount, self._largest.get(name, 0))
        return any(amount > self._largest.get(name, 0) for name, amount in ask_class.pairs)

    def _hosts(self, ask: Ask, candidates: Iterable[Node]) -> Iterator[Node]:
        """Yield the nodes that could run `ask` if they were free, and that no predicate refuses."""
        ask_class, predicates = ask.ask_class, self._orders.predicates
        avoids = ask_class.avoids
        hosts = [node for node in candidates if node.could_host(ask_class.pairs) and node.id not in avoids]
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

    # -- serving ------------------------------------------------------------------------------------

    def serve(self) -> Allocation | None:
        """Place the first request that now fits its reserved node; None if there is none."""
        regained = self._orders.regained
        # Nodes whose request waits only for quota; they are tried again after the next change.
        blocked: dict[Node, None] = {}
        while regained:
            node = regained[-1]
            for ask in list(node.reservations):
                if (
                    ask in self._node_reservations.inheritable
                    or not ask.ask_class.fits(node)
                    or ask.unschedulable
                ):
                    continue
                obstacle = next(obstacles(ask, to_start=True), None)
                if obstacle is not None:
                    if obstacle is self._partition.queues.root or _is_making_room(ask):
                        blocked[node] = None
                    else:
                        # A reservation for a request that may not run would only block the node.
                        self._node_reservations.unreserve(ask)
                elif self._orders.predicates.judge(ask, node) is None:
                    regained[:0] = blocked
                    return self._award(node, ask)
            regained.pop()
        regained.extend(blocked)
        return None

    def _award(self, node: Node, holder: Ask) -> Allocation | None:
        """Give the room of a reserved node to the first request in policy order, usually `holder`.

        The node is closed to smaller requests until it has room for its holder. Then the first of all
        requests that fit the node is placed. If that is another request than the holder, and other nodes have
        room for it, the request is placed on one of them. Returns None if a permit policy refuses it.
        """
        foremost = holder
        if not holder.ask_class.required and holder.eviction is None:
            foremost = self._foremost(node, holder)
        if (
            foremost is not holder
            and not foremost.ask_class.unschedulable
            and not foremost.ask_class.required
        ):
            elsewhere = self._orders.find(foremost)
            if elsewhere is not None:
                return self._allocator.place(foremost, elsewhere)
        return self._allocator.place(foremost, node)

    def _foremost(self, node: Node, holder: Ask) -> Ask:
        wanted = 0
        for ask_class in self._partition.ask_classes:
            # A gang is placed as a whole or not at all, so that no single node is given to it.
            if isinstance(ask_class, GangClass) or ask_class.required not in ("", node.id):
                continue
            if ask_class.waiting and ask_class.fits(node) and ask_class.verdicts.get(node.classes) is None:
                for pending_class in ask_class.pending_classes.values():
                    if not pending_class.over_limit:
                        wanted |= pending_class.bits
        found = self._first(wanted)
        if found is None or next(obstacles(found, to_start=True), None) is not None:
            return holder
        return found if self._orders.predicates.judge(found, node) is None else holder

    def give_up_inheritable(self) -> bool:
        """Cancel reservations that no other request of the ask class inherited; True if there were any."""
        inheritable = list(self._node_reservations.inheritable)
        for ask in inheritable:
            self._node_reservations.unreserve(ask)
        return bool(inheritable)


def _free(nodes: Iterable[Node]) -> Iterator[Node]:
    return (node for node in nodes if node.is_free)


def _largest_amounts(nodes: Iterable[Node]) -> dict[str, int]:
    """Return the largest amount of each type that any of the nodes can give to requests.

    Most requests that fit no node exceed it: those that represent gangs, above all.
    """
    most: dict[str, int] = {}
    for node in nodes:
        for name, amount in node.capacity.items():
            most[name] = max(most.get(name, 0), amount - node.occupied.get(name, 0))
    return most


def may_reserve(node: Node, ask_class: AskClass) -> bool:
    """Return True if the capacity of `node` allows a reservation for a request of `ask_class`."""
    if ask_class.required:
        return ask_class.required == node.id and node.could_host(ask_class.pairs)
    return node.is_free and node.could_host(ask_class.pairs)


def _is_making_room(ask: Ask) -> bool:
    """Return True if victims of `ask` have not ended yet: their release may satisfy the quota as well."""
    return ask.eviction is not None and bool(ask.eviction.outstanding)


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
