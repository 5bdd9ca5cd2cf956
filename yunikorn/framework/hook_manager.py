"""Hooks through which plugins register their classes with the scheduler, and their manager.

Each hook is called once, when a plugin is registered, and returns *classes*. A class has a `name`, which
the configuration refers to, and typed attributes, which are its options. The core creates one object per
place in the configuration and keeps its bound methods. No hook is called during scheduling.

A plugin is a module or an object with functions marked `@yunikorn.api.hookimpl`. Packages announce their
plugins through the entry-point group `yunikorn`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pluggy

from yunikorn.api import Plugin
from yunikorn.framework.kinds import ALL_KINDS, PluginKind

_VALUES = (str, int, tuple, dict, ModuleType)
"""Types of values of a module that are no functions."""
_hookspec = pluggy.HookspecMarker("yunikorn")


def _specification(kind: PluginKind) -> Callable[[], list[type[Plugin]]]:
    """Return the hook of a kind, as a function without a body."""

    def hook() -> list[type[Plugin]]:
        raise NotImplementedError

    hook.__name__ = kind.hook
    hook.__doc__ = (
        f"Return the classes of a {kind.title}, each with `{kind.method}({', '.join(kind.arguments)})`."
        " `docs/plugins.md` leads to the page of the kind."
    )
    return _hookspec(hook)


HOOKS = type("Hooks", (), {kind.hook: _specification(kind) for kind in ALL_KINDS})


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
    made.add_hookspecs(HOOKS)
    return made
