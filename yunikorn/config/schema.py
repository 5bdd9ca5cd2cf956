"""A configuration as the scheduler uses it: checked, complete, immutable.

`yunikorn.config.load` makes these from the text of a queues.yaml; nothing else needs to look at the
text again. Times are nanoseconds, resources as in `yunikorn.resources`. Source: facts §1.2.
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
    """A plugin that the configuration names, and its options as the text had them."""

    name: str
    options: Mapping[str, Any] = attrs.field(factory=dict)
    """Mappings, lists and *text*; `Registry.make` converts by the option's type."""


@attrs.frozen
class LimitConfig:
    """What each of these users, or these groups together, may use in a queue and below (facts §1.7)."""

    limit: str = ""
    """A description."""
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    max_resources: Resource | None = None
    max_applications: int = 0
    """0 is no limit."""


@attrs.frozen
class TemplateConfig:
    """What a leaf queue that is made on the fly gets from the parent queue it is made in (facts §1.11)."""

    max_applications: int = 0
    properties: Mapping[str, str] = attrs.field(factory=dict)
    guaranteed: Resource | None = None
    max: Resource | None = None


@attrs.frozen
class QueueConfig:
    """A queue and all below it."""

    name: str
    """One level of its path, lower case."""
    parent: bool = False
    """Whether it holds queues instead of applications: it has some, or says `parent: true`; root always."""
    guaranteed: Resource | None = None
    """None when nothing is guaranteed; zeros inside are kept."""
    max: Resource | None = None
    """None is no quota; a missing type is unlimited, a zero beside others means none of it."""
    max_applications: int = 0
    """0 is no limit."""
    properties: Mapping[str, str] = attrs.field(factory=dict)
    """Its own; `yunikorn.config.properties.effective_properties` adds those of its parents."""
    admin_acl: Acl = NOBODY
    submit_acl: Acl = NOBODY
    child_template: TemplateConfig | None = None
    limits: tuple[LimitConfig, ...] = ()
    queues: tuple[QueueConfig, ...] = ()

    def walk(self, above: str = "") -> Iterator[tuple[str, QueueConfig]]:
        """This queue and all below it with their paths, parents first, in the order of the text."""
        path = f"{above}.{self.name}" if above else self.name
        yield path, self
        for child in self.queues:
            yield from child.walk(path)


@attrs.frozen
class RuleConfig:
    """A placement rule with what the core itself needs of it (facts §1.8)."""

    name: str
    """Lower case."""
    create: bool = False
    """Whether a queue that does not exist may be made."""
    filter: FilterConfig | None = None
    parent: RuleConfig | None = None
    value: str = ""
    options: Mapping[str, Any] = attrs.field(factory=dict)
    """All other keys, as text; `value` is not among them."""


@attrs.frozen
class PreemptionConfig:
    """Which kinds of preemption a partition does."""

    enabled: bool = True
    quota_preemption_enabled: bool = False
    shrunk_nodes: bool = False
    """Whether a node that has become smaller than what runs on it gives work back (decision 36)."""


@attrs.frozen
class PartitionConfig:
    """A scheduling domain of its own: queues, rules and node order."""

    name: str
    """`default` for an empty name and any case of it, otherwise as written."""
    root: QueueConfig
    placement_rules: tuple[RuleConfig, ...] = ()
    """Empty means one implicit `provided` rule that makes no queues."""
    preemption: PreemptionConfig = PreemptionConfig()
    node_sort: PluginRef = PluginRef("fair")
    node_sorts: Mapping[str, PluginRef] = attrs.field(factory=dict)
    """Named alternatives that a queue or an application may choose (decision 10)."""
    user_group_resolver: PluginRef | None = None
    """None: a user is the only member of the group of the same name."""
    predicates: tuple[PluginRef, ...] = ()
    periods: Mapping[str, int | None] = attrs.field(factory=dict)
    """Delays that are not the default ones, by field of `yunikorn.objects.timeouts.Periods` (ns)."""


@attrs.frozen
class SchedulerConfig:
    """A whole queues.yaml."""

    partitions: tuple[PartitionConfig, ...] = ()
    sinks: tuple[PluginRef, ...] = ()
    disabled: tuple[str, ...] = ()
    """Plugins that are switched off: names for `Registry.without`."""
    priority_classes: Mapping[str, int] = attrs.field(factory=dict)
    same_hierarchy: bool = False
    """Whether a queue must have the same place in all partitions (decision 8)."""
    checksum: str = ""
    """Of the text, less its own `checksum:` line: equal means nothing to reload (facts §1.12)."""
    text: str = attrs.field(default="", repr=False)
