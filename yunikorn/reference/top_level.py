"""Keys of the top level, of partitions, and of a partition's delays."""

from __future__ import annotations

from yunikorn.config.schema import PartitionConfig, PreemptionConfig, SchedulerConfig
from yunikorn.kinds import EVENT_SINK, PREDICATE, RESOLVER
from yunikorn.objects.timeouts import Timeouts
from yunikorn.reference.keys import Key, KeySection
from yunikorn.reference.values import BOOLEAN, DURATION, DURATION_OR_NEVER, NAMES, PRIORITIES

TOP = KeySection(
    name="top",
    title="Top level",
    intro="""\
An empty file is valid and has no partitions. A resource manager that registers with no text at all gets one
partition `default` with the rule `tag` for `namespace`, which makes queues, below a root that lets everybody
in.""",
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
            "left out of the text's own checksum, otherwise ignored",
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
            "plugins to switch off: a plugin (`yunikorn_plugins.events`), what it offers (`fair`, of every"
            " kind), or one of one kind (`app-sort:fair`)",
            NAMES,
            inside="plugins",
            field="disabled",
            ours=True,
            example='["app-sort:stateaware"]',
        ),
        Key(
            "priorityclasses",
            "names and their priorities, whole numbers of 32 bits: what an ask's `priorityClassName` means",
            PRIORITIES,
            field="priority_classes",
            ours=True,
            example="{urgent: 1000, batch: -10}",
        ),
        Key(
            "samehierarchy",
            "whether a queue name must have one and the same place in all partitions. It may be missing in"
            " some. Without it another place is a warning",
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
    intro="A partition is a scheduling domain of its own: nodes, queues and rules.",
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
            "the [queues](#queues). Exactly one that is called `root` is the root; otherwise a root is put"
            " above them. `[]` is a root alone",
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
            "[limits](#limits) of the root queue; if that has some too, both must be written alike",
            section="limit",
            many=True,
            default="none",
            example="[{users: ['*'], maxapplications: 5}]",
        ),
        _preemption("enabled", "enabled", "whether asks may [preempt](scheduling.md#preemption)", "false"),
        _preemption(
            "quotapreemptionenabled",
            "quota_preemption_enabled",
            "whether use above a lowered quota is preempted",
            "true",
        ),
        _preemption(
            "shrunknodes",
            "shrunk_nodes",
            "whether a node that has become smaller than what runs on it gives work back",
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
            "named alternatives to it",
            section="named-node-sort",
            many=True,
            field="node_sorts",
            ours=True,
            example="[{name: packed, type: binpacking}]",
        ),
        Key(
            "usergroupresolver",
            "`type`: how the groups of a user are found ([resolvers](plugins/user-groups.md)), or `none`;"
            " other keys are its options. Without one, a user is in the group of the same name. A type that"
            " is not installed is a warning, and an error when the scheduler starts",
            plugins=RESOLVER,
            field="user_group_resolver",
            example="{type: os}",
        ),
        Key(
            "predicates",
            "[predicates](plugins/predicates.md) that a node must meet, each a name or"
            " `{name: NAME, OPTION: VALUE}`",
            plugins=PREDICATE,
            many=True,
            field="predicates",
            ours=True,
            example="[node-selector, {name: taints, attribute: stains}]",
        ),
        Key(
            "periods",
            "the scheduler's own [delays](#timeouts) in this partition",
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
Delays that are fixed in YuniKorn and can be set here, per partition. A reload changes them for what begins to
wait afterwards.""",
    cls=Timeouts,
    keys=(
        _period("starting", "after which an application in Starting is Running", "1m"),
        _period("completing", "after which an application in Completing is Completed", "5s"),
        _period("retention", "for which an ended application is remembered", "24h"),
        _period(
            "reservation",
            "the age from which a request that no node can take [reserves](scheduling.md#reservations) one;"
            " `never` switches reservations off",
            "30s",
        ),
        _period(
            "gangpatience",
            "for which a whole [Atomic](scheduling.md#atomic) gang waits for room before it holds back later"
            " requests",
            "1h",
            "gang_patience",
        ),
        _period(
            "cleanup",
            "after which an empty queue that placement made, or that is draining, is removed",
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
