"""Open rows of earlier sessions, which resource managers report again or not.

After a restart, and when a resource manager registers again, it reports what runs. Such an allocation
continues its row. The recovery of a resource manager is over when it has reported a node, and then nothing
that existed for `QUIET`; at the latest `LONGEST` after its registration. Rows that were not reported until
then get an end, which is estimated: the time at which they were last known to run. If they are reported later
nevertheless, they continue. What a resource manager ran that does not register within `ABSENT` has ended.

The id of an application says little: a resource manager may forget what ran, and submit the same ids again.
An application that had allocations is the same one only if some of its allocations exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import attrs

from yunikorn.model.application import Application
from yunikorn.model.creation_times import TIME_DIGITS
from yunikorn.model.gang import CREATION_TAG
from yunikorn.states import COMPLETING
from yunikorn_history.open_rows import OpenAllocation, OpenApplication

QUIET = 10_000
"""Time without a report after which a recovery is over (ms)."""
LONGEST = 300_000
"""Time from the registration after which a recovery is over (ms)."""
UNSEEN = 2_000
"""Time before the end of a session in which placements may not have reached the resource manager (ms)."""
ABSENT = 86_400_000
"""Time without a session after which what a resource manager ran has ended (ms)."""


@attrs.define
class SessionRecovery:
    """Rows of one resource manager that it has not reported in its present session."""

    limit: int
    """Time at which the recovery is over at the latest (ms)."""
    is_over: bool = False
    _quiet: int | None = None
    """Time at which the recovery is over unless more is reported; None before the first node (ms)."""
    _applications: dict[tuple[str, str], OpenApplication] = attrs.Factory(dict)
    _allocations: dict[OpenApplication, dict[str, list[OpenAllocation]]] = attrs.Factory(dict)

    def await_application(self, app: OpenApplication, alive: int) -> None:
        """Add an application that was known to run until `alive` (ms)."""
        app.alive = alive
        self._applications[app.partition, app.app_id] = app

    def await_allocation(self, allocation: OpenAllocation, alive: int) -> None:
        """Add an allocation that was known to run until `alive` (ms)."""
        allocation.alive = alive
        by_key = self._allocations.setdefault(allocation.app, {})
        by_key.setdefault(allocation.key, []).append(allocation)

    def begin(self, now: int) -> None:
        """Begin to expect reports: the resource manager has registered."""
        self.limit, self._quiet, self.is_over = now + LONGEST, None, False

    def reported(self, now: int, *, node: bool = False) -> None:
        """Note a report of something that existed, or of a node."""
        if node or self._quiet is not None:
            self._quiet = now + QUIET

    def ends(self, now: int) -> bool:
        """Return True if the recovery is over now, and was not before."""
        if not self.is_over and (now >= self.limit or (self._quiet is not None and now >= self._quiet)):
            self.is_over = True
            return True
        return False

    def take_application(self, partition: str, app_id: str, now: int) -> OpenApplication | None:
        """Remove and return the application whose id is submitted now; None if it can only be another one."""
        if now >= self.limit:
            return None
        app = self._applications.get((partition, app_id))
        if app is None or (self.is_over and app not in self._allocations):
            return None
        return self._applications.pop((partition, app_id))

    def is_same(self, app: OpenApplication, one: Application | None, *, is_user: bool) -> bool | None:
        """Return whether an application that is submitted now is that of a row; None if unknown yet.

        `is_user` if the user is the same.
        """
        if one is not None:
            if not is_user and app.user:
                # A submit policy may still change the user.
                return False if one.chain else None
            created = one.tags.get(CREATION_TAG, "")
            if created.isdecimal() and len(created) <= TIME_DIGITS:
                if int(created) <= app.submitted // 1000:
                    return True
                if int(created) * 1000 > app.alive + UNSEEN:
                    return False
        of_app = chain(*self._allocations.get(app, {}).values())
        has_waited = app.latest != COMPLETING and all(task.placed >= task.alive - UNSEEN for task in of_app)
        return True if has_waited and not self.is_over else None

    def take_allocation(
        self, app: OpenApplication, key: str, node: int, placed: int
    ) -> OpenAllocation | None:
        """Remove and return the allocation that is reported now, placed at a time (ms).

        It is one of the same key on the same node, of several the one that was placed at about the time.
        """
        found = self._of_key(app, key)
        of_node = [one for one in found if one.node == node]
        if not of_node:
            return None
        # The victim of a preemption in progress has probably ended.
        one = min(of_node, key=lambda one: (bool(one.preemptor), abs(one.placed - placed)))
        found.remove(one)
        return one

    def take_unseen(self, app: OpenApplication, key: str) -> OpenAllocation | None:
        """Remove and return an allocation whose key is placed again, if it was placed just before the end.

        The resource manager has never received it, and has requested it again.
        """
        for one in [] if self.is_over else self._of_key(app, key):
            if one.placed >= one.alive - UNSEEN:
                return self.take_allocation(app, key, one.node, one.placed)
        return None

    def take_allocations(self, app: OpenApplication) -> list[OpenAllocation]:
        """Remove and return all allocations of an application."""
        return [*chain(*self._allocations.pop(app, {}).values())]

    def _of_key(self, app: OpenApplication, key: str) -> list[OpenAllocation]:
        return self._allocations.get(app, {}).get(key, [])

    @property
    def applications(self) -> Iterator[OpenApplication]:
        """Applications that were not reported."""
        return iter(self._applications.values())

    @property
    def allocations(self) -> Iterator[OpenAllocation]:
        """Allocations that were not reported."""
        for by_key in self._allocations.values():
            yield from chain(*by_key.values())
