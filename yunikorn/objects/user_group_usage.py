"""The usage of users and groups through the queues, and the limits that count for an application.

A user's limit at a queue is the one that names the user, else the wildcard, which gives each user the
full amount. One group counts per application: from its queue upwards the first configured limit for one
of its owner's groups, else the group wildcard, whose users share one amount. Kept per partition, unlike
1.9, and worked out anew when a configuration is loaded. Source: facts §5.9.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from yunikorn.config.names import WILDCARD
from yunikorn.objects.usage_tracker import GROUP, USER, UsageTracker

if TYPE_CHECKING:
    from yunikorn.config.schema import LimitConfig
    from yunikorn.objects.application import Application
    from yunikorn.objects.ask_class import Pairs
    from yunikorn.objects.event_recorder import EventRecorder
    from yunikorn.objects.pending_class import PendingClasses
    from yunikorn.objects.queue import Queue

Declared = dict[tuple[str, str, str], "LimitConfig"]
"""What the configuration limits: by kind, name (or the wildcard) and queue path."""


class UserGroupUsage:
    """All usage trackers of a partition."""

    def __init__(self, pending_classes: PendingClasses, event_recorder: EventRecorder) -> None:
        self._pending_classes = pending_classes
        self._event_recorder = event_recorder
        self._owners: dict[tuple[str, str], dict[str, UsageTracker]] = {}
        self._usage_dirty: list[Application] = []
        """Those without limits whose usage has changed since anybody asked for it."""
        self._declared: Declared = {}

    # -- looking up ---------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[UsageTracker]:
        for trackers in self._owners.values():
            yield from trackers.values()

    def of(self, kind: str, name: str, path: str) -> UsageTracker | None:
        """What `kind` ("user" or "group") `name` uses in queue `path`, if anything of it is there."""
        return self._owners.get((kind, name), {}).get(path)

    def names(self, kind: str) -> list[str]:
        """The users, or groups, that have applications here, sorted; groups only if limits name them."""
        return sorted(name for this, name in self._owners if this == kind)

    def through(self, kind: str, name: str) -> list[UsageTracker]:
        """What a user or group uses and may use in each queue where it has applications, root first.

        Sorted so that every queue stands behind the one above it; empty for one that has nothing here.
        """
        found = self._owners.get((kind, name), {})
        return [found[path] for path in sorted(found, key=lambda path: path.split("."))]

    # -- joining ------------------------------------------------------------------------------------

    def join(self, app: Application) -> None:
        """Find the usage trackers that count for an application in its queue."""
        self._find(app)
        self._record_link(app, app.group, "SET")

    def _find(self, app: Application) -> None:
        group = _group_of(app)
        found = [self._enter(USER, app.user, queue) for queue in app.chain]
        if group:
            found += [self._enter(GROUP, group, queue) for queue in app.chain]
        app.group = group
        app.tracked = tuple(found)
        app.owner = tuple(tracker for tracker in found if tracker.is_limited)

    def _enter(self, kind: str, name: str, queue: Queue) -> UsageTracker:
        trackers = self._owners.setdefault((kind, name), {})
        tracker = trackers.get(queue.path)
        if tracker is None:
            tracker = trackers[queue.path] = UsageTracker(kind, name, queue.path, self.flush)
            tracker.set_limit(_limit(queue.limits, kind, name))
        tracker.members += 1
        return tracker

    def part(self, app: Application) -> None:
        """An application, which holds nothing any more, leaves its usage trackers."""
        self.flush()
        for tracker in app.tracked:
            tracker.members -= 1
            if not tracker.members:
                owner = tracker.kind, tracker.name
                del self._owners[owner][tracker.path]
                if not self._owners[owner]:
                    del self._owners[owner]
        app.tracked = app.owner = ()
        self._record_link(app, app.group, "REMOVE")

    def _record_link(self, app: Application, group: str, change: str) -> None:
        if group:
            self._event_recorder.record("USERGROUP", group, app.id, change=change, detail="UG_APP_LINK")

    # -- booking ------------------------------------------------------------------------------------

    def book(self, app: Application, pairs: Pairs) -> None:
        """The application holds so much more.

        Where no limit counts for it nobody may ever ask: then it is only noted, until somebody does.
        """
        if app.owner:
            if not app.counted_by_limits:
                self.recount(app)
            for tracker in app.tracked:
                tracker.book(pairs)
        elif not app.usage_dirty:
            app.usage_dirty = True
            self._usage_dirty.append(app)
        if self._event_recorder.enabled:
            self._record_usage(app, "ADD")

    def recount(self, app: Application) -> None:
        """Count an application as running for its user and group, or not any more.

        It counts from its start, also while it holds nothing, until it neither holds nor asks for anything.
        If it has no limits, the change is only noted.
        """
        if _runs(app) == app.counted_by_limits:
            return
        if app.owner:
            self._count(app)
        elif not app.usage_dirty:
            app.usage_dirty = True
            self._usage_dirty.append(app)

    def _count(self, app: Application) -> None:
        app.counted_by_limits = runs = _runs(app)
        for tracker in app.tracked:
            changed = tracker.start(app.id) if runs else tracker.stop(app.id)
            if changed and tracker.max_applications:
                self._pending_classes.count_changed(tracker)

    def unbook(self, app: Application, pairs: Pairs) -> None:
        """The application holds so much less."""
        if app.owner:
            less = [(name, -amount) for name, amount in pairs]
            for tracker in app.tracked:
                tracker.book(less)
                if tracker.over_limit:
                    self._pending_classes.room_grew(tracker)
            if not app.allocations:
                self.recount(app)
        elif not app.usage_dirty:
            app.usage_dirty = True
            self._usage_dirty.append(app)
        if self._event_recorder.enabled:
            self._record_usage(app, "REMOVE")

    def flush(self) -> None:
        """Book what was only noted."""
        usage_dirty, self._usage_dirty = self._usage_dirty, []
        for app in usage_dirty:
            app.usage_dirty = False
            known = app.booked
            pairs = [(name, amount - known.get(name, 0)) for name, amount in app.allocated.items()]
            app.booked = dict(app.allocated)
            for tracker in app.tracked:
                tracker.book(pairs)
            if _runs(app) != app.counted_by_limits:
                self._count(app)

    def _record_usage(self, app: Application, change: str) -> None:
        for tracker in app.tracked:
            detail = "UG_USER_RESOURCE" if tracker.kind == USER else "UG_GROUP_RESOURCE"
            self._event_recorder.record(
                "USERGROUP",
                tracker.name,
                tracker.path,
                change=change,
                detail=detail,
                resource=tracker.usage,
            )

    # -- configurations -----------------------------------------------------------------------------

    def rebuild(self, apps: Iterable[Application], queues: Iterable[Queue]) -> None:
        """Limits were configured: work out for every application what counts for it, and what is used."""
        self.flush()
        if not self._declare(queues):
            return
        self._owners = {}
        for app in apps:
            before = app.group
            self._find(app)
            app.booked = dict(app.allocated)
            app.counted_by_limits = _runs(app)
            for tracker in app.tracked:
                tracker.book(app.allocated.items())
                if app.counted_by_limits:
                    tracker.start(app.id)
                tracker.full = tracker.is_full
            if app.group != before:
                self._record_link(app, before, "REMOVE")
                self._record_link(app, app.group, "SET")

    def _declare(self, queues: Iterable[Queue]) -> bool:
        """Take note of the limits of these queues; returns whether any has changed."""
        before, self._declared = self._declared, _declared(queues)
        if self._declared == before:
            return False
        for key, limit in self._declared.items():
            if before.get(key) != limit:
                self._record_limit(*key, "SET", limit)
        for key in before:
            if key not in self._declared:
                self._record_limit(*key, "REMOVE", None)
        return True

    def _record_limit(self, kind: str, name: str, path: str, change: str, limit: LimitConfig | None) -> None:
        detail = "UG_USER_LIMIT" if kind == USER else "UG_GROUP_LIMIT"
        self._event_recorder.record(
            "USERGROUP",
            name,
            path,
            change=change,
            detail=detail,
            resource=None if limit is None else limit.max_resources,
        )


def _runs(app: Application) -> bool:
    """Whether an application has started, and still holds or asks for something."""
    return not app.not_started and (bool(app.allocations) or app.has_waiting)


def _declared(queues: Iterable[Queue]) -> Declared:
    return {
        (kind, name, queue.path): limit
        for queue in queues
        for limit in queue.limits
        for kind, names in ((USER, limit.users), (GROUP, limit.groups))
        for name in names
    }


def _limit(limits: Iterable[LimitConfig], kind: str, name: str) -> LimitConfig | None:
    """The limit that names this user or group, else the wildcard."""
    wildcard = None
    for limit in limits:
        names = limit.users if kind == USER else limit.groups
        if name in names:
            return limit
        if WILDCARD in names and kind == USER:
            wildcard = limit
    return wildcard


def _group_of(app: Application) -> str:
    """The one group that counts for an application; empty when none is limited."""
    for queue in app.chain:
        for limit in queue.limits:
            for group in limit.groups:
                if group in app.groups:
                    return group
        if any(WILDCARD in limit.groups for limit in queue.limits):
            return WILDCARD
    return ""
