"""Plans of the gangs that have requirements on the topology: a node for each member, decided as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.model.ask_class import NOTHING_REFUSED
from yunikorn.model.gang import GangGrowth
from yunikorn.model.gang_topology import GangTopology, GroupTopology
from yunikorn.scheduling.topology.domain_clearing import DomainClearing
from yunikorn.scheduling.topology.domain_rooms import DomainRooms
from yunikorn.scheduling.topology.domain_search import DomainSearch
from yunikorn.scheduling.topology.gang_home import GangHome
from yunikorn.scheduling.topology.topology_tree import FlatTree

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from yunikorn.accounting.partition import Partition
    from yunikorn.model.ask import Ask
    from yunikorn.model.gang import AtomicGang
    from yunikorn.model.node import Node
    from yunikorn.scheduling.node_orders import NodeOrders
    from yunikorn.scheduling.topology.gang_placement_rules import GangPlacementRules
    from yunikorn.scheduling.topology.topology_tree import Topology, TopologyTree, TreeDomain

Plan = list[tuple["Ask", "Node"]]

MOST_NAMED = 3
"""Number of domains beside the best one, and of reasons of further ones, that an explanation names."""


class GangPlanner:
    """Plans the gangs of one partition that have requirements on the topology."""

    topology: Topology
    _rules: GangPlacementRules

    def __init__(self, partition: Partition, orders: NodeOrders) -> None:
        self._partition, self._clock, self.orders = partition, partition.clock, orders
        self._rooms: dict[TopologyTree, DomainRooms] = {}
        self._empty: dict[TopologyTree, DomainRooms] = {}
        """Rooms without the allocations of this partition."""
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
        self._empty = {tree: DomainRooms(tree, self.orders, {}, empty=True) for tree in topology.trees}

    def home_of(self, ask: Ask) -> GangHome | None:
        """Return the domain that an ask of a gang must be placed in; None if it may be placed anywhere.

        Members that are placed as a whole need none.
        """
        topology, whole = ask.app.topology, ask.whole_gang
        if topology is None or (whole is not None and not whole.done and ask.task_group):
            return None
        own = topology.of(ask.task_group).required if ask.task_group else ""
        if alone := ask.app.alone(ask.task_group):
            ask.ensure_extras()  # The reservations are told of requests with extras.
        home = GangHome(self, ask.app, topology.required, "", None, alone) if topology.required else None
        return GangHome(self, ask.app, own, ask.task_group, home, alone) if own else home

    def forget(self) -> None:
        """Forget all counts, because answers of predicates may have changed."""
        for rooms in (*self._rooms.values(), *self._empty.values()):
            rooms.forget()

    def plan(self, gang: AtomicGang, topology: GangTopology) -> Plan | None:
        """Return a node for every member, or None with the reason; leaves no changes."""
        self.why, self.refusals, self.retry_at, self.unfinished = "", NOTHING_REFUSED, None, False
        tree = self._tree_of(topology)
        if tree is None:
            return None
        search = self._search(gang, topology, self._rooms[tree])
        plan = search.plan()
        self.why, self.refusals, self.retry_at = search.why, search.refusals, search.retry_at
        self.unfinished = plan is None and search.unfinished
        return plan

    def others(self, gang: AtomicGang, topology: GangTopology) -> str:
        """Return why a gang that waits is in no domain beside the best one; for explanations."""
        tree = self._tree_of(topology)
        return "" if tree is None else self._search(gang, topology, self._rooms[tree]).others(MOST_NAMED)

    def _search(self, gang: AtomicGang, topology: GangTopology, rooms: DomainRooms) -> DomainSearch:
        rooms.refresh((self._partition.accounting.change_count, len(rooms.tree.domain_of)))
        home = None
        if isinstance(gang, GangGrowth) and topology.levels:
            topology, home = self._for_step(gang, topology, rooms.tree)
        return DomainSearch(gang, topology, self._rules, rooms, self.orders, self._clock.now(), home)

    def _for_step(
        self, gang: GangGrowth, topology: GangTopology, tree: TopologyTree
    ) -> tuple[GangTopology, TreeDomain | None]:
        """Return the requirements of a step, and the domain of those that run, in which it must be placed."""
        own = topology.of(gang.task_group)
        slices = own.slices if gang.size == gang.step else ()
        for level, task_group in ((own.required, gang.task_group), (topology.required, "")):
            place = GangHome(self, gang.app, level, task_group)
            home = place.domain(tree) if level else None
            if home is not None:
                if gang.request is not None:
                    # The step is tried again where the domain has room, and not for room elsewhere.
                    gang.request.ask_class.home = place
                break
        inner = own.required not in ("", level)
        groups = ((gang.task_group, GroupTopology(own.required)),) if inner else ()
        alone = topology.exclusive if home is None else ""
        return GangTopology(level, slices=slices, groups=groups, exclusive=alone), home

    def _flat(self, nodes: Iterable[Node]) -> DomainRooms:
        # Used once, so that no change of a reservation matters.
        return DomainRooms(FlatTree(nodes), self.orders, {})

    def plan_on(self, gang: AtomicGang, nodes: Iterable[Node]) -> Plan | None:
        """Return one of these nodes for every member of a gang without requirements, or None."""
        return self._search(gang, GangTopology(), self._flat(nodes)).plan()

    def clearing(self, gang: AtomicGang) -> DomainClearing | None:
        """Return the search for the domain that is cleared for a gang; None without its levels."""
        topology = gang.app.topology
        if topology is None:
            topology, rooms = GangTopology(), self._flat(self._partition.nodes.values())
        elif (tree := self._tree_of(topology)) is not None:
            rooms = self._rooms[tree]
        else:
            return None
        return DomainClearing(self._search(gang, topology, rooms), rooms, self.orders)

    def label(self, gang: AtomicGang, domain: TreeDomain) -> str:
        """Return the name of a domain in messages."""
        tree = None if gang.app.topology is None else self._tree_of(gang.app.topology)
        return (
            "the cluster"
            if tree is None or domain.level < 0
            else f"{tree.levels[domain.level]} {domain.path}"
        )

    def _tree_of(self, topology: GangTopology) -> TopologyTree | None:
        """Return the tree with the levels of a gang; None, with the reason, after a reload without them."""
        trees = [self.topology.tree_of(level) for level in topology.levels]
        if trees[0] is not None and all(tree is trees[0] for tree in trees):
            return trees[0]
        names = ", ".join(topology.levels)
        self.why = f"the topology of the partition has no tree with its levels {names}"
        return None

    def fits_empty(self, gang: AtomicGang, topology: GangTopology) -> bool:
        """Return True if a domain without the allocations of this partition has room for a gang."""
        tree = self._tree_of(topology)
        if tree is None:
            return False
        search = self._search(gang, topology, self._empty[tree])
        return not search.fault and not all(search.widest.values())
