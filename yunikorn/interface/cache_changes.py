"""Changes for RMs that keep a cache of their nodes: allocations to assume and to forget.

The RM's cache assumes an allocation before the RM gets the response with that allocation, because the next
predicate may be asked at once. The cache forgets an allocation that the core ends without a confirmation of
the RM: its node was removed, or its application failed or was removed. An allocation that the core only asks
the RM to end (preempted, timed out, replaced) still runs, and the RM forgets it when it ends. See
`docs/decisions/0037`.
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

    from yunikorn.accounting.outbox import Outbox


def cache_changes(outboxes: Iterable[Outbox]) -> ReSyncSchedulerCacheArgs | None:
    """Return the cache changes of all messages in these outboxes, or None if there are none.

    An allocation that began and ended since the last call is left out.
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
