"""Back-off of applications: after repeated failed requests, an application is not tried for a while.

The queue properties are `application.unschedasks.backoff` (count) and `.delay`, as in YuniKorn 1.9. A request
counts each time it is tried and no node accepts it; requests of an ask class marked unschedulable are not
tried and do not count. Each allocation resets the count. A timer ends the back-off; until then the cycle
skips the application. Reservations of the application are still served.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.config.durations import describe_duration

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.model.application import Application


class AppBackoff:
    """Starts and ends the back-off of the applications of one partition."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition

    def record_miss(self, app: Application) -> None:
        """Count a request of `app` that no node accepted; start the back-off at the configured number."""
        settings = app.chain[0].settings
        if not settings.backoff_count:
            return
        app.misses += 1
        if app.misses < settings.backoff_count:
            return
        misses, app.misses = app.misses, 0
        if app.backoff_timer is None:
            app.backoff_timer = self._partition.timers.after(settings.backoff_delay, lambda: self.wake(app))
            app.mark_dirty()
            after = describe_duration(settings.backoff_delay)
            message = (
                f"{misses} requests in a row found no node: the application is tried again after {after}"
            )
            self._partition.event_recorder.record("APP", app.id, message=message, reason="BackOff")

    def wake(self, app: Application) -> None:
        """End the back-off of `app`; no effect without one."""
        if app.backoff_timer is not None:
            app.backoff_timer.cancel()
            app.backoff_timer = None
            app.mark_dirty()
            app.activate(app.requests.bits)
