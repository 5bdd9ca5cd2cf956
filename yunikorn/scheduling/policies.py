"""Plugin objects of a partition's configuration.

All objects are created before any part of a configuration is applied, so that an invalid configuration has no
effect (`docs/decisions/0011`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.framework.registry import NODE_SORT, PREDICATE, Registry
from yunikorn.scheduling.named_policy import NamedPolicy
from yunikorn.scheduling.node_orders import DEFAULT
from yunikorn.scheduling.placement import PlacementChain
from yunikorn.scheduling.plugin_objects import PluginObjects
from yunikorn.scheduling.predicate_chain import PredicateChain
from yunikorn.scheduling.user_groups import UserGroups

if TYPE_CHECKING:
    from yunikorn.accounting.queue_tree import QueueTree
    from yunikorn.api import Context
    from yunikorn.clock import Clock
    from yunikorn.config.schema import PartitionConfig, PluginRef
    from yunikorn.scheduling.plugin_failures import PluginFailures


class Policies:
    """Plugin objects of one partition, except those of its queues.

    Objects of `before` with the same options are reused. Raises `UnknownPlugin`, `OptionError` or
    `PluginError` if an object cannot be created.
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
        """Call `opened` on new plugin objects and `reloaded` on reused ones; failures are only reported."""
        self._objects.open(context, failures)
        self.predicates.bind()

    def close(self, failures: PluginFailures) -> None:
        """Call `closed` on each plugin object that later policies do not reuse.

        Failures are only reported.
        """
        self._objects.close(failures)
