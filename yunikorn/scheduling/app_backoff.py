"""Back-off: an application whose requests find no node again and again is left alone for a while.

Queue properties `application.unschedasks.backoff` and `.delay` (facts §7.4). A request counts each time
it is tried and no node takes it; a request of an ask class that no node has room for is not tried, and so
does not count. Each allocation starts the count anew. A timer ends the rest: nothing looks at the
application in the meantime. Room that is reserved for it is still given to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.config.durations import describe_duration

if TYPE_CHECKING:
    from yunikorn.objects.application import Application
    from yunikorn.objects.partition import Partition


class AppBackoff:
    """Sends the applications of one partition to rest, and wakes them."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition

    def record_miss(self, app: Application) -> None:
        """A request of `app` was tried, and no node took it."""
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
        """Its rest is over; harmless when it has none."""
        if app.backoff_timer is not None:
            app.backoff_timer.cancel()
            app.backoff_timer = None
            app.mark_dirty()
            app.activate(app.requests.bits)
