"""Properties of machine and Python: a yardstick of the speed, peak memory, and how Python was built."""

from __future__ import annotations

import heapq
import platform
import sys
import sysconfig
import time
from pathlib import Path

TURNS = 100_000
ROUNDS = 3


def _loop(turns: int) -> int:
    """Run typical operations of a scheduler in pure Python: dictionaries, tuples, a heap, small integers."""
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
    """Return the speed of a fixed pure-Python loop in million iterations per second, best of three.

    To compare figures of two machines, or of a busy and an idle machine, divide them by their yardsticks.
    """
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        _loop(TURNS)
        best = min(best, time.perf_counter() - start)
    return TURNS / best / 1e6


def python_build() -> str:
    """Return name, version and optimisation of this Python, such as `CPython 3.11.7, PGO and LTO`.

    The optimisation is what the build of Python records about itself. Distributions that pass it by other
    ways than options of `configure`, such as Debian, record none.
    """
    name = f"{platform.python_implementation()} {platform.python_version()}"
    options = sysconfig.get_config_var("CONFIG_ARGS")
    if not isinstance(options, str):
        return f"{name}, build unknown"
    named = [
        label
        for label, option in (("PGO", "--enable-optimizations"), ("LTO", "--with-lto"))
        if option in options and f"{option}=no" not in options
    ]
    return f"{name}, {' and '.join(named) or 'no optimisation recorded'}"


def peak_megabytes(pid: int | None = None) -> float:
    """Return the peak memory of a process, by default of this one, in 10**6 bytes.

    Return 0.0 if the system does not report it.
    """
    try:
        # On Linux the figure of getrusage starts at the size of the parent process.
        for line in Path(f"/proc/{pid or 'self'}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass
    return _resident_maximum(children=False) if pid is None else 0.0


def peak_megabytes_of_children() -> float:
    """Return the peak memory of any ended child process (10**6 bytes)."""
    return _resident_maximum(children=True)


def _resident_maximum(*, children: bool) -> float:
    try:
        import resource
    except ImportError:
        return 0.0
    usage = resource.getrusage(resource.RUSAGE_CHILDREN if children else resource.RUSAGE_SELF)
    unit = 1 if sys.platform == "darwin" else 1024
    return usage.ru_maxrss * unit / 1e6
