"""Plugin objects of a partition: reused after a reload, or created.

A plugin object whose class and options are unchanged in a new configuration stays in use with its state, such
as file contents or learned data, and is notified by `reloaded` (`docs/decisions/0044`). An object that failed
to open is replaced, so that a reload can repair it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from yunikorn.api import Context, Plugin
    from yunikorn.framework.registry import Kind, Registry
    from yunikorn.scheduling.plugin_failures import PluginFailures


@attrs.define(eq=False)
class _Object:
    plugin: Plugin
    cls: type[Any]
    options: Mapping[str, Any]
    origin: str
    before: _Object | None = None
    """Record of the same object in the previous configuration; None if the object is new."""
    opened: bool = False
    handed_on: bool = False
    """True if the next configuration reuses the object."""


class PluginObjects:
    """Plugin objects of one configuration of a partition; none is opened or closed before `open`.

    Each object of `before` with the same class and options is reused once.
    """

    def __init__(self, registry: Registry, before: PluginObjects | None = None) -> None:
        self._registry = registry
        self._objects: list[_Object] = []
        self._at_hand = [] if before is None else [one for one in before._objects if one.opened]

    def make(self, kind: Kind, name: str, options: Mapping[str, Any]) -> tuple[Any, str]:
        """Return a plugin object and its origin.

        Raises `UnknownPlugin`, `OptionError` or `PluginError` if the object cannot be created.
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
        """Call `opened` on new objects and `reloaded` on reused ones; failures are only reported."""
        for one in self._objects:
            told = failures.context_of(one.origin, context)
            if one.before is not None:
                one.before.handed_on = one.opened = True
                one.before = None
                failures.call_guarded(one.origin, "reloading", one.plugin.reloaded, told)
            else:
                one.opened = failures.call_guarded(one.origin, "opening", one.plugin.opened, told)

    def close(self, failures: PluginFailures) -> None:
        """Call `closed` on each object that the next configuration does not reuse."""
        for one in self._objects:
            if not one.handed_on:
                failures.call_guarded(one.origin, "closing", one.plugin.closed)
