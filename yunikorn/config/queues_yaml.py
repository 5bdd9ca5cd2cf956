"""Immutable, checked content of a queues.yaml, the input of the scheduler, with the description of every key.

`yunikorn.config.load` creates these objects from the text of a queues.yaml. Nothing else reads the text
again. Times are in nanoseconds; resources are as in `yunikorn.resources`. The prose around the keys on the
reference page is in `reference_page.md`.
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
from yunikorn.config.values import built, mapping, plugin, plugin_ref, plugins, rows
from yunikorn.config.yaml_reading import YamlTable
from yunikorn.framework.kinds import (
    ADMISSION,
    EVENT_SINK,
    GANG_PLACEMENT,
    NODE_SORT,
    PERMIT,
    PLACEMENT,
    PREDICATE,
    RESERVATION,
    RESOLVER,
    SUBMIT,
    TOPOLOGY,
)
from yunikorn.framework.kinds import PREEMPTION as PREEMPTION_POLICY
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

    name: str = key(
        plugin(NODE_SORT),
        REQUIRED,
        "a [node sort policy](plugins/node-sort.md), other than `weighted`",
        "binpacking",
    )
    weight: float = key(
        values.WEIGHT,
        1.0,
        "weight of the policy relative to the others, above 0",
        "3",
    )
    range: tuple[float, float] | None = key(
        values.RANGE,
        None,
        "lowest and highest score of the policy, which count as 0 and 1; scores outside count as the nearer"
        " end",
        "[0, 50]",
        shown="the policy's own",
    )
    options: Mapping[str, Any] = attrs.field(factory=dict)
    """Options of the plugin as in the text."""


@attrs.frozen
class ResolverCache:
    """Times for which the groups of a user are remembered."""

    found: int = key(
        values.DURATION,
        300 * SECOND,
        "time for which the groups of a user are used without asking again; `0s` is not at all",
        "1h",
    )
    failed: int = key(
        values.DURATION,
        30 * SECOND,
        "time for which a failure, or that there is no such user, is remembered; `0s` is not at all",
        "5s",
    )


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

    limit: str = key(values.TEXT, "", "a description", "share of one user")
    users: tuple[str, ...] = key(
        values.LIMITED_USERS,
        (),
        "users that the limit applies to, each on their own; `*` is every user without a limit of their own",
        '[ann, "*"]',
    )
    groups: tuple[str, ...] = key(
        values.LIMITED_GROUPS,
        (),
        "groups that the limit applies to, each as a whole; `*` is all others together",
        '[students, "*"]',
    )
    max_resources: Resource | None = key(
        values.QUANTITIES,
        None,
        "maximum usage; at least one resource type must be above 0. `{}` sets no limit",
        "{memory: 50Gi}",
        shown="no limit",
    )
    max_applications: int = key(
        values.COUNT, 0, "maximum number of running applications; 0 is no limit", "10"
    )


@attrs.frozen
class TemplateConfig:
    """Settings of dynamic leaf queues, taken from the parent queue in which they are created."""

    max_applications: int = key(values.COUNT, 0, "as for queues", "5")
    properties: Mapping[str, str] = key(
        mapping("properties", YamlTable.pairs),
        attrs.Factory(dict),
        "all properties of the queue; it inherits none",
        "{application.sort.policy: fair}",
        after="resources.max",
    )
    guaranteed: Resource | None = key(
        values.SPARSE_QUANTITIES,
        None,
        "as for queues; not compared with the queues above",
        "{vcore: 2}",
        inside="resources",
    )
    max: Resource | None = key(
        values.SPARSE_QUANTITIES,
        None,
        "as for queues; not compared with the queues above",
        "{vcore: 8}",
        inside="resources",
    )


@attrs.frozen
class QueueConfig:
    """Queue and all queues below.

    The name is in lower case. Of `guaranteed` and `max`, zero entries are kept.
    """

    name: str = key(
        values.QUEUE_NAME,
        REQUIRED,
        "one level of the path; unique among its siblings, ignoring case",
        "batch",
    )
    parent: bool = key(
        values.BOOLEAN,
        False,
        "true if the queue is a parent even without child queues. A queue with child queues is always a"
        " parent",
        "true",
    )
    guaranteed: Resource | None = key(
        values.QUANTITIES,
        None,
        "resources that the queue is entitled to before other queues get more than their guarantee",
        "{memory: 100Gi, vcore: 40}",
        inside="resources",
    )
    max: Resource | None = key(
        values.QUANTITIES,
        None,
        "the most that the queue may use; a resource type that is not listed is not limited",
        "{memory: 400Gi, vcore: 160}",
        inside="resources",
    )
    max_applications: int = key(
        values.COUNT,
        0,
        "maximum number of [running](scheduling.md#limits) applications in the queue and below;"
        " further applications wait. 0 is no limit",
        "10",
    )
    properties: Mapping[str, str] = key(
        mapping("properties", YamlTable.pairs),
        attrs.Factory(dict),
        "[properties](#properties)",
        "{application.sort.policy: fair}",
    )
    """Properties of the queue itself; `effective_properties` adds the inherited ones."""
    admin_acl: Acl = key(
        values.ACL,
        NOBODY,
        "users and groups that may administer the queue and submit to it",
        '" operators"',
        shown="no user",
    )
    submit_acl: Acl = key(
        values.ACL, NOBODY, "users and groups that may submit applications", '"*"', shown="no user"
    )
    child_template: TemplateConfig | None = key(
        mapping("template", build=built),
        None,
        "the [child template](#child-templates) of a parent queue",
        "{maxapplications: 5}",
    )
    queues: tuple[QueueConfig, ...] = key(
        rows("queue"), (), "the child queues", "[{name: day}, {name: night}]", after="parent"
    )
    limits: tuple[LimitConfig, ...] = key(
        rows("limit"), (), "[limits](#limits)", "[{users: [ann], maxapplications: 2}]"
    )

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

    name: str = key(
        plugin(PLACEMENT), REQUIRED, "a [placement rule](plugins/placement-rules.md), in any case", "user"
    )
    create: bool = key(values.TRUE_OR_FALSE, False, "true if the rule may create the queue", "true")
    filter: FilterConfig | None = keys_inside(FilterConfig, None)
    parent: RuleConfig | None = key(
        mapping("rule", build=built),
        None,
        "the rule that chooses the parent queue; a list with one rule is accepted too",
        "{name: tag, value: namespace}",
    )
    value: str = key(
        values.TEXT,
        "",
        "for `fixed` the queue, for `tag` the name of the tag; other rules ignore the value unless they"
        " have such an option",
        "root.default",
    )
    required: bool = key(
        values.BOOLEAN,
        True,
        "false to go on without the rule where its plugin cannot be used"
        " ([more](plugins.md#plugins-that-cannot-be-used))",
        "false",
        ours=True,
    )
    options: Mapping[str, Any] = attrs.field(factory=dict)
    """Options of the plugin as text, without `value`."""


@attrs.frozen
class NodeOrderConfig:
    """Order of nodes as described; it is read to a `PluginRef`."""

    type: str = key(
        plugin(NODE_SORT),
        DEFAULT_ORDER,
        "a [node sort policy](plugins/node-sort.md): `fair` spreads, `binpacking` fills, `weighted` combines"
        " several",
        "binpacking",
    )
    resourceweights: Mapping[str, str] = key(
        values.WEIGHTS,
        attrs.Factory(dict),
        "weight of the usage of each resource type, 0 or more; types that are not listed do not count",
        "{vcore: 4.0, memory: 1.0}",
        shown="`{vcore: 1, memory: 1}`",
    )
    scores: tuple[ScoreConfig, ...] = key(
        rows("score", None),
        (),
        "for `weighted`: the [policies to combine](plugins/node-sort.md#several-policies-with-weights), each"
        " with its weight and its options",
        "[{name: binpacking, weight: 3}, {name: fair, resourceweights: {gpu: 1}}]",
        ours=True,
    )


@attrs.frozen
class PreemptionConfig:
    """Preemption settings of a partition."""

    enabled: bool = key(values.BOOLEAN, True, "true if asks may [preempt](scheduling.md#preemption)", "false")
    quota_preemption_enabled: bool = key(
        values.BOOLEAN, False, "true if usage above a lowered quota is preempted", "true"
    )
    shrunk_nodes: bool = key(
        values.BOOLEAN,
        False,
        "true if allocations are preempted on a node whose capacity dropped below its usage",
        "true",
        ours=True,
    )
    policy: PluginRef = key(
        plugin_ref(PREEMPTION_POLICY),
        PluginRef("standard"),
        "the [preemption policy](plugins/preemption.md), which chooses the victims: a name or"
        " `{name: NAME, OPTION: VALUE}`",
        "standard",
        ours=True,
    )


@attrs.frozen
class PartitionConfig:
    """Partition: an independent scheduling domain with nodes, queues and rules."""

    name: str = key(
        values.TEXT,
        REQUIRED,
        "unique, ignoring case; any case of `default` is `default`",
        "default",
        shown="`default`",
    )
    root: QueueConfig = key(
        rows("queue", built),
        REQUIRED,
        "the [queues](#queues). A single queue named `root` is the root queue; otherwise a root queue is"
        " added above them. `[]` is a root queue without child queues",
        "[{name: root, submitacl: '*'}]",
        name="queues",
    )
    placement_rules: tuple[RuleConfig, ...] = key(
        rows("rule"),
        (),
        "the [placement rules](#placement-rules), in order",
        "[{name: user, create: true}]",
        shown="`provided`",
    )
    preemption: PreemptionConfig = keys_inside(PreemptionConfig, PreemptionConfig())
    reservations: PluginRef = key(
        attrs.evolve(plugin(RESERVATION), words="mapping", read=None),
        PluginRef(DEFAULT_RESERVATIONS),
        "`policy`: the [reservation policy](plugins/reservation-policies.md), which decides who reserves a"
        " node, how many do, and for how long; other keys are its options",
        "{policy: standard, total: 20, perqueue: 4}",
        shown="`{policy: standard}`",
        ours=True,
    )
    node_sort: PluginRef = key(
        mapping("node-sort"),
        PluginRef(DEFAULT_ORDER),
        "the [order of nodes](#node-order)",
        "{type: binpacking}",
        name="nodesortpolicy",
        shown="`{type: fair}`",
    )
    user_group_resolver: ResolverRef | None = key(
        attrs.evolve(plugin(RESOLVER), words="mapping", read=None),
        None,
        "`type`: how the groups of a user are found ([resolvers](plugins/user-groups.md)), or `none`;"
        " `cache`: [how long](#group-cache) they are remembered;"
        " other keys are the resolver's options. By default a user is in the group of the same name",
        "{type: os}",
    )
    predicates: tuple[PluginRef, ...] = key(
        plugins(PREDICATE),
        (),
        "[predicates](plugins/predicates.md) that a node must pass, each a name or"
        " `{name: NAME, OPTION: VALUE}`",
        "[node-selector, {name: taints, attribute: stains}]",
        ours=True,
    )
    submit_policies: tuple[PluginRef, ...] = key(
        plugins(SUBMIT),
        (),
        "[submit policies](plugins/submit-policies.md) that check and change applications before their"
        " placement, in order, each a name or `{name: NAME, OPTION: VALUE}`",
        "[{name: default-tags, tags: {team: none}}]",
        name="submitpolicies",
        ours=True,
    )
    admission: tuple[PluginRef, ...] = key(
        plugins(ADMISSION),
        (),
        "[admission policies](plugins/admission-policies.md) that decide when an application may be"
        " scheduled, in order, each a name or `{name: NAME, OPTION: VALUE}`",
        '[{name: admission-window, start: "22:00", end: "06:00"}]',
        ours=True,
    )
    permits: tuple[PluginRef, ...] = key(
        plugins(PERMIT),
        (),
        "[permit policies](plugins/permit-policies.md) that may hold a placement before the resource manager"
        " is informed of it, in order, each a name or `{name: NAME, OPTION: VALUE}`",
        "[together]",
        ours=True,
    )
    topology: tuple[PluginRef, ...] = key(
        plugins(TOPOLOGY),
        (),
        "levels of the [topology](topology.md), the outermost first, each an attribute of the nodes; or a"
        " [source](plugins/gang-placement.md#topology-sources) `{name: NAME, OPTION: VALUE}` for each tree",
        "[block, rack]",
        ours=True,
    )
    gang_placement: PluginRef = key(
        plugin_ref(GANG_PLACEMENT),
        PluginRef("best-fit"),
        "the [policy](plugins/gang-placement.md) that chooses the domain of a gang: a name or a mapping",
        "balanced",
        name="gangplacement",
        ours=True,
    )
    node_sorts: Mapping[str, PluginRef] = key(
        rows("named-node-sort", None),
        attrs.Factory(dict),
        "named node orders that queues and applications can choose instead",
        "[{name: packed, type: binpacking}]",
        name="nodesortpolicies",
        after="nodesortpolicy",
        ours=True,
    )
    periods: Mapping[str, int | None] = key(
        mapping("periods"),
        attrs.Factory(dict),
        "[timeouts](#timeouts) of the scheduler in this partition",
        "{completing: 5s}",
        ours=True,
    )
    """Delays that the text sets, by attribute of `PartitionTimeouts`; None means never."""


@attrs.frozen
class SchedulerConfig:
    """Content of a queues.yaml."""

    partitions: tuple[PartitionConfig, ...] = key(
        rows("partition"), (), "the [partitions](#partitions)", "[{name: default, queues: [{name: root}]}]"
    )
    checksum: str = key(
        values.TEXT, "", "ignored, and not part of the checksum of the file", "9F86D081884C7D65"
    )
    """Checksum of the text without its `checksum:` line; a reload with an equal checksum does nothing."""
    sinks: tuple[PluginRef, ...] = key(
        plugins(EVENT_SINK),
        (),
        "the [event sinks](plugins/event-sinks.md), each a name or `{name: NAME, OPTION: VALUE}`",
        "[log, {name: jsonl, path: events.jsonl}]",
        inside="events",
        ours=True,
    )
    disabled: tuple[str, ...] = key(
        values.NAMES,
        (),
        "plugins to switch off: a plugin module (`yunikorn_plugins.events`), a name (`fair`, of every"
        " kind), or a name of one kind (`app-sort:fair`)",
        '["app-sort:stateaware"]',
        name="disable",
        inside="plugins",
        ours=True,
    )
    overriding: tuple[str, ...] = key(
        values.NAMES,
        (),
        "offers to use for a name that several distributions offer, also instead of a default:"
        " `NAME@DISTRIBUTION` or `KIND:NAME@DISTRIBUTION`"
        " ([more](plugins.md#names-that-several-plugins-offer))",
        '["node-sort:fair@my-plugins"]',
        name="override",
        inside="plugins",
        ours=True,
    )
    loaded: tuple[LoadedPlugin, ...] = key(
        values.NAMES,
        (),
        "plugins to load from files, relative to this one, and from modules"
        " ([more](plugins.md#plugins-from-a-file))",
        "[./mine.py]",
        name="load",
        inside="plugins",
        ours=True,
    )
    priority_classes: Mapping[str, int] = key(
        values.PRIORITIES,
        attrs.Factory(dict),
        "priorities of the names that asks give as `priorityClassName`; whole numbers of 32 bits",
        "{urgent: 1000, batch: -10}",
        ours=True,
    )
    same_hierarchy: bool = key(
        values.BOOLEAN,
        False,
        "true if a queue name must have the same path in all partitions that have it; otherwise different"
        " paths are only a warning",
        "true",
        ours=True,
    )
    text: str = attrs.field(default="", repr=False)


# -- sections, in the order of the reference page -----------------------------------------------------

TOP = ConfigSection("top", SchedulerConfig)
PARTITION = ConfigSection(
    "partition",
    PartitionConfig,
    beside=(
        ConfigKey(
            rows("limit"),
            "[limits](#limits) of the root queue; if the root queue has limits too, both must be written"
            " alike",
            "[{users: ['*'], maxapplications: 5}]",
            "limits",
            shown="none",
            required=False,
            after="placementrules",
        ),
    ),
    hints={"statedumpfilepath": " (YuniKorn removed it in 1.5: leave it out)"},
)
PERIODS = ConfigSection("periods", PartitionTimeouts)
QUEUE = ConfigSection("queue", QueueConfig)
PROPERTIES = ConfigSection(
    "properties", QueueSettings, others="other properties, which the scheduler ignores"
)
LIMIT = ConfigSection("limit", LimitConfig)
TEMPLATE = ConfigSection("template", TemplateConfig)
RULE = ConfigSection(
    "rule", RuleConfig, options_of=PLACEMENT, chosen_by="name", others="an option of the rule"
)
NODE_ORDER = ConfigSection(
    "node-sort", NodeOrderConfig, options_of=NODE_SORT, chosen_by="type", others="an option of the policy"
)
NAMED_NODE_ORDER = attrs.evolve(
    NODE_ORDER,
    name="named-node-sort",
    beside=(
        ConfigKey(
            values.TEXT, "the name by which queues and applications choose the policy", "packed", "name"
        ),
    ),
)
SCORE = ConfigSection(
    "score", ScoreConfig, options_of=NODE_SORT, chosen_by="name", others="an option of the policy"
)
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
