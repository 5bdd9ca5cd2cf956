"""Statistics of plugins: how often their methods are called, how long they take, and how often they refuse.

A registry that counts (`Registry.counting`) gives every object that it makes a class derived from that of the
plugin, whose methods pass each call on. Calls and refusals are counted exactly. The time of one call in
`SAMPLED` is measured, and stands for the others. Searches for a node count their calls of predicates
themselves (`SearchCount`). Without statistics nothing is added to a call. See `docs/decisions/archive/0083`,
`0133`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial, wraps
from itertools import compress
from types import FunctionType
from typing import Any, ClassVar

from yunikorn.api import Plugin
from yunikorn.containment import contained
from yunikorn.framework.kinds import PluginKind
from yunikorn_service.counted_chain import CountedChain
from yunikorn_service.method_meters import METERS, MethodMeter, MethodUse


class PluginStatistics:
    """Statistics of the plugin objects that counting registries make; may be read from any thread.

    Objects with the same origin are counted together.
    """

    chain: ClassVar[type[Any]] = CountedChain
    """Class of the chain of predicates."""

    def __init__(self, stopwatch: Callable[[], int]) -> None:
        """Create without counts; `stopwatch` returns a time in nanoseconds that never goes back."""
        self._stopwatch = stopwatch
        self._meters: dict[tuple[str, str, str], MethodMeter] = {}
        """Measurements by origin, kind and method."""
        self._counted: dict[tuple[type[Any], str], type[Any] | None] = {}
        """Derived class of each class and origin; None for a class that cannot be counted."""

    def __iter__(self) -> Iterator[MethodUse]:
        """Return the use of each method that was called, by kind, plugin and method."""
        meters = sorted(list(self._meters.items()), key=lambda item: (item[0][1], item[0][0], item[0][2]))
        uses = (meter.use(*key) for key, meter in meters)
        return iter([use for use in uses if use.calls])

    def count(self, plugin: Plugin, kind: PluginKind, origin: str) -> None:
        """Count the calls of an object from now on, if its class permits that."""
        cls = type(plugin)
        key = (cls, origin)
        if key not in self._counted:
            self._counted[key] = self._derive(cls, kind, origin)
        derived = self._counted[key]
        if derived is not None:
            # A frozen class refuses an ordinary assignment.
            object.__setattr__(plugin, "__class__", derived)

    def _derive(self, cls: type[Any], kind: PluginKind, origin: str) -> type[Any] | None:
        """Return a class with the same layout whose methods count; None if there can be none."""
        namespace: dict[str, Any] = {"__slots__": (), "__doc__": None, "__module__": cls.__module__}
        meters: dict[Callable[..., Any], MethodMeter] = {}
        namespace |= {METERS: meters}
        for name in sorted({*dir(kind.base), kind.method}):
            found = inspect.getattr_static(cls, name)
            is_own = found is not inspect.getattr_static(kind.base, name, None)
            if is_own and not hasattr(Plugin, name) and isinstance(found, FunctionType):
                meter = self._meters.setdefault((origin, kind.id, name), MethodMeter(self._stopwatch))
                namespace[name] = wraps(found)(_passing(found, meter, name in kind.refusing))
                meters[namespace[name]] = meter
        metaclass: Any = type(cls)
        try:
            derived: type[Any] = metaclass(cls.__name__, (cls,), namespace)
            derived.__qualname__ = cls.__qualname__
            object.__setattr__(object.__new__(cls), "__class__", derived)
        except contained():
            return None  # a metaclass, `__init_subclass__` or layout that permits no derived class
        return derived


def _passing(inner: FunctionType, meter: MethodMeter, refuses: bool) -> FunctionType:
    """Return a method that counts its calls, and passes its arguments on to `inner`."""
    # The function is chosen and the call counted in C, by reading a property: as cheap as a call can be.
    chosen = compress(meter.sampling(inner), meter.called)
    box = type("Choice", (), {"__slots__": (), "function": property(partial(next, chosen))})()
    namespace = {"__builtins__": __builtins__, "box": box, "refused": meter.refused}
    parameters = inspect.signature(inner).parameters.values()
    plain = all(one.kind is one.POSITIONAL_OR_KEYWORD and one.default is one.empty for one in parameters)
    # The shapes of hot methods.
    template = {2: _with_one, 3: _refusing_with_two if refuses else _with_two}.get(len(parameters))
    if template is None or not plain or (refuses and template is not _refusing_with_two):
        template = _refusing_with_any if refuses else _with_any
        return FunctionType(template.__code__, namespace, inner.__name__)
    # Arguments may be passed by name.
    names = tuple(one.name for one in parameters)
    locals_too = names + template.__code__.co_varnames[len(names) :]
    code = template.__code__.replace(co_varnames=locals_too, co_name=inner.__name__)
    return FunctionType(code, namespace, inner.__name__)


box: Any = None
"""In the namespace of each function made of those below: its property returns the function to call."""
refused: Iterator[bool] = iter(())
"""Likewise, the iterator that a refusal advances."""


def _with_one(self: Any, one: Any) -> Any:
    return box.function(self, one)


def _with_two(self: Any, one: Any, two: Any) -> Any:
    return box.function(self, one, two)


def _with_any(*arguments: Any, **named: Any) -> Any:
    return box.function(*arguments, **named)


def _refusing_with_two(self: Any, one: Any, two: Any) -> Any:
    answer = box.function(self, one, two)
    if answer is not None:
        next(refused)
    return answer


def _refusing_with_any(*arguments: Any, **named: Any) -> Any:
    answer = box.function(*arguments, **named)
    if answer is not None:
        next(refused)
    return answer
