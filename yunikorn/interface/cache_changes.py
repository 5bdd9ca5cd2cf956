"""What an RM that keeps a cache of its nodes has to assume and to forget (decision 37).

A commit is assumed: the RM's cache is to count on an allocation before the RM is told of it, because the
next predicate may be asked at once. An allocation that ends by a word of the core, so that nothing has to be
confirmed, is forgotten: its node is gone, or its application failed or was removed. What the core only tells
the RM to end (preempted, timed out, replaced) still runs, and the RM forgets it itself when it ends it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.interface.messages import (
    AssumedAllocation,
    ForgotAllocation,
    ReSyncSchedulerCacheArgs,
    TerminationType,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from yunikorn.objects.outbox import Outbox


def cache_changes(outboxes: Iterable[Outbox]) -> ReSyncSchedulerCacheArgs | None:
    """What follows from all that waits to be handed out; None if nothing does.

    An allocation that began and ended since the last time is not mentioned.
    """
    args = ReSyncSchedulerCacheArgs()
    for outbox in outboxes:
        begun = {placed.uuid: placed for placed in outbox.allocations}
        for release in outbox.releases:
            gone = release.allocation
            if release.termination == TerminationType.STOPPED_BY_RM and not begun.pop(gone.uuid, None):
                args.forget_allocations.append(ForgotAllocation(gone.key, gone.node.id))
        args.assumed_allocations += [
            AssumedAllocation(placed.key, placed.node.id) for placed in begun.values()
        ]
    return args if args.assumed_allocations or args.forget_allocations else None
