"""Immutable, checked content of a queues.yaml, the input of the scheduler, with the declaration of every key.

`yunikorn.config.load` creates these objects from the text of a queues.yaml. Nothing else reads the text
again. Times are in nanoseconds; resources are as in `yunikorn.resources`. The meaning of each key is in
`yunikorn_lab/schema/key_texts.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from yunikorn.clock import SECOND
from yunikorn.config import values
from yunikorn.config.acl import NOBODY, Acl
from yunikorn.config.filters import FilterConfig
from yunikorn.config.keys import ConfigKey, ConfigSection, key, keys_inside
from yunikorn.config.properties import QueueSettings
from yunikorn.config.timeouts import PartitionTimeouts
from yunikorn.config.values import Value, built, mapping, plugin, plugin_ref, plugins, rows
from yunikorn.config.yaml_reading import YamlTable
from yunikorn.framework import kinds
from yunikorn.framework.plugin_code import LoadedPlugin
from yunikorn.resources import Resource

REQUIRED: Any = attrs.NOTHING
DEFAULT_ORDER = "fair"
"""Node sort policy of a partition that names none."""
DEFAULT_RESERVATIONS = "standard"
"""Reservation policy of a partition that names none."""


@attrs.frozen
class PluginRef:
    """Reference to a plugin, with its options as in the text."""

    name: str
    options: Mapping[str, Any] = attrs.field(factory=dict)
    """Mappings, lists and *texts*; `Registry.make` converts them to the types of the options."""
    required: bool = attrs.field(default=True, kw_only=True)
    """False if the scheduler works without the plugin where it is missing, broken or disabled."""


WEIGHTED = "weighted"
"""Name of the combination of several node sort policies, which is part of the core."""


@attrs.frozen
class ScoreConfig:
    """One of several node sort policies that are combined."""

    name: str = key(plugin(kinds.NODE_SORT), REQUIRED)
    weight: float = key(values.WEIGHT, 1.0)
    range: tuple[float, float] | None = key(values.RANGE, None)
    options: Mapping[str, Any] = attrs.field(factory=dict)
    """Options of the plugin as in the text."""


@attrs.frozen
class ResolverCache:
    """Times for which the groups of a user are remembered."""

    found: int = key(values.DURATION, 300 * SECOND)
    failed: int = key(values.DURATION, 30 * SECOND)


@attrs.frozen
class ResolverRef(PluginRef):
    """Reference to a user-group resolver, with the times for which its answers are remembered."""

    cache: ResolverCache = ResolverCache()


@attrs.frozen
class WeightedRef(PluginRef):
    """Reference to several node sort policies in place of one."""

    scores: tuple[ScoreConfig, ...] = ()


@attrs.frozen
class LimitConfig:
    """Limit for each of the users, and for each group as a whole, in a queue and below."""

    limit: str = key(values.TEXT, "")
    users: tuple[str, ...] = key(values.LIMITED_USERS, ())
    groups: tuple[str, ...] = key(values.LIMITED_GROUPS, ())
    max_resources: Resource | None = key(values.QUANTITIES, None)
    max_applications: int = key(values.COUNT, 0)


@attrs.frozen
class TemplateConfig:
    """Settings of dynamic leaf queues, taken from the parent queue in which they are created."""

    max_applications: int = key(values.COUNT, 0)
    properties: Mapping[str, str] = key(mapping("properties", YamlTable.pairs), attrs.Factory(dict))
    guaranteed: Resource | None = key(values.SPARSE_QUANTITIES, None, inside="resources")
    max: Resource | None = key(values.SPARSE_QUANTITIES, None, inside="resources")


@attrs.frozen
class QueueConfig:
    """Queue and all queues below.

    The name is in lower case. Of `guaranteed` and `max`, zero entries are kept.
    """

    name: str = key(values.QUEUE_NAME, REQUIRED)
    parent: bool = key(values.BOOLEAN, False)
    guaranteed: Resource | None = key(values.QUANTITIES, None, inside="resources")
    max: Resource | None = key(values.QUANTITIES, None, inside="resources")
    max_applications: int = key(values.COUNT, 0)
    properties: Mapping[str, str] = key(mapping("properties", YamlTable.pairs), attrs.Factory(dict))
    """Properties of the queue itself; `effective_properties` adds the inherited ones."""
    admin_acl: Acl = key(values.ACL, NOBODY)
    submit_acl: Acl = key(values.ACL, NOBODY)
    child_template: TemplateConfig | None = key(mapping("template", build=built), None)
    queues: tuple[QueueConfig, ...] = key(rows("queue"), ())
    limits: tuple[LimitConfig, ...] = key(rows("limit"), ())

    def walk(self, above: str = "") -> Iterator[tuple[str, QueueConfig]]:
        """Yield this queue and all below with their paths, parents first, in the order of the text."""
        path = f"{above}.{self.name}" if above else self.name
        yield path, self
        for child in self.queues:
            yield from child.walk(path)


@attrs.frozen
class RuleConfig:
    """Placement rule: the keys that the core evaluates, and the options of the plugin.

    The name is in lower case.
    """

    name: str = key(plugin(kinds.PLACEMENT), REQUIRED)
    create: bool = key(values.TRUE_OR_FALSE, False)
    filter: FilterConfig | None = keys_inside(FilterConfig, None)
    parent: RuleConfig | None = key(mapping("rule", build=built), None)
    value: str = key(values.TEXT, "")
    required: bool = key(values.BOOLEAN, True, ours=True)
    options: Mapping[str, Any] = attrs.field(factory=dict)
    """Options of the plugin as text, without `value`."""


@attrs.frozen
class NodeOrderConfig:
    """Order of nodes as described; it is read to a `PluginRef`."""

    type: str = key(plugin(kinds.NODE_SORT), DEFAULT_ORDER)
    resourceweights: Mapping[str, str] = key(values.WEIGHTS, attrs.Factory(dict))
    scores: tuple[ScoreConfig, ...] = key(rows("score", None), (), ours=True)


@attrs.frozen
class PreemptionConfig:
    """Preemption settings of a partition."""

    enabled: bool = key(values.BOOLEAN, True)
    quota_preemption_enabled: bool = key(values.BOOLEAN, False)
    shrunk_nodes: bool = key(values.BOOLEAN, False, ours=True)
    policy: PluginRef = key(plugin_ref(kinds.PREEMPTION), PluginRef("standard"), ours=True)


@attrs.frozen
class PartitionConfig:
    """Partition: an independent scheduling domain with nodes, queues and rules."""

    name: str = key(values.TEXT, REQUIRED)
    root: QueueConfig = key(rows("queue", built), REQUIRED, name="queues")
    placement_rules: tuple[RuleConfig, ...] = key(rows("rule"), ())
    preemption: PreemptionConfig = keys_inside(PreemptionConfig, PreemptionConfig())
    reservations: PluginRef = key(
        attrs.evolve(plugin(kinds.RESERVATION), read=None),
        PluginRef(DEFAULT_RESERVATIONS),
        ours=True,
    )
    node_sort: PluginRef = key(mapping("node-sort"), PluginRef(DEFAULT_ORDER), name="nodesortpolicy")
    user_group_resolver: ResolverRef | None = key(attrs.evolve(plugin(kinds.RESOLVER), read=None), None)
    predicates: tuple[PluginRef, ...] = key(plugins(kinds.PREDICATE), (), ours=True)
    submit_policies: tuple[PluginRef, ...] = key(plugins(kinds.SUBMIT), (), name="submitpolicies", ours=True)
    admission: tuple[PluginRef, ...] = key(plugins(kinds.ADMISSION), (), ours=True)
    permits: tuple[PluginRef, ...] = key(plugins(kinds.PERMIT), (), ours=True)
    topology: tuple[PluginRef, ...] = key(plugins(kinds.TOPOLOGY), (), ours=True)
    gang_placement: PluginRef = key(
        plugin_ref(kinds.GANG_PLACEMENT), PluginRef("best-fit"), name="gangplacement", ours=True
    )
    estimators: tuple[PluginRef, ...] = key(plugins(kinds.RUN_TIME), (), ours=True)
    node_sorts: Mapping[str, PluginRef] = key(
        rows("named-node-sort", None), attrs.Factory(dict), name="nodesortpolicies", ours=True
    )
    periods: Mapping[str, int | None] = key(mapping("periods"), attrs.Factory(dict), ours=True)
    """Delays that the text sets, by attribute of `PartitionTimeouts`; None means never."""


@attrs.frozen
class SchedulerConfig:
    """Content of a queues.yaml."""

    partitions: tuple[PartitionConfig, ...] = key(rows("partition"), ())
    checksum: str = key(values.TEXT, "")
    """Checksum of the text without its `checksum:` line; a reload with an equal checksum does nothing."""
    sinks: tuple[PluginRef, ...] = key(plugins(kinds.EVENT_SINK), (), inside="events", ours=True)
    disabled: tuple[str, ...] = key(values.NAMES, (), name="disable", inside="plugins", ours=True)
    overriding: tuple[str, ...] = key(values.NAMES, (), name="override", inside="plugins", ours=True)
    loaded: tuple[LoadedPlugin, ...] = key(values.NAMES, (), name="load", inside="plugins", ours=True)
    history: PluginRef | None = key(Value(plugins=kinds.DOOR), None, ours=True)
    """Options of the door `history`, which a service reads at its start."""
    priority_classes: Mapping[str, int] = key(values.PRIORITIES, attrs.Factory(dict), ours=True)
    same_hierarchy: bool = key(values.BOOLEAN, False, ours=True)
    text: str = attrs.field(default="", repr=False)


# -- sections, in the order of the reference page -----------------------------------------------------

TOP = ConfigSection("top", SchedulerConfig)
PARTITION = ConfigSection(
    "partition",
    PartitionConfig,
    beside=(ConfigKey(rows("limit"), "limits", after="placementrules"),),
    hints={"statedumpfilepath": " (YuniKorn removed it in 1.5: leave it out)"},
)
PERIODS = ConfigSection("periods", PartitionTimeouts)
QUEUE = ConfigSection("queue", QueueConfig)
PROPERTIES = ConfigSection("properties", QueueSettings)
LIMIT = ConfigSection("limit", LimitConfig)
TEMPLATE = ConfigSection("template", TemplateConfig)
RULE = ConfigSection("rule", RuleConfig, options_of=kinds.PLACEMENT, chosen_by="name")
NODE_ORDER = ConfigSection("node-sort", NodeOrderConfig, options_of=kinds.NODE_SORT, chosen_by="type")
NAMED_NODE_ORDER = attrs.evolve(
    NODE_ORDER,
    name="named-node-sort",
    beside=(ConfigKey(values.TEXT, "name"),),
)
SCORE = ConfigSection("score", ScoreConfig, options_of=kinds.NODE_SORT, chosen_by="name")
RESOLVER_CACHE = ConfigSection("resolver-cache", ResolverCache)
SECTIONS = (
    TOP,
    PARTITION,
    PERIODS,
    QUEUE,
    PROPERTIES,
    LIMIT,
    TEMPLATE,
    RULE,
    NODE_ORDER,
    NAMED_NODE_ORDER,
    SCORE,
    RESOLVER_CACHE,
)
PREEMPTION = ConfigSection("preemption", PreemptionConfig)
FILTER = ConfigSection("filter", FilterConfig)
"""Sections inside others, which the page lists with the keys of the outer section."""
