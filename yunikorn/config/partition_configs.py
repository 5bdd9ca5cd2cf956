"""Reader of partitions, with their group resolvers."""

from __future__ import annotations

from itertools import islice

import attrs

from yunikorn.config.document import Scalar
from yunikorn.config.keys import Draft
from yunikorn.config.node_order_reader import read_node_sort, read_node_sorts
from yunikorn.config.plugin_refs import (
    REQUIRED,
    PluginCheck,
    QueuePolicyCheck,
    read_plugin_list,
    read_plugin_ref,
)
from yunikorn.config.queue_configs import QueueDraft, read_queues
from yunikorn.config.queues_yaml import (
    DEFAULT_RESERVATIONS,
    PARTITION,
    PERIODS,
    PREEMPTION,
    RESOLVER_CACHE,
    PartitionConfig,
    PluginRef,
    PreemptionConfig,
    ResolverCache,
    ResolverRef,
)
from yunikorn.config.quota_checks import check_applications, check_limits, check_resources
from yunikorn.config.rule_configs import RuleDraft, check_paths, read_rules
from yunikorn.config.yaml_reading import Findings, YamlTable
from yunikorn.framework import kinds
from yunikorn.framework.kinds import ADMISSION, GANG_PLACEMENT, PERMIT, PREDICATE, RESOLVER, SUBMIT, TOPOLOGY

DEFAULT_NAME = "default"
NO_RESOLVER = ("", "none")
LEVELS_SOURCE = "attributes"
"""Topology source of a partition that lists levels only."""
_NAMED = 3
"""Maximum number of other paths in a message; the remaining paths are only counted."""


class PartitionDraft(Draft[PartitionConfig]):
    """Partition as read."""

    section = PARTITION
    name: str
    root: QueueDraft
    placement_rules: list[RuleDraft]
    preemption: PreemptionConfig
    reservations: PluginRef
    node_sort: PluginRef
    node_sorts: dict[str, PluginRef]
    user_group_resolver: ResolverRef | None
    predicates: tuple[PluginRef, ...]
    submit_policies: tuple[PluginRef, ...]
    admission: tuple[PluginRef, ...]
    permits: tuple[PluginRef, ...]
    topology: tuple[PluginRef, ...]
    gang_placement: PluginRef
    estimators: tuple[PluginRef, ...]
    periods: dict[str, int | None]


def read_partition(table: YamlTable, plugins: PluginCheck) -> PartitionDraft:
    """Read and check a partition."""
    findings = plugins.findings
    draft = PartitionDraft(table)
    name = table.text("name")
    draft.name = DEFAULT_NAME if name.lower() in ("", DEFAULT_NAME) else name
    draft.root = read_queues(table)
    draft.placement_rules = read_rules(table, plugins)
    draft.preemption = _read_preemption(table, plugins)
    draft.reservations = _read_reservations(table, plugins)
    draft.node_sort = read_node_sort(table, plugins)
    draft.node_sorts = read_node_sorts(table, plugins)
    draft.user_group_resolver = _read_resolver(table, plugins)
    draft.predicates = read_plugin_list(table, "predicates", PREDICATE, plugins)
    draft.submit_policies = read_plugin_list(table, "submitpolicies", SUBMIT, plugins)
    draft.admission = read_plugin_list(table, "admission", ADMISSION, plugins)
    draft.permits = read_plugin_list(table, "permits", PERMIT, plugins)
    draft.topology = _read_topology(table, plugins)
    default = PARTITION.defaults["gang_placement"]
    draft.gang_placement = read_plugin_ref(table, "gangplacement", GANG_PLACEMENT, default, plugins)
    draft.estimators = read_plugin_list(table, "estimators", kinds.RUN_TIME, plugins)
    if (periods := table.table("periods")) is not None:
        PERIODS.check_keys(periods)
        draft.periods = PERIODS.given(periods, {})
    check_resources(draft.root, findings)
    check_applications(draft.root, findings)
    check_limits(draft.root, findings)
    check_paths(draft.placement_rules, draft.root, findings)
    QueuePolicyCheck(plugins, draft.node_sorts).check(draft.root)
    return draft


def _read_preemption(partition: YamlTable, plugins: PluginCheck) -> PreemptionConfig:
    default = PreemptionConfig()
    table = partition.table("preemption")
    if table is None:
        plugins.check(kinds.PREEMPTION, default.policy, partition.here(), partition.here())
        return default
    given = PREEMPTION.read(table)
    given["policy"] = read_plugin_ref(table, "policy", kinds.PREEMPTION, default.policy, plugins)
    return PreemptionConfig(**given)


def _read_reservations(partition: YamlTable, plugins: PluginCheck) -> PluginRef:
    default = PluginRef(DEFAULT_RESERVATIONS)
    table = partition.table("reservations")
    if table is None:
        plugins.check(kinds.RESERVATION, default, partition.here(), partition.here())
        return default
    name = table.text("policy") or default.name
    options = plugins.known_options(kinds.RESERVATION, name, table, ("policy", REQUIRED))
    ref = PluginRef(name, options, required=table.boolean(REQUIRED, True))
    plugins.check(kinds.RESERVATION, ref, table.spot("policy"), table.here())
    return ref


def _read_topology(partition: YamlTable, plugins: PluginCheck) -> tuple[PluginRef, ...]:
    """Read the topology: a list of levels, which is one tree by attributes, or a list of sources."""
    spots = partition.items("topology") or ()
    levels = [spot.node.text for spot in spots if isinstance(spot.node, Scalar)]
    if not levels or len(levels) < len(spots):
        return read_plugin_list(partition, "topology", TOPOLOGY, plugins)
    ref = PluginRef(LEVELS_SOURCE, {"levels": levels})
    at = partition.spot("topology")
    plugins.check(TOPOLOGY, ref, at, at)
    return (ref,)


def _read_resolver(partition: YamlTable, plugins: PluginCheck) -> ResolverRef | None:
    table = partition.table("usergroupresolver")
    if table is None:
        return None
    name = table.text("type")
    if name in NO_RESOLVER:
        table.only(("type",))
        return None
    cache = ResolverCache()
    if (times := table.table("cache")) is not None:
        cache = ResolverCache(**RESOLVER_CACHE.read(times))
        plugins.findings.note(
            table.key_spot("cache"), "YuniKorn 1.9 does not have this key and refuses the file"
        )
    options = plugins.known_options(RESOLVER, name, table, ("type", "cache", REQUIRED))
    ref = ResolverRef(name, options, cache, required=table.boolean(REQUIRED, True))
    plugins.check(RESOLVER, ref, table.spot("type"), table.here())
    return ref


# -- one hierarchy in all partitions, see docs/decisions/archive/0008 ------------------------------------


@attrs.define(eq=False)
class _Places:
    """Partitions visited so far that have queues of one name, by number."""

    partitions: set[int] = attrs.field(factory=set)
    at: dict[str, set[int]] = attrs.field(factory=dict)
    """Partitions with a queue at a path."""

    def lacking(self, path: str, number: int) -> bool:
        """Return True if a partition other than `number` has the name, but not at `path`."""
        # Only counted, because there may be many partitions: those with the path all have the name.
        at_path = self.at.get(path, set())
        others = len(self.partitions) - (number in self.partitions)
        return others > len(at_path) - (number in at_path)

    def elsewhere(self, path: str) -> str:
        """Return the other paths as text for a message; empty if there are none."""
        others = len(self.at) - (path in self.at)
        some = sorted(islice((other for other in self.at if other != path), _NAMED))
        rest = f" and {others - len(some)} more" if others > len(some) else ""
        return f"{', '.join(some)}{rest}"

    def add(self, path: str, number: int) -> None:
        """Record a queue at `path` in partition `number`."""
        self.partitions.add(number)
        self.at.setdefault(path, set()).add(number)


def check_hierarchy(roots: list[QueueDraft], enforced: bool, findings: Findings) -> None:
    """Check that each queue name has a single path, within each partition and across partitions.

    A queue may be missing in a partition. If the check is not `enforced`, the only finding is a warning
    about a queue name that another partition has at other paths only.
    """
    if len(roots) < 2 and not enforced:
        return
    known: dict[str, _Places] = {}
    for number, root in enumerate(roots):
        for queue in root.walk():
            if queue is root:
                continue
            places = known.get(queue.name)
            if places is None:
                places = known[queue.name] = _Places()
            if enforced or places.lacking(queue.path, number):
                _report(queue, places, enforced, findings)
            places.add(queue.path, number)


def _report(queue: QueueDraft, places: _Places, enforced: bool, findings: Findings) -> None:
    elsewhere = places.elsewhere(queue.path)
    if not elsewhere:
        return
    spot = queue.table.spot("name")
    text = f"queue '{queue.name}' already has another path: {elsewhere}"
    if enforced:
        findings.problem(spot, f"{text} (samehierarchy is true)")
    else:
        findings.warning(
            spot, f"{text}; partitions should share one hierarchy (samehierarchy: true enforces it)"
        )
