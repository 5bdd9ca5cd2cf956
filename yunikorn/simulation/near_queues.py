"""Near queue names in reasons of rejections, for applications that name a queue that does not exist."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Sequence

import attrs

from yunikorn.simulation.counters import RefusalReason

_MISSING = re.compile(r"queue (root\.[^ ,;()]+) does not exist")
CUTOFF = 0.6
"""Smallest similarity of a near name, from 0 to 1."""


def with_near_queues(reasons: Sequence[RefusalReason], queues: Collection[str]) -> list[RefusalReason]:
    """Return reasons in which the first queue that does not exist is followed by the nearest leaf queue."""

    def named(found: re.Match[str]) -> str:
        near = difflib.get_close_matches(found[1].lower(), queues, n=1, cutoff=CUTOFF)
        return f"{found[0]} (near: {near[0]})" if near else found[0]

    return [attrs.evolve(each, reason=_MISSING.sub(named, each.reason, count=1)) for each in reasons]
