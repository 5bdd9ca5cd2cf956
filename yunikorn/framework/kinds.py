"""Kinds of plugins, each with its name, its hook, its place in YAML, and the requirements on its classes."""

from __future__ import annotations

import re
from typing import Any

import attrs

from yunikorn import api
from yunikorn.framework.defaults import import_default


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


def _imported(place: str) -> Any:
    """Return what a dotted name stands for in a module of a default package."""
    module, _, name = place.rpartition(".")
    return getattr(import_default(module), name)


@attrs.frozen
class PluginKind:
    """Kind of plugin."""

    id: str
    """Name in commands and in `plugins.disable`."""
    title: str
    """Name of one plugin of this kind in messages."""
    hook: str
    _base: type[api.Plugin] | str
    """Base class; its dotted name for a kind of a default package, which is imported when it is needed."""
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
    _core_names: tuple[str, ...] | str = ()
    """Names with a meaning of their own; the dotted name of a collection of them, which is then imported."""
    ignore_case: bool = False
    """True if names are compared without regard to case; see `docs/decisions/archive/0005`."""
    name_form: NameForm = ANY_NAME
    coroutines: tuple[str, ...] = ()
    """Methods that are `async`; all others must not be."""

    @property
    def base(self) -> type[api.Plugin]:
        """Base class of the plugins of this kind."""
        found: type[api.Plugin] = _imported(self._base) if isinstance(self._base, str) else self._base
        return found

    @property
    def core_names(self) -> tuple[str, ...]:
        """Names with a meaning of their own in the configuration; no plugin may have one of them."""
        names = self._core_names
        return tuple(_imported(names)) if isinstance(names, str) else names

    def normal(self, name: str) -> str:
        """Return `name` in the form in which names of this kind are compared."""
        return name.lower() if self.ignore_case else name


APP_SORT = PluginKind(
    *("app-sort", "application sort policy", "yunikorn_app_sort_policies"),
    *(api.AppSortPolicy, "key", ("app",)),
    in_properties=True,
)
QUEUE_SORT = PluginKind(
    *("queue-sort", "queue sort policy", "yunikorn_queue_sort_policies"),
    *(api.QueueSortPolicy, "key", ("queue",)),
    in_properties=True,
)
NODE_SORT = PluginKind(
    *("node-sort", "node sort policy", "yunikorn_node_sort_policies", api.NodeSortPolicy, "score", ("node",)),
    reserved=("name", "type"),
    core_names=("weighted",),
)
PLACEMENT = PluginKind(
    *("placement", "placement rule", "yunikorn_placement_rules", api.PlacementRule, "place", ("app",)),
    reserved=("create", "filter", "name", "parent"),
    ignore_case=True,
    name_form=RULE_NAME,
)
PREDICATE = PluginKind(
    *("predicate", "predicate", "yunikorn_predicates", api.Predicate, "check", ("ask", "node")),
    refusing=("check", "check_reservation"),
    reserved=("name",),
)
EVENT_SINK = PluginKind(
    *("event-sink", "event sink", "yunikorn_event_sinks", api.EventSink, "send", ("batch",)),
    reserved=("name",),
)
RESOLVER = PluginKind(
    *("user-groups", "user-group resolver", "yunikorn_user_group_resolvers"),
    *(api.UserGroupResolver, "groups", ("user",)),
    reserved=("type", "cache"),
)
PREEMPTION = PluginKind(
    *("preemption", "preemption policy", "yunikorn_preemption_policies"),
    *(api.PreemptionPolicy, "rank", ("victim", "cause")),
    reserved=("name",),
)
SUBMIT = PluginKind(
    *("submit", "submit policy", "yunikorn_submit_policies", api.SubmitPolicy, "submit", ("app",)),
    reserved=("name",),
)
ADMISSION = PluginKind(
    *("admission", "admission policy", "yunikorn_admission_policies", api.AdmissionPolicy, "admit", ("app",)),
    refusing=("admit",),
    reserved=("name",),
)
QUOTA = PluginKind(
    *("quota", "quota policy", "yunikorn_quota_policies", api.QuotaPolicy, "quota", ("queue",)),
    in_properties=True,
)
RESERVATION = PluginKind(
    *("reservation", "reservation policy", "yunikorn_reservation_policies"),
    *(api.ReservationPolicy, "reserves_after", ("ask", "delay")),
    reserved=("policy",),
)
PERMIT = PluginKind(
    *("permit", "permit policy", "yunikorn_permit_policies", api.PermitPolicy, "permit", ("allocation",)),
    refusing=("permit",),
    reserved=("name",),
)
TOPOLOGY = PluginKind(
    *("topology", "topology source", "yunikorn_topology_sources", api.TopologySource, "path", ("node",)),
    reserved=("name",),
)
GANG_PLACEMENT = PluginKind(
    *("gang-placement", "gang placement policy", "yunikorn_gang_placement_policies"),
    *(api.GangPlacementPolicy, "rank", ("gang", "domain")),
    refusing=("refuses",),
    reserved=("name",),
)
RUN_TIME = PluginKind(
    *("run-time", "run-time estimator", "yunikorn_run_time_estimators"),
    *(api.RunTimeEstimator, "estimate", ("task", "age")),
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
    TOPOLOGY,
    GANG_PLACEMENT,
    RUN_TIME,
)
"""Kinds of policies, which configurations name."""
COMMAND = PluginKind(
    *("command", "command", "yunikorn_commands", api.Command, "command", ()),
    core_names="yunikorn_commands.default_commands.DEFAULT_COMMANDS",
    name_form=WORD,
)
DOOR = PluginKind(
    *("door", "door", "yunikorn_doors", api.Door, "start", ("service",)),
    in_properties=True,
    name_form=WORD,
    coroutines=("start", "stop", "reload"),
)
WORKLOAD_READER = PluginKind(
    *("workload-reader", "workload reader", "yunikorn_workload_readers"),
    *("yunikorn_kubernetes.workloads.workload_reader.WorkloadReader", "gang", ("owner", "pod")),
    core_names=("all", "none", "PodGroup"),
)
ALL_KINDS = (*KINDS, COMMAND, DOOR, WORKLOAD_READER)
"""Kinds of policies, and of what a package adds around the core. The last are kinds of default packages."""
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
