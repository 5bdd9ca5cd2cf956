"""Candidates: allocations that may be preempted for a request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from yunikorn.scheduling.ask_admission import REQUIRED_NODE_TAG
from yunikorn.scheduling.preemption.fence import fence_root, reaches

if TYPE_CHECKING:
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.ask import Ask
    from yunikorn.model.queue import Queue
    from yunikorn.scheduling.preemption.candidate_pool import EligibleLeaves
    from yunikorn.scheduling.preemption.entitlement import Entitlement
    from yunikorn.scheduling.preemption.snapshot import Pairs, PreemptionSnapshot


def may_go(allocation: Allocation, *, originators: bool = False) -> bool:
    """Return True if an allocation can be a victim at all.

    Excluded are allocations that opted out or require their node (daemon sets), allocations that are being
    released already, and those that wait for the end of a placeholder. Originators can be victims only where
    `originators` allows it (`docs/decisions/0023`).
    """
    # Called for every running allocation: most have no extras, so these are checked first.
    spec, extras = allocation.spec, allocation.extras
    if extras is not None and (extras.releasing is not None or extras.replaces is not None):
        return False
    return (
        spec.may_be_preempted
        and (originators or not spec.originator)
        and not (spec.tags and spec.tags.get(REQUIRED_NODE_TAG))
    )


def uses_any_of(allocation: Allocation, pairs: Pairs) -> bool:
    """Return True if the allocation uses any of the requested resource types."""
    resource = allocation.resource
    for name, _ in pairs:
        if resource.get(name, 0) > 0:
            return True
    return False


def across_queues(ask: Ask, snapshot: PreemptionSnapshot, entitled: Entitlement) -> dict[Queue, int | None]:
    """Return the leaves and highest priorities eligible for a request that a guarantee covers.

    Allocations in other leaves up to the priority of the request are eligible. Leaves without a guarantee of
    their own that share the guarantee on which the request relies are left out: they have an equal right to
    the room.
    """
    leaf, pairs = ask.app.chain[0], ask.ask_class.pairs
    found = _outside(ask, snapshot, entitled.root(fence_root(leaf, pairs, snapshot)), less=False)
    return {
        queue: most
        for queue, most in found.items()
        if not entitled.covers_neighbour(queue, pairs) or snapshot.remaining(queue, leaf) is not None
    }


def by_priority(
    ask: Ask, snapshot: PreemptionSnapshot, *, outside: bool, inside: bool
) -> dict[Queue, int | None]:
    """Return the leaves and priorities eligible for a request without a guarantee.

    Only allocations of lower priority are eligible, in other leaves (`outside`) or in its own (`inside`).
    """
    leaf = ask.app.chain[0]
    found: dict[Queue, int | None] = {}
    if outside:
        found = _outside(ask, snapshot, fence_root(leaf, ask.ask_class.pairs, snapshot), less=True)
        found = {queue: most for queue, most in found.items() if _shared(queue, leaf).settings.sort_priority}
    if inside and leaf.settings.sort_priority:
        found[leaf] = ask.priority - 1
    return found


def _shared(queue: Queue, other: Queue) -> Queue:
    """Return the lowest common ancestor of two queues.

    Its order decides between the two queues. If that order ignores priorities, preempted work would regain
    the room as soon as it is submitted again.
    """
    above = other.chain
    return next(each for each in queue.chain if each in above)


def candidates_on(eligible: EligibleLeaves) -> Iterator[Allocation]:
    """Yield the candidates in the eligible leaves."""
    for leaf, most in eligible.items():
        for app in leaf.applications.values():
            for allocation in app.allocations.values():
                if may_go(allocation) and (most is None or allocation.priority <= most):
                    yield allocation


def _outside(ask: Ask, snapshot: PreemptionSnapshot, root: Queue, *, less: bool) -> dict[Queue, int | None]:
    leaf = ask.app.chain[0]
    found: dict[Queue, int | None] = {}
    for victim_leaf in reaches(leaf, root, ask.priority, less=less):
        remaining = snapshot.remaining(victim_leaf.queue, leaf)
        if remaining is None or any(value < 0 for value in remaining.values()):
            found[victim_leaf.queue] = None if victim_leaf.fenced else victim_leaf.priority - less
    return found
