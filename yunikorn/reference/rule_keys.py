"""Keys of placement rules and of node orders."""

from __future__ import annotations

import attrs

from yunikorn.config.node_sorts import DEFAULT as DEFAULT_ORDER
from yunikorn.config.schema import PluginRef, RuleConfig
from yunikorn.framework.kinds import NODE_SORT, PLACEMENT
from yunikorn.reference.keys import Key, KeySection
from yunikorn.reference.values import NAMES, TRUE_OR_FALSE, WEIGHTS, one_of

RULE = KeySection(
    name="rule",
    title="Placement rules",
    intro="[Placement](placement.md) describes how rules choose a queue.",
    cls=RuleConfig,
    options_of=PLACEMENT,
    chosen_by="name",
    open_to="an option of the rule",
    keys=(
        Key(
            "name",
            "a [placement rule](plugins/placement-rules.md), in any case",
            plugins=PLACEMENT,
            field="name",
            required=True,
            example="user",
        ),
        Key("create", "true if the rule may create the queue", TRUE_OR_FALSE, field="create", example="true"),
        Key(
            "type",
            "allow: the rule applies only to the named users and groups; deny: to all others",
            one_of("allow", "deny"),
            inside="filter",
            field="filter",
            default="`allow`",
            example="deny",
        ),
        Key(
            "users",
            "one entry: a name, or a regular expression if it is not a valid name and has one of"
            " ``^ $ * + ? ( ) [ { } \\|``."
            " Several entries: names. No users and no groups: all users",
            NAMES,
            inside="filter",
            field="filter",
            default="none",
            example='["^test-"]',
        ),
        Key(
            "groups",
            "as `users`, for groups",
            NAMES,
            inside="filter",
            field="filter",
            default="none",
            example="[guests, bots]",
        ),
        Key(
            "parent",
            "the rule that chooses the parent queue; a list with one rule is accepted too",
            section="rule",
            field="parent",
            example="{name: tag, value: namespace}",
        ),
        Key(
            "value",
            "for `fixed` the queue, for `tag` the name of the tag; other rules ignore the value unless they"
            " have such an option",
            field="value",
            example="root.default",
        ),
    ),
    notes="""\
An expression matches anywhere in a name. Its syntax is RE2: no look-around, no back-references, repetitions
up to 1,000. `dev*` matches `de` followed by any number of `v`.

The queues of `fixed` rules are checked against the queue tree. They must exist unless the rule may create
them. The last queue must be a leaf, or a parent if other rules choose queues below it. A value that starts
with `root.` is a full path and cannot have a `parent` rule.
""",
    example="""\
partitions:
  - name: default
    placementrules:
      - name: user
        create: true
        filter:
          type: allow
          groups: [developers]
        parent:
          name: tag
          value: namespace
          create: true
      - name: fixed
        value: root.default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: default
""",
)

_ORDER = (
    Key(
        "type",
        "a [node sort policy](plugins/node-sort.md): `fair` spreads, `binpacking` fills",
        plugins=NODE_SORT,
        field="name",
        default=f"`{DEFAULT_ORDER}`",
        example="binpacking",
    ),
    Key(
        "resourceweights",
        "weight of the usage of each resource type, 0 or more; types that are not listed do not count",
        WEIGHTS,
        default="`{vcore: 1, memory: 1}`",
        field="options",
        example="{vcore: 4.0, memory: 1.0}",
    ),
)

NODE_ORDER = KeySection(
    name="node-sort",
    title="Node order",
    intro="""\
Entries of `nodesortpolicies` have the same keys and a `name`. A queue chooses an entry with the property
`node.sort.policy`, an application with the tag `yunikorn.apache.org/node-sort-policy`.""",
    cls=PluginRef,
    options_of=NODE_SORT,
    chosen_by="type",
    open_to="an option of the policy",
    keys=_ORDER,
    example="""\
partitions:
  - name: default
    nodesortpolicy:
      type: fair
      resourceweights: {vcore: 4.0, memory: 1.0}
    nodesortpolicies:
      - name: packed
        type: binpacking
    queues:
      - name: root
""",
)

NAMED_NODE_ORDER = attrs.evolve(
    NODE_ORDER,
    name="named-node-sort",
    keys=(
        Key(
            "name",
            "the name by which queues and applications choose the policy",
            required=True,
            example="packed",
        ),
        *_ORDER,
    ),
)
