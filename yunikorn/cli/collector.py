"""Python's garbage collector, set for a process that does nothing but schedule.

A scheduler keeps what it makes: requests and allocations stay until they end, and by then most are freed
at once, without the collector. Left as it is, the collector looks through young objects every 700 of them and
finds next to nothing. Who owns the process may have it look less often; a library may not, so this is
done by the command line only. What is in cycles is found all the same, later.
"""

from __future__ import annotations

import gc

YOUNG = 10_000
"""Objects made, less those freed, between two looks at the young ones."""
MIDDLE = 50
"""Looks at the young ones between two at those that have survived one."""
OLD = 2
"""Looks at those between two at everything: after a million objects that have stayed, whatever they are."""


def settle_collector() -> None:
    """Set the collector of this process; call it once, when what is imported stays until the end."""
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)
