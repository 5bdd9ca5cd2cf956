"""What a resource manager brings along: its callback as `rm`, and plugins of its own.

Both hold for its partitions only and go when it goes. Its predicates and event sinks are in use whether a
configuration names them or not (those that need options only where it does); naming one says where it
stands among the others and with which options, `plugins: {disable: [...]}` switches it off (decision 46).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import attrs

from yunikorn.config.schema import PluginRef, SchedulerConfig
from yunikorn.errors import UsageError
from yunikorn.registry import EVENT_SINK, PREDICATE, Kind, Registry, describe_origin

if TYPE_CHECKING:
    from yunikorn.interface.callback import CallbackAdapter
    from yunikorn.scheduling.plugin_failures import PluginFailures

RM = "rm"
"""The name of the resource manager itself, as a predicate and as a sink."""


def plugin_name(plugin: object) -> str:
    """What a plugin is called that came without a name: as its module, its `name`, or its class."""
    for found in (getattr(plugin, "__name__", None), getattr(plugin, "name", None)):
        if isinstance(found, str) and found:
            return found
    return type(plugin).__name__


def add_plugin(plugin: object, name: str, rm_id: str, registry: Registry, failures: PluginFailures) -> bool:
    """Take a plugin into the registry of one RM; one that cannot be used is left out whole and reported."""
    of = f"resource manager {rm_id}"
    taken = registry.register(plugin, name, of)
    if not taken:
        reason = registry.broken[-1].reason.removeprefix("registering: ")
        failures.report(describe_origin(name, of, ""), "registering it", reason)
    return taken


def registry_for(rm_id: str, callback: object, registry: Registry, failures: PluginFailures) -> Registry:
    """The plugins that an RM finds: those of `registry`, and what its callback has in `plugins`.

    Raises `UsageError` if that is no list.
    """
    own = registry.extended()
    plugins = getattr(callback, "plugins", None) or ()
    if isinstance(plugins, str) or not isinstance(plugins, Iterable):
        raise UsageError(
            f"resource manager {rm_id}: 'plugins' of its callback must be a list, it is {plugins!r}"
        )
    for plugin in plugins:
        add_plugin(plugin, plugin_name(plugin), rm_id, own, failures)
    return own


def with_rm(config: SchedulerConfig, enabled: Registry, callback_adapter: CallbackAdapter) -> SchedulerConfig:
    """The configuration as it holds for an RM: with what it brings along, without what it does not have."""
    told = "send_events" in callback_adapter.methods
    partitions = tuple(
        attrs.evolve(one, predicates=_with(one.predicates, PREDICATE, enabled, callback_adapter.answers))
        for one in config.partitions
    )
    return attrs.evolve(config, partitions=partitions, sinks=_with(config.sinks, EVENT_SINK, enabled, told))


def _with(refs: Iterable[PluginRef], kind: Kind, enabled: Registry, has_rm: bool) -> tuple[PluginRef, ...]:
    named = [ref for ref in refs if ref.name != RM or has_rm]
    names = {ref.name for ref in named}
    own = enabled.own_offers(kind)
    unnamed = [offer.name for offer in own if not any(option.required for option in offer.options)]
    if has_rm and any(offer.name == RM for offer in enabled.offers(kind)):
        unnamed.append(RM)
    return (*named, *(PluginRef(name) for name in unnamed if name not in names))
