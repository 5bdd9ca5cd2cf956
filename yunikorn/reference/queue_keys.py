"""Keys of queues, and of their properties, child templates and limits."""

from __future__ import annotations

from yunikorn.config.properties import QueueSettings
from yunikorn.config.schema import LimitConfig, QueueConfig, TemplateConfig
from yunikorn.framework.kinds import APP_SORT, QUEUE_SORT
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
    intro="A leaf queue contains applications, a parent queue contains queues.",
    cls=QueueConfig,
    keys=(
        Key(
            "name",
            "one level of the path; unique among its siblings, ignoring case",
            QUEUE_NAME,
            field="name",
            required=True,
            example="batch",
        ),
        Key(
            "parent",
            "true if the queue is a parent even without child queues. A queue with child queues is always a"
            " parent",
            BOOLEAN,
            field="parent",
            example="true",
        ),
        Key(
            "queues",
            "the child queues",
            section="queue",
            many=True,
            field="queues",
            example="[{name: day}, {name: night}]",
        ),
        Key(
            "guaranteed",
            "resources that the queue is entitled to before other queues get more than their guarantee",
            QUANTITIES,
            inside="resources",
            field="guaranteed",
            example="{memory: 100Gi, vcore: 40}",
        ),
        Key(
            "max",
            "the most that the queue may use; a resource type that is not listed is not limited",
            QUANTITIES,
            inside="resources",
            field="max",
            example="{memory: 400Gi, vcore: 160}",
        ),
        Key(
            "maxapplications",
            "maximum number of [running](scheduling.md#limits) applications in the queue and below;"
            " further applications wait. 0 is no limit",
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
            "users and groups that may administer the queue and submit to it",
            ACL,
            field="admin_acl",
            default="no user",
            example='" operators"',
        ),
        Key(
            "submitacl",
            "users and groups that may submit applications",
            ACL,
            field="submit_acl",
            default="no user",
            example='"*"',
        ),
        Key(
            "childtemplate",
            "the [child template](#child-templates) of a parent queue",
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
Rules:

- The root queue has no `resources`: it has those of all nodes.
- A guarantee is at most the max of its queue, and a max is at most every max above it. The sum of the maxima
  of sibling queues may be larger than the max of their parent.
- The guarantees of the child queues add up to at most the guarantee and the max of the queue. A child queue
  without a guarantee counts with the sum of the guarantees below it.
- If a queue has `maxapplications`, every queue below it needs a value from 1 to that number.
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
Property values are text. Configured queues inherit the properties of their parent, except `priority.policy`,
`priority.offset` and `queue.state`; of `preemption.policy` only the value `disabled` is inherited. The
options of a policy are inherited only together with the policy. A dynamic queue inherits nothing; it gets the
properties of its [child template](#child-templates). Unknown properties are ignored. A value that cannot be
read is reported as a warning, and the default is used; only unknown policies and unknown options of policies
are problems.""",
    cls=QueueSettings,
    open_to="other properties, which the scheduler ignores",
    keys=(
        Key(
            "application.sort.policy",
            "the order of the applications of a leaf queue: the name of an"
            " [application sort policy](plugins/application-sort.md)",
            plugins=APP_SORT,
            field="app_sort",
            example="fair",
        ),
        Key(
            "application.sort.policy.OPTION",
            "an option of that policy; lists are comma-separated",
            field="app_sort_options",
            default="the policy's",
            ours=True,
            example="vcore",
        ),
        Key(
            "application.sort.priority",
            "enabled if applications and queues are sorted by priority first; disabled if priorities are"
            " ignored",
            SWITCH,
            field="sort_priority",
            example="disabled",
        ),
        Key(
            "queue.sort.policy",
            "the order of the child queues of a parent: the name of a [queue sort"
            " policy](plugins/queue-sort.md)",
            plugins=QUEUE_SORT,
            field="queue_sort",
            ours=True,
            example="fair",
        ),
        Key(
            "queue.sort.policy.OPTION",
            "an option of that policy; lists are comma-separated",
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
            "`fence` hides the priorities inside the queue: its parent sees only the offset",
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
            "`fence`: asks inside the queue cannot preempt outside it; `disabled`: allocations inside the"
            " queue cannot be preempted",
            PREEMPTION,
            field="preemption_policy",
            example="fence",
        ),
        Key(
            "preemption.delay",
            "waiting time of an ask before it may preempt",
            DELAY_TEXT,
            field="preemption_delay",
            example="1m",
        ),
        Key(
            "preemption.by.priority",
            "enabled if asks inside may preempt allocations of lower priority in other queues even without an"
            " unused guarantee",
            SWITCH,
            field="preempts_by_priority",
            ours=True,
            example="enabled",
        ),
        Key(
            "preemption.within.queue",
            "enabled if asks inside may preempt allocations of lower priority in their own queue",
            SWITCH,
            field="preempts_within",
            ours=True,
            example="enabled",
        ),
        Key(
            "quota.preemption.delay",
            "time between lowering a max and preempting the usage above it; 0 is never",
            DURATION,
            field="quota_preemption_delay",
            example="10m",
        ),
        Key(
            "application.unschedasks.backoff",
            "number of consecutive attempts without a node after which an application enters"
            " [back-off](scheduling.md#back-off); 0 is never",
            COUNT_TEXT,
            field="backoff_count",
            example='"3"',
        ),
        Key(
            "application.unschedasks.backoff.delay",
            "duration of the back-off",
            DELAY_TEXT,
            field="backoff_delay",
            example="1m",
        ),
        Key(
            "queue.state",
            "`stopped` if nothing new is scheduled in the queue"
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
Limits bound the usage of users and groups in a queue and below it. [Scheduling](scheduling.md#limits)
describes which entry applies to which user, what is counted, and what a reload changes.""",
    cls=LimitConfig,
    keys=(
        Key("limit", "a description", field="limit", example="share of one user"),
        Key(
            "users",
            "users that the limit applies to, each on their own; `*` is every user without a limit of their"
            " own",
            LIMITED_USERS,
            field="users",
            example='[ann, "*"]',
        ),
        Key(
            "groups",
            "groups that the limit applies to, each as a whole; `*` is all others together",
            LIMITED_GROUPS,
            field="groups",
            example='[students, "*"]',
        ),
        Key(
            "maxresources",
            "maximum usage; at least one resource type must be above 0. `{}` sets no limit",
            QUANTITIES,
            field="max_resources",
            default="no limit",
            example="{memory: 50Gi}",
        ),
        Key(
            "maxapplications",
            "maximum number of running applications; 0 is no limit",
            COUNT,
            field="max_applications",
            example="10",
        ),
    ),
    notes="""\
Rules:

- A limit names users, groups or both, and limits resources, applications or both.
- A name has at most one limit in a queue. `*` comes last, and cannot be the only group.
- A limit is at most the `maxapplications` and the `max` of its queue, and at most the limit of a queue above
  for the same name (or for `*`, if that queue has no limit for the name). If a queue above limits the number
  of applications of a name, every limit for that name below needs `maxapplications` too.
""",
)

TEMPLATE = KeySection(
    name="template",
    title="Child templates",
    intro="""\
A child template holds the settings of a leaf queue that a placement rule creates ([dynamic
queues](scheduling.md#dynamic-queues)). A parent queue without a template uses the template of its own
parent.""",
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
            "all properties of the queue; it inherits none",
            section="properties",
            field="properties",
            example="{application.sort.policy: fair}",
        ),
    ),
)
