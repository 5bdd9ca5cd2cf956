"""Candidates: the allocations that may have to go for a request (facts §9.3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from yunikorn.scheduling.preemption.fence import fence_root, reaches

if TYPE_CHECKING:
    from yunikorn.objects.allocation import Allocation
    from yunikorn.objects.ask import Ask
    from yunikorn.objects.queue import Queue
    from yunikorn.scheduling.preemption.standings import Pairs, Standings

REQUIRED_NODE_TAG = "yunikorn.apache.org/requiredNode"


def may_go(allocation: Allocation, *, originators: bool = False) -> bool:
    """Whether an allocation can be a victim at all.

    Work that opted out, or that belongs on its node and nowhere else, never is; what is on its way out
    is not asked again, nor is what only waits for a placeholder to go. Originators go only where that is
    allowed (decision 23).
    """
    return (
        allocation.releasing is None
        and allocation.replaces is None
        and allocation.may_be_preempted
        and (originators or not allocation.originator)
        and not (allocation.tags and allocation.tags.get(REQUIRED_NODE_TAG))
    )


def shares_type(allocation: Allocation, pairs: Pairs) -> bool:
    """Whether it holds anything of what is needed."""
    resource = allocation.resource
    for name, _ in pairs:
        if resource.get(name, 0) > 0:
            return True
    return False


def across_queues(ask: Ask, standings: Standings) -> list[Allocation]:
    """For a request that its queue's guarantee covers: work of others, of its priority or less."""
    return list(_outside(ask, standings, less=False))


def by_priority(ask: Ask, standings: Standings, *, outside: bool, inside: bool) -> list[Allocation]:
    """For a request without a guarantee: work of lower priority, of others or of its own queue."""
    found = list(_outside(ask, standings, less=True)) if outside else []
    if inside:
        found += [one for one in _victims(ask.app.chain[0], ask) if one.priority < ask.priority]
    return found


def _outside(ask: Ask, standings: Standings, *, less: bool) -> Iterator[Allocation]:
    leaf, pairs = ask.app.chain[0], ask.shape.pairs
    for reach in reaches(leaf, fence_root(leaf, pairs, standings), ask.priority, less=less):
        remaining = standings.remaining(reach.queue, leaf)
        if remaining is not None and all(value >= 0 for value in remaining.values()):
            continue
        most = reach.priority - less
        for allocation in _victims(reach.queue, ask):
            if reach.fenced or allocation.priority <= most:
                yield allocation


def _victims(leaf: Queue, ask: Ask) -> Iterator[Allocation]:
    for app in leaf.applications.values():
        for allocation in app.allocations.values():
            if may_go(allocation) and shares_type(allocation, ask.shape.pairs):
                yield allocation
