"""The plugin objects of a partition: those at hand, or new ones.

A plugin object whose class and options a configuration leaves alone stays in use, with all that it knows: a
file that it has read, what it has learnt. It is told so by `reloaded` (decision 44). An object that could
not be opened does not stay: a new configuration gives it another chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from yunikorn.api import Context, Plugin
    from yunikorn.registry import Kind, Registry
    from yunikorn.scheduling.plugin_failures import PluginFailures


@attrs.define(eq=False)
class _Object:
    plugin: Plugin
    cls: type[Any]
    options: Mapping[str, Any]
    origin: str
    before: _Object | None = None
    """The same in the configuration before, for one that stays."""
    opened: bool = False
    handed_on: bool = False
    """Whether a later configuration goes on using it."""


class PluginObjects:
    """The objects that one configuration of a partition needs; nothing is opened or closed before `open`.

    What `before` has with the same class and options is taken over, each object once.
    """

    def __init__(self, registry: Registry, before: PluginObjects | None = None) -> None:
        self._registry = registry
        self._objects: list[_Object] = []
        self._at_hand = [] if before is None else [one for one in before._objects if one.opened]

    def make(self, kind: Kind, name: str, options: Mapping[str, Any]) -> tuple[Any, str]:
        """A plugin object, and where it comes from.

        Raises `UnknownPlugin`, `OptionError` or `PluginError` when it cannot be made.
        """
        offer = self._registry.find(kind, name)
        wanted = dict(options)
        for one in self._at_hand:
            if one.cls is offer.cls and one.options == wanted:
                self._at_hand.remove(one)
                self._objects.append(_Object(one.plugin, one.cls, wanted, offer.origin, one))
                return one.plugin, offer.origin
        plugin = self._registry.make(kind, name, wanted)
        self._objects.append(_Object(plugin, offer.cls, wanted, offer.origin))
        return plugin, offer.origin

    def open(self, context: Context, failures: PluginFailures) -> None:
        """Tell each object that it is about to be used, or stays in use; a failure is only reported."""
        for one in self._objects:
            told = failures.context_of(one.origin, context)
            if one.before is not None:
                one.before.handed_on = one.opened = True
                one.before = None
                failures.call_guarded(one.origin, "reloading", one.plugin.reloaded, told)
            else:
                one.opened = failures.call_guarded(one.origin, "opening", one.plugin.opened, told)

    def close(self, failures: PluginFailures) -> None:
        """Tell each object that was not handed on that it has been used for the last time."""
        for one in self._objects:
            if not one.handed_on:
                failures.call_guarded(one.origin, "closing", one.plugin.closed)
