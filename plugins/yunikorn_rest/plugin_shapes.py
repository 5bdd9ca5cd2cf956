"""JSON objects that describe plugins, their use and their faults."""

from __future__ import annotations

import attrs

from yunikorn_service.fields import always, optional


@attrs.frozen(kw_only=True)
class PluginPlaces:
    """Uses of a plugin by the configuration of a resource manager, in one partition."""

    rm_id: str = always("id of the resource manager")
    partition: str = optional("name of the partition; absent for what belongs to no partition", "")
    count: int = always("number of places that name the plugin, or use it by default")
    places: tuple[str, ...] = always("the first of them, 10 at most: paths in the configuration, or queues")


@attrs.frozen(kw_only=True)
class PluginFault:
    """A distinct failure of a plugin, which the scheduler contained."""

    plugin: str = always("name, plugin, distribution and version")
    operation: str = always("operation that failed")
    count: int = always("number of times")
    message: str = always("message of the first time")
    last_message: str = optional("latest message, if the plugin reports failures itself", "")


@attrs.frozen(kw_only=True)
class PluginCalls:
    """Calls of a method of a plugin; the time is estimated from samples."""

    method: str = always("name of the method")
    calls: int = always("number of calls")
    seconds: float = always("time of the calls (s)")
    refusals: int = always("number of calls that refused")


@attrs.frozen(kw_only=True)
class InstalledPlugin:
    """A class that a plugin offers under a name."""

    kind: str = always("id of the kind, such as `app-sort`")
    name: str = always("name in configurations")
    summary: str = optional("first line of the description of the class", "")
    class_name: str = always("module and name of the class")
    plugin: str = always("name of the plugin")
    distribution: str = optional("distribution that contains the plugin", "")
    version: str = optional("version of the distribution", "")
    in_use: bool = always("true if a configuration uses the plugin", False)
    uses: tuple[PluginPlaces, ...] = always("uses by resource manager and partition", ())
    faults: tuple[PluginFault, ...] = always("failures since the start", ())
    calls: tuple[PluginCalls, ...] = optional("calls of its methods, if the service counts them", ())


@attrs.frozen(kw_only=True)
class BrokenPlugin:
    """A plugin that was not loaded."""

    plugin: str = always("name of the plugin")
    distribution: str = optional("distribution that contains the plugin", "")
    version: str = optional("version of the distribution", "")
    reason: str = always("reason")


@attrs.frozen(kw_only=True)
class Plugins:
    """Installed plugins and what became of them."""

    plugins: tuple[InstalledPlugin, ...] = always("plugins that configurations may name", ())
    broken: tuple[BrokenPlugin, ...] = always("plugins that were not loaded", ())
    other_faults: tuple[PluginFault, ...] = always("failures of code that is no installed plugin", ())
