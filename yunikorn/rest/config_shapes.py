"""JSON and YAML of configurations, with the names that the Go core of YuniKorn writes.

In JSON the names are those of Go's fields (`PlacementRules`), in YAML the same in lower case.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs
import yaml

from yunikorn.config.differences import acl_text
from yunikorn.quantities import spell_quantity
from yunikorn.rest.fields import NONE, always, is_shape, members_of, optional, shape_like

if TYPE_CHECKING:
    from yunikorn.config.filters import FilterConfig
    from yunikorn.config.queues_yaml import (
        PartitionConfig,
        QueueConfig,
        RuleConfig,
        SchedulerConfig,
        TemplateConfig,
    )

Texts = Mapping[str, str]


@attrs.frozen(kw_only=True)
class Resources:
    """Guarantee and quota, as texts such as `1500m`."""

    guaranteed: Texts = optional("guarantee", NONE, name="Guaranteed")
    max: Texts = optional("quota", NONE, name="Max")


@attrs.frozen(kw_only=True)
class Limit:
    """Limit of users and groups."""

    limit: str = always("description", "", name="Limit")
    users: tuple[str, ...] = optional("users", (), name="Users")
    groups: tuple[str, ...] = optional("groups", (), name="Groups")
    max_resources: Texts = optional("maximum usage", NONE, name="MaxResources")
    max_applications: int = optional("maximum number of running applications", 0, name="MaxApplications")


@attrs.frozen(kw_only=True)
class ChildTemplate:
    """Settings of dynamic queues."""

    max_applications: int = optional("maximum number of running applications", 0, name="MaxApplications")
    properties: Texts = optional("properties", NONE, name="Properties")
    resources: Resources = always("guarantee and quota", Resources(), name="Resources")


@attrs.frozen(kw_only=True)
class Queue:
    """A queue with the queues below."""

    name: str = always("name", name="Name")
    parent: bool = optional("true if the queue is a parent", False, name="Parent")
    resources: Resources = always("guarantee and quota", Resources(), name="Resources")
    max_applications: int = optional("maximum number of running applications", 0, name="MaxApplications")
    properties: Texts = optional("properties", NONE, name="Properties")
    admin_acl: str = optional("users and groups that administer the queue", "", name="AdminACL")
    submit_acl: str = optional("users and groups that submit applications", "", name="SubmitACL")
    child_template: ChildTemplate = always(
        "settings of dynamic queues", ChildTemplate(), name="ChildTemplate"
    )
    queues: tuple[Queue, ...] = optional("child queues", (), name="Queues")
    limits: tuple[Limit, ...] = optional("limits", (), name="Limits")


@attrs.frozen(kw_only=True)
class Filter:
    """Users and groups to whom a placement rule applies."""

    type: str = always("`allow` or `deny`; empty without a filter", "", name="Type")
    users: tuple[str, ...] = optional("users", (), name="Users")
    groups: tuple[str, ...] = optional("groups", (), name="Groups")


@attrs.frozen(kw_only=True)
class PlacementRule:
    """A placement rule."""

    name: str = always("name", name="Name")
    create: bool = optional("true if the rule may create a queue", False, name="Create")
    filter: Filter = always("users and groups to whom the rule applies", Filter(), name="Filter")
    parent: PlacementRule | None = optional("rule that chooses the parent", None, name="Parent")
    value: str = optional("value", "", name="Value")


@attrs.frozen(kw_only=True)
class Preemption:
    """Settings of preemption."""

    enabled: bool = always("true if requests may preempt", name="Enabled")
    quota_preemption_enabled: bool = always(
        "true if usage above a lowered quota is preempted", name="QuotaPreemptionEnabled"
    )


@attrs.frozen(kw_only=True)
class NodeSortPolicy:
    """Order of nodes."""

    type: str = always("name of the policy", name="Type")
    resource_weights: Mapping[str, float] = optional("weights", NONE, name="ResourceWeights")


@attrs.frozen(kw_only=True)
class UserGroupResolver:
    """Source of the groups of users."""

    type: str = optional("name of the resolver", "")


@attrs.frozen(kw_only=True)
class Partition:
    """A partition."""

    name: str = always("name", name="Name")
    queues: tuple[Queue, ...] = always("the root queue", name="Queues")
    placement_rules: tuple[PlacementRule, ...] = optional("placement rules", (), name="PlacementRules")
    preemption: Preemption = always("settings of preemption", name="Preemption")
    node_sort_policy: NodeSortPolicy = always("order of nodes", name="NodeSortPolicy")
    user_group_resolver: UserGroupResolver = always("source of groups", name="UserGroupResolver")


@attrs.frozen(kw_only=True)
class Configuration:
    """Configuration in use."""

    partitions: tuple[Partition, ...] = optional("partitions", (), name="Partitions")
    checksum: str = optional("checksum of the text", "", name="Checksum")
    extra: Texts = optional("further settings of the resource manager", NONE, name="Extra")
    deadlock_detection_enabled: bool = always("always false", False, name="DeadlockDetectionEnabled")
    deadlock_timeout_seconds: int = always("always 0", 0, name="DeadlockTimeoutSeconds")


ONLY_JSON = {"Checksum", "Extra", "DeadlockDetectionEnabled", "DeadlockTimeoutSeconds"}
"""Keys that are no part of a configuration file."""


# -- from configurations to shapes -----------------------------------------------------------------------


def shape_of(configs: tuple[SchedulerConfig, ...], extra: Mapping[str, str]) -> Configuration:
    """Return the shape of the configurations of all resource managers, the first one first."""
    return Configuration(
        partitions=tuple(_partition(one) for config in configs for one in config.partitions),
        checksum=configs[0].checksum if configs else "",
        extra=extra,
    )


def _partition(config: PartitionConfig) -> Partition:
    resolver = config.user_group_resolver
    weights = config.node_sort.options.get("resourceweights")
    return Partition(
        name=config.name,
        queues=(_queue(config.root),),
        placement_rules=tuple(_rule(rule) for rule in config.placement_rules),
        preemption=shape_like(Preemption, config.preemption),
        node_sort_policy=NodeSortPolicy(
            type=config.node_sort.name,
            resource_weights=_weights(weights) if isinstance(weights, Mapping) else NONE,
        ),
        user_group_resolver=UserGroupResolver(type="" if resolver is None else resolver.name),
    )


def _weights(given: Mapping[str, Any]) -> Mapping[str, float]:
    return {name: float(weight) for name, weight in given.items()}


def _queue(config: QueueConfig) -> Queue:
    return shape_like(
        Queue,
        config,
        resources=_resources(config),
        admin_acl=acl_text(config.admin_acl),
        submit_acl=acl_text(config.submit_acl),
        child_template=_template(config.child_template),
        queues=tuple(_queue(child) for child in config.queues),
        limits=tuple(
            shape_like(Limit, limit, max_resources=_quantities(limit.max_resources))
            for limit in config.limits
        ),
    )


def _template(config: TemplateConfig | None) -> ChildTemplate:
    if config is None:
        return ChildTemplate()
    return shape_like(ChildTemplate, config, resources=_resources(config))


def _rule(config: RuleConfig) -> PlacementRule:
    parent = None if config.parent is None else _rule(config.parent)
    return shape_like(PlacementRule, config, filter=_filter(config.filter), parent=parent)


def _filter(config: FilterConfig | None) -> Filter:
    if config is None:
        return Filter()
    return Filter(type="allow" if config.allow else "deny", users=config.users, groups=config.groups)


def _resources(config: QueueConfig | TemplateConfig) -> Resources:
    return Resources(guaranteed=_quantities(config.guaranteed), max=_quantities(config.max))


def _quantities(amounts: Mapping[str, int] | None) -> Texts:
    return {name: spell_quantity(name, amount) for name, amount in (amounts or {}).items()}


# -- YAML ------------------------------------------------------------------------------------------------


def to_yaml(config: Configuration) -> str:
    """Return the configuration as the text of a file, which can be used again."""
    whole = {name: value for name, value in _tree(config).items() if name not in _ABSENT}
    return yaml.safe_dump(whole, indent=4, sort_keys=False, allow_unicode=True)


_ABSENT = {name.lower() for name in ONLY_JSON}


def _tree(shape: Any) -> dict[str, Any]:
    """Return a shape as mappings and lists, without everything that is empty."""
    kind: Any = type(shape)
    found = {}
    for member in members_of(kind):
        value = _value(getattr(shape, member.attribute))
        if value not in ("", 0, False, None, {}, []) or member.name in ("Enabled", "Limit"):
            found[member.name.lower()] = value
    return found


def _value(value: Any) -> Any:
    if is_shape(type(value)):
        return _tree(value)
    if isinstance(value, tuple):
        return [_value(inner) for inner in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return {key: _value(inner) for key, inner in value.items()} if isinstance(value, Mapping) else value
