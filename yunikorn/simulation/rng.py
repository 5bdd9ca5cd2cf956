"""Chance from a seed: streams of numbers that are the same on every machine.

The one place where dice are thrown, and never without a seed: a seed and a name make a stream, and streams
of different names know nothing of each other, so that what is drawn for one purpose does not change what is
drawn for another.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

Rng = Callable[[], float]
"""The next number of a stream: at least 0 and below 1, each multiple of 2**-53 as likely as any other."""

Streams = Callable[[str], Rng]
"""A stream for a name; asked again it starts anew."""


def streams(seed: int) -> Streams:
    """The streams of a seed."""

    def stream(name: str) -> Rng:
        # From a text the generator is seeded by SHA-512 of its bytes, the same in every version of Python.
        return Random(f"yunikorn {seed} {name}").random

    return stream
