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
from itertools import chain, compress, cycle, repeat
from operator import length_hint
from threading import Lock
from types import FunctionType
from typing import Any

import attrs

from yunikorn.api import Plugin
from yunikorn.containment import contained
from yunikorn.framework.kinds import PluginKind

FIRST = 64
"""The first calls of a method, as many as this, are all measured."""
SAMPLED = 512
"""Later, one of so many calls is measured: a measured call costs several microseconds of a busy core."""
SECOND = 1_000_000_000
MOST = 2**62
"""Largest number of calls that is counted."""

_COUNTED = "_counted_by_yunikorn"
"""Attribute of a derived class with the class of the plugin."""
_METERS = "_meters_of_yunikorn"
"""Attribute of a derived class with the meters of its methods."""


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
    seconds: float
    """Time spent in the calls, estimated from those that were measured."""
    refusals: int
    """Number of calls that refused by their answer; 0 for methods that cannot refuse."""

    def __str__(self) -> str:
        each = self.seconds / max(1, self.calls) * 1e6
        calls = f"{self.calls:,} call{'' if self.calls == 1 else 's'}"
        text = f"{self.plugin}: {self.method}: {calls}, {self.seconds:.3g} s ({each:.3g} µs each)"
        return f"{text}, {self.refusals:,} refusals" if self.refusals else text


@attrs.define
class SearchCount:
    """Numbers of answers of a method that the callers count themselves; see `CountedChain`."""

    accepted: int = 0
    refused: int = 0
    failed: int = 0

    def failed_instead(self) -> None:
        """Count a call that failed, and that the caller counts as a refusal later."""
        self.failed += 1
        self.refused -= 1


class MethodMeter:
    """Measurements of one method of a plugin."""

    __slots__ = ("_early_time", "_lock", "_samples", "_stopwatch", "_time", "called", "refused", "searches")

    def __init__(self, stopwatch: Callable[[], int]) -> None:
        self._stopwatch = stopwatch
        self._lock = Lock()
        """Taken for measured calls only; workers call policies of several partitions at the same time."""
        self._samples = self._early_time = self._time = 0
        """Number of measured calls; time (ns) of the first `FIRST` of them, and of the others."""
        self.called, self.refused = repeat(True, MOST), repeat(True, MOST)
        """Iterators that each call and each refusal advances, in C, and therefore in any thread."""
        self.searches = SearchCount()

    def add(self, time: int) -> None:
        """Add a measured call, in any thread."""
        with self._lock:
            if self._samples < FIRST:
                self._early_time += time
            else:
                self._time += time
            self._samples += 1

    def measuring(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that measures its calls of `inner`."""
        stopwatch, add = self._stopwatch, self.add

        def measured(*arguments: Any, **named: Any) -> Any:
            start = stopwatch()
            try:
                return inner(*arguments, **named)
            finally:
                add(stopwatch() - start)

        return measured

    def sampling(
        self, inner: Callable[..., Any], *, first: int = FIRST, sampled: int = SAMPLED
    ) -> Iterator[Callable[..., Any]]:
        """Yield the function to call: `first` times one that measures, then that once in `sampled` times."""
        measured = self.measuring(inner)
        return chain(repeat(measured, first), cycle((*repeat(inner, sampled - 1), measured)))

    def use(self, plugin: str, kind: str, method: str) -> MethodUse:
        """Return the use of the method."""
        found = self.searches
        calls = MOST - length_hint(self.called) + found.accepted + found.refused + found.failed
        refusals = MOST - length_hint(self.refused) + found.refused
        with self._lock:
            early = min(self._samples, FIRST)
            time, samples = float(self._early_time), self._samples - early
            if samples:
                time += self._time / samples * (calls - early)
            elif early:
                time *= calls / early
        return MethodUse(plugin, kind, method, calls, time / SECOND, refusals)


class PluginStatistics:
    """Statistics of the plugin objects that counting registries make; may be read from any thread.

    Objects with the same origin are counted together.
    """

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
        namespace |= {_COUNTED: cls, _METERS: meters}
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


def meter_of(plugin: Plugin, method: Callable[..., Any]) -> MethodMeter | None:
    """Return the meter of a function that is a method of the plugin's class; None if it counts no calls."""
    found: dict[Any, MethodMeter] = type.__getattribute__(type(plugin), "__dict__").get(_METERS, {})
    return found.get(method)


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
