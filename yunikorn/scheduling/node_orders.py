"""All node orders of a partition: the default order, named alternatives, and orders per ask class.

A named alternative exists while a pending request uses it. A policy whose scores depend on the request has
one order per ask class; such an order is kept for a while after the last request of its class, for requests
of the same class that arrive later. See `docs/decisions/archive/0010` and `docs/decisions/archive/0047`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from yunikorn.model.ask_class import AskClass
from yunikorn.scheduling.node_order import Change, NodeOrder
from yunikorn.scheduling.node_policies import WeightedScores
from yunikorn.scheduling.normalised_scores import NormalisedScores
from yunikorn.states import REMOVED, SCHEDULABLE

if TYPE_CHECKING:
    from yunikorn.accounting.allocation_accounting import AllocationAccounting
    from yunikorn.accounting.books import Books
    from yunikorn.clock import Clock
    from yunikorn.framework.plugin_failures import PluginFailures
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.ask import Ask
    from yunikorn.model.ask_class import HomeDomain, PendingClasses
    from yunikorn.model.change_readers import ChangeReaders
    from yunikorn.model.domain import Closing, Domain
    from yunikorn.model.node import Node
    from yunikorn.scheduling.node_policies import NamedPolicy, Scorer
    from yunikorn.scheduling.predicate_chain import PredicateChain

LOG = 4_096
"""Largest number of node changes that orders per ask class may lag behind."""
KEPT = 200_000
"""Largest total number of node positions in orders whose ask class has no pending request (tens of MB)."""

DEFAULT = ""
"""Name of the partition's own node order."""


class NodeOrders:
    """The node orders and the predicates in use: finds the node for an ask."""

    def __init__(
        self,
        policies: dict[str, NamedPolicy],
        predicates: PredicateChain,
        nodes: Mapping[str, Node],
        pending_classes: PendingClasses,
        readers: ChangeReaders,
        clock: Clock,
        failures: PluginFailures,
    ) -> None:
        self.policies = policies
        self.predicates = predicates
        self.chain = predicates if predicates else None
        """The predicates; None if there are none."""
        self.by_resources = self._is_by_resources()
        """True if the ask class depends on nothing but resources, node order and required node."""
        self._nodes = nodes
        self._pending_classes = pending_classes
        self._ask_classes = pending_classes.ask_classes
        self._clock = clock
        self._failures = failures
        self._orders: dict[tuple[str, int], NodeOrder] = {}
        self._common: list[NodeOrder] = []
        """Orders that apply to all requests, independent of their ask class."""
        self._log: list[Change] = []
        """Changes of nodes, not yet applied to all orders per ask class."""
        self._retired = 0
        """Value of `AskClasses.retired` when unused orders were last dropped."""
        self._only: NodeOrder | None = None
        """The default order, if it depends neither on the request nor on time; None before first use."""
        self._quick: NodeOrder | None = None
        """The same while no refusal of a domain may have ended."""
        self.books: Books | None = None
        """Plugins that keep books; None if there are none."""
        self.regained: list[Node] = []
        """Reserved nodes that gained room since the cycle last tried their reservations."""
        readers.ask_bits_dropped.append(self.forget_ask_classes)
        readers.ask_class_dropped.append(lambda one: self.predicates.forget_ask_class(one))

    def find(self, ask: Ask) -> Node | None:
        """Return the node on which to place `ask`, or None; ignores quotas and limits."""
        ask_class = ask.pending_class.ask_class
        if not ask_class.searched_apart:
            order = self._only
            if order is None or ask_class.node_order:
                order = self.of(ask_class)
            return order.find(ask_class, ask, self.chain)
        if not ask_class.required:
            if ask_class.home is not None:
                return self._find_in_domain(ask_class, ask, ask_class.home)
            return self._find_elsewhere(ask_class, ask)
        # A draining node still accepts requests that require it (daemon sets), as in YuniKorn 1.9.
        node = self._nodes.get(ask_class.required)
        if node is None or not ask_class.fits(node) or self.predicates.refusal(ask, node) is not None:
            return None
        return node

    def _find_elsewhere(self, ask_class: AskClass, ask: Ask) -> Node | None:
        """Return the node on which to place a request that avoids some nodes, or None."""
        for node_id in ask_class.avoids:
            node = self._nodes.get(node_id)
            if node is not None:
                # The search passes nodes that are known not to fit the class.
                node.unfit |= ask_class.bit
        return self.of(ask_class).find(ask_class, ask, self.chain)

    def _find_in_domain(self, ask_class: AskClass, ask: Ask, home: HomeDomain) -> Node | None:
        """Return the first node in order of the domain that the request must be placed in, or None."""
        order = self.of(ask_class)
        # The domain is found once: to ask whether it has each node would find it again each time.
        avoids, inside = ask_class.avoids, home.nodes()
        open_nodes = [node for node in inside if node.is_open_to(ask.app) and node.id not in avoids]
        nodes = [node for node in open_nodes if AskClass.fits(ask_class, node)]
        # Nodes that the application has alone come first.
        for *_, node in sorted((not node.reservations, order.score(node), node.id, node) for node in nodes):
            if home.suits(node) and self.predicates.refusal(ask, node) is None:
                return node
        return None

    def _is_by_resources(self) -> bool:
        return self.chain is None and not any(named.declares for named in self.policies.values())

    def of(self, ask_class: AskClass) -> NodeOrder:
        """Return the node order for requests of `ask_class`; created on first use."""
        if self._only is not None and not ask_class.node_order:
            return self._only
        named = self.policies[ask_class.node_order]
        key = (ask_class.node_order, ask_class.bit if named.by_ask_class else 0)
        order = self._orders.get(key)
        is_new = order is None
        if order is None:
            order = self._orders[key] = NodeOrder(
                _scorer_of(named),
                named.origin,
                self._failures,
                self._ask_classes,
                ask_class if named.by_ask_class else None,
                named.view(ask_class) if named.by_ask_class else None,
                named.score_changes,
            )
            order.seen = len(self._log)
            if not named.by_ask_class:
                self._common.append(order)
            if order.is_independent and not named.by_ask_class and ask_class.node_order == DEFAULT:
                self._only = self._quick = order
        elif order.ask_class is not None and order.seen != len(self._log):
            order.catch_up(self._log)
        if is_new or not order.is_independent:
            outdated = order.outdated(self._nodes, self._clock.now())
            for node in self._nodes.values() if is_new else outdated:
                if node.is_free:
                    order.put(node, is_new)
        if is_new and named.by_ask_class:
            self._make_room(len(order))
        if order.normalised is not None and order.normalised.take_ranges():
            order.reposition()
        return order

    def reorder(self, accounting: AllocationAccounting) -> None:
        """Apply the changes of nodes to all orders, and mark ask classes schedulable that have room again."""
        only, changed = self._quick, accounting.changed_nodes
        if only is not None and len(changed) == 1 and len(self._orders) == 1:
            node = changed[0]
            if not node.gained and node.state == SCHEDULABLE and not node.reservations:
                # The most frequent case: a single node, which just received an allocation.
                changed.clear()
                node.is_dirty = False
                only.put(node, False)
                return
        accounting.changed_nodes = []
        self.review_domains()
        if len(self._orders) > 1 and self._retired != self._ask_classes.retired:
            self._drop_unused()
        common = self._common
        for node in changed:
            gained, node.gained, node.is_dirty = node.gained, False, False
            free = node.state == SCHEDULABLE and not node.reservations
            for order in common:
                if free:
                    order.put(node, gained)
                else:
                    order.remove(node.id)
            if len(common) < len(self._orders):
                self._note(node, gained)
            if gained:
                self._regained(node, free)

    def _note(self, node: Node, gained: bool) -> None:
        """Append a change to the log that orders per ask class apply when they are used."""
        if len(self._log) >= LOG:
            for key, order in list(self._orders.items()):
                if order.ask_class is None:
                    continue
                if order.ask_class.waiting:
                    order.catch_up(self._log)
                    order.seen = 0
                else:
                    self._drop(key)
            self._log = []
        self._log.append((node, gained))

    def _regained(self, node: Node, free: bool) -> None:
        """Handle a node that may have more room than before."""
        if node.reservations:
            self.regained.append(node)
        if self._ask_classes.unschedulable and node.state != REMOVED:
            self._reopen(node, free)

    def follow(self, node: Node, *, gained: bool) -> None:
        """Reposition a free node whose room changes temporarily while a gang is being planned."""
        if node.is_free:
            for order in self._common:
                order.put(node, gained)
            self._note(node, gained)

    def _reopen(self, node: Node, free: bool) -> None:
        # A node closed to other requests still accepts a request that requires it.
        for ask_class in [
            ask_class for ask_class in self._ask_classes.unschedulable.values() if free or ask_class.is_pinned
        ]:
            if ask_class.fits(node) and ask_class.verdicts.get(node.classes) is None:
                if node.domains and self.predicates.is_closed(ask_class, node):
                    continue
                self._pending_classes.mark_schedulable(ask_class)

    # -- books --------------------------------------------------------------------------------------

    def review_domains(self) -> None:
        """Apply a change of the books: open the domains that predicates no longer refuse."""
        if self.predicates.has_domains:
            self.predicates.review_domains(self._domain_opened)
            self._quick = self._only

    def watch_domains(self) -> None:
        """Take note of changes that may end refusals of the present predicates."""
        self.predicates.watch_domains(self._domains_touched)

    def _domains_touched(self) -> None:
        self._quick = None

    def _domain_opened(self, ask_class: AskClass, domain: Domain, closing: Closing) -> None:
        """Make an ask class schedulable on the nodes of a domain that had refused it."""
        orders = [one for one in self._orders.values() if one.ask_class in (None, ask_class)]
        for node in closing.marked:
            node.unfit &= ~ask_class.bit
            for order in orders:
                order.open_to(node, ask_class.bit)
        holder = ask_class.reserving_ask
        if holder is not None and holder.reserved in domain.nodes:
            self.regained.append(holder.reserved)
        self._pending_classes.mark_schedulable(ask_class)

    def judge_without(self, ask: Ask, node: Node, gone: Sequence[Allocation]) -> str | None:
        """Return None if `ask` may reserve `node` once the allocations in `gone` end, else a reason."""
        if self.books is None:
            return self.predicates.judge(ask, node, reserve=True)
        tasks = [(one, one.node) for one in gone]
        with self.books.without(tasks), self.predicates.hypothetically():
            return self.predicates.judge(ask, node, reserve=True)

    def _drop_unused(self) -> None:
        self._retired = self._ask_classes.retired
        users = self._ask_classes.per_node_order
        for key in list(self._orders):
            name, _ = key
            if name != DEFAULT and not users.get(name):
                self._drop(key)

    def _make_room(self, places: int) -> None:
        """Drop the longest unused orders of ask classes without pending requests, if there are too many.

        Apart from their `places`, unused orders cost nothing: they apply missed changes when a request of
        their ask class arrives, which is cheaper than computing the scores of all nodes.
        """
        idle = [
            (order.seen, key)
            for key, order in self._orders.items()
            if order.ask_class is not None and not order.ask_class.waiting
        ]
        for _, key in sorted(idle)[: max(0, len(idle) - KEPT // max(1, places))]:
            self._drop(key)

    def _drop(self, key: tuple[str, int]) -> None:
        order = self._orders.pop(key)
        if order in self._common:
            self._common.remove(order)
            order.dissolve()

    def forget_ask_classes(self, bits: int) -> None:
        """Clear the bits of ask classes that no longer exist, before new ask classes reuse these bits."""
        for node in self._nodes.values():
            node.unfit &= ~bits
        for (name, bit), order in list(self._orders.items()):
            if bit & bits:
                self._drop((name, bit))
            else:
                order.forget_ask_classes(bits)

    def replace(self, policies: dict[str, NamedPolicy], predicates: PredicateChain) -> None:
        """Use these policies and predicates from now on."""
        self.policies = policies
        self.predicates, self.chain = predicates, predicates if predicates else None
        self.by_resources = self._is_by_resources()
        for order in self._common:
            order.dissolve()
        self._orders.clear()
        self._common.clear()
        self._only = self._quick = None


def _scorer_of(named: NamedPolicy) -> Scorer:
    """Return what gives the scores of one order."""
    if isinstance(named, WeightedScores) and any(term[-1].normalised for term in named.terms):
        return NormalisedScores(named)
    return named.policy
