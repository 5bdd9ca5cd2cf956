"""Reader of a partition of the configuration; reports all problems of the partition."""

from __future__ import annotations

import attrs

from yunikorn.config.limits import check_limits
from yunikorn.config.node_sorts import read_node_sort, read_node_sorts
from yunikorn.config.periods import KEY as PERIODS
from yunikorn.config.periods import read_periods
from yunikorn.config.plugin_refs import PluginCheck, read_plugin_list
from yunikorn.config.queue_policy_check import QueuePolicyCheck
from yunikorn.config.queues import QueueDraft, read_queues
from yunikorn.config.quotas import check_applications, check_resources
from yunikorn.config.reading import Table
from yunikorn.config.rules import RuleDraft, check_paths, read_rules
from yunikorn.config.schema import PartitionConfig, PluginRef, PreemptionConfig
from yunikorn.errors import UnknownPlugin
from yunikorn.framework.kinds import PREDICATE, RESOLVER

DEFAULT_NAME = "default"
OWN_KEYS = ("predicates", "nodesortpolicies", PERIODS)
"""Keys that YuniKorn 1.9 does not have; see `docs/decisions/0004`."""
SHRUNK_NODES = "shrunknodes"
"""Key of `preemption` that YuniKorn 1.9 does not have; see `docs/decisions/0036`."""
KEYS = (
    "name",
    "queues",
    "placementrules",
    "limits",
    "preemption",
    "nodesortpolicy",
    "usergroupresolver",
    *OWN_KEYS,
)
_REMOVED = {"statedumpfilepath": " (YuniKorn removed it in 1.5: leave it out)"}
NO_RESOLVER = ("", "none")


@attrs.define(eq=False)
class PartitionDraft:
    """Partition as parsed, with its position in the text."""

    table: Table
    name: str
    root: QueueDraft
    rules: list[RuleDraft]
    preemption: PreemptionConfig
    node_sort: PluginRef
    node_sorts: dict[str, PluginRef]
    resolver: PluginRef | None
    predicates: tuple[PluginRef, ...]
    periods: dict[str, int | None]

    def build(self) -> PartitionConfig:
        """Return the checked partition."""
        return PartitionConfig(
            name=self.name,
            root=self.root.build(),
            placement_rules=tuple(rule.build() for rule in self.rules),
            preemption=self.preemption,
            node_sort=self.node_sort,
            node_sorts=self.node_sorts,
            user_group_resolver=self.resolver,
            predicates=self.predicates,
            periods=self.periods,
        )


def read_partition(table: Table, plugins: PluginCheck) -> PartitionDraft:
    """Read and check a partition."""
    findings = plugins.findings
    table.only(KEYS, _REMOVED)
    for key in OWN_KEYS:
        if key in table:
            findings.note(table.key_spot(key), "YuniKorn 1.9 does not have this key and refuses the file")
    name = table.text("name")
    draft = PartitionDraft(
        table=table,
        name=DEFAULT_NAME if name.lower() in ("", DEFAULT_NAME) else name,
        root=read_queues(table),
        rules=read_rules(table, plugins),
        preemption=_read_preemption(table),
        node_sort=read_node_sort(table, plugins),
        node_sorts=read_node_sorts(table, plugins),
        resolver=_read_resolver(table, plugins),
        predicates=read_plugin_list(table, "predicates", PREDICATE, plugins),
        periods=read_periods(table),
    )
    check_resources(draft.root, findings)
    check_applications(draft.root, findings)
    check_limits(draft.root, findings)
    check_paths(draft.rules, draft.root, findings)
    QueuePolicyCheck(plugins, draft.node_sorts).check(draft.root)
    return draft


def _read_preemption(partition: Table) -> PreemptionConfig:
    table = partition.table("preemption", ("enabled", "quotapreemptionenabled", SHRUNK_NODES))
    if table is None:
        return PreemptionConfig()
    if SHRUNK_NODES in table:
        table.findings.note(
            table.key_spot(SHRUNK_NODES), "YuniKorn 1.9 does not have this key and refuses the file"
        )
    return PreemptionConfig(
        enabled=table.boolean("enabled", True),
        quota_preemption_enabled=table.boolean("quotapreemptionenabled"),
        shrunk_nodes=table.boolean(SHRUNK_NODES),
    )


def _read_resolver(partition: Table, plugins: PluginCheck) -> PluginRef | None:
    table = partition.table("usergroupresolver")
    if table is None:
        return None
    name = table.text("type")
    if name in NO_RESOLVER:
        table.only(("type",))
        return None
    ref = PluginRef(name, plugins.known_options(RESOLVER, name, table, ("type",)))
    try:
        plugins.registry.find(RESOLVER, name)
    except UnknownPlugin as error:
        # Only a warning: the host that runs the scheduler may have the plugin (docs/decisions/0003).
        without = "the scheduler will not start" if ref.name == "ldap" else "groups are not resolved"
        plugins.findings.warning(table.spot("type"), f"{error}; without it {without}")
        return ref
    plugins.check(RESOLVER, ref, table.spot("type"), table.here())
    return ref
