"""A world without clock and chance, for the moment in which a decision is asked for."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import pytest

CLOCKS = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "sleep")
DICE = ("random", "randint", "choice", "shuffle", "uniform", "randrange", "sample", "getrandbits")


class ReadsClock(Exception):
    """What a plugin gets that reads the machine's clock or throws dice."""


@contextmanager
def without_clock_and_chance() -> Iterator[None]:
    """While this is open, the functions of `time` and `random` raise `ReadsClock`."""
    with pytest.MonkeyPatch.context() as patch:
        for name in CLOCKS:
            patch.setattr(time, name, _raising(f"time.{name}() was called: use context.now() of `opened`"))
        for name in DICE:
            patch.setattr(random, name, _raising(f"random.{name}() was called: equal input, equal decisions"))
        yield


def _raising(text: str) -> Callable[..., Any]:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise ReadsClock(text)

    return refuse
