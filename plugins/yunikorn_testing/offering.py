"""Registration of plugins under test without installation, and their options as text of a configuration."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs

from yunikorn.api import Plugin, hookimpl
from yunikorn.framework.kinds import ALL_KINDS, PluginKind
from yunikorn.framework.registry import Registry

UNDER_TEST = "under-test"


def kind_of(cls: type[Any]) -> PluginKind:
    """Return the kind of a plugin class, or the first of several. Raises `TypeError` for any other object."""
    kinds = {kind.base: kind for kind in ALL_KINDS}
    for base in cls.__mro__ if isinstance(cls, type) else ():
        if base in kinds:
            return kinds[base]
    bases = ", ".join(kind.base.__name__ for kind in ALL_KINDS)
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


def options_of(plugin: object) -> dict[str, Any]:
    """Return the values of a plugin object's options, by the names in the configuration."""
    cls = type(plugin)
    if attrs.has(cls):
        fields = [field for field in attrs.fields(cls) if field.init]
        return {field.alias or field.name: getattr(plugin, field.name) for field in fields}
    if dataclasses.is_dataclass(cls):
        return {field.name: getattr(plugin, field.name) for field in dataclasses.fields(cls) if field.init}
    return {}


def options_as_text(plugin: object, *, in_properties: bool) -> dict[str, Any]:
    """Return the options as in a configuration.

    `in_properties` converts all values to text, as in queue properties: a list is `A,B`, a mapping `A=1,B=2`.
    An option that is None is left out. Raises `ValueError` for a value that has no configuration syntax.
    """
    found = {}
    for name, value in options_of(plugin).items():
        if value is not None:
            try:
                found[name] = _in_property(value) if in_properties else _plain(value)
            except ValueError as error:
                raise ValueError(f"option '{name}': {error}") from None
    return found


def _in_property(value: Any) -> str:
    plain = _plain(value)
    if isinstance(plain, list):
        texts = [_text(item) for item in plain if not isinstance(item, (list, dict))]
        if len(texts) < len(plain) or any("," in text for text in texts):
            raise ValueError(
                f"{value!r} has no syntax in a queue property: a list there is comma-separated text"
            )
        return ",".join(texts)
    if isinstance(plain, dict):
        pairs = [(name, _text(item)) for name, item in plain.items() if not isinstance(item, (list, dict))]
        if len(pairs) < len(plain) or any("," in name + text or "=" in name for name, text in pairs):
            raise ValueError(
                f"{value!r} has no syntax in a queue property: a mapping there is NAME=VALUE,NAME=VALUE"
            )
        return ",".join(f"{name}={text}" for name, text in pairs)
    return _text(plain)


def _text(scalar: Any) -> str:
    return ("true" if scalar else "false") if isinstance(scalar, bool) else str(scalar)


def _plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return _plain(value.value)
    if isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {_text(_plain(name)): _plain(item) for name, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(_plain(item) for item in value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if attrs.has(type(value)):
        options = options_of(value)
        return {name: _plain(item) for name, item in options.items() if item is not None}
    raise ValueError(
        f"{value!r} has no configuration syntax: use text, numbers, lists, mappings or attrs classes"
    )
