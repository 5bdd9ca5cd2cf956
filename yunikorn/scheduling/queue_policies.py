"""Which policy orders which queue: made from names and options in the queue's properties."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from yunikorn.api import AppSortPolicy, Context
from yunikorn.config.properties import InForce, QueueSettings
from yunikorn.errors import OptionError, PluginError, UnknownPlugin
from yunikorn.objects.queue import RECOVERY
from yunikorn.objects.usage_history import UsageHistory
from yunikorn.registry import APP_SORT, QUEUE_SORT, Registry
from yunikorn.scheduling.admission_classes import AdmissionGate
from yunikorn.scheduling.member_order import MemberOrder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from yunikorn.config.schema import QueueConfig
    from yunikorn.objects.queue import Queue
    from yunikorn.scheduling.plugin_failures import PluginFailures

FALLBACK = "fifo"
"""What orders the recovery queue, whatever its properties (facts §1.10)."""
KINDS = {APP_SORT.id: APP_SORT, QUEUE_SORT.id: QUEUE_SORT}
DEFAULTS = {APP_SORT.id: QueueSettings().app_sort, QUEUE_SORT.id: QueueSettings().queue_sort}
Key = tuple[str, str, tuple[tuple[str, str], ...]]
"""Kind, name and options of a policy."""
Made = dict[Key, tuple[Any, str]]
"""Policies, each with where it comes from."""


class QueuePolicies:
    """Gives queues their orders; queues with the same policy and options share the policy object."""

    def __init__(self, registry: Registry, failures: PluginFailures, context: Context) -> None:
        self._registry = registry
        self._failures = failures
        self._context = context
        self._made: Made = {}
        self._new: set[int] = set()
        """The objects that were made since the last `use`, by identity."""
        self._unopened: set[int] = set()
        """Those that could not be opened."""

    def apply(self, queues: Iterable[Queue]) -> None:
        """Give each of these queues the order that its settings name."""
        for queue in queues:
            queue.order = self._order(queue)
            # Ranks of another policy do not compare with those of this one: start with an empty line,
            # which also forgets members that left before the queue became a leaf, or a parent.
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
        """Have the usage of its children, and its own, be kept as the policies that order them want it."""
        for child in queue.children.values():
            _keep_history(child, queue.order.half_life, self._context.now)
        if queue.parent is not None and queue.parent.order is not None:
            _keep_history(queue, queue.parent.order.half_life, self._context.now)

    def prepare(self, root: QueueConfig, registry: Registry) -> Made:
        """The policies that a configuration needs beside those at hand, not opened yet; changes nothing.

        Raises `UnknownPlugin`, `OptionError` or `PluginError` when one cannot be made.
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
        # A queue that placement makes needs an order at once: a plugin that fails is no reason against it.
        try:
            return _make(key, self._registry)
        except (UnknownPlugin, OptionError, PluginError) as error:
            self._failures.report(key[1], f"making it, {DEFAULTS[key[0]]} is used instead", error)
            return _make((key[0], DEFAULTS[key[0]], ()), self._registry)

    def _take(self, key: Key, made: tuple[Any, str]) -> None:
        policy, origin = self._made[key] = made
        self._new.add(id(policy))
        self._open(policy, origin)

    def _open(self, policy: Any, origin: str) -> None:
        """Open a policy; one that cannot be opened is used all the same, and opened again by a reload."""
        if self._failures.call_guarded(origin, "opening", policy.opened, self._told(origin)):
            self._unopened.discard(id(policy))
        else:
            self._unopened.add(id(policy))

    def _told(self, origin: str) -> Context:
        return self._failures.context_of(origin, self._context)

    def use(self, registry: Registry, prepared: Made) -> None:
        """Take plugins from `registry` from now on, and what was prepared from it."""
        self._registry = registry
        self._new.clear()
        for key, made in prepared.items():
            self._take(key, made)

    def drop_unused(self, queues: Iterable[Queue]) -> None:
        """Close the policies that no queue uses any more, and tell the others of the new configuration."""
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
        """Tell all policies that they have been used for the last time; a failure is only reported."""
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
    """Note the settings of a queue and of all below it, by identity and by whether it is a leaf."""
    said[id(in_force.settings), not config.parent] = in_force.settings
    for child in config.queues:
        _collect(child, in_force.below(child.properties), said)
