"""Differences between two configurations, key by key, and their effects on what runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import attrs

from yunikorn.accounting.partition import Partition
from yunikorn.config.acl import Acl
from yunikorn.config.durations import spell_duration
from yunikorn.config.keys import Key, keys_of, mappings_of
from yunikorn.config.queues_yaml import PartitionConfig, PluginRef, QueueConfig, SchedulerConfig
from yunikorn.interface.scheduler import Scheduler
from yunikorn.quantities import spell_quantity
from yunikorn.resources import Resource
from yunikorn.rest import shapes
from yunikorn.rest.fields import always, optional

ADDED, REMOVED, CHANGED = "added", "removed", "changed"
_CHILDREN = ("name", "partitions", "queues", "checksum")
"""Keys that are compared by other means."""


@attrs.frozen(kw_only=True)
class ConfigChange:
    """One difference between two configurations."""

    path: str = always("partition, queue and key in words")
    partition: str = optional("name of the partition", "")
    queue: str = optional("full path of the queue", "")
    key: str = optional("key of queues.yaml; absent if a whole queue or partition is added or removed", "")
    change: str = always("`added`, `removed` or `changed`; a key with its default counts as absent")
    before: Any = optional("value before; options of plugins without their values", None)
    after: Any = optional("value after", None)
    note: str = optional("effect on what runs, or the options that differ", "")


@attrs.frozen(kw_only=True)
class ConfigResult:
    """Result of a request to change a configuration."""

    applied: bool = always("true if the configuration is in use now")
    persisted: bool = always("true if the file of the configuration was replaced", False)
    checksum: str = always("checksum of the configuration in use before, for `If-Match`", "")
    new_checksum: str = optional("checksum of the new configuration", "")
    policy_group: str = optional("policy group that the configuration belongs to", "")
    resource_managers: tuple[str, ...] = always("ids of the resource managers that use the configuration", ())
    changes: tuple[ConfigChange, ...] = always("differences", ())
    problems: tuple[shapes.ConfigProblem, ...] = always("problems, with their places", ())
    note: str = optional("how long the configuration is used if it was not persisted", "")


@attrs.frozen(kw_only=True)
class ConfigRequest:
    """A request to change a configuration."""

    text: bytes
    policy_group: str = ""
    rm_id: str = ""
    """Resource manager whose own configuration is changed; empty for that of a policy group."""
    persist: bool = True
    dry_run: bool = False
    match: str = ""
    """Checksum that the present configuration must have; empty for any."""


@attrs.frozen
class ConfigText:
    """Text of a configuration in use, as it was given."""

    text: bytes
    checksum: str


class ConfigChanger(Protocol):
    """Owner of the configurations of a service."""

    async def text(self, policy_group: str, rm_id: str) -> ConfigText:
        """Return the text of a policy group, or that of a resource manager itself; raises `Refused`."""
        ...

    async def change(self, request: ConfigRequest) -> ConfigResult:
        """Check a configuration, and use it unless it has problems or `dry_run` is set; raises `Refused`."""
        ...


# -- differences -----------------------------------------------------------------------------------------

_Place = tuple[str, str, str]
"""Partition, queue and key."""


@attrs.frozen(eq=False)
class _Setting:
    """Value of a key, as it is compared and as it is shown."""

    value: Any
    shown: Any
    options: Mapping[str, Any] = attrs.field(factory=dict)
    """Options of a plugin."""


def differences(old: SchedulerConfig, new: SchedulerConfig) -> list[ConfigChange]:
    """Return the differences, in the order of the old configuration and then of the new one."""
    before, after = dict(_settings(old)), dict(_settings(new))
    units = _units(before), _units(after)
    found = []
    for place in [*before, *(place for place in after if place not in before)]:
        one, other = before.get(place), after.get(place)
        around = {(place[0], "", ""), *([(place[0], place[1], "")] if place[2] else [])} - {place}
        if not (around <= units[0] and around <= units[1]):
            continue  # the whole queue or partition is added or removed
        if one is not None and other is not None and one.value == other.value:
            continue
        found.append(_change(place, one, other))
    return found


def _units(settings: Mapping[_Place, _Setting]) -> set[_Place]:
    return {place for place in settings if not place[2]} | {("", "", "")}


def _change(place: _Place, one: _Setting | None, other: _Setting | None) -> ConfigChange:
    partition, queue, key = place
    what = [f"partition {partition}" if partition else "", f"queue {queue}" if queue else ""]
    where = ", ".join(filter(None, what)) or "all partitions"
    kind = CHANGED if one is not None and other is not None else REMOVED if other is None else ADDED
    note = ""
    if one is not None and other is not None and one.shown == other.shown:
        names = sorted({*one.options, *other.options})
        differing = [name for name in names if one.options.get(name) != other.options.get(name)]
        note = f"options that differ: {', '.join(differing)}" if differing else ""
    return ConfigChange(
        path=f"{where}: {key}" if key else where,
        partition=partition,
        queue=queue,
        key=key,
        change=kind,
        before=None if one is None else one.shown,
        after=None if other is None else other.shown,
        note=note,
    )


def _settings(config: SchedulerConfig) -> Iterator[tuple[_Place, _Setting]]:
    """Yield the place and value of each key that differs from its default."""
    for path, setting in _keys(config):
        yield ("", "", path), setting
    for partition in config.partitions:
        yield (partition.name, "", ""), _Setting(partition.name, None)
        for path, setting in _keys(partition):
            yield (partition.name, "", path), setting
        for queue_path, queue in partition.root.walk():
            yield (partition.name, queue_path, ""), _Setting(queue_path, None)
            for path, setting in _keys(queue):
                yield (partition.name, queue_path, path), setting


def _keys(owner: SchedulerConfig | PartitionConfig | QueueConfig) -> Iterator[tuple[str, _Setting]]:
    for key in keys_of(type(owner)):
        if key.field and key.name not in _CHILDREN:
            yield from _parts(key, getattr(owner, key.field))
    for name, inner in mappings_of(owner):
        for key in keys_of(type(inner)):
            for path, setting in _parts(key, getattr(inner, key.field)):
                yield f"{name}.{path}", setting


def _parts(key: Key, value: Any) -> Iterator[tuple[str, _Setting]]:
    """Yield the value of a key unless it is the default; mappings of texts and amounts entry by entry."""
    if value == key.initial:
        return
    if isinstance(value, Mapping) and key.name in ("properties", "guaranteed", "max"):
        for name, inner in value.items():
            text = spell_quantity(name, inner) if isinstance(inner, int) else inner
            yield f"{key.path}.{name}", _Setting(inner, text)
    elif key.name == "periods":
        for name, span in value.items():
            shown = "never" if span is None else spell_duration(span)
            yield f"{key.path}.{name.replace('_', '')}", _Setting(span, shown)
    else:
        options = value.options if isinstance(value, PluginRef) else {}
        yield key.path, _Setting(value, _shown(value), options)


def _shown(value: Any) -> Any:
    """Return a value for people; options of plugins are shown without their values, which may be secret."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Acl):
        return acl_text(value)
    if isinstance(value, PluginRef):
        return f"{value.name} (options: {', '.join(sorted(value.options))})" if value.options else value.name
    if isinstance(value, Resource):
        return {name: spell_quantity(name, amount) for name, amount in value.items()}
    if isinstance(value, Mapping):
        return {str(name): _shown(inner) for name, inner in value.items()}
    if isinstance(value, (tuple, list, frozenset)):
        return [_shown(inner) for inner in value]
    if attrs.has(type(value)):
        return _fields(value)
    return str(value)


def _fields(value: Any) -> Any:
    found = {}
    for key in keys_of(type(value)):
        inner = getattr(value, key.field) if key.field else None
        if key.field and inner != key.initial:
            found[key.path] = _shown(inner)
    options = getattr(value, "options", None)
    if options:
        found["options"] = sorted(options)
    return found or str(value)


def acl_text(acl: Acl) -> str:
    """Return the text of an ACL."""
    if acl.everybody:
        return "*"
    users, groups = ",".join(sorted(acl.users)), ",".join(sorted(acl.groups))
    return f"{users} {groups}" if groups else users


# -- effects ---------------------------------------------------------------------------------------------


def with_effects(
    changes: list[ConfigChange], core: Scheduler, rm_ids: tuple[str, ...]
) -> tuple[ConfigChange, ...]:
    """Return changes with notes on what runs in queues and partitions that are removed."""
    running: dict[str, list[Partition]] = {}
    for rm_id, at in core.all_partitions():
        if rm_id in rm_ids:
            running.setdefault(at.name, []).append(at.partition)
    found = []
    for change in changes:
        note = ""
        if change.change == REMOVED and not change.key:
            note = _effect(change, running.get(change.partition, []))
        found.append(attrs.evolve(change, note=note) if note else change)
    return tuple(found)


def _effect(change: ConfigChange, partitions: list[Partition]) -> str:
    """Return what the removal of a queue or partition means for these partitions."""
    if not partitions:
        return ""
    if not change.queue:
        applications = sum(len(one.applications) for one in partitions)
        nodes = sum(len(one.nodes) for one in partitions)
        return f"ends {_number(applications, 'application')} and removes {_number(nodes, 'node')}"
    queues = [queue for one in partitions if (queue := one.queue(change.queue)) is not None]
    count = sum(len(each.applications) for queue in queues for each in queue.walk() if each.is_leaf)
    if not count:
        return "drains, and is removed"
    return f"drains: accepts no new applications, and is removed after its {_number(count, 'application')}"


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
