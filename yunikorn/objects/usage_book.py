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
from yunikorn.objects.allowance import GROUP, USER, Allowance
from yunikorn.resources import grow

if TYPE_CHECKING:
    from yunikorn.config.schema import LimitConfig
    from yunikorn.objects.application import Application
    from yunikorn.objects.claim import ClaimTable
    from yunikorn.objects.journal import Journal
    from yunikorn.objects.queue import Queue
    from yunikorn.resources import Resource


class UsageBook:
    """All allowances of a partition."""

    def __init__(self, claims: ClaimTable, journal: Journal) -> None:
        self._claims = claims
        self._journal = journal
        self._allowances: dict[tuple[str, str, str], Allowance] = {}

    def __iter__(self) -> Iterator[Allowance]:
        return iter(self._allowances.values())

    def of(self, kind: str, name: str, path: str) -> Allowance | None:
        """What `kind` ("user" or "group") `name` uses in queue `path`, if anything of it is there."""
        return self._allowances.get((kind, name, path))

    # -- joining ------------------------------------------------------------------------------------

    def join(self, app: Application) -> None:
        """Find the allowances that count for an application in its queue."""
        group = _group_of(app)
        found = [self._enter(USER, app.user, queue) for queue in app.chain]
        if group:
            found += [self._enter(GROUP, group, queue) for queue in app.chain]
            self._journal.record("USERGROUP", group, app.id, change="SET", detail="UG_APP_LINK")
        app.group = group
        app.tracked = tuple(found)
        app.owner = tuple(allowance for allowance in found if allowance.is_limited)

    def _enter(self, kind: str, name: str, queue: Queue) -> Allowance:
        key = (kind, name, queue.path)
        allowance = self._allowances.get(key)
        if allowance is None:
            allowance = self._allowances[key] = Allowance(kind, name, queue.path)
            allowance.set_limit(_limit(queue.limits, kind, name))
        allowance.members += 1
        return allowance

    def part(self, app: Application) -> None:
        """An application, which holds nothing any more, leaves its allowances."""
        for allowance in app.tracked:
            allowance.members -= 1
            if not allowance.members:
                del self._allowances[allowance.kind, allowance.name, allowance.path]
        app.tracked = app.owner = ()

    # -- booking ------------------------------------------------------------------------------------

    def book(self, app: Application, pairs: Iterable[tuple[str, int]]) -> None:
        """The application holds so much more."""
        for allowance in app.tracked:
            usage = allowance.usage
            for name, amount in pairs:
                usage[name] = usage.get(name, 0) + amount
            if app.id not in allowance.applications:
                allowance.applications[app.id] = None
                if allowance.max_applications:
                    self._claims.count_changed(allowance)
        if self._journal.listening:
            self._record(app, "ADD")

    def unbook(self, app: Application, pairs: Iterable[tuple[str, int]]) -> None:
        """The application holds so much less."""
        idle = not app.allocations
        for allowance in app.tracked:
            usage = allowance.usage
            for name, amount in pairs:
                # What was asked with 0 of a type was never booked under that type.
                usage[name] = usage.get(name, 0) - amount
            if idle and allowance.applications.pop(app.id, app) is None and allowance.max_applications:
                self._claims.count_changed(allowance)
            if allowance.over:
                self._claims.room_grew(allowance)
        if self._journal.listening:
            self._record(app, "REMOVE")

    def _record(self, app: Application, change: str) -> None:
        for allowance in app.tracked:
            detail = "UG_USER_RESOURCE" if allowance.kind == USER else "UG_GROUP_RESOURCE"
            self._journal.record(
                "USERGROUP",
                allowance.name,
                allowance.path,
                change=change,
                detail=detail,
                resource=allowance.usage,
            )

    # -- reloading ----------------------------------------------------------------------------------

    def rebuild(self, apps: Iterable[Application]) -> None:
        """Limits changed: work out for every application what counts for it, and what is used."""
        before = self._limits()
        self._allowances = {}
        for app in apps:
            self.join(app)
            for allowance in app.tracked:
                grow(allowance.usage, app.allocated)
                if app.allocations:
                    allowance.applications[app.id] = None
                allowance.full = allowance.is_full
        after = self._limits()
        for key in {**before, **after}:
            if before.get(key) != after.get(key):
                kind, name, path = key
                detail = "UG_USER_LIMIT" if kind == USER else "UG_GROUP_LIMIT"
                change = "SET" if key in after else "REMOVE"
                resource = after[key][0] if key in after else None
                self._journal.record("USERGROUP", name, path, change=change, detail=detail, resource=resource)

    def _limits(self) -> dict[tuple[str, str, str], tuple[Resource | None, int]]:
        return {
            key: (allowance.max_resources, allowance.max_applications)
            for key, allowance in self._allowances.items()
            if allowance.is_limited
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
