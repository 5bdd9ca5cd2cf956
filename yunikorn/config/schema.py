"""Immutable, checked configuration, the input of the scheduler.

`yunikorn.config.load` creates these objects from the text of a queues.yaml. Nothing else reads the text
again. Times are in nanoseconds; resources are as in `yunikorn.resources`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from yunikorn.config.acl import NOBODY, Acl
from yunikorn.config.filters import FilterConfig
from yunikorn.resources import Resource

__all__ = [
    "FilterConfig",
    "LimitConfig",
    "PartitionConfig",
    "PluginRef",
    "PreemptionConfig",
    "QueueConfig",
    "RuleConfig",
    "SchedulerConfig",
    "TemplateConfig",
]


@attrs.frozen
class PluginRef:
    """Reference to a plugin, with its options as in the text."""

    name: str
    options: Mapping[str, Any] = attrs.field(factory=dict)
    """Mappings, lists and *texts*; `Registry.make` converts them to the types of the options."""


@attrs.frozen
class LimitConfig:
    """Limit for each of the users, and for each group as a whole, in a queue and below."""

    limit: str = ""
    """Free-form description."""
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    max_resources: Resource | None = None
    max_applications: int = 0
    """Maximum of running applications; 0 is no limit."""


@attrs.frozen
class TemplateConfig:
    """Settings of dynamic leaf queues, taken from the parent queue in which they are created."""

    max_applications: int = 0
    properties: Mapping[str, str] = attrs.field(factory=dict)
    guaranteed: Resource | None = None
    max: Resource | None = None


@attrs.frozen
class QueueConfig:
    """Queue and all queues below."""

    name: str
    """Last level of the path, in lower case."""
    parent: bool = False
    """True for a parent queue: it has children, or `parent: true`, or is root."""
    guaranteed: Resource | None = None
    """Guaranteed resources, or None; zero entries are kept."""
    max: Resource | None = None
    """Quota, or None; a missing type is unlimited, a zero entry allows none of the type."""
    max_applications: int = 0
    """Maximum of running applications; 0 is no limit."""
    properties: Mapping[str, str] = attrs.field(factory=dict)
    """Properties of the queue itself; `effective_properties` adds the inherited ones."""
    admin_acl: Acl = NOBODY
    submit_acl: Acl = NOBODY
    child_template: TemplateConfig | None = None
    limits: tuple[LimitConfig, ...] = ()
    queues: tuple[QueueConfig, ...] = ()

    def walk(self, above: str = "") -> Iterator[tuple[str, QueueConfig]]:
        """Yield this queue and all below with their paths, parents first, in the order of the text."""
        path = f"{above}.{self.name}" if above else self.name
        yield path, self
        for child in self.queues:
            yield from child.walk(path)


@attrs.frozen
class RuleConfig:
    """Placement rule: the keys that the core evaluates, and the options of the plugin."""

    name: str
    """Name of the rule, in lower case."""
    create: bool = False
    """True if the rule may create a missing queue."""
    filter: FilterConfig | None = None
    parent: RuleConfig | None = None
    value: str = ""
    options: Mapping[str, Any] = attrs.field(factory=dict)
    """Options of the plugin as text, without `value`."""


@attrs.frozen
class PreemptionConfig:
    """Preemption settings of a partition."""

    enabled: bool = True
    quota_preemption_enabled: bool = False
    shrunk_nodes: bool = False
    """True if allocations are preempted on a node that has shrunk below its usage; see
    `docs/decisions/0036`.
    """


@attrs.frozen
class PartitionConfig:
    """Partition: an independent scheduling domain with nodes, queues and rules."""

    name: str
    """Name as written; `default` for an empty name and for `default` in any case."""
    root: QueueConfig
    placement_rules: tuple[RuleConfig, ...] = ()
    """Placement rules; if empty, one implicit `provided` rule that creates no queues."""
    preemption: PreemptionConfig = PreemptionConfig()
    node_sort: PluginRef = PluginRef("fair")
    node_sorts: Mapping[str, PluginRef] = attrs.field(factory=dict)
    """Named node orders that a queue or an application may select; see `docs/decisions/0010`."""
    user_group_resolver: PluginRef | None = None
    """Resolver of groups; if None, each user is the only member of a group of the same name."""
    predicates: tuple[PluginRef, ...] = ()
    periods: Mapping[str, int | None] = attrs.field(factory=dict)
    """Delays other than the defaults, by field of `yunikorn.model.context.Timeouts` (ns)."""


@attrs.frozen
class SchedulerConfig:
    """Content of a queues.yaml."""

    partitions: tuple[PartitionConfig, ...] = ()
    sinks: tuple[PluginRef, ...] = ()
    disabled: tuple[str, ...] = ()
    """Names of disabled plugins, for `Registry.without`."""
    priority_classes: Mapping[str, int] = attrs.field(factory=dict)
    same_hierarchy: bool = False
    """True if a queue name must have the same path in all partitions; see `docs/decisions/0008`."""
    checksum: str = ""
    """Checksum of the text without its `checksum:` line; a reload with an equal checksum does nothing."""
    text: str = attrs.field(default="", repr=False)
