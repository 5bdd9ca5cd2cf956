"""Plugins of a resource manager: its callback as `rm`, and its own plugins.

Both apply to its partitions only, and end with its session. Its predicates and event sinks are in use even if
a configuration does not name them (those that need options only if it does). A configuration that names one
sets its position among the others and its options; `plugins: {disable: [...]}` switches it off
(`docs/decisions/0046`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import attrs

from yunikorn.config.schema import PluginRef, SchedulerConfig
from yunikorn.errors import UsageError
from yunikorn.framework.registry import EVENT_SINK, PREDICATE, Kind, Registry, describe_origin

if TYPE_CHECKING:
    from yunikorn.interface.callback import CallbackAdapter
    from yunikorn.scheduling.plugin_failures import PluginFailures

RM = "rm"
"""Name of the resource manager itself, as a predicate and as an event sink."""


def plugin_name(plugin: object) -> str:
    """Return the name of a plugin registered without one: its `__name__`, its `name`, or its class."""
    for found in (getattr(plugin, "__name__", None), getattr(plugin, "name", None)):
        if isinstance(found, str) and found:
            return found
    return type(plugin).__name__


def add_plugin(plugin: object, name: str, rm_id: str, registry: Registry, failures: PluginFailures) -> bool:
    """Add a plugin to the registry of one RM; leave out and report a plugin that cannot be used."""
    of = f"resource manager {rm_id}"
    taken = registry.register(plugin, name, of)
    if not taken:
        reason = registry.broken[-1].reason.removeprefix("registering: ")
        failures.report(describe_origin(name, of, ""), "registering it", reason)
    return taken


def registry_for(rm_id: str, callback: object, registry: Registry, failures: PluginFailures) -> Registry:
    """Return the plugins of an RM: those of `framework.registry`, and the `plugins` of its callback.

    Raises `UsageError` if `plugins` is no list.
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
    """Return the configuration as it applies to an RM.

    The plugins of the RM are added, and references to methods that its callback lacks are removed.
    """
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
