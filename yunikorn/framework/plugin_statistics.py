"""Statistics of plugins: how often their methods are called, how long they take, and how often they refuse.

A registry that counts (`Registry.counting`) gives every object that it makes a class derived from that of the
plugin, whose methods pass each call on. One call in `SAMPLED` is measured, and stands for the others. Without
statistics nothing is added to a call (`docs/decisions/0083`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from itertools import chain, cycle, repeat
from threading import Lock
from types import FunctionType
from typing import Any

import attrs

from yunikorn.api import Plugin
from yunikorn.containment import contained
from yunikorn.framework.kinds import Kind

SAMPLED = 64
"""One of so many calls is measured; the first calls, as many as this, are all measured."""
SECOND = 1_000_000_000


_COUNTED = "_counted_by_yunikorn"
"""Attribute of a derived class with the class of the plugin."""


def uncounted(cls: type[Any]) -> type[Any]:
    """Return the class of a plugin, given that of its object."""
    found: type[Any] = type.__getattribute__(cls, "__dict__").get(_COUNTED, cls)
    return found


@attrs.frozen
class MethodUse:
    """Use of one method of a plugin since the start of the statistics."""

    plugin: str
    """Name, plugin, distribution and version."""
    kind: str
    """Id of the kind, such as `app-sort`."""
    method: str
    calls: int
    """Number of calls, exact up to `SAMPLED`, then too low by less than `SAMPLED`."""
    seconds: float
    """Time spent in the calls, estimated from those that were measured."""
    refusals: int
    """Number of calls that refused, estimated likewise; 0 for methods that cannot refuse."""

    def __str__(self) -> str:
        each = self.seconds / max(1, self.calls) * 1e6
        calls = f"{self.calls:,} call{'' if self.calls == 1 else 's'}"
        text = f"{self.plugin}: {self.method}: {calls}, {self.seconds:.3g} s ({each:.3g} µs each)"
        return f"{text}, {self.refusals:,} refusals" if self.refusals else text


class _Meter:
    """Measurements of one method of a plugin."""

    __slots__ = ("_lock", "early_refusals", "early_time", "refusals", "samples", "time")

    def __init__(self) -> None:
        self._lock = Lock()
        """Taken for measured calls only; workers call policies of several partitions at the same time."""
        self.samples = 0
        """Number of measured calls."""
        self.early_time = self.early_refusals = 0
        """Time (ns) and refusals of the first `SAMPLED` calls."""
        self.time = self.refusals = 0
        """Time (ns) and refusals of later measured calls."""

    def add(self, time: int, refused: bool) -> None:
        """Add a measured call, in any thread."""
        with self._lock:
            if self.samples < SAMPLED:
                self.early_time += time
                self.early_refusals += refused
            else:
                self.time += time
                self.refusals += refused
            self.samples += 1

    def use(self, plugin: str, kind: str, method: str) -> MethodUse:
        """Return the use of the method."""
        later = max(0, self.samples - SAMPLED)
        return MethodUse(
            plugin,
            kind,
            method,
            self.samples + later * (SAMPLED - 1),
            (self.early_time + self.time * SAMPLED) / SECOND,
            self.early_refusals + self.refusals * SAMPLED,
        )


class PluginStatistics:
    """Statistics of the plugin objects that counting registries make; may be read from any thread.

    Objects with the same origin are counted together.
    """

    def __init__(self, stopwatch: Callable[[], int]) -> None:
        """Create without counts; `stopwatch` returns a time in nanoseconds that never goes back."""
        self._stopwatch = stopwatch
        self._meters: dict[tuple[str, str, str], _Meter] = {}
        """Measurements by origin, kind and method."""
        self._counted: dict[tuple[type[Any], str], type[Any] | None] = {}
        """Derived class of each class and origin; None for a class that cannot be counted."""

    def __iter__(self) -> Iterator[MethodUse]:
        """Return the use of each method that was called, by kind, plugin and method."""
        meters = sorted(list(self._meters.items()), key=lambda item: (item[0][1], item[0][0], item[0][2]))
        return iter([meter.use(*key) for key, meter in meters if meter.samples])

    def count(self, plugin: Plugin, kind: Kind, origin: str) -> None:
        """Count the calls of an object from now on, if its class permits that."""
        cls = type(plugin)
        key = (cls, origin)
        if key not in self._counted:
            self._counted[key] = self._derive(cls, kind, origin)
        derived = self._counted[key]
        if derived is not None:
            # A frozen class refuses an ordinary assignment.
            object.__setattr__(plugin, "__class__", derived)

    def _derive(self, cls: type[Any], kind: Kind, origin: str) -> type[Any] | None:
        """Return a class with the same layout whose methods count; None if there can be none."""
        namespace: dict[str, Any] = {"__slots__": (), "__doc__": None, "__module__": cls.__module__}
        namespace[_COUNTED] = cls
        for name in sorted({*dir(kind.base), kind.method}):
            found = inspect.getattr_static(cls, name)
            is_own = found is not inspect.getattr_static(kind.base, name, None)
            if is_own and not hasattr(Plugin, name) and isinstance(found, FunctionType):
                meter = self._meters.setdefault((origin, kind.id, name), _Meter())
                namespace[name] = self._counting(found, meter, name in kind.refusing)
        metaclass: Any = type(cls)
        try:
            derived: type[Any] = metaclass(cls.__name__, (cls,), namespace)
            derived.__qualname__ = cls.__qualname__
            object.__setattr__(object.__new__(cls), "__class__", derived)
        except contained():
            return None  # a metaclass, `__init_subclass__` or layout that permits no derived class
        return derived

    def _counting(self, inner: FunctionType, meter: _Meter, refuses: bool) -> Callable[..., Any]:
        stopwatch = self._stopwatch

        def measured(*arguments: Any, **named: Any) -> Any:
            refused, start = False, stopwatch()
            try:
                answer = inner(*arguments, **named)
                refused = refuses and answer is not None
                return answer
            finally:
                meter.add(stopwatch() - start, refused)

        later: Iterator[Callable[..., Any]] = cycle((*repeat(inner, SAMPLED - 1), measured))
        # The choice of the function is made in C, which costs less than a counter in Python.
        return wraps(inner)(_passing(inner, chain(repeat(measured, SAMPLED), later).__next__))


def _passing(inner: FunctionType, pick: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    """Return a method that passes its arguments to the function that `pick` returns."""
    parameters = inspect.signature(inner).parameters.values()
    plain = all(one.kind is one.POSITIONAL_OR_KEYWORD and one.default is one.empty for one in parameters)
    maker = {2: _with_one, 3: _with_two, 4: _with_three}.get(len(parameters)) if plain else None
    if maker is None:
        return _with_any(pick)
    passing = maker(pick)
    # Arguments may be passed by name.
    names = tuple(one.name for one in parameters)
    passing.__code__ = passing.__code__.replace(co_varnames=names, co_name=inner.__name__)
    return passing


def _with_one(pick: Callable[[], Callable[..., Any]]) -> FunctionType:
    def passing(self: Any, one: Any) -> Any:
        return pick()(self, one)

    assert isinstance(passing, FunctionType)
    return passing


def _with_two(pick: Callable[[], Callable[..., Any]]) -> FunctionType:
    def passing(self: Any, one: Any, two: Any) -> Any:
        return pick()(self, one, two)

    assert isinstance(passing, FunctionType)
    return passing


def _with_three(pick: Callable[[], Callable[..., Any]]) -> FunctionType:
    def passing(self: Any, one: Any, two: Any, three: Any) -> Any:
        return pick()(self, one, two, three)

    assert isinstance(passing, FunctionType)
    return passing


def _with_any(pick: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    def passing(*arguments: Any, **named: Any) -> Any:
        return pick()(*arguments, **named)

    return passing
