"""Events about applications that cannot start because a queue or limit has its maximum of running ones.

Tracked only while the event recorder is enabled. Blocked applications are kept by the queue or limit that
blocks them, so that their release needs no search. The others are checked again when a queue or limit has
become full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.model.usage_tracker import UsageTracker

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.model.application import Application
    from yunikorn.model.queue import Queue

SLACK = 64
"""Number of started applications that may remain in `_free` before it is cleaned up."""


class MaxAppsEvents:
    """Applications of one partition that wait to become one of the running applications."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._not_started: list[Application] = []
        """Applications added since the last review."""
        self._free: dict[Application, None] = {}
        """Applications that may start, as of the last review."""
        self._swept = 0
        self._held: dict[Queue | UsageTracker, dict[Application, None]] = {}
        self._fills = (-1, -1)

    def watch(self, app: Application) -> None:
        """Track an application that has not started and now has pending requests."""
        limited = any(queue.max_applications for queue in app.chain) or any(
            tracker.max_applications for tracker in app.owner
        )
        if limited:
            self._not_started.append(app)

    def review(self) -> None:
        """Record events for applications that can no longer start, and for those that can start again."""
        for holder in [holder for holder in self._held if not holder.full]:
            for app in self._held.pop(holder):
                if self._waits(app):
                    self._tell(app, holder, runnable=True)
                    self._not_started.append(app)
        fills = (self._partition.cluster.times_full, self._partition.pending_classes.times_full)
        if fills != self._fills or len(self._free) > 2 * self._swept + SLACK:
            self._fills = fills
            looked, self._free = [*self._free, *self._not_started], {}
            self._look_at(looked)
            self._swept = len(self._free)
        elif self._not_started:
            self._look_at(self._not_started)
        self._not_started = []

    def _look_at(self, apps: list[Application]) -> None:
        for app in apps:
            if not self._waits(app):
                continue
            holder = app.max_apps_blocker
            if holder is None:
                self._free[app] = None
            elif app not in self._held.setdefault(holder, {}):
                self._held[holder][app] = None
                self._tell(app, holder, runnable=False)

    @staticmethod
    def _waits(app: Application) -> bool:
        return app.not_started and app.has_waiting and app.queue is not None

    def _tell(self, app: Application, holder: Queue | UsageTracker, *, runnable: bool) -> None:
        of = "QUOTA" if isinstance(holder, UsageTracker) else "QUEUE"
        detail = f"APP_RUNNABLE_{of}" if runnable else f"APP_CANNOTRUN_{of}"
        self._partition.event_recorder.record(
            "APP", app.id, detail=detail, message="" if runnable else app.max_apps_reason
        )
