"""Meters of the methods of plugins: calls, refusals, and time estimated from some of the calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, cycle, repeat
from operator import length_hint
from threading import Lock
from typing import Any

import attrs

from yunikorn.api import Plugin
from yunikorn.scheduling.predicate_calls import SearchCount

FIRST = 64
"""The first calls of a method, as many as this, are all measured."""
SAMPLED = 512
"""Later, one of so many calls is measured: a measured call costs several microseconds of a busy core."""
SECOND = 1_000_000_000
MOST = 2**62
"""Largest number of calls that is counted."""

METERS = "_meters_of_yunikorn"
"""Attribute of a derived class with the meters of its methods."""


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


def meter_of(plugin: Plugin, method: Callable[..., Any]) -> MethodMeter | None:
    """Return the meter of a function that is a method of the plugin's class; None if it counts no calls."""
    found: dict[Any, MethodMeter] = type.__getattribute__(type(plugin), "__dict__").get(METERS, {})
    return found.get(method)
