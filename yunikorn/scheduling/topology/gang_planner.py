"""Plans of the gangs that have requirements on the topology: a node for each member, decided as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.model.ask_class import NOTHING_REFUSED
from yunikorn.scheduling.topology.domain_rooms import DomainRooms
from yunikorn.scheduling.topology.domain_search import DomainSearch
from yunikorn.scheduling.topology.gang_home import GangHome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from yunikorn.accounting.partition import Partition
    from yunikorn.model.ask import Ask
    from yunikorn.model.gang import AtomicGang
    from yunikorn.model.gang_topology import GangTopology
    from yunikorn.model.node import Node
    from yunikorn.scheduling.node_orders import NodeOrders
    from yunikorn.scheduling.topology.gang_placement_rules import GangPlacementRules
    from yunikorn.scheduling.topology.topology_tree import Topology, TopologyTree

Plan = list[tuple["Ask", "Node"]]


class GangPlanner:
    """Plans the gangs of one partition that have requirements on the topology."""

    topology: Topology
    _rules: GangPlacementRules

    def __init__(self, partition: Partition, orders: NodeOrders) -> None:
        self._partition, self._clock, self.orders = partition, partition.clock, orders
        self._rooms: dict[TopologyTree, DomainRooms] = {}
        self.refusals: Mapping[str, int] = NOTHING_REFUSED
        """Reasons why predicates refused members of the latest gang, with counts."""
        self.why = ""
        """Reason why the latest gang has no plan."""
        self.unfinished = False
        """True if domains are left to try for the latest gang without a plan."""
        self.retry_at: int | None = None
        """Time at which a level is given up that the latest gang without a plan prefers (ns)."""

    def use(self, topology: Topology, rules: GangPlacementRules) -> None:
        """Plan by this topology and this policy from now on."""
        self.topology, self._rules = topology, rules
        reserved = self._partition.accounting.node_reservations.nodes
        self._rooms = {tree: DomainRooms(tree, self.orders, reserved) for tree in topology.trees}

    def home_of(self, ask: Ask) -> GangHome | None:
        """Return the domain that an ask of a gang must be placed in; None if it may be placed anywhere.

        Members that are placed as a whole need none.
        """
        topology, whole = ask.app.topology, ask.whole_gang
        if topology is None or (whole is not None and not whole.done and ask.task_group):
            return None
        own = topology.of(ask.task_group).required if ask.task_group else ""
        home = GangHome(self, ask.app, topology.required, "") if topology.required else None
        return GangHome(self, ask.app, own, ask.task_group, home) if own else home

    def forget(self) -> None:
        """Forget all counts, because answers of predicates may have changed."""
        for rooms in self._rooms.values():
            rooms.forget()

    def plan(self, gang: AtomicGang, topology: GangTopology) -> Plan | None:
        """Return a node for every member, or None with the reason; leaves no changes."""
        self.why, self.refusals, self.retry_at, self.unfinished = "", NOTHING_REFUSED, None, False
        tree = self._tree_of(topology)
        if tree is None:
            return None
        rooms = self._rooms[tree]
        rooms.refresh()
        search = DomainSearch(gang, topology, self._rules, rooms, self.orders, self._clock.now())
        plan = search.plan()
        self.why, self.refusals, self.retry_at = search.why, search.refusals, search.retry_at
        self.unfinished = plan is None and search.unfinished
        return plan

    def _tree_of(self, topology: GangTopology) -> TopologyTree | None:
        """Return the tree with the levels of a gang; None, with the reason, after a reload without them."""
        trees = [self.topology.tree_of(level) for level in topology.levels]
        if trees[0] is not None and all(tree is trees[0] for tree in trees):
            return trees[0]
        names = ", ".join(topology.levels)
        self.why = f"the topology of the partition has no tree with its levels {names}"
        return None

    def fits_empty(
        self, gang: AtomicGang, topology: GangTopology, empty: Mapping[Node, Mapping[str, int]]
    ) -> bool:
        """Return True if a domain has room for a gang in these `empty` rooms of the schedulable nodes."""
        tree = self._tree_of(topology)
        if tree is None:
            return False
        now = self._clock.now()
        search = DomainSearch(gang, topology, self._rules, self._rooms[tree], self.orders, now, empty)
        return not search.fault and search.fits_widest()
