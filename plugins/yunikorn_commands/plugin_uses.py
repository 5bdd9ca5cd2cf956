"""Plugins that a configuration names, by kind and name, and where it names them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from yunikorn.config.keys import keys_of, mappings_of
from yunikorn.config.properties import APP_SORT as APP_SORT_PROPERTY
from yunikorn.config.properties import QUEUE_SORT as QUEUE_SORT_PROPERTY
from yunikorn.config.properties import QUOTA_POLICY, InForce, read_settings
from yunikorn.config.queues_yaml import SECTIONS, PluginRef, QueueConfig, SchedulerConfig, WeightedRef
from yunikorn.errors import UnknownPlugin
from yunikorn.framework.kinds import APP_SORT, QUEUE_SORT, QUOTA, PluginKind
from yunikorn.framework.nested_policies import NestedOptions
from yunikorn.framework.registry import Registry


@attrs.frozen
class PluginUse:
    """A plugin of a configuration."""

    kind: PluginKind
    name: str
    """Name in the form in which names of the kind are compared."""
    place: str
    """Path in the file, or for policies of queues the path of the queue and the property."""
    options: Mapping[str, str] = attrs.field(factory=dict, eq=False)
    """Options of a sort policy of a queue, which may name further policies."""

    def with_nested(self, registry: Registry) -> Iterator[PluginUse]:
        """Yield this use, and those of the policies that its options name, as far as they are known."""
        yield self
        if not self.options:
            return
        try:
            parts = NestedOptions.of(registry.find(self.kind, self.name), self.options)
        except UnknownPlugin:
            return
        for option, entries in parts.nested.items():
            for name, (policy, options) in entries.items():
                place = f"{self.place}.{option}.{name}"
                yield from PluginUse(self.kind, policy, place, options).with_nested(registry)


def plugin_uses(config: SchedulerConfig) -> list[PluginUse]:
    """Return every use of a plugin, in the order of the configuration; defaults are included."""
    found: list[PluginUse] = []
    _walk(config, None, "", found)
    return found


def uses_by_partition(config: SchedulerConfig) -> list[tuple[str, PluginUse]]:
    """Return every use of a plugin with the partition that it belongs to, "" if that is none."""
    found: list[PluginUse] = []
    _walk(attrs.evolve(config, partitions=()), None, "", found)
    named = [("", use) for use in found]
    for number, partition in enumerate(config.partitions):
        found = []
        _walk(partition, None, f"partitions[{number}]", found)
        named += [(partition.name, use) for use in found]
    return named


def _walk(value: Any, kind: PluginKind | None, path: str, found: list[PluginUse]) -> None:
    if isinstance(value, PluginRef):
        if kind is not None:
            found.append(PluginUse(kind, kind.normal(value.name), path))
        for number, score in enumerate(value.scores if isinstance(value, WeightedRef) else ()):
            _walk(score, None, f"{path}.scores[{number}]", found)
    elif isinstance(value, QueueConfig):
        _walk_queues(value, InForce({}), value.name, found)
    elif isinstance(value, str):
        if kind is not None:
            found.append(PluginUse(kind, kind.normal(value), path))
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            _walk(inner, kind, f"{path}[{name}]", found)
    elif isinstance(value, tuple):
        for number, inner in enumerate(value):
            _walk(inner, kind, f"{path}[{number}]", found)
    elif attrs.has(type(value)):
        _walk_keys(value, path, found)


def _walk_keys(owner: Any, path: str, found: list[PluginUse]) -> None:
    for key in keys_of(type(owner)):
        if key.field:
            kind = key.value.plugins or _KINDS.get(key.value.section)
            # The name of a rule or score is that of the mapping that contains the name.
            named = key.value.plugins is not None and key.path == "name"
            inner = path if named else f"{path}.{key.path}".removeprefix(".")
            _walk(getattr(owner, key.field), kind, inner, found)
    for name, value in mappings_of(owner):
        _walk(value, None, f"{path}.{name}".removeprefix("."), found)


_KINDS = {section.name: section.options_of for section in SECTIONS if section.options_of is not None}
"""Kinds of the plugins that sections configure, by the name of the section."""


def _walk_queues(queue: QueueConfig, above: InForce, path: str, found: list[PluginUse]) -> None:
    here = above.below(queue.properties)
    if queue.parent:
        named = here.settings.queue_sort, f"{path}: {QUEUE_SORT_PROPERTY}", here.settings.queue_sort_options
        found.append(PluginUse(QUEUE_SORT, *named))
    else:
        named = here.settings.app_sort, f"{path}: {APP_SORT_PROPERTY}", here.settings.app_sort_options
        found.append(PluginUse(APP_SORT, *named))
    templates = queue.child_template.properties if queue.child_template is not None else {}
    for place, name in (
        (path, here.settings.quota_policy),
        (f"{path}: childtemplate", read_settings(templates)[0].quota_policy),
    ):
        if name:
            found.append(PluginUse(QUOTA, name, f"{place}: {QUOTA_POLICY}"))
    for child in queue.queues:
        _walk_queues(child, here, f"{path}.{child.name}", found)
