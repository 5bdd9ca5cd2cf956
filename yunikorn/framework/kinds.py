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
    id="app-sort",
    title="application sort policy",
    hook="yunikorn_app_sort_policies",
    base=api.AppSortPolicy,
    method="key",
    arguments=("app",),
    in_properties=True,
)
QUEUE_SORT = PluginKind(
    id="queue-sort",
    title="queue sort policy",
    hook="yunikorn_queue_sort_policies",
    base=api.QueueSortPolicy,
    method="key",
    arguments=("queue",),
    in_properties=True,
)
NODE_SORT = PluginKind(
    id="node-sort",
    title="node sort policy",
    hook="yunikorn_node_sort_policies",
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
    base=api.EventSink,
    method="send",
    arguments=("batch",),
    reserved=("name",),
)
RESOLVER = PluginKind(
    id="user-groups",
    title="user-group resolver",
    hook="yunikorn_user_group_resolvers",
    base=api.UserGroupResolver,
    method="groups",
    arguments=("user",),
    reserved=("type", "cache"),
)
PREEMPTION = PluginKind(
    id="preemption",
    title="preemption policy",
    hook="yunikorn_preemption_policies",
    base=api.PreemptionPolicy,
    method="rank",
    arguments=("victim", "cause"),
    reserved=("name",),
)
SUBMIT = PluginKind(
    id="submit",
    title="submit policy",
    hook="yunikorn_submit_policies",
    base=api.SubmitPolicy,
    method="submit",
    arguments=("app",),
    reserved=("name",),
)
ADMISSION = PluginKind(
    id="admission",
    title="admission policy",
    hook="yunikorn_admission_policies",
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
    base=api.QuotaPolicy,
    method="quota",
    arguments=("queue",),
    in_properties=True,
)
RESERVATION = PluginKind(
    id="reservation",
    title="reservation policy",
    hook="yunikorn_reservation_policies",
    base=api.ReservationPolicy,
    method="reserves_after",
    arguments=("ask", "delay"),
    reserved=("policy",),
)
PERMIT = PluginKind(
    id="permit",
    title="permit policy",
    hook="yunikorn_permit_policies",
    base=api.PermitPolicy,
    method="permit",
    refusing=("permit",),
    arguments=("allocation",),
    reserved=("name",),
)
TOPOLOGY = PluginKind(
    id="topology",
    title="topology source",
    hook="yunikorn_topology_sources",
    base=api.TopologySource,
    method="path",
    arguments=("node",),
    reserved=("name",),
)
GANG_PLACEMENT = PluginKind(
    id="gang-placement",
    title="gang placement policy",
    hook="yunikorn_gang_placement_policies",
    base=api.GangPlacementPolicy,
    method="rank",
    refusing=("refuses",),
    arguments=("gang", "domain"),
    reserved=("name",),
)
RUN_TIME = PluginKind(
    id="run-time",
    title="run-time estimator",
    hook="yunikorn_run_time_estimators",
    base=api.RunTimeEstimator,
    method="estimate",
    arguments=("task", "age"),
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
    id="command",
    title="command",
    hook="yunikorn_commands",
    base=api.Command,
    method="command",
    arguments=(),
    core_names="yunikorn_commands.default_commands.DEFAULT_COMMANDS",
    name_form=WORD,
)
DOOR = PluginKind(
    id="door",
    title="door",
    hook="yunikorn_doors",
    base=api.Door,
    method="start",
    arguments=("service",),
    in_properties=True,
    name_form=WORD,
    coroutines=("start", "stop", "reload"),
)
WORKLOAD_READER = PluginKind(
    id="workload-reader",
    title="workload reader",
    hook="yunikorn_workload_readers",
    base="yunikorn_kubernetes.workloads.workload_reader.WorkloadReader",
    method="gang",
    arguments=("owner", "pod"),
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
