"""Settings of Python's garbage collector for a process that only schedules.

The objects of a scheduler are long-lived: requests and allocations stay until they end, and then reference
counting frees most of them, without the collector. With Python's defaults, the collector scans the young
objects after every 700 new ones, and finds almost nothing. Less frequent collections find reference cycles
later, but still find them. Only the command line changes these settings, because a library must not change
those of its process.
"""

from __future__ import annotations

import gc

YOUNG = 10_000
"""Allocations minus deallocations between two collections of the young generation."""
MIDDLE = 50
"""Collections of the young generation between two collections of the middle generation."""
OLD = 2
"""Collections of the middle generation between two full collections: one per million surviving objects."""


def settle_collector() -> None:
    """Configure the collector of this process; call once, after imports, whose objects are permanent."""
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)
