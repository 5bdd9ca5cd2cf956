"""Keys of queues, and of their properties, child templates and limits."""

from __future__ import annotations

from yunikorn.config.properties import QueueSettings
from yunikorn.config.schema import LimitConfig, QueueConfig, TemplateConfig
from yunikorn.kinds import APP_SORT, QUEUE_SORT
from yunikorn.reference.keys import Key, KeySection
from yunikorn.reference.values import (
    ACL,
    ACTIVITY,
    BOOLEAN,
    COUNT,
    COUNT_TEXT,
    DELAY_TEXT,
    DURATION,
    FENCE,
    INTEGER_TEXT,
    LIMITED_GROUPS,
    LIMITED_USERS,
    PREEMPTION,
    QUANTITIES,
    QUEUE_NAME,
    SWITCH,
    TEXT,
)

QUEUE = KeySection(
    name="queue",
    title="Queues",
    intro="A leaf queue holds applications, a parent queue holds queues.",
    cls=QueueConfig,
    keys=(
        Key(
            "name",
            "one level of the path; siblings differ by more than case",
            QUEUE_NAME,
            field="name",
            required=True,
            example="batch",
        ),
        Key(
            "parent",
            "whether it holds queues though it has none yet. A queue with queues always is a parent",
            BOOLEAN,
            field="parent",
            example="true",
        ),
        Key(
            "queues",
            "the queues below it",
            section="queue",
            many=True,
            field="queues",
            example="[{name: day}, {name: night}]",
        ),
        Key(
            "guaranteed",
            "what it should have before others have more",
            QUANTITIES,
            inside="resources",
            field="guaranteed",
            example="{memory: 100Gi, vcore: 40}",
        ),
        Key(
            "max",
            "what it may use at most; a type that is missing is not limited",
            QUANTITIES,
            inside="resources",
            field="max",
            example="{memory: 400Gi, vcore: 160}",
        ),
        Key(
            "maxapplications",
            "how many applications may [run](scheduling.md#limits) in it and below, 0 is no limit;"
            " the others wait",
            COUNT,
            field="max_applications",
            example="10",
        ),
        Key(
            "properties",
            "[properties](#properties)",
            section="properties",
            field="properties",
            example="{application.sort.policy: fair}",
        ),
        Key(
            "adminacl",
            "who administers it, and may submit",
            ACL,
            field="admin_acl",
            default="no user",
            example='" operators"',
        ),
        Key("submitacl", "who may submit", ACL, field="submit_acl", default="no user", example='"*"'),
        Key(
            "childtemplate",
            "the [child template](#child-templates) of a parent",
            section="template",
            field="child_template",
            example="{maxapplications: 5}",
        ),
        Key(
            "limits",
            "[limits](#limits)",
            section="limit",
            many=True,
            field="limits",
            example="[{users: [ann], maxapplications: 2}]",
        ),
    ),
    notes="""\
What must hold:

- The root has no `resources`: it has what the nodes have.
- A guarantee is not more than the max of its queue; a max is not more than any max above it. Queues may have
  more max together than their parent.
- The guarantees of the queues below add up to no more than the guarantee and the max of the queue. A queue
  without a guarantee counts with what is below it.
- Below a queue with `maxapplications` every queue has it too, from 1 to that number.
""",
    example="""\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: batch
            adminacl: " operators"
            resources:
              guaranteed: {memory: 100Gi, vcore: 40}
              max: {memory: 400Gi, vcore: 160}
            maxapplications: 10
""",
)

PROPERTIES = KeySection(
    name="properties",
    title="Properties",
    intro="""\
Text, inherited by the configured queues below: all but `priority.policy`, `priority.offset` and
`queue.state`; of `preemption.policy` only `disabled`. The options of a policy are inherited only with the
policy itself. A queue that is made on the fly inherits nothing; it gets its
[child template](#child-templates). Unknown properties are ignored. A value that cannot be read is a warning,
and the default holds; only unknown policies, and options that they do not have, are problems.""",
    cls=QueueSettings,
    open_to="other properties, which mean nothing to the scheduler",
    keys=(
        Key(
            "application.sort.policy",
            "the order of the applications of a leaf: the name of an"
            " [application sort policy](plugins/application-sort.md)",
            plugins=APP_SORT,
            field="app_sort",
            example="fair",
        ),
        Key(
            "application.sort.policy.OPTION",
            "an option of that policy; lists comma separated",
            field="app_sort_options",
            default="the policy's",
            ours=True,
            example="vcore",
        ),
        Key(
            "application.sort.priority",
            "whether the priorities of applications and queues come first, or are ignored",
            SWITCH,
            field="sort_priority",
            example="disabled",
        ),
        Key(
            "queue.sort.policy",
            "the order of the queues of a parent: the name of a [queue sort policy](plugins/queue-sort.md)",
            plugins=QUEUE_SORT,
            field="queue_sort",
            ours=True,
            example="fair",
        ),
        Key(
            "queue.sort.policy.OPTION",
            "an option of that policy; lists comma separated",
            field="queue_sort_options",
            default="the policy's",
            ours=True,
            example="memory",
        ),
        Key(
            "node.sort.policy",
            "the order of nodes for applications of this queue: a name in `nodesortpolicies`",
            TEXT,
            field="node_sort",
            default="the partition's own",
            ours=True,
            example="packed",
        ),
        Key(
            "priority.policy",
            "whether priorities inside are seen outside: behind a `fence` the queue has its offset only",
            FENCE,
            field="priority_fence",
            example="fence",
        ),
        Key(
            "priority.offset",
            "added to the [priority](scheduling.md#priorities) that the parent sees",
            INTEGER_TEXT,
            field="priority_offset",
            example='"-5"',
        ),
        Key(
            "preemption.policy",
            "whether asks inside may preempt outside (`fence`: they may not), or be preempted (`disabled`:"
            " they may not)",
            PREEMPTION,
            field="preemption_policy",
            example="fence",
        ),
        Key(
            "preemption.delay",
            "how long an ask waits before it may preempt",
            DELAY_TEXT,
            field="preemption_delay",
            example="1m",
        ),
        Key(
            "preemption.by.priority",
            "whether asks inside may preempt less important work of other queues without a guarantee"
            " to call on",
            SWITCH,
            field="preempts_by_priority",
            ours=True,
            example="enabled",
        ),
        Key(
            "preemption.within.queue",
            "whether asks inside may preempt less important work of their own queue",
            SWITCH,
            field="preempts_within",
            ours=True,
            example="enabled",
        ),
        Key(
            "quota.preemption.delay",
            "how long after a max was lowered use above it is preempted; 0 is never",
            DURATION,
            field="quota_preemption_delay",
            example="10m",
        ),
        Key(
            "application.unschedasks.backoff",
            "after how many tries in a row that found no node an application is"
            " [left alone for a while](scheduling.md#back-off); 0 is never",
            COUNT_TEXT,
            field="backoff_count",
            example='"3"',
        ),
        Key(
            "application.unschedasks.backoff.delay",
            "for how long",
            DELAY_TEXT,
            field="backoff_delay",
            example="1m",
        ),
        Key(
            "queue.state",
            "whether anything new is scheduled in it"
            " ([stopping and starting](scheduling.md#stopping-and-starting))",
            ACTIVITY,
            field="stopped",
            ours=True,
            example="stopped",
        ),
    ),
    example="""\
partitions:
  - name: default
    nodesortpolicies:
      - name: packed
        type: binpacking
    queues:
      - name: root
        queues:
          - name: batch
            properties:
              application.sort.policy: fair
              application.sort.priority: disabled
              node.sort.policy: packed
              priority.offset: "-5"
""",
)

LIMIT = KeySection(
    name="limit",
    title="Limits",
    intro="""\
What users and groups may use in a queue and below it. Which entry counts for whom, what it counts and what a
reload changes: [Scheduling](scheduling.md#limits).""",
    cls=LimitConfig,
    keys=(
        Key("limit", "a description", field="limit", example="nobody takes all of it"),
        Key(
            "users",
            "users that may each use this much; `*` is every user without a limit of their own",
            LIMITED_USERS,
            field="users",
            example='[ann, "*"]',
        ),
        Key(
            "groups",
            "groups that may use this much together; `*` is all others together",
            LIMITED_GROUPS,
            field="groups",
            example='[students, "*"]',
        ),
        Key(
            "maxresources",
            "what they may use; at least one type above 0. `{}` sets nothing",
            QUANTITIES,
            field="max_resources",
            default="no limit",
            example="{memory: 50Gi}",
        ),
        Key(
            "maxapplications",
            "how many of their applications may run, 0 is no limit",
            COUNT,
            field="max_applications",
            example="10",
        ),
    ),
    notes="""\
What must hold:

- A limit names users, groups or both, and limits resources, applications or both.
- A name has one limit in a queue. `*` comes last, and for groups it cannot be alone.
- A limit is not more than the `maxapplications` and the `max` of its queue, nor more than what a queue above
  allows the same name, or `*` where that has none for the name. Below a limit of applications a limit for the
  same name has one too.
""",
)

TEMPLATE = KeySection(
    name="template",
    title="Child templates",
    intro="""\
What a leaf queue that a placement rule makes gets ([queues that come and
go](scheduling.md#queues-that-come-and-go)). A parent queue without a template of its own passes on the one
above.""",
    cls=TemplateConfig,
    keys=(
        Key("maxapplications", "as for queues", COUNT, field="max_applications", example="5"),
        Key(
            "guaranteed",
            "as for queues; not compared with the queues above",
            QUANTITIES,
            inside="resources",
            field="guaranteed",
            example="{vcore: 2}",
        ),
        Key(
            "max",
            "as for queues; not compared with the queues above",
            QUANTITIES,
            inside="resources",
            field="max",
            example="{vcore: 8}",
        ),
        Key(
            "properties",
            "all its properties: it inherits none",
            section="properties",
            field="properties",
            example="{application.sort.policy: fair}",
        ),
    ),
)
