"""Cost of a call, counted in executed lines of Python, which does not depend on the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
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
