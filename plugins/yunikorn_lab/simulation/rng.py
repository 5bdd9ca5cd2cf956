"""Random number streams that are identical on every machine.

All random numbers of a simulation come from this module. A seed and a name determine a stream. Streams of
different names are independent: changes in the use of one stream do not affect values drawn from other
streams.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

Rng = Callable[[], float]
"""Returns the next number of a stream: a random multiple of 2**-53, at least 0 and below 1."""

Streams = Callable[[str], Rng]
"""Returns the stream of a name, always from its beginning."""


def streams(seed: int) -> Streams:
    """Return the streams of a seed."""

    def stream(name: str) -> Rng:
        # Random seeds itself with the SHA-512 of a text, which is stable across versions of Python.
        return Random(f"yunikorn {seed} {name}").random

    return stream
