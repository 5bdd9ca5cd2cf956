"""How much work a call is, counted in lines that Python runs: the same on every machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

WARM = 3
"""Calls before one is counted: what is only done once is not counted."""


def count_operations(call: Callable[[], object]) -> int:
    """How many lines of Python run, and how many functions are entered, while `call` is made once.

    What is done in C, such as sorting a list, counts as nothing. A debugger or a measurement of coverage
    that is active sees nothing of the call.
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
