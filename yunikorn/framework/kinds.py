"""Kinds of plugins, each with its name, its hook, its place in YAML, and the requirements on its classes."""

from __future__ import annotations

import re

import attrs

from yunikorn import api
from yunikorn.framework.default_commands import DEFAULT_COMMANDS


@attrs.frozen
class NameForm:
    """Syntax of a plugin's name."""

    pattern: re.Pattern[str]
    text: str
    """Description of the syntax in messages."""


ANY_NAME = NameForm(re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\Z"), "letters, digits, '-', '_' and '.'")
RULE_NAME = NameForm(re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z"), "a letter, then letters, digits and '_'")
"""Syntax of rule names, from YuniKorn's documentation of placement rules."""
WORD = NameForm(re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*\Z"), "lower-case letters, digits and single '-'")
"""Syntax of words of the command line."""


@attrs.frozen
class PluginKind:
    """Kind of plugin."""

    id: str
    """Name in commands and in `plugins.disable`."""
    title: str
    """Name of one plugin of this kind in messages."""
    hook: str
    offers: str
    """Purpose of the classes that the hook returns."""
    named_by: str
    """Place in `queues.yaml` that names a plugin and sets its options."""
    calls: str
    """Calls of the core, and further methods that a class may have."""
    base: type[api.Plugin]
    method: str
    """Method that a class of this kind must have."""
    arguments: tuple[str, ...]
    """Arguments that the core passes to `method`."""
    reserved: tuple[str, ...] = ()
    """Configuration keys that the core reads itself; a plugin option must not have the same name."""
    in_properties: bool = False
    """True if options are queue properties, which are texts."""
    refusing: tuple[str, ...] = ()
    """Methods that refuse by any answer but None, for statistics."""
    core_names: tuple[str, ...] = ()
    """Names with a meaning of their own in the configuration; no plugin may have one of them."""
    ignore_case: bool = False
    """True if names are compared without regard to case; see `docs/decisions/archive/0005`."""
    name_form: NameForm = ANY_NAME
    coroutines: tuple[str, ...] = ()
    """Methods that are `async`; all others must not be."""

    def normal(self, name: str) -> str:
        """Return `name` in the form in which names of this kind are compared."""
        return name.lower() if self.ignore_case else name


APP_SORT = PluginKind(
    id="app-sort",
    title="application sort policy",
    hook="yunikorn_app_sort_policies",
    offers="policies that order the applications of a leaf queue",
    named_by=(
        "the queue property `application.sort.policy: NAME`; options are further properties, "
        "`application.sort.policy.OPTION: VALUE`."
    ),
    calls=(
        "`key(app)`; the smallest key is first. A policy that limits how many applications are scheduled "
        "at a time also has `admission_class(app)` and `admission_limits(counts)`, and one that orders the "
        "requests of an application `ask_key(ask)`."
    ),
    base=api.AppSortPolicy,
    method="key",
    arguments=("app",),
    in_properties=True,
)
QUEUE_SORT = PluginKind(
    id="queue-sort",
    title="queue sort policy",
    hook="yunikorn_queue_sort_policies",
    offers="policies that order the children of a parent queue",
    named_by=(
        "the property `queue.sort.policy: NAME` of a parent queue; options are `queue.sort.policy.OPTION: "
        "VALUE`. The default is `fair`."
    ),
    calls="`key(queue)`; the smallest key is first.",
    base=api.QueueSortPolicy,
    method="key",
    arguments=("queue",),
    in_properties=True,
)
NODE_SORT = PluginKind(
    id="node-sort",
    title="node sort policy",
    hook="yunikorn_node_sort_policies",
    offers="policies that order the nodes on which a request is tried",
    named_by=(
        "a partition's `nodesortpolicy: {type: NAME, OPTION: VALUE}`, and by the named alternatives in "
        "`nodesortpolicies`. The type `weighted` combines several policies."
    ),
    calls=(
        "`score(node)`, or `score(node, ask_class)` for a policy that depends on the request; the lowest "
        "score is first."
    ),
    base=api.NodeSortPolicy,
    method="score",
    arguments=("node",),
    reserved=("name", "type"),
    core_names=("weighted",),
)
PLACEMENT = PluginKind(
    id="placement",
    title="placement rule",
    hook="yunikorn_placement_rules",
    offers="rules that choose the queue of an application",
    named_by=(
        "a partition's `placementrules: [{name: NAME, create: BOOL, filter: ..., parent: ..., OPTION: "
        "VALUE}]`. Rule names ignore case."
    ),
    calls=(
        "`place(app)`, or `place(app, queues)` for a rule that depends on the queues. The core itself "
        "evaluates the chain of rules, filters, parent rules, the creation of queues, ACLs, and the "
        "completion of relative names."
    ),
    base=api.PlacementRule,
    method="place",
    arguments=("app",),
    reserved=("create", "filter", "name", "parent"),
    ignore_case=True,
    name_form=RULE_NAME,
)
PREDICATE = PluginKind(
    id="predicate",
    title="predicate",
    hook="yunikorn_predicates",
    offers="conditions that a node must meet for a request, in addition to free resources",
    named_by="a partition's `predicates: [NAME]` or `[{name: NAME, OPTION: VALUE}]`.",
    calls="`check(ask, node)`, and only for nodes with enough free resources.",
    base=api.Predicate,
    method="check",
    refusing=("check", "check_reservation"),
    arguments=("ask", "node"),
    reserved=("name",),
)
EVENT_SINK = PluginKind(
    id="event-sink",
    title="event sink",
    hook="yunikorn_event_sinks",
    offers="receivers of the scheduler's events",
    named_by="the top-level `events: {sinks: [NAME]}` or `[{name: NAME, OPTION: VALUE}]`.",
    calls="`send(batch)` after each update and each scheduling cycle that produced events.",
    base=api.EventSink,
    method="send",
    arguments=("batch",),
    reserved=("name",),
)
RESOLVER = PluginKind(
    id="user-groups",
    title="user-group resolver",
    hook="yunikorn_user_group_resolvers",
    offers="resolvers that find the groups of a user whose application was submitted without groups",
    named_by="a partition's `usergroupresolver: {type: NAME, OPTION: VALUE}`.",
    calls="`groups(user)` and caches the answer for a limited time.",
    base=api.UserGroupResolver,
    method="groups",
    arguments=("user",),
    reserved=("type", "cache"),
)
PREEMPTION = PluginKind(
    id="preemption",
    title="preemption policy",
    hook="yunikorn_preemption_policies",
    offers="policies that choose the victims of preemption",
    named_by=(
        "a partition's `preemption: {policy: NAME}` or `{policy: {name: NAME, OPTION: VALUE}}`. The "
        "default is `standard`."
    ),
    calls=(
        "`rank(victim, cause)`; the smallest rank is preempted first. A policy that protects allocations "
        "also has `protects(victim, cause)`, and one that chooses the node has `cost(victim, cause)`."
    ),
    base=api.PreemptionPolicy,
    method="rank",
    arguments=("victim", "cause"),
    reserved=("name",),
)
SUBMIT = PluginKind(
    id="submit",
    title="submit policy",
    hook="yunikorn_submit_policies",
    offers="policies that check and change applications before they are placed in a queue",
    named_by="a partition's `submitpolicies: [NAME]` or `[{name: NAME, OPTION: VALUE}]`.",
    calls="`submit(app)` once for each application, after its groups are known.",
    base=api.SubmitPolicy,
    method="submit",
    arguments=("app",),
    reserved=("name",),
)
ADMISSION = PluginKind(
    id="admission",
    title="admission policy",
    hook="yunikorn_admission_policies",
    offers="policies that decide when an application may be scheduled",
    named_by="a partition's `admission: [NAME]` or `[{name: NAME, OPTION: VALUE}]`.",
    calls="`admit(app)` when the application has a queue, and again while the policy holds it.",
    base=api.AdmissionPolicy,
    method="admit",
    refusing=("admit",),
    arguments=("app",),
    reserved=("name",),
)
QUOTA = PluginKind(
    id="quota",
    title="quota policy",
    hook="yunikorn_quota_policies",
    offers="policies that set the max of a queue",
    named_by=(
        "the property `quota.policy: NAME` of a queue, with options as further properties, "
        "`quota.policy.OPTION: VALUE`. Queues below do not inherit them."
    ),
    calls="`quota(queue)` when the queue gets the policy, and when what the policy depends on has changed.",
    base=api.QuotaPolicy,
    method="quota",
    arguments=("queue",),
    in_properties=True,
)
RESERVATION = PluginKind(
    id="reservation",
    title="reservation policy",
    hook="yunikorn_reservation_policies",
    offers="policies that decide who reserves a node, how many do, and for how long",
    named_by="a partition's `reservations: {policy: NAME, OPTION: VALUE}`. The default is `standard`.",
    calls=(
        "`reserves_after(ask, delay)` for a request that no node has room for. A policy that bounds the "
        "number of reservations also has `most_in(queue)` or `most_of(app)`, one that bounds their "
        "duration `lasts(ask)`, and one that chooses the node `rank_node(ask, node)`."
    ),
    base=api.ReservationPolicy,
    method="reserves_after",
    arguments=("ask", "delay"),
    reserved=("policy",),
)
PERMIT = PluginKind(
    id="permit",
    title="permit policy",
    hook="yunikorn_permit_policies",
    offers="policies that may hold a placement before the resource manager is informed of it",
    named_by="a partition's `permits: [NAME]` or `[{name: NAME, OPTION: VALUE}]`.",
    calls="`permit(allocation)` when a task is placed, and again while the policy holds the placement.",
    base=api.PermitPolicy,
    method="permit",
    refusing=("permit",),
    arguments=("allocation",),
    reserved=("name",),
)
KINDS = (
    APP_SORT,
    QUEUE_SORT,
    NODE_SORT,
    PLACEMENT,
    PREDICATE,
    EVENT_SINK,
    RESOLVER,
    PREEMPTION,
    SUBMIT,
    ADMISSION,
    QUOTA,
    RESERVATION,
    PERMIT,
)
"""Kinds of policies, which configurations name."""
COMMAND = PluginKind(
    id="command",
    title="command",
    hook="yunikorn_commands",
    offers="sub-commands of the command line",
    named_by="no configuration: the command line calls it, as `yunikorn NAME`.",
    calls="`command()` when the command is called.",
    base=api.Command,
    method="command",
    arguments=(),
    core_names=tuple(DEFAULT_COMMANDS),
    name_form=WORD,
)
DOOR = PluginKind(
    id="door",
    title="door",
    hook="yunikorn_doors",
    offers="parts of a service through which people and programs reach its core",
    named_by=(
        "no configuration: `yunikorn serve --NAME` and `yunikorn kubernetes --NAME` open the door, and "
        "`--NAME-OPTION VALUE` sets an option."
    ),
    calls=(
        "`start(service)` when the service starts and `stop()` when it ends. A door may also have "
        "`reload()`, for SIGHUP, and `unready()`, for readiness probes."
    ),
    base=api.Door,
    method="start",
    arguments=("service",),
    in_properties=True,
    name_form=WORD,
    coroutines=("start", "stop", "reload"),
)
ALL_KINDS = (*KINDS, COMMAND, DOOR)
"""Kinds of policies, and of what a package adds around the core."""
ASKED_AGAIN = (
    APP_SORT,
    QUEUE_SORT,
    NODE_SORT,
    PREDICATE,
    PREEMPTION,
    ADMISSION,
    QUOTA,
    RESERVATION,
    PERMIT,
)
"""Kinds whose answers the core asks for again. Others are asked once about each application or event."""
