"""Keys of placement rules and of node orders."""

from __future__ import annotations

import attrs

from yunikorn.config.node_sorts import DEFAULT as DEFAULT_ORDER
from yunikorn.config.schema import PluginRef, RuleConfig
from yunikorn.kinds import NODE_SORT, PLACEMENT
from yunikorn.reference.keys import Key, KeySection
from yunikorn.reference.values import NAMES, TRUE_OR_FALSE, WEIGHTS, one_of

RULE = KeySection(
    name="rule",
    title="Placement rules",
    intro="How rules choose a queue is told in [Placement](placement.md).",
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
        Key("create", "whether the queue may be made", TRUE_OR_FALSE, field="create", example="true"),
        Key(
            "type",
            "whether those named are let through, or kept out",
            one_of("allow", "deny"),
            inside="filter",
            field="filter",
            default="`allow`",
            example="deny",
        ),
        Key(
            "users",
            "one entry: a name, or a regular expression if it is no legal name and has one of"
            " ``^ $ * + ? ( ) [ { } \\|``."
            " Several: names. Neither users nor groups: everybody",
            NAMES,
            inside="filter",
            field="filter",
            default="none",
            example='["^test-"]',
        ),
        Key(
            "groups",
            "likewise",
            NAMES,
            inside="filter",
            field="filter",
            default="none",
            example="[guests, bots]",
        ),
        Key(
            "parent",
            "the rule that chooses the queue above; also as a list of one",
            section="rule",
            field="parent",
            example="{name: tag, value: namespace}",
        ),
        Key(
            "value",
            "for `fixed` the queue, for `tag` the name of the tag; other rules ignore it unless they have"
            " such an option",
            field="value",
            example="root.default",
        ),
    ),
    notes="""\
Expressions are searched anywhere in a name, in RE2 syntax: no look-around, no back-references, repeats up to
1,000. `dev*` means `de` and any number of `v`.

The queues that `fixed` rules name are followed through the tree: they must exist unless the rule may create
them, the last one must be a leaf, and where other rules put queues below, a parent. A value that starts with
`root.` is complete and cannot have a `parent` rule.
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
        "how much the use of each type counts, 0 or more; if given, only these types count",
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
`nodesortpolicies` has entries of the same keys and a `name`. A queue chooses one by the property
`node.sort.policy`, an application by the tag `yunikorn.apache.org/node-sort-policy`.""",
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
        Key("name", "by which queues and applications choose it", required=True, example="packed"),
        *_ORDER,
    ),
)
