"""Admission of applications: gangs, and events about applications that may not start.

The style of a gang, and the queues that accept it, are those of `docs/decisions/0024`.

`MaxAppsEvents` reports applications that cannot start because a queue or limit has its maximum of running
ones. It works only while the event recorder is enabled. Blocked applications are kept by the queue or limit
that blocks them, so that their release needs no search. The others are checked again when a queue or limit
has become full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.containment import contained
from yunikorn.framework.kinds import APP_SORT
from yunikorn.model.gang import (
    ATOMIC,
    GANG_STEP_TAG,
    SOFT,
    STYLES,
    AtomicGang,
    Gang,
    GangCore,
    placeholder_timeout,
    read_disruption_tag,
    read_step_tag,
)
from yunikorn.model.usage_tracker import UsageTracker
from yunikorn.quantities import in_words
from yunikorn.resources import Resource, fits, fits_quota, has_negative, smaller_of

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.framework.registry import Registry
    from yunikorn.model.application import Application
    from yunikorn.model.queue import Queue


def make_gang(app: Application, total: Resource, timeout: int, partition: Partition) -> None:
    """Make `app` a gang with these total resources, according to its gang style."""
    as_one, _ = read_disruption_tag(app.tags)
    if app.gang_style == ATOMIC or as_one is not None:
        app.core = GangCore(app, total, as_one=bool(as_one))
    if app.gang_style == ATOMIC:
        app.atomic = AtomicGang(app, total, read_step_tag(app.tags)[0])
    else:
        timeout = placeholder_timeout(timeout, app.tags, partition.clock.now())
        app.gang = Gang(total, app.gang_style, timeout)
        if app.topology is not None:
            app.gang.together = AtomicGang(app, total, {})


def report_style(app: Application, style: str, partition: Partition) -> None:
    """Report to the RM that a gang style is unknown and that Soft applies instead."""
    message = f"unknown gang scheduling style '{style}', {SOFT} is used instead; known: {', '.join(STYLES)}"
    partition.changes.remarked(app, "UnknownGangStyle", message)


def allows_gangs(policy: object) -> bool:
    """Return True if a class of sort policies allows placeholders; see `AppSortPolicy`."""
    try:
        return getattr(policy, "gangs", False) is True
    except contained():
        return False


def gang_refusal(app: Application, queue: Queue, registry: Registry) -> str:
    """Return why a gang cannot run in a leaf queue; empty if the queue accepts the application.

    The sort policy in use decides about placeholders; the reason names those of `registry` that allow them.
    """
    if app.forced:
        return ""
    if app.gang is not None:
        total = app.gang.total
        if GANG_STEP_TAG in app.tags:
            style = f"a gang of style {app.gang_style} does not grow, one of style {ATOMIC} does"
            return f"failed to place application {app.id}: tag {GANG_STEP_TAG}: {style}"
        if not queue.order.allows_gangs:
            fit = [offer.name for offer in registry.offers(APP_SORT) if allows_gangs(offer.cls)]
            return (
                f"queue {queue.path} cannot run application {app.id} with task group request: unsupported "
                f"sort type '{queue.settings.app_sort}', placeholders need one of {', '.join(fit) or 'none'}"
            )
    elif app.atomic is not None:
        total = app.atomic.total
    else:
        return ""
    if has_negative(total):
        return f"application {app.id} has a negative task group request: {in_words(total)}"
    most = Resource()
    for level in queue.chain:
        # The quota of a policy may be a larger one later.
        if level.parent is not None and level.policy_quota is None and level.max is not None:
            most = smaller_of(most, level.max)
    if not fits_quota(most, total):
        return (
            f"queue {queue.path} cannot run application {app.id}: task group request {in_words(total)} "
            f"larger than max queue allocation {in_words(most)}"
        )
    return ""


def report_oversize(app: Application, partition: Partition) -> None:
    """Record an event if all nodes together are too small for the gang; more nodes may register later."""
    gang = app.gang or app.atomic
    whole = partition.cluster.total
    if gang is not None and whole and not fits(whole, gang.total):
        message = (
            f"the gang needs {in_words(gang.total)}, and all nodes together have {in_words(whole)}: "
            "it cannot run until nodes are added"
        )
        partition.changes.noted(app, "GangTooLarge", message)


SLACK = 64
"""Number of started applications that may remain in `_free` before it is cleaned up."""


class MaxAppsEvents:
    """Applications of one partition that wait to become one of the running applications."""

    def __init__(self, partition: Partition) -> None:
        self._partition, self._changes = partition, partition.changes
        self._not_started: list[Application] = []
        """Applications added since the last review."""
        self._free: dict[Application, None] = {}
        """Applications that may start, as of the last review."""
        self._swept = 0
        self._blocked: dict[Queue | UsageTracker, dict[Application, None]] = {}
        self._fills = (-1, -1)

    def watch(self, app: Application) -> None:
        """Track an application that has not started and now has pending requests."""
        limited = any(queue.max_applications for queue in app.chain) or any(
            tracker.max_applications for tracker in app.limit_trackers
        )
        if limited:
            self._not_started.append(app)

    def review(self) -> None:
        """Record events for applications that can no longer start, and for those that can start again."""
        for holder in [holder for holder in self._blocked if not holder.full]:
            for app in self._blocked.pop(holder):
                if self._is_waiting_to_start(app):
                    self._changes.start_permitted(app, by_limit=isinstance(holder, UsageTracker))
                    self._not_started.append(app)
        fills = (self._partition.cluster.times_full, self._partition.pending_classes.times_full)
        if fills != self._fills or len(self._free) > 2 * self._swept + SLACK:
            self._fills = fills
            apps, self._free = [*self._free, *self._not_started], {}
            self._evaluate(apps)
            self._swept = len(self._free)
        elif self._not_started:
            self._evaluate(self._not_started)
        self._not_started = []

    def _evaluate(self, apps: list[Application]) -> None:
        for app in apps:
            if not self._is_waiting_to_start(app):
                continue
            holder = app.max_apps_blocker
            if holder is None:
                self._free[app] = None
            elif app not in self._blocked.setdefault(holder, {}):
                self._blocked[holder][app] = None
                self._changes.start_prevented(app, by_limit=isinstance(holder, UsageTracker))

    @staticmethod
    def _is_waiting_to_start(app: Application) -> bool:
        return app.not_started and app.has_waiting and app.queue is not None and app.held is None
