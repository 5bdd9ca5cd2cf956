"""The machine under the numbers: a yardstick of its speed, and the memory that was needed."""

from __future__ import annotations

import heapq
import sys
import time
from pathlib import Path

TURNS = 100_000
ROUNDS = 3


def _loop(turns: int) -> int:
    """What a scheduler does most, in plain Python: dictionaries, tuples, a heap, small integers."""
    heap: list[tuple[int, int]] = []
    amounts: dict[int, int] = {}
    total = 0
    for turn in range(turns):
        key = turn * 7919 % 1024
        amounts[key] = amounts.get(key, 0) + turn
        heapq.heappush(heap, (amounts[key], turn))
        if len(heap) > 64:
            total += heapq.heappop(heap)[1]
    return total


def yardstick() -> float:
    """How many million turns of a fixed pure-Python loop this machine does in a second, best of three.

    To compare numbers of two machines, or of a busy and an idle hour, divide them by their yardsticks.
    """
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        _loop(TURNS)
        best = min(best, time.perf_counter() - start)
    return TURNS / best / 1e6


def peak_megabytes() -> float:
    """The most memory this process ever had (10**6 bytes); 0.0 where the system does not tell."""
    try:
        # Not getrusage alone: on Linux its figure starts at the size of the process that started us.
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass
    return _resident_maximum(children=False)


def peak_megabytes_of_children() -> float:
    """The most memory that any ended child process had (10**6 bytes)."""
    return _resident_maximum(children=True)


def _resident_maximum(*, children: bool) -> float:
    try:
        import resource
    except ImportError:
        return 0.0
    usage = resource.getrusage(resource.RUSAGE_CHILDREN if children else resource.RUSAGE_SELF)
    unit = 1 if sys.platform == "darwin" else 1024
    return usage.ru_maxrss * unit / 1e6
