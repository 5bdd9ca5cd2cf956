"""Everything of a partition's configuration that is a plugin, made ready to be used.

Made as a whole before anything is applied, so that a configuration that cannot be used changes
nothing (decision 11).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.api import Context, Plugin
from yunikorn.registry import NODE_SORT, PREDICATE, Registry
from yunikorn.scheduling.named_policy import NamedPolicy
from yunikorn.scheduling.node_orders import DEFAULT
from yunikorn.scheduling.placement import PlacementChain
from yunikorn.scheduling.predicate_chain import PredicateChain
from yunikorn.scheduling.user_groups import UserGroups

if TYPE_CHECKING:
    from yunikorn.clock import Clock
    from yunikorn.config.schema import PartitionConfig, PluginRef
    from yunikorn.objects.queue_tree import QueueTree
    from yunikorn.scheduling.faults import FaultLog


class Policies:
    """The plugin objects of one partition, but for those of its queues.

    Raises `UnknownPlugin`, `OptionError` or `PluginError` when one cannot be made.
    """

    def __init__(
        self, config: PartitionConfig, registry: Registry, tree: QueueTree, clock: Clock, faults: FaultLog
    ) -> None:
        self._registry = registry
        self.placement = PlacementChain(config.placement_rules, registry, tree, faults)
        self.users = UserGroups.make(config.user_group_resolver, registry, clock, faults)
        self.node_sorts = {DEFAULT: self._node_sort(config.node_sort)} | {
            name: self._node_sort(ref) for name, ref in config.node_sorts.items()
        }
        made = [
            (registry.make(PREDICATE, ref.name, ref.options), registry.find(PREDICATE, ref.name).origin)
            for ref in config.predicates
        ]
        self.predicates = PredicateChain(made, faults)
        self._plugins: list[tuple[Plugin, str]] = [
            *((named.policy, named.origin) for named in self.node_sorts.values()),
            *made,
            *self.placement.plugins(),
        ]
        if self.users.resolver is not None:
            self._plugins.append((self.users.resolver, self.users.origin))

    def _node_sort(self, ref: PluginRef) -> NamedPolicy:
        policy = self._registry.make(NODE_SORT, ref.name, ref.options)
        return NamedPolicy.of(policy, self._registry.find(NODE_SORT, ref.name).origin)

    def open(self, context: Context, faults: FaultLog) -> None:
        """Tell each plugin object that it is about to be used; a failure is only reported."""
        for plugin, origin in self._plugins:
            faults.guard(origin, "opening", plugin.opened, context)
        self.predicates.bind()

    def close(self, faults: FaultLog) -> None:
        """Tell each plugin object that it has been used for the last time; a failure is only reported."""
        for plugin, origin in self._plugins:
            faults.guard(origin, "closing", plugin.closed)
