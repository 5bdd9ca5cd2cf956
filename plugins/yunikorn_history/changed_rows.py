"""Rows of applications and allocations that are to be written, and the usage that follows from them."""

from __future__ import annotations

from itertools import islice, pairwise

from yunikorn.model.allocation import TerminationType
from yunikorn.resources import Resource
from yunikorn_history.history_tables import ALLOCATIONS, APPLICATIONS, ESTIMATED_END, PREEMPTED
from yunikorn_history.open_rows import OpenAllocation, OpenApplication, json_text
from yunikorn_history.row_ids import RowIds
from yunikorn_history.rows import Row, RowBatch
from yunikorn_history.service_usage import Period, ServiceUsage, UsageKey, periods_of

NOT_REPORTED = "not reported again after a restart"


class ChangedRows:
    """Changed rows of a recorder, oldest first, and the changes that allocations undergo."""

    def __init__(self, ids: RowIds) -> None:
        self.ids = ids
        self.usage: ServiceUsage | None = None
        self.applications: dict[OpenApplication, None] = {}
        self.allocations: dict[OpenAllocation, None] = {}
        self.latest: OpenAllocation | None = None
        """The allocation that ended last."""
        self.orphans: list[Row] = []
        """Ended rows of allocations whose application is not open any more."""

    def change(self, one: OpenAllocation) -> None:
        """Mark an allocation and its application as changed."""
        self.allocations[one] = None
        self.applications[one.app] = None

    def end(self, one: OpenAllocation, time: int, exit_type: TerminationType, message: str) -> None:
        """End an allocation (ms)."""
        # Whatever the clock did.
        one.ended = max(time, one.sizes[-1][0] if one.sizes else one.placed)
        one.leave(exit_type.name, self.ids.names)
        one.reason = self.ids.names.of(message)
        one.end(one.ended)
        self.latest = one
        self.change(one)

    def estimate_end(self, one: OpenAllocation) -> None:
        """End an allocation that was not reported again when it was last known to run."""
        one.flags |= ESTIMATED_END | (PREEMPTED if one.preemptor else 0)
        exit_type = TerminationType.PREEMPTED_BY_SCHEDULER if one.preemptor else TerminationType.UNKNOWN
        self.end(one, one.alive, exit_type, NOT_REPORTED)

    def resize(self, one: OpenAllocation, time: int, resource: Resource) -> None:
        """Change the size of an allocation (ms)."""
        one.resize(time, resource, self.ids.shape(resource))
        self.allocations[one] = None

    def fill(self, batch: RowBatch, most: int) -> None:
        """Add up to `most` changed rows of allocations, and likewise of applications, oldest first."""
        for one in [*islice(self.allocations, most)]:
            row, app = one.row(), one.app
            # After a kill, no row of an allocation may be without that of its application.
            of_app = app.row() if app in self.applications or not app.is_written else None
            self._count(one)
            if of_app is not None:
                self.applications.pop(app, None)
                app.is_written = True
                batch.add(APPLICATIONS.name, of_app)
            del self.allocations[one]
            one.is_written = True
            batch.add(ALLOCATIONS.name, row)
        for app in [] if self.allocations else [*islice(self.applications, most)]:
            batch.add(APPLICATIONS.name, app.row())
            del self.applications[app]
            app.is_written = True
        while self.orphans:
            batch.add(ALLOCATIONS.name, self.orphans.pop())
        self.ids.move_to(batch)

    def _count(self, one: OpenAllocation) -> None:
        """Count the service of an allocation whose row is written."""
        usage, placeholder = self.usage, one.is_placeholder
        if usage is None:
            return
        sizes, ended = [*one.sizes, [0, one.resource]], _end_of(one)
        if one.unseen is not None:
            if one.usage_key is not None:
                usage.withdrawn(one.usage_key, *one.unseen, placeholder=placeholder)
            one.unseen = one.usage_key = None
        if one.usage_key is None:
            one.usage_key, one.counted_sizes = self._usage_key(one.app), 0
            usage.placed(one.usage_key, one.placed, sizes[0][1], placeholder=placeholder)
        elif one.counted_end is not None and one.counted_end != ended:
            # The end that was counted was estimated.
            counted, preempted = one.counted_end
            usage.ended(one.usage_key, counted, placeholder=placeholder, preempted=preempted, sign=-1)
            one.counted_end = None
        for (time, before), (_, after) in pairwise(sizes[one.counted_sizes :]):
            usage.resized(one.usage_key, time, before, after, placeholder=placeholder)
        one.counted_sizes = len(one.sizes)
        if ended is not None and one.counted_end is None:
            usage.ended(one.usage_key, ended[0], placeholder=placeholder, preempted=ended[1])
            one.counted_end = ended

    def has_counted(self, one: OpenAllocation) -> None:
        """Note that an allocation of an earlier run has been counted, up to the latest checkpoint."""
        one.usage_key, one.counted_end = self._usage_key(one.app), _end_of(one)

    def _usage_key(self, app: OpenApplication) -> UsageKey:
        return app.rm_name, app.partition_name, app.queue, app.user, app.groups, app.tags


def _end_of(one: OpenAllocation) -> tuple[list[Period], bool] | None:
    """Return the periods of an allocation and whether it was preempted; None while it runs."""
    if one.ended is None:
        return None
    periods = periods_of(one.placed, one.ended, one.resource, json_text(one.sizes))
    return periods, bool(one.flags & PREEMPTED)
