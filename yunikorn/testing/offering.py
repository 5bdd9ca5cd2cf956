"""Registration of plugins under test without installation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from yunikorn.api import Plugin, hookimpl
from yunikorn.framework.kinds import KINDS, Kind
from yunikorn.framework.registry import Registry

UNDER_TEST = "under-test"


def kind_of(cls: type[Any]) -> Kind:
    """Return the kind of a plugin class. Raises `TypeError` for any other object."""
    for kind in KINDS:
        if isinstance(cls, type) and issubclass(cls, kind.base):
            return kind
    bases = ", ".join(kind.base.__name__ for kind in KINDS)
    raise TypeError(f"{cls!r} is not a plugin class: derive the class from one of {bases} (yunikorn.api)")


def registry_with(*plugins: type[Plugin] | ModuleType, defaults: bool = True) -> Registry:
    """Return a registry of the default plugins and of `plugins`: classes, or modules with hooks.

    Other installed plugins are left out, so that a test does not depend on them. Raises `AssertionError`
    with the reason if a plugin is not valid.
    """
    registry = Registry.load(third_party=False) if defaults else Registry()
    classes = [plugin for plugin in plugins if not isinstance(plugin, ModuleType)]
    if classes:
        _take(registry, _offering(classes), UNDER_TEST)
    for plugin in plugins:
        if isinstance(plugin, ModuleType):
            _take(registry, plugin, plugin.__name__)
    return registry


def _take(registry: Registry, plugin: object, name: str) -> None:
    if not registry.register(plugin, name, "test"):
        raise AssertionError(str(registry.broken[-1]))


def _offering(classes: Iterable[type[Plugin]]) -> object:
    """Return an object whose hooks return these classes."""
    by_hook: dict[str, list[type[Plugin]]] = {}
    for cls in classes:
        by_hook.setdefault(kind_of(cls).hook, []).append(cls)
    hooks: dict[str, Any] = {
        name: staticmethod(hookimpl(_returning(name, found))) for name, found in by_hook.items()
    }
    return type("UnderTest", (), hooks)()


def _returning(name: str, classes: list[type[Plugin]]) -> Callable[[], list[type[Plugin]]]:
    def hook() -> list[type[Plugin]]:
        return classes

    hook.__name__ = name
    return hook
