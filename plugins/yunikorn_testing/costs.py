"""Costs of a plugin: executed lines of Python, which do not depend on the machine, and objects it keeps."""

from __future__ import annotations

import gc
import inspect
import sys
from collections import deque
from collections.abc import Callable, Iterable
from functools import lru_cache
from types import FrameType, ModuleType, NoneType
from typing import Any

WARM = 3
"""Number of calls before the counted one, so that one-time work is not counted."""


def count_operations(call: Callable[[], object]) -> int:
    """Return the number of executed lines and function calls in Python during one `call`.

    Work in C, such as sorting a list, is not counted. An active debugger or coverage measurement does not
    see the call.
    """
    for _ in range(WARM):
        call()
    count = 0

    def step(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += 1
        return step

    before = sys.gettrace()
    sys.settrace(step)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


@lru_cache(maxsize=64)
def _count_parameters(function: Callable[..., object]) -> int:
    return len(inspect.signature(function).parameters)


def count_parameters(method: Callable[..., object]) -> int:
    """Return the number of arguments that a bound method takes; questions are put thousands of times."""
    inner = getattr(method, "__func__", None)
    return len(inspect.signature(method).parameters) if inner is None else _count_parameters(inner) - 1


CONTAINERS = (dict, list, tuple, set, frozenset, deque)
ATOMS = frozenset({int, float, bool, NoneType})
"""Types of objects that refer to no others."""


TEXT_PER_ENTRY = 64
"""Length of a text that counts as one object."""


def own_modules(cls: type[Any]) -> list[ModuleType]:
    """Return the imported modules of the package in which a plugin class is written."""
    package = cls.__module__.partition(".")[0]
    names = [name for name in sys.modules if name == package or name.startswith(f"{package}.")]
    # The packages of this file and of its tests contain more than the plugin.
    if package in (__package__.partition(".")[0], "tests"):
        names = [cls.__module__]
    return [module for name in names if isinstance(module := sys.modules.get(name), ModuleType)]


def count_retained(plugin: object) -> int:
    """Return the number of objects and entries that the plugin, its classes and its modules refer to.

    Entries of mappings, sequences, sets and `functools.lru_cache` count each, and so do parts of texts.
    Objects of other packages count, but not what they refer to.
    """
    modules = own_modules(type(plugin))
    own = {module.__name__ for module in modules} | {type(plugin).__module__}
    waiting: list[Any] = [plugin, *type(plugin).__mro__[:-1], *(vars(module) for module in modules)]
    seen: dict[int, Any] = {}
    entries = 0
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen[id(one)] = one
        if type(one) in ATOMS:
            continue
        if isinstance(one, str | bytes | bytearray):
            entries += len(one) // TEXT_PER_ENTRY
            continue
        info = one.cache_info if callable(one) and hasattr(type(one), "cache_info") else None
        if info is not None:
            entries += info().currsize
        elif isinstance(one, CONTAINERS):
            entries += len(one)
            waiting.extend(one)
            waiting.extend(one.values() if isinstance(one, dict) else ())
        elif _is_followed(one, own):
            waiting.extend(_parts(one))
    return len(seen) + entries


def _is_followed(one: Any, own: set[str]) -> bool:
    if inspect.isclass(one):
        return one.__module__ in own
    if inspect.isfunction(one):
        return one.__module__ in own
    return type(one).__module__ in own


def _parts(one: Any) -> Iterable[Any]:
    if inspect.isfunction(one):
        return [one.__closure__, one.__defaults__]
    if inspect.isclass(one):
        return [dict(vars(one))]
    return [part for part in gc.get_referents(one) if not isinstance(part, ModuleType)]
