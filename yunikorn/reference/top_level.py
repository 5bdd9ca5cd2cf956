"""Keys of the top level, of partitions, and of a partition's delays."""

from __future__ import annotations

from yunikorn.config.schema import PartitionConfig, PreemptionConfig, SchedulerConfig
from yunikorn.framework.kinds import EVENT_SINK, PREDICATE, RESOLVER
from yunikorn.model.context import Timeouts
from yunikorn.reference.keys import Key, KeySection
from yunikorn.reference.values import BOOLEAN, DURATION, DURATION_OR_NEVER, NAMES, PRIORITIES

TOP = KeySection(
    name="top",
    title="Top level",
    intro="""\
An empty file is valid and has no partitions. A resource manager that registers without any configuration gets
one partition `default`. Its root queue accepts all users, and its placement rule `tag` creates a queue for
each `namespace`.""",
    cls=SchedulerConfig,
    keys=(
        Key(
            "partitions",
            "the [partitions](#partitions)",
            section="partition",
            many=True,
            field="partitions",
            example="[{name: default, queues: [{name: root}]}]",
        ),
        Key(
            "checksum",
            "ignored, and not part of the checksum of the file",
            default="none",
            field="checksum",
            example="9F86D081884C7D65",
        ),
        Key(
            "sinks",
            "the [event sinks](plugins/event-sinks.md), each a name or `{name: NAME, OPTION: VALUE}`",
            inside="events",
            field="sinks",
            plugins=EVENT_SINK,
            many=True,
            ours=True,
            example="[log, {name: jsonl, path: events.jsonl}]",
        ),
        Key(
            "disable",
            "plugins to switch off: a plugin module (`yunikorn_plugins.events`), a name (`fair`, of every"
            " kind), or a name of one kind (`app-sort:fair`)",
            NAMES,
            inside="plugins",
            field="disabled",
            ours=True,
            example='["app-sort:stateaware"]',
        ),
        Key(
            "priorityclasses",
            "priorities of the names that asks give as `priorityClassName`; whole numbers of 32 bits",
            PRIORITIES,
            field="priority_classes",
            ours=True,
            example="{urgent: 1000, batch: -10}",
        ),
        Key(
            "samehierarchy",
            "true if a queue name must have the same path in all partitions that have it; otherwise different"
            " paths are only a warning",
            BOOLEAN,
            field="same_hierarchy",
            ours=True,
            example="true",
        ),
    ),
    example="""\
events:
  sinks:
    - log
    - name: jsonl
      path: events.jsonl
plugins:
  disable: [app-sort:stateaware]
priorityclasses:
  urgent: 1000
  batch: -10
partitions:
  - name: default
    queues:
      - name: root
""",
)


def _preemption(name: str, field: str, meaning: str, example: str, *, ours: bool = False) -> Key:
    default = f"`{BOOLEAN.spell(getattr(PreemptionConfig(), field))}`"
    return Key(
        name,
        meaning,
        BOOLEAN,
        inside="preemption",
        field="preemption",
        default=default,
        example=example,
        ours=ours,
    )


PARTITION = KeySection(
    name="partition",
    title="Partitions",
    intro="A partition is a separate scheduling domain with its own nodes, queues and placement rules.",
    cls=PartitionConfig,
    keys=(
        Key(
            "name",
            "unique, ignoring case; any case of `default` is `default`",
            field="name",
            default="`default`",
            example="default",
        ),
        Key(
            "queues",
            "the [queues](#queues). A single queue named `root` is the root queue; otherwise a root queue is"
            " added above them. `[]` is a root queue without child queues",
            section="queue",
            many=True,
            field="root",
            required=True,
            example="[{name: root, submitacl: '*'}]",
        ),
        Key(
            "placementrules",
            "the [placement rules](#placement-rules), in order",
            section="rule",
            many=True,
            field="placement_rules",
            default="`provided`",
            example="[{name: user, create: true}]",
        ),
        Key(
            "limits",
            "[limits](#limits) of the root queue; if the root queue has limits too, both must be written"
            " alike",
            section="limit",
            many=True,
            default="none",
            example="[{users: ['*'], maxapplications: 5}]",
        ),
        _preemption("enabled", "enabled", "true if asks may [preempt](scheduling.md#preemption)", "false"),
        _preemption(
            "quotapreemptionenabled",
            "quota_preemption_enabled",
            "true if usage above a lowered quota is preempted",
            "true",
        ),
        _preemption(
            "shrunknodes",
            "shrunk_nodes",
            "true if allocations are preempted on a node whose capacity dropped below its usage",
            "true",
            ours=True,
        ),
        Key(
            "nodesortpolicy",
            "the [order of nodes](#node-order)",
            section="node-sort",
            field="node_sort",
            default="`{type: fair}`",
            example="{type: binpacking}",
        ),
        Key(
            "nodesortpolicies",
            "named node orders that queues and applications can choose instead",
            section="named-node-sort",
            many=True,
            field="node_sorts",
            ours=True,
            example="[{name: packed, type: binpacking}]",
        ),
        Key(
            "usergroupresolver",
            "`type`: how the groups of a user are found ([resolvers](plugins/user-groups.md)), or `none`;"
            " other keys are the resolver's options. By default a user is in the group of the same name. A"
            " type that is not installed is a warning in the check, and an error when the scheduler starts",
            plugins=RESOLVER,
            field="user_group_resolver",
            example="{type: os}",
        ),
        Key(
            "predicates",
            "[predicates](plugins/predicates.md) that a node must pass, each a name or"
            " `{name: NAME, OPTION: VALUE}`",
            plugins=PREDICATE,
            many=True,
            field="predicates",
            ours=True,
            example="[node-selector, {name: taints, attribute: stains}]",
        ),
        Key(
            "periods",
            "[timeouts](#timeouts) of the scheduler in this partition",
            section="periods",
            field="periods",
            ours=True,
            example="{completing: 5s}",
        ),
    ),
)


def _period(name: str, meaning: str, example: str, field: str = "") -> Key:
    never = name == "reservation"
    return Key(name, meaning, DURATION_OR_NEVER if never else DURATION, field=field or name, example=example)


PERIODS = KeySection(
    name="periods",
    title="Timeouts",
    intro="""\
These timeouts are fixed in YuniKorn and can be set here per partition. A reload changes them only for waits
that begin afterwards.""",
    cls=Timeouts,
    keys=(
        _period("starting", "time after which an application in Starting is Running", "1m"),
        _period("completing", "time after which an application in Completing is Completed", "5s"),
        _period("retention", "time for which an ended application is retained", "24h"),
        _period(
            "reservation",
            "the age from which a request that fits no node [reserves](scheduling.md#reservations) one;"
            " `never` switches reservations off",
            "30s",
        ),
        _period(
            "gangpatience",
            "time for which a complete [Atomic](scheduling.md#atomic) gang waits for capacity before later"
            " requests are blocked",
            "1h",
            "gang_patience",
        ),
        _period(
            "cleanup",
            "time after which an empty queue that is dynamic or draining is removed",
            "1m",
        ),
    ),
    example="""\
partitions:
  - name: default
    queues:
      - name: root
    periods:
      completing: 5s
      reservation: 30s
""",
)

OF_THE_WHOLE_SCHEDULER = ("session",)
"""Fields of `Timeouts` that no configuration can set; see `docs/decisions/0031`."""
