"""Manager of the hooks of plugins."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pluggy

from yunikorn.framework import hookspecs

_VALUES = (str, int, tuple, dict, ModuleType)
"""Types of values of a module that are no functions."""


class HookManager(pluggy.PluginManager):
    """Plugin manager that skips classes and constants of modules.

    They cannot be hooks, and to examine them took a fifth of the time to load the default plugins.
    """

    def parse_hookimpl_opts(self, plugin: object, name: str) -> Any:
        """Return the options of the hook of this name; None if there is no hook of this name."""
        if type(plugin) is ModuleType:
            kind = type(vars(plugin).get(name))
            if kind in _VALUES or issubclass(kind, type):
                return None
        return super().parse_hookimpl_opts(plugin, name)


def plugin_manager() -> HookManager:
    """Return a manager that knows the hooks of all kinds, without plugins."""
    made = HookManager("yunikorn")
    made.add_hookspecs(hookspecs)
    return made
