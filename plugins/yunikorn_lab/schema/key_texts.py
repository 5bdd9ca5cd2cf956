"""Meaning, example and shown default of each key of queues.yaml, for the reference page and the JSON Schema.

The core declares what it reads: name, kind of value and default of a key (`yunikorn.config.keys`). The table
here has what people read about a key, in the order of the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from yunikorn.config.keys import ConfigKey, ConfigSection
from yunikorn_lab.schema.value_forms import form_of


@attrs.frozen
class KeyText:
    """Text of the reference page about a key."""

    meaning: str
    """Meaning in Markdown; links are relative to `docs/`."""
    example: str
    """Example of a value, in YAML."""
    default: str | None = None
    """Text of the default, if the attribute has no usable one."""


@attrs.frozen
class DescribedKey:
    """Key of the configuration with what the reference page says about it."""

    key: ConfigKey
    text: KeyText

    @property
    def required(self) -> bool:
        """True if the key has no default."""
        return self.key.initial is attrs.NOTHING and self.text.default is None

    @property
    def default(self) -> str:
        """Default in configuration notation."""
        initial = self.key.initial
        if self.text.default is not None:
            return self.text.default
        if self.required:
            return "required"
        if not initial and not isinstance(initial, (int, bool)):
            return "none"
        return f"`{form_of(self.key.value).spell(initial)}`"


def described(section: ConfigSection) -> Iterator[DescribedKey]:
    """Yield the keys of a section in the order of the page. Raises KeyError for a key without a text."""
    keys = {key.path: key for key in section.keys}
    texts = KEY_TEXTS[section.name]
    if without := keys.keys() - texts.keys():
        raise KeyError(f"section {section.name}: no text for {', '.join(sorted(without))}")
    for path, text in texts.items():
        yield DescribedKey(keys[path], text)


_NODE_ORDER: Mapping[str, KeyText] = {
    "type": KeyText(
        "a [node sort policy](plugins/node-sort.md): `fair` spreads, `binpacking` fills, "
        "`weighted` combines several",
        "binpacking",
    ),
    "resourceweights": KeyText(
        "weight of the usage of each resource type, 0 or more; types that are not listed do not count",
        "{vcore: 4.0, memory: 1.0}",
        default="`{vcore: 1, memory: 1}`",
    ),
    "scores": KeyText(
        "for `weighted`: the [policies to "
        "combine](plugins/node-sort.md#several-policies-with-weights), each with its "
        "weight and its options",
        "[{name: binpacking, weight: 3}, {name: fair, resourceweights: {gpu: 1}}]",
    ),
}
KEY_TEXTS: Mapping[str, Mapping[str, KeyText]] = {
    "top": {
        "partitions": KeyText("the [partitions](#partitions)", "[{name: default, queues: [{name: root}]}]"),
        "checksum": KeyText("ignored, and not part of the checksum of the file", "9F86D081884C7D65"),
        "events.sinks": KeyText(
            "the [event sinks](plugins/event-sinks.md), each a name or `{name: NAME, OPTION: VALUE}`",
            "[log, {name: jsonl, path: events.jsonl}]",
        ),
        "history": KeyText(
            "the [history](history.md#switch-it-on) of a service, which is the same for all files and needs a"
            " restart after a change",
            "{path: /var/lib/yunikorn/history.db, keep: 90d}",
        ),
        "plugins.disable": KeyText(
            "plugins to switch off: a plugin module (`yunikorn_plugins.events`), a name "
            "(`fair`, of every kind), or a name of one kind (`app-sort:fair`)",
            '["app-sort:stateaware"]',
        ),
        "plugins.override": KeyText(
            "offers to use for a name that several distributions offer, also instead of a "
            "default: `NAME@DISTRIBUTION` or `KIND:NAME@DISTRIBUTION` "
            "([more](plugins.md#names-that-several-plugins-offer))",
            '["node-sort:fair@my-plugins"]',
        ),
        "plugins.load": KeyText(
            "plugins to load from files, relative to this one, and from modules "
            "([more](plugins.md#plugins-from-a-file))",
            "[./mine.py]",
        ),
        "priorityclasses": KeyText(
            "priorities of the names that asks give as `priorityClassName`; whole numbers of 32 bits",
            "{urgent: 1000, batch: -10}",
        ),
        "samehierarchy": KeyText(
            "true if a queue name must have the same path in all partitions that have it; "
            "otherwise different paths are only a warning",
            "true",
        ),
    },
    "partition": {
        "name": KeyText(
            "unique, ignoring case; any case of `default` is `default`", "default", default="`default`"
        ),
        "queues": KeyText(
            "the [queues](#queues). A single queue named `root` is the root queue; otherwise "
            "a root queue is added above them. `[]` is a root queue without child queues",
            "[{name: root, submitacl: '*'}]",
        ),
        "placementrules": KeyText(
            "the [placement rules](#placement-rules), in order",
            "[{name: user, create: true}]",
            default="`provided`",
        ),
        "limits": KeyText(
            "[limits](#limits) of the root queue; if the root queue has limits too, both "
            "must be written alike",
            "[{users: ['*'], maxapplications: 5}]",
            default="none",
        ),
        "preemption.enabled": KeyText("true if asks may [preempt](scheduling.md#preemption)", "false"),
        "preemption.quotapreemptionenabled": KeyText(
            "true if usage above a lowered quota is preempted", "true"
        ),
        "preemption.shrunknodes": KeyText(
            "true if allocations are preempted on a node whose capacity dropped below its usage", "true"
        ),
        "preemption.policy": KeyText(
            "the [preemption policy](plugins/preemption.md), which chooses the victims: a "
            "name or `{name: NAME, OPTION: VALUE}`",
            "standard",
        ),
        "reservations": KeyText(
            "`policy`: the [reservation policy](plugins/reservation-policies.md), which "
            "decides who reserves a node, how many do, and for how long; other keys are its "
            "options",
            "{policy: standard, total: 20, perqueue: 4}",
            default="`{policy: standard}`",
        ),
        "nodesortpolicy": KeyText(
            "the [order of nodes](#node-order)", "{type: binpacking}", default="`{type: fair}`"
        ),
        "nodesortpolicies": KeyText(
            "named node orders that queues and applications can choose instead",
            "[{name: packed, type: binpacking}]",
        ),
        "usergroupresolver": KeyText(
            "`type`: how the groups of a user are found "
            "([resolvers](plugins/user-groups.md)), or `none`; `cache`: [how "
            "long](#group-cache) they are remembered; other keys are the resolver's options. "
            "By default a user is in the group of the same name",
            "{type: os}",
        ),
        "predicates": KeyText(
            "[predicates](plugins/predicates.md) that a node must pass, each a name or "
            "`{name: NAME, OPTION: VALUE}`",
            "[node-selector, {name: taints, attribute: stains}]",
        ),
        "submitpolicies": KeyText(
            "[submit policies](plugins/submit-policies.md) that check and change "
            "applications before their placement, in order, each a name or `{name: NAME, "
            "OPTION: VALUE}`",
            "[{name: default-tags, tags: {team: none}}]",
        ),
        "admission": KeyText(
            "[admission policies](plugins/admission-policies.md) that decide when an "
            "application may be scheduled, in order, each a name or `{name: NAME, OPTION: "
            "VALUE}`",
            '[{name: admission-window, start: "22:00", end: "06:00"}]',
        ),
        "permits": KeyText(
            "[permit policies](plugins/permit-policies.md) that may hold a placement before "
            "the resource manager is informed of it, in order, each a name or `{name: NAME, "
            "OPTION: VALUE}`",
            "[together]",
        ),
        "topology": KeyText(
            "levels of the [topology](topology.md), the outermost first, each an attribute "
            "of the nodes; or a [source](plugins/gang-placement.md#topology-sources) `{name: "
            "NAME, OPTION: VALUE}` for each tree",
            "[block, rack]",
        ),
        "gangplacement": KeyText(
            "the [policy](plugins/gang-placement.md) that chooses the domain of a gang: a name or a mapping",
            "balanced",
        ),
        "estimators": KeyText(
            "[run-time estimators](plugins/run-time-estimators.md); in each queue the one counts that was "
            "best there so far. Each is a name or `{name: NAME, OPTION: VALUE}`",
            "[request, learned]",
        ),
        "periods": KeyText("[timeouts](#timeouts) of the scheduler in this partition", "{completing: 5s}"),
    },
    "periods": {
        "starting": KeyText("time after which an application in Starting is Running", "1m"),
        "completing": KeyText("time after which an application in Completing is Completed", "5s"),
        "retention": KeyText("time for which an ended application is retained", "24h"),
        "reservation": KeyText(
            "the age from which a request that fits no node "
            "[reserves](scheduling.md#reservations) one; `never` switches reservations off",
            "30s",
        ),
        "gangpatience": KeyText(
            "time for which a complete [Atomic](scheduling.md#atomic) gang waits for "
            "capacity before later requests are blocked",
            "1h",
        ),
        "cleanup": KeyText("time after which an empty queue that is dynamic or draining is removed", "1m"),
        "policyanswer": KeyText(
            "time for a [worker's call](serve.md#slow-policies) of a resolver, a placement "
            "rule or a policy, in a service",
            "30s",
        ),
    },
    "queue": {
        "name": KeyText("one level of the path; unique among its siblings, ignoring case", "batch"),
        "parent": KeyText(
            "true if the queue is a parent even without child queues. A queue with child "
            "queues is always a parent",
            "true",
        ),
        "queues": KeyText("the child queues", "[{name: day}, {name: night}]"),
        "resources.guaranteed": KeyText(
            "resources that the queue is entitled to before other queues get more than their guarantee",
            "{memory: 100Gi, vcore: 40}",
        ),
        "resources.max": KeyText(
            "the most that the queue may use; a resource type that is not listed is not limited",
            "{memory: 400Gi, vcore: 160}",
        ),
        "maxapplications": KeyText(
            "maximum number of [running](scheduling.md#limits) applications in the queue and "
            "below; further applications wait. 0 is no limit",
            "10",
        ),
        "properties": KeyText("[properties](#properties)", "{application.sort.policy: fair}"),
        "adminacl": KeyText(
            "users and groups that may administer the queue and submit to it",
            '" operators"',
            default="no user",
        ),
        "submitacl": KeyText("users and groups that may submit applications", '"*"', default="no user"),
        "childtemplate": KeyText(
            "the [child template](#child-templates) of a parent queue", "{maxapplications: 5}"
        ),
        "limits": KeyText("[limits](#limits)", "[{users: [ann], maxapplications: 2}]"),
    },
    "properties": {
        "application.sort.policy": KeyText(
            "the order of the applications of a leaf queue: the name of an [application sort "
            "policy](plugins/application-sort.md)",
            "fair",
        ),
        "application.sort.policy.OPTION": KeyText(
            "an option of that policy; lists are `A, B`, mappings `NAME=VALUE, NAME=VALUE`",
            "vcore",
            default="the policy's",
        ),
        "application.sort.priority": KeyText(
            "enabled if applications and queues are sorted by priority first; disabled if "
            "priorities are ignored",
            "disabled",
        ),
        "queue.sort.policy": KeyText(
            "the order of the child queues of a parent: the name of a [queue sort "
            "policy](plugins/queue-sort.md)",
            "fair",
        ),
        "queue.sort.policy.OPTION": KeyText(
            "an option of that policy; lists are `A, B`, mappings `NAME=VALUE, NAME=VALUE`",
            "memory",
            default="the policy's",
        ),
        "node.sort.policy": KeyText(
            "the order of nodes for applications of this queue: a name in `nodesortpolicies`",
            "packed",
            default="the partition's own",
        ),
        "priority.policy": KeyText(
            "`fence` hides the priorities inside the queue: its parent sees only the offset", "fence"
        ),
        "priority.offset": KeyText(
            "added to the [priority](scheduling.md#priorities) that the parent sees", '"-5"'
        ),
        "preemption.policy": KeyText(
            "`fence`: asks inside the queue cannot preempt outside it; `disabled`: "
            "allocations inside the queue cannot be preempted",
            "fence",
        ),
        "preemption.delay": KeyText("waiting time of an ask before it may preempt", "1m"),
        "preemption.by.priority": KeyText(
            "enabled if asks inside may preempt allocations of lower priority in other "
            "queues even without an unused guarantee",
            "enabled",
        ),
        "preemption.within.queue": KeyText(
            "enabled if asks inside may preempt allocations of lower priority in their own queue", "enabled"
        ),
        "quota.preemption.delay": KeyText(
            "time between lowering a max and preempting the usage above it; 0 is never", "10m"
        ),
        "quota.policy": KeyText(
            "the max in force of this queue, not of the queues below: the name of a [quota "
            "policy](plugins/quota-policies.md)",
            "borrowing",
            default="the configured max",
        ),
        "quota.policy.OPTION": KeyText(
            "an option of that policy; lists are `A, B`, mappings `NAME=VALUE, NAME=VALUE`",
            "50%",
            default="the policy's",
        ),
        "application.unschedasks.backoff": KeyText(
            "number of consecutive attempts without a node after which an application enters "
            "[back-off](scheduling.md#back-off); 0 is never",
            '"3"',
        ),
        "application.unschedasks.backoff.delay": KeyText("duration of the back-off", "1m"),
        "queue.state": KeyText(
            "`stopped` if nothing new is scheduled in the queue ([stopping and "
            "starting](scheduling.md#stopping-and-starting))",
            "stopped",
        ),
    },
    "limit": {
        "limit": KeyText("a description", "share of one user"),
        "users": KeyText(
            "users that the limit applies to, each on their own; `*` is every user without a "
            "limit of their own",
            '[ann, "*"]',
        ),
        "groups": KeyText(
            "groups that the limit applies to, each as a whole; `*` is all others together", '[students, "*"]'
        ),
        "maxresources": KeyText(
            "maximum usage; at least one resource type must be above 0. `{}` sets no limit",
            "{memory: 50Gi}",
            default="no limit",
        ),
        "maxapplications": KeyText("maximum number of running applications; 0 is no limit", "10"),
    },
    "template": {
        "maxapplications": KeyText("as for queues", "5"),
        "resources.guaranteed": KeyText("as for queues; not compared with the queues above", "{vcore: 2}"),
        "resources.max": KeyText("as for queues; not compared with the queues above", "{vcore: 8}"),
        "properties": KeyText(
            "all properties of the queue; it inherits none", "{application.sort.policy: fair}"
        ),
    },
    "rule": {
        "name": KeyText("a [placement rule](plugins/placement-rules.md), in any case", "user"),
        "create": KeyText("true if the rule may create the queue", "true"),
        "filter.type": KeyText(
            "allow: the rule applies only to the named users and groups; deny: to all others", "deny"
        ),
        "filter.users": KeyText(
            "one entry: a name, or a regular expression if it is not a valid name and has "
            "one of ``^ $ * + ? ( ) [ { } \\|``. Several entries: names. No users and no "
            "groups: all users",
            '["^test-"]',
        ),
        "filter.groups": KeyText("as `users`, for groups", "[guests, bots]"),
        "parent": KeyText(
            "the rule that chooses the parent queue; a list with one rule is accepted too",
            "{name: tag, value: namespace}",
        ),
        "value": KeyText(
            "for `fixed` the queue, for `tag` the name of the tag; other rules ignore the "
            "value unless they have such an option",
            "root.default",
        ),
        "required": KeyText(
            "false to go on without the rule where its plugin cannot be used "
            "([more](plugins.md#plugins-that-cannot-be-used))",
            "false",
        ),
    },
    "node-sort": _NODE_ORDER,
    "named-node-sort": {
        "name": KeyText("the name by which queues and applications choose the policy", "packed"),
        **_NODE_ORDER,
    },
    "score": {
        "name": KeyText("a [node sort policy](plugins/node-sort.md), other than `weighted`", "binpacking"),
        "weight": KeyText("weight of the policy relative to the others, above 0", "3"),
        "range": KeyText(
            "lowest and highest score of the policy, which count as 0 and 1; scores outside "
            "count as the nearer end",
            "[0, 50]",
            default="the policy's own",
        ),
    },
    "resolver-cache": {
        "found": KeyText(
            "time for which the groups of a user are used without asking again; `0s` is not at all", "1h"
        ),
        "failed": KeyText(
            "time for which a failure, or that there is no such user, is remembered; `0s` is not at all", "5s"
        ),
    },
}
"""Texts of keys by section and path, in the order of the page."""
OTHER_KEYS = {
    "properties": "other properties, which the scheduler ignores",
    "rule": "an option of the rule",
    "node-sort": "an option of the policy",
    "named-node-sort": "an option of the policy",
    "score": "an option of the policy",
}
"""Meaning of all other keys, by section; other sections have none."""
