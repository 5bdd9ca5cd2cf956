"""Explanations for resource managers that show their users why requests wait."""

from __future__ import annotations

from collections.abc import Generator

import attrs

from yunikorn.explain.explanations import AWAITS_VICTIMS as AWAITS_VICTIMS
from yunikorn.explain.explanations import Reason, of_application
from yunikorn.interface.administration import application_named
from yunikorn.interface.scheduler import Scheduler
from yunikorn_service.grouped_explanations import RequestGroup, explain_in_groups, explained_in_slices
from yunikorn_service.runtime.sliced_reads import Reading

GROUPS = 200
"""Maximum number of groups of requests that are explained at once."""
KEYS = 1_000_000
"""Maximum number of keys of a group."""


@attrs.frozen
class WaitingGroup:
    """Requests of an application that wait for the same reasons."""

    keys: tuple[str, ...]
    queue: str
    reasons: tuple[str, ...]
    """Conditions that stop the requests, in the order of the scheduling cycle, with the current numbers."""
    fixes: tuple[str, ...]
    """The smallest set of changes that together would let the requests run."""
    kinds: tuple[str, ...] = ()
    """Summaries of the same conditions, without numbers."""


def waiting_requests(
    rm_id: str, app_id: str, partition: str = "default"
) -> Reading[tuple[WaitingGroup, ...]]:
    """Return a reading that explains the pending requests of an application.

    The reading raises `UsageError` if there is no such application.
    """

    def read(scheduler: Scheduler) -> Generator[None, None, tuple[WaitingGroup, ...]]:
        for owner, at in scheduler.all_partitions():
            if owner == rm_id and at.name == partition:
                app = application_named(at, app_id)
                queue = app.queue.path if app.queue is not None else app.queue_name
                shared = tuple(of_application(at, app))
                found = yield from explained_in_slices(scheduler, explain_in_groups(at, app, GROUPS, KEYS))
                return tuple(_group(one, queue, shared) for one in found.groups)
        return ()

    return read


def _group(one: RequestGroup, queue: str, shared: tuple[Reason, ...]) -> WaitingGroup:
    details = {reason.detail for reason in shared}
    reasons = (*shared, *(reason for reason in one.reasons if reason.detail not in details))
    return WaitingGroup(
        tuple(one.keys),
        queue,
        tuple(reason.detail for reason in reasons),
        one.fixes,
        tuple(reason.summary for reason in reasons),
    )
