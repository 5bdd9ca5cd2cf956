"""Candidates: the allocations that may have to go for a request (facts §9.3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from yunikorn.scheduling.ask_admission import REQUIRED_NODE_TAG
from yunikorn.scheduling.preemption.fence import fence_root, reaches

if TYPE_CHECKING:
    from yunikorn.objects.allocation import Allocation
    from yunikorn.objects.ask import Ask
    from yunikorn.objects.queue import Queue
    from yunikorn.scheduling.preemption.candidate_pool import EligibleLeaves
    from yunikorn.scheduling.preemption.entitlement import Entitlement
    from yunikorn.scheduling.preemption.snapshot import Pairs, PreemptionSnapshot


def may_go(allocation: Allocation, *, originators: bool = False) -> bool:
    """Whether an allocation can be a victim at all.

    Work that opted out, or that belongs on its node and nowhere else, never is; what is on its way out
    is not asked again, nor is what only waits for a placeholder to go. Originators go only where that is
    allowed (decision 23).
    """
    # Asked of all that runs: what nearly all have nothing of is looked at once.
    spec, extras = allocation.spec, allocation.extras
    if extras is not None and (extras.releasing is not None or extras.replaces is not None):
        return False
    return (
        spec.may_be_preempted
        and (originators or not spec.originator)
        and not (spec.tags and spec.tags.get(REQUIRED_NODE_TAG))
    )


def uses_any_of(allocation: Allocation, pairs: Pairs) -> bool:
    """Whether it holds anything of what is needed."""
    resource = allocation.resource
    for name, _ in pairs:
        if resource.get(name, 0) > 0:
            return True
    return False


def across_queues(ask: Ask, snapshot: PreemptionSnapshot, entitled: Entitlement) -> dict[Queue, int | None]:
    """For a request that a guarantee covers: where work of others may go, of its priority or less.

    Work without a guarantee of its own stays if the guarantee that is called on covers it as well: it has
    the same right to the room as the request.
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
    """For a request without a guarantee: where work of lower priority may go, of others or its own queue."""
    leaf = ask.app.chain[0]
    found: dict[Queue, int | None] = {}
    if outside:
        found = _outside(ask, snapshot, fence_root(leaf, ask.ask_class.pairs, snapshot), less=True)
        found = {queue: most for queue, most in found.items() if _shared(queue, leaf).settings.sort_priority}
    if inside and leaf.settings.sort_priority:
        found[leaf] = ask.priority - 1
    return found


def _shared(queue: Queue, other: Queue) -> Queue:
    """The lowest queue above both.

    Its order decides between them. Where that ignores priorities, work that ended for a more important
    request would take the room back as soon as it is submitted again.
    """
    above = other.chain
    return next(each for each in queue.chain if each in above)


def candidates_on(eligible: EligibleLeaves) -> Iterator[Allocation]:
    """What may go there, for whatever is asked."""
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
