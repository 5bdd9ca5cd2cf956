"""Differences between two configurations, key by key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from yunikorn.config.acl import Acl
from yunikorn.config.durations import spell_duration
from yunikorn.config.keys import ConfigKey, keys_of, mappings_of
from yunikorn.config.queues_yaml import PartitionConfig, PluginRef, QueueConfig, SchedulerConfig
from yunikorn.framework.plugin_code import LoadedPlugin
from yunikorn.quantities import spell_quantity
from yunikorn.resources import Resource

ADDED, REMOVED, CHANGED = "added", "removed", "changed"
_CHILDREN = ("name", "partitions", "queues", "checksum")
"""Keys that are compared by other means."""

_Place = tuple[str, str, str]
"""Partition, queue and key."""


@attrs.frozen
class ConfigDifference:
    """A key that differs, or a whole queue or partition."""

    partition: str
    queue: str
    """Full path; empty for a key of a partition or of the whole configuration."""
    key: str
    """Key of queues.yaml; empty if the queue or partition is added or removed."""
    change: str = attrs.field(kw_only=True)
    """`ADDED`, `REMOVED` or `CHANGED`; a key with its default counts as absent."""
    before: Any = attrs.field(kw_only=True)
    """Value for people; options of plugins are without their values, which may be secret."""
    after: Any = attrs.field(kw_only=True)
    note: str = attrs.field(kw_only=True)
    """Names of the options that differ."""
    values: tuple[Any, Any] = attrs.field(kw_only=True, eq=False, repr=False)
    """Checked values before and after."""

    @property
    def path(self) -> str:
        """Partition, queue and key in words."""
        what = [
            f"partition {self.partition}" if self.partition else "",
            f"queue {self.queue}" if self.queue else "",
        ]
        where = ", ".join(filter(None, what)) or "all partitions"
        return f"{where}: {self.key}" if self.key else where


@attrs.frozen(eq=False)
class _Setting:
    """Value of a key, as it is compared and as it is shown."""

    value: Any
    shown: Any
    options: Mapping[str, Any] = attrs.field(factory=dict)


def differences(old: SchedulerConfig, new: SchedulerConfig) -> list[ConfigDifference]:
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
        found.append(_difference(place, one, other))
    return found


def _units(settings: Mapping[_Place, _Setting]) -> set[_Place]:
    return {place for place in settings if not place[2]} | {("", "", "")}


def _difference(place: _Place, one: _Setting | None, other: _Setting | None) -> ConfigDifference:
    note = ""
    if one is not None and other is not None and one.shown == other.shown:
        names = sorted({*one.options, *other.options})
        differing = [name for name in names if one.options.get(name) != other.options.get(name)]
        note = f"options that differ: {', '.join(differing)}" if differing else ""
    return ConfigDifference(
        *place,
        change=CHANGED if one is not None and other is not None else REMOVED if other is None else ADDED,
        before=None if one is None else one.shown,
        after=None if other is None else other.shown,
        note=note,
        values=(None if one is None else one.value, None if other is None else other.value),
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


def _parts(key: ConfigKey, value: Any) -> Iterator[tuple[str, _Setting]]:
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
    if isinstance(value, LoadedPlugin):
        return value.name
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
