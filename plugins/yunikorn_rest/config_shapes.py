"""JSON and YAML of configurations as written, with the names that the Go core of YuniKorn writes.

In JSON the names are those of Go's fields (`PlacementRules`), in YAML the same in lower case.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

import attrs
import yaml

from yunikorn.config import document
from yunikorn.config.document import compose
from yunikorn.config.partition_configs import DEFAULT_NAME
from yunikorn.config.queues_yaml import SchedulerConfig
from yunikorn.config.yaml_reading import Findings, YamlTable, read_number
from yunikorn.model.queue import ROOT
from yunikorn_service.fields import NONE, always, is_shape, members_of, optional

S = TypeVar("S")
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

    name: str = always("name", "", name="Name")
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

    name: str = always("name", "", name="Name")
    create: bool = optional("true if the rule may create a queue", False, name="Create")
    filter: Filter = always("users and groups to whom the rule applies", Filter(), name="Filter")
    parent: PlacementRule | None = optional("rule that chooses the parent", None, name="Parent")
    value: str = optional("value", "", name="Value")


@attrs.frozen(kw_only=True)
class Preemption:
    """Settings of preemption."""

    enabled: bool | None = optional("true if requests may preempt", None, name="Enabled")
    quota_preemption_enabled: bool | None = optional(
        "true if usage above a lowered quota is preempted", None, name="QuotaPreemptionEnabled"
    )


@attrs.frozen(kw_only=True)
class NodeSortPolicy:
    """Order of nodes."""

    type: str = always("name of the policy", "", name="Type")
    resource_weights: Mapping[str, float] = optional("weights", NONE, name="ResourceWeights")


@attrs.frozen(kw_only=True)
class UserGroupResolver:
    """Source of the groups of users."""

    type: str = optional("name of the resolver", "")


@attrs.frozen(kw_only=True)
class Partition:
    """A partition."""

    name: str = always("name", "", name="Name")
    queues: tuple[Queue, ...] = always("the root queue", (), name="Queues")
    placement_rules: tuple[PlacementRule, ...] = optional("placement rules", (), name="PlacementRules")
    limits: tuple[Limit, ...] = optional("limits of the root queue", (), name="Limits")
    preemption: Preemption = always("settings of preemption", Preemption(), name="Preemption")
    node_sort_policy: NodeSortPolicy = always("order of nodes", NodeSortPolicy(), name="NodeSortPolicy")
    user_group_resolver: UserGroupResolver = always(
        "source of groups", UserGroupResolver(), name="UserGroupResolver"
    )


@attrs.frozen(kw_only=True)
class Configuration:
    """Configuration in use."""

    partitions: tuple[Partition, ...] = optional("partitions", (), name="Partitions")
    checksum: str = optional("checksum of the text", "", name="Checksum")
    extra: Texts = optional("further settings of the resource manager", NONE, name="Extra")
    deadlock_detection_enabled: bool = always("always false", False, name="DeadlockDetectionEnabled")
    deadlock_timeout_seconds: int = always("always 0", 0, name="DeadlockTimeoutSeconds")


# -- from the text of configurations to shapes -----------------------------------------------------------


def shape_of(configs: tuple[SchedulerConfig, ...], extra: Mapping[str, str]) -> Configuration:
    """Return the shape of the configurations of all resource managers, the first one first.

    Values are as written: the answer of YuniKorn 1.9 equals the file, and has no defaults.
    """
    return Configuration(
        partitions=_partitions(_texts(configs)),
        checksum=configs[0].checksum if configs else "",
        extra=extra,
    )


def _texts(configs: tuple[SchedulerConfig, ...]) -> tuple[str, ...]:
    return tuple(config.text for config in configs)


@lru_cache(maxsize=1)
def _partitions(texts: tuple[str, ...]) -> tuple[Partition, ...]:
    """Return the partitions of all texts; kept, since anybody may ask, and large ones take seconds."""
    return tuple(one for text in texts for one in _read_partitions(text))


def _read_partitions(text: str) -> list[Partition]:
    root, _ = compose(text)
    if not isinstance(root, document.Mapping):
        return []
    found = YamlTable("", root, Findings()).tables("partitions")
    return [_completed(_read(Partition, one)) for one in found]


def _completed(written: Partition) -> Partition:
    """Return a partition with what YuniKorn 1.9 adds when it checks one: name, root queue and parents."""
    name = DEFAULT_NAME if written.name.lower() in ("", DEFAULT_NAME) else written.name
    queues = written.queues
    is_rooted = len(queues) == 1 and queues[0].name.lower() == ROOT
    root = queues[0] if is_rooted else Queue(name=ROOT, queues=queues)
    root = attrs.evolve(root, parent=True, limits=root.limits or written.limits)
    return attrs.evolve(written, name=name, queues=(_with_parents(root),))


def _with_parents(queue: Queue) -> Queue:
    below = tuple(map(_with_parents, queue.queues))
    return attrs.evolve(queue, parent=queue.parent or bool(below), queues=below)


def _read(shape: Callable[..., S], table: YamlTable) -> S:
    """Return a shape with the keys of a mapping that are present."""
    kind: Any = shape
    members = [(member, member.name.lower()) for member in members_of(kind)]
    return shape(
        **{member.attribute: _value_of(member.type, table, key) for member, key in members if key in table}
    )


def _value_of(kind: Any, table: YamlTable, key: str) -> object:
    if kind in _READERS:
        return _READERS[kind](table, key)
    (shape,) = (inner for inner in (kind, *typing.get_args(kind)) if is_shape(inner))
    # The rule for the parent may be a list with one entry.
    tables = table.tables(key) if isinstance(table.get(key), document.Listing) else [table.table(key)]
    found = tuple(_read(shape, one) for one in tables if one is not None)
    return found if typing.get_origin(kind) is tuple else next(iter(found), None)


def _numbers(table: YamlTable | None) -> dict[str, float]:
    return {} if table is None else {name: read_number(node) for name, node in table.node.entries.items()}


_READERS: Mapping[Any, Callable[[YamlTable, str], object]] = {
    str: YamlTable.text,
    bool: YamlTable.boolean,
    bool | None: YamlTable.boolean,
    int: YamlTable.count,
    Texts: YamlTable.pairs,
    Mapping[str, float]: lambda table, key: _numbers(table.table(key)),
    tuple[str, ...]: lambda table, key: tuple(text for text, _ in table.texts(key)),
}
"""Readers of values by type."""


# -- YAML ------------------------------------------------------------------------------------------------


def to_yaml(configs: tuple[SchedulerConfig, ...]) -> bytes:
    """Return the configurations as the text of a file, which can be used again."""
    return _yaml(_texts(configs))


@lru_cache(maxsize=1)
def _yaml(texts: tuple[str, ...]) -> bytes:
    whole = _tree(Configuration(partitions=_partitions(texts)))
    text = yaml.safe_dump(whole, indent=4, sort_keys=False, allow_unicode=True)
    return text.encode("utf-8", "replace")


def _tree(shape: Any) -> dict[str, Any]:
    """Return a shape as mappings and lists, without everything that is empty."""
    kind: Any = type(shape)
    found = {}
    for member in members_of(kind):
        given = getattr(shape, member.attribute)
        value = _value(given)
        is_given = member.omitted and not member.is_omitted(given)
        if value not in ("", 0, None, {}, []) or is_given or member.name == "Limit":
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
