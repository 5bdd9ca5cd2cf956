"""Plugin objects of a partition and of its queues.

Plugin objects of a partition's configuration. All objects are created before any part of a configuration is
applied, so that an invalid configuration has no effect (`docs/decisions/0011`).

Sort policies of queues, created from the names and options in queue properties.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from yunikorn.api import AppSortPolicy, Context
from yunikorn.config.properties import InForce, QueueSettings
from yunikorn.errors import OptionError, PluginError, UnknownPlugin
from yunikorn.framework.registry import APP_SORT, NODE_SORT, PREDICATE, QUEUE_SORT, Registry
from yunikorn.model.queue import RECOVERY
from yunikorn.model.usage_history import UsageHistory
from yunikorn.scheduling.member_order import AdmissionGate, MemberOrder
from yunikorn.scheduling.node_orders import DEFAULT, NamedPolicy
from yunikorn.scheduling.placement import PlacementChain
from yunikorn.scheduling.plugin_objects import PluginObjects
from yunikorn.scheduling.predicate_chain import PredicateChain
from yunikorn.scheduling.user_groups import UserGroups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from yunikorn.accounting.queue_tree import QueueTree
    from yunikorn.clock import Clock
    from yunikorn.config.queues_yaml import PartitionConfig, PluginRef, QueueConfig
    from yunikorn.model.queue import Queue
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
        return NamedPolicy(*self._objects.make(NODE_SORT, ref.name, ref.options))

    def open(self, context: Context, failures: PluginFailures) -> None:
        """Call `opened` on new plugin objects and `reloaded` on reused ones; failures are only reported."""
        self._objects.open(context, failures)
        self.predicates.bind()

    def close(self, failures: PluginFailures) -> None:
        """Call `closed` on each plugin object that later policies do not reuse.

        Failures are only reported.
        """
        self._objects.close(failures)


FALLBACK = "fifo"
"""Policy of the recovery queue, independent of its properties (as in YuniKorn 1.9)."""
KINDS = {APP_SORT.id: APP_SORT, QUEUE_SORT.id: QUEUE_SORT}
DEFAULTS = {APP_SORT.id: QueueSettings().app_sort, QUEUE_SORT.id: QueueSettings().queue_sort}
Key = tuple[str, str, tuple[tuple[str, str], ...]]
"""Kind, name and options of a policy."""
Made = dict[Key, tuple[Any, str]]
"""Policy objects, each with its origin."""


class QueuePolicies:
    """Assigns orders to queues; queues with the same policy and options share one policy object."""

    def __init__(self, registry: Registry, failures: PluginFailures, context: Context) -> None:
        self._registry = registry
        self._failures = failures
        self._context = context
        self._made: Made = {}
        self._new: set[int] = set()
        """Ids (`id()`) of the policy objects created since the last `use`."""
        self._unopened: set[int] = set()
        """Ids (`id()`) of the policy objects that failed to open."""

    def apply(self, queues: Iterable[Queue]) -> None:
        """Assign the order named in its settings to each of these queues."""
        for queue in queues:
            queue.order = self._order(queue)
            # Sort keys of different policies are not comparable, so the order starts empty. This also drops
            # members that left before the queue changed between leaf and parent.
            queue.sorted_members.clear()
            self._remember(queue)
            for member in queue.dirty:
                member.is_dirty = False
            queue.dirty.clear()
            for app in queue.applications.values():
                app.admitted, app.admission_key = True, None
                app.mark_dirty()
            queue.policy_excluded = 0

    def _remember(self, queue: Queue) -> None:
        """Keep the usage history of the queue and its children if the policies that sort them need it."""
        for child in queue.children.values():
            _keep_history(child, queue.order.half_life, self._context.now)
        if queue.parent is not None and queue.parent.order is not None:
            _keep_history(queue, queue.parent.order.half_life, self._context.now)

    def prepare(self, root: QueueConfig, registry: Registry) -> Made:
        """Create the additional policies that a configuration needs, without opening them or other effects.

        Raises `UnknownPlugin`, `OptionError` or `PluginError` if a policy cannot be created.
        """
        made: Made = {}
        said: dict[tuple[int, bool], QueueSettings] = {}
        _collect(root, InForce({}).below(root.properties), said)
        for (_, is_leaf), settings in said.items():
            key = _key(settings, is_leaf=is_leaf)
            if key not in self._made and key not in made:
                made[key] = _make(key, registry)
        return made

    def _order(self, queue: Queue) -> MemberOrder:
        settings = queue.settings
        key = _key(settings, is_leaf=queue.is_leaf)
        if queue.path == RECOVERY:
            key = (APP_SORT.id, FALLBACK, ())
        if key not in self._made:
            self._take(key, self._make_or_fall_back(key))
        policy, origin = self._made[key]
        admission_classes = None
        if (
            isinstance(policy, AppSortPolicy)
            and type(policy).admission_class is not AppSortPolicy.admission_class
        ):
            admission_classes = AdmissionGate(policy, origin, self._failures)
        return MemberOrder(
            policy,
            origin,
            self._failures,
            priority_first=settings.sort_priority,
            admission_classes=admission_classes,
        )

    def _make_or_fall_back(self, key: Key) -> tuple[Any, str]:
        # A queue created by placement needs an order at once, and a failing plugin must not reject the
        # application.
        try:
            return _make(key, self._registry)
        except (UnknownPlugin, OptionError, PluginError) as error:
            self._failures.report(key[1], f"creating it ({DEFAULTS[key[0]]} is used instead)", error)
            return _make((key[0], DEFAULTS[key[0]], ()), self._registry)

    def _take(self, key: Key, made: tuple[Any, str]) -> None:
        policy, origin = self._made[key] = made
        self._new.add(id(policy))
        self._open(policy, origin)

    def _open(self, policy: Any, origin: str) -> None:
        """Open a policy; a policy that fails to open is still used, and the next reload reopens it."""
        if self._failures.call_guarded(origin, "opening", policy.opened, self._told(origin)):
            self._unopened.discard(id(policy))
        else:
            self._unopened.add(id(policy))

    def _told(self, origin: str) -> Context:
        return self._failures.context_of(origin, self._context)

    def use(self, registry: Registry, prepared: Made) -> None:
        """Use this registry and the policies prepared from it from now on."""
        self._registry = registry
        self._new.clear()
        for key, made in prepared.items():
            self._take(key, made)

    def drop_unused(self, queues: Iterable[Queue]) -> None:
        """Close policies without a queue, and call `reloaded` on the others."""
        used = {id(queue.order.policy) for queue in queues}
        for key, (policy, origin) in list(self._made.items()):
            if id(policy) in self._new:
                continue
            if id(policy) in used:
                if id(policy) in self._unopened:
                    self._open(policy, origin)
                else:
                    self._failures.call_guarded(origin, "reloading", policy.reloaded, self._told(origin))
            else:
                del self._made[key]
                self._unopened.discard(id(policy))
                self._failures.call_guarded(origin, "closing", policy.closed)

    def close(self) -> None:
        """Call `closed` on all policies; failures are only reported."""
        for policy, origin in self._made.values():
            self._failures.call_guarded(origin, "closing", policy.closed)
        self._made.clear()


def _keep_history(queue: Queue, half_life: float | None, now: Callable[[], int]) -> None:
    if half_life is None:
        queue.history = None
    elif queue.history is None or queue.history.half_life != half_life:
        queue.history = UsageHistory(half_life, now, queue.allocated)


def _key(settings: QueueSettings, *, is_leaf: bool) -> Key:
    if is_leaf:
        kind, name, options = APP_SORT, settings.app_sort, settings.app_sort_options
    else:
        kind, name, options = QUEUE_SORT, settings.queue_sort, settings.queue_sort_options
    return kind.id, name, tuple(sorted(options.items()))


def _make(key: Key, registry: Registry) -> tuple[Any, str]:
    kind, name, options = KINDS[key[0]], key[1], dict(key[2])
    return registry.make(kind, name, options, comma_lists=True), registry.find(kind, name).origin


def _collect(config: QueueConfig, in_force: InForce, said: dict[tuple[int, bool], QueueSettings]) -> None:
    """Collect the settings of a queue and its descendants, by identity and queue type (leaf or parent)."""
    said[id(in_force.settings), not config.parent] = in_force.settings
    for child in config.queues:
        _collect(child, in_force.below(child.properties), said)
