"""Everything of a partition's configuration that is a plugin, made ready to be used.

Made as a whole before anything is applied, so that a configuration that cannot be used changes
nothing (decision 11).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.registry import NODE_SORT, PREDICATE, Registry
from yunikorn.scheduling.named_policy import NamedPolicy
from yunikorn.scheduling.node_orders import DEFAULT
from yunikorn.scheduling.placement import PlacementChain
from yunikorn.scheduling.plugin_objects import PluginObjects
from yunikorn.scheduling.predicate_chain import PredicateChain
from yunikorn.scheduling.user_groups import UserGroups

if TYPE_CHECKING:
    from yunikorn.api import Context
    from yunikorn.clock import Clock
    from yunikorn.config.schema import PartitionConfig, PluginRef
    from yunikorn.objects.queue_tree import QueueTree
    from yunikorn.scheduling.plugin_failures import PluginFailures


class Policies:
    """The plugin objects of one partition, but for those of its queues.

    Those of `before` that have the same options go on being used. Raises `UnknownPlugin`, `OptionError` or
    `PluginError` when one cannot be made.
    """

    def __init__(
        self,
        config: PartitionConfig,
        registry: Registry,
        tree: QueueTree,
        clock: Clock,
        failures: PluginFailures,
        before: Policies | None = None,
    ) -> None:
        at_hand: PluginObjects | None = None if before is None else before._objects
        self._objects: PluginObjects = PluginObjects(registry, at_hand)
        objects = self._objects
        self.node_sorts = {DEFAULT: self._node_sort(config.node_sort)} | {
            name: self._node_sort(ref) for name, ref in config.node_sorts.items()
        }
        self.predicates = PredicateChain(
            [objects.make(PREDICATE, ref.name, ref.options) for ref in config.predicates], failures
        )
        self.placement = PlacementChain(config.placement_rules, registry, tree, failures, objects)
        self.users = UserGroups.make(config.user_group_resolver, registry, clock, failures, objects)

    def _node_sort(self, ref: PluginRef) -> NamedPolicy:
        return NamedPolicy.of(*self._objects.make(NODE_SORT, ref.name, ref.options))

    def open(self, context: Context, failures: PluginFailures) -> None:
        """Tell each plugin object that it is about to be used, or stays; a failure is only reported."""
        self._objects.open(context, failures)
        self.predicates.bind()

    def close(self, failures: PluginFailures) -> None:
        """Tell each plugin object that it has been used for the last time; a failure is only reported.

        Those that later policies go on using are left alone.
        """
        self._objects.close(failures)
