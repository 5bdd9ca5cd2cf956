"""Usage of users and groups in the queues, and the limits that apply to an application.

A user's limit at a queue is the limit that names the user, else the wildcard limit, which grants each user
the full amount. One group counts per application: the group with the first configured limit from the leaf
queue upwards for one of the user's groups, else the group wildcard, whose users share one amount. Unlike
YuniKorn 1.9, usage is tracked per partition and recomputed when a configuration is loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from yunikorn.config.acl import WILDCARD
from yunikorn.event_types import EventChange
from yunikorn.model.usage_tracker import GROUP, USER, UsageTracker

if TYPE_CHECKING:
    from yunikorn.accounting.changes import Changes
    from yunikorn.config.queues_yaml import LimitConfig
    from yunikorn.model.application import Application
    from yunikorn.model.ask_class import Pairs, PendingClasses
    from yunikorn.model.queue import Queue

Declared = dict[tuple[str, str, str], "LimitConfig"]
"""Configured limits by kind, name (or wildcard) and queue path."""


class UserGroupLimits:
    """All usage trackers of a partition."""

    def __init__(self, pending_classes: PendingClasses, changes: Changes) -> None:
        self._pending_classes = pending_classes
        self._changes = changes
        self._events = changes.events
        self._owners: dict[tuple[str, str], dict[str, UsageTracker]] = {}
        self._usage_dirty: list[Application] = []
        """Applications without limits whose usage has changed since the latest `flush`."""
        self._declared: Declared = {}

    # -- looking up ---------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[UsageTracker]:
        for trackers in self._owners.values():
            yield from trackers.values()

    def of(self, kind: str, name: str, path: str) -> UsageTracker | None:
        """Return the tracker of the user or group (`kind`) `name` in queue `path`; None if there is none."""
        return self._owners.get((kind, name), {}).get(path)

    def names(self, kind: str) -> list[str]:
        """Return the sorted names of users, or of groups with limits, that have applications."""
        return sorted(name for this, name in self._owners if this == kind)

    def through(self, kind: str, name: str) -> list[UsageTracker]:
        """Return the trackers of a user or group in all queues, sorted so that parents precede children."""
        found = self._owners.get((kind, name), {})
        return [found[path] for path in sorted(found, key=lambda path: path.split("."))]

    # -- joining ------------------------------------------------------------------------------------

    def join(self, app: Application) -> None:
        """Assign the usage trackers of its user and group to an application that joins a queue."""
        self._find(app)
        self._changes.group_changed(app, app.group, EventChange.SET)

    def _find(self, app: Application) -> None:
        group = _group_of(app)
        found = [self._enter(USER, app.user, queue) for queue in app.chain]
        if group:
            found += [self._enter(GROUP, group, queue) for queue in app.chain]
        app.group = group
        app.tracked = tuple(found)
        app.limit_trackers = tuple(tracker for tracker in found if tracker.is_limited)

    def _enter(self, kind: str, name: str, queue: Queue) -> UsageTracker:
        trackers = self._owners.setdefault((kind, name), {})
        tracker = trackers.get(queue.path)
        if tracker is None:
            tracker = trackers[queue.path] = UsageTracker(kind, name, queue.path, self.flush)
            tracker.set_limit(_limit(queue.limits, kind, name))
        tracker.members += 1
        return tracker

    def part(self, app: Application) -> None:
        """Remove an application without allocations from its usage trackers."""
        self.flush()
        for tracker in app.tracked:
            tracker.members -= 1
            if not tracker.members:
                owner = tracker.kind, tracker.name
                del self._owners[owner][tracker.path]
                if not self._owners[owner]:
                    del self._owners[owner]
        app.tracked = app.limit_trackers = ()
        self._changes.group_changed(app, app.group, EventChange.REMOVE)

    # -- booking ------------------------------------------------------------------------------------

    def book(self, app: Application, pairs: Pairs) -> None:
        """Add allocated resources of an application.

        Without a limit the usage may never be read. The application is then only marked, and booked by
        `flush`.
        """
        if app.limit_trackers:
            if not app.counted_by_limits:
                self._count(app, runs=True)
            for tracker in app.tracked:
                tracker.book(pairs)
        elif not app.usage_dirty:
            app.usage_dirty = True
            self._usage_dirty.append(app)
        if self._events.wants_usage:
            self._events.used(app, EventChange.ADD, pairs, self._events.now())

    def recount(self, app: Application) -> None:
        """Stop counting an application that no longer counts as running for its user and group.

        It counts from its first allocation until it has neither allocations nor requests.
        """
        if app.counted_by_limits and not _runs(app):
            self._count(app, runs=False)

    def resume(self, app: Application) -> None:
        """Count an application again whose only allocation or request was replaced by a request."""
        if app.has_unplaced and not (app.not_started or app.counted_by_limits):
            self._count(app, runs=True)

    def _count(self, app: Application, *, runs: bool) -> None:
        app.counted_by_limits = runs
        for tracker in app.tracked:
            changed = tracker.start(app.id) if runs else tracker.stop(app.id)
            if changed and tracker.max_applications:
                self._pending_classes.count_changed(tracker, self._events.now())

    def unbook(self, app: Application, pairs: Pairs) -> None:
        """Subtract allocated resources of an application."""
        if app.limit_trackers:
            less = [(name, -amount) for name, amount in pairs]
            for tracker in app.tracked:
                tracker.book(less)
                if tracker.over_limit:
                    self._pending_classes.room_grew(tracker)
        elif not app.usage_dirty:
            app.usage_dirty = True
            self._usage_dirty.append(app)
        if not app.allocations:
            if app.has_unplaced and not app.counted_by_limits:
                # It held an allocation until now that was not counted yet.
                self._count(app, runs=True)
            self.recount(app)
        if self._events.wants_usage:
            self._events.used(app, EventChange.REMOVE, pairs, self._events.now())

    def flush(self) -> None:
        """Book the usage of all marked applications."""
        usage_dirty, self._usage_dirty = self._usage_dirty, []
        for app in usage_dirty:
            self._book_marked(app)

    def flush_some(self, most: int) -> bool:
        """Book the usage of up to `most` marked applications; return True if others are marked still."""
        some, self._usage_dirty = self._usage_dirty[:most], self._usage_dirty[most:]
        for app in some:
            self._book_marked(app)
        return bool(self._usage_dirty)

    def _book_marked(self, app: Application) -> None:
        app.usage_dirty = False
        known = app.booked
        pairs = [(name, amount - known.get(name, 0)) for name, amount in app.allocated.items()]
        app.booked = dict(app.allocated)
        for tracker in app.tracked:
            tracker.book(pairs)
        if _runs(app) != app.counted_by_limits:
            self._count(app, runs=not app.counted_by_limits)

    # -- configurations -----------------------------------------------------------------------------

    def rebuild(self, apps: Iterable[Application], queues: Iterable[Queue]) -> None:
        """Reassign trackers and recompute usage for every application, if any limit changed."""
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
                tracker.check_full(self._events.now())
            if app.group != before:
                self._changes.group_changed(app, before, EventChange.REMOVE)
                self._changes.group_changed(app, app.group, EventChange.SET)

    def _declare(self, queues: Iterable[Queue]) -> bool:
        """Record the limits of these queues; return True if any limit changed."""
        before, self._declared = self._declared, _declared(queues)
        if self._declared == before:
            return False
        for key, limit in self._declared.items():
            if before.get(key) != limit:
                self._changes.limit_changed(*key, limit)
        for key in before:
            if key not in self._declared:
                self._changes.limit_changed(*key, None)
        return True


def _runs(app: Application) -> bool:
    """Return True if an application has allocations, or counts already, and waits for more."""
    return bool(app.allocations) or (app.counted_by_limits and app.has_unplaced and not app.not_started)


def _declared(queues: Iterable[Queue]) -> Declared:
    return {
        (kind, name, queue.path): limit
        for queue in queues
        for limit in queue.limits
        for kind, names in ((USER, limit.users), (GROUP, limit.groups))
        for name in names
    }


def _limit(limits: Iterable[LimitConfig], kind: str, name: str) -> LimitConfig | None:
    """Return the limit that names this user or group, else the wildcard limit of users."""
    wildcard = None
    for limit in limits:
        names = limit.users if kind == USER else limit.groups
        if name in names:
            return limit
        if WILDCARD in names and kind == USER:
            wildcard = limit
    return wildcard


def _group_of(app: Application) -> str:
    """Return the group that counts for an application; empty if no group limit applies."""
    for queue in app.chain:
        if not queue.limits:
            continue
        for limit in queue.limits:
            for group in limit.groups:
                if group in app.groups:
                    return group
        if any(WILDCARD in limit.groups for limit in queue.limits):
            return WILDCARD
    return ""
