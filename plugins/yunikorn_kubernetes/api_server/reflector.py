"""Reflector: keeps the objects of a resource up to date by a list and a watch, and reports each change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing
from enum import Enum
from typing import Generic, TypeVar

import attrs

from yunikorn.containment import describe_error
from yunikorn.errors import CONTAINED
from yunikorn_kubernetes.api_server.api_resources import ApiObject, ApiResource, key_of
from yunikorn_kubernetes.api_server.back_off import BackOff, RandomSource
from yunikorn_kubernetes.api_server.calls import ApiError, ApiServer
from yunikorn_kubernetes.api_server.watch_lines import Bookmark, WatchEvent, WatchEventType
from yunikorn_kubernetes.objects import ObjectMeta

_log = logging.getLogger("yunikorn.kubernetes")

T = TypeVar("T", bound=ApiObject)

SHORTEST_WATCH, LONGEST_WATCH = 300.0, 600.0
"""Range of the seconds after which the server ends a watch, so that watches spread over its replicas."""
SHORT = 1.0
"""Seconds below which a watch that ended without an event counts as a failure."""
SLICE = 100
"""Changes of a list that are reported before other tasks of the loop may run."""
REMEMBERED = 4096
"""Deleted objects that are remembered, so that late events of theirs are recognised."""
REMINDER = 600.0
"""Seconds between log entries while a resource cannot be read."""
UNCHANGED = (0, 401, 403, 429, 503)
"""Failures after which a watch continues where it was: no answer, credentials, rights, and overload.

A server that has just started refuses all watches until it has read the rights."""
TROUBLE = 500
"""Lowest status of a failure of the server itself, after which a watch mostly continues where it was, too."""
DOUBT = 3
"""Such failures, without a change between them, after which everything is listed again.

The server may no longer have what it reported before, and say so in other words than 410."""


class ChangeKind(Enum):
    """Kinds of changes of an object."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


@attrs.frozen
class ObjectChange(Generic[T]):
    """Change of an object.

    `previous` is the state before, None for an added object. The `object` of a deletion is the last known
    state.
    """

    kind: ChangeKind
    object: T
    previous: T | None = None


class Reflector(Generic[T]):
    """Objects of a resource as the API server has them.

    The handler is called in the event loop for each change, in the order of the server for each object. Each
    object is added once, then modified any number of times, then deleted once, whatever happens to
    connections, servers and versions; an object that replaces another under the same name is a deletion and
    an addition. Several modifications may be reported as one. An exception of the handler is logged and
    counted in `handler_failures`; it concerns one change only.
    """

    def __init__(
        self,
        server: ApiServer,
        resource: ApiResource[T],
        handler: Callable[[ObjectChange[T]], None],
        *,
        random: RandomSource,
        namespace: str = "",
        latest: bool = False,
    ) -> None:
        """Create a reflector that does not run.

        The first list of a `latest` one has all that was written before; otherwise the server may answer from
        a cache that lags behind by moments.
        """
        self._server = server
        self._resource = resource
        self._handler = handler
        self._random = random
        self._namespace = namespace
        self._back_off = BackOff(random)
        self._version = ""
        """Version up to which `store` is complete; empty if the next step is a list."""
        self._minimum = "" if latest else "0"
        """Version that the next list must have reached; 0 accepts any, and "" requires the latest."""
        self._behind = 0
        """Bookmarks in a row that were older than `_version`."""
        self._troubles = 0
        """Failures of the server itself since it reported anything."""
        self._deleted: dict[str, str] = {}
        """Versions of the latest deletions by UID, the oldest first."""
        self._failing_since: float | None = None
        self._reminded_at = 0.0
        self.store: dict[str, T] = {}
        """Objects by `namespace/name`, or by name for resources without namespaces."""
        self.synced = asyncio.Event()
        """Set once the first list is in `store` and has been reported."""
        self.handler_failures = 0
        """Number of exceptions of the handler."""
        self.failure: ApiError | None = None
        """Failure of the latest attempt to reach the server; None while all is well."""

    async def run(self) -> None:
        """List and watch until cancelled; failures of the server are logged and tried again."""
        while True:
            try:
                if not self._version:
                    await self._list()
                await self._watch()
            except ApiError as error:
                self._troubles += error.status >= TROUBLE
                is_trouble = error.status >= TROUBLE and not error.is_expired and self._troubles < DOUBT
                if error.status not in UNCHANGED and not is_trouble:
                    # Above all 410: the server has forgotten the changes since this version.
                    self._version = self._minimum = ""
                    self._troubles = 0
                await self._pause(error)
            except CONTAINED as error:
                _log.exception("bug: the watch of %s ended; it begins again", self._resource.plural)
                self._version = self._minimum = ""
                await self._pause(ApiError(0, "Bug", describe_error(error)))

    async def _pause(self, error: ApiError) -> None:
        """Log a failure, and wait."""
        self._report(error)
        delay = self._back_off.next_delay()
        if error.retry_after is not None:
            delay = max(delay, min(error.retry_after, 60.0))
        await asyncio.sleep(delay)

    def _report(self, error: ApiError) -> None:
        """Log the begin of an outage, and then a reminder now and again."""
        self.failure = error
        now = asyncio.get_running_loop().time()
        if self._failing_since is None:
            self._failing_since = self._reminded_at = now
            _log.warning("%s cannot be read: %s", self._resource.plural, error)
        elif now - self._reminded_at >= REMINDER:
            self._reminded_at = now
            seconds = round(now - self._failing_since)
            _log.warning("%s cannot be read for %d seconds: %s", self._resource.plural, seconds, error)

    def _recovered(self) -> None:
        """Record a success."""
        self.failure = None
        if self._failing_since is not None:
            seconds = round(asyncio.get_running_loop().time() - self._failing_since)
            _log.info("%s can be read again, after %d seconds", self._resource.plural, seconds)
            self._failing_since = None

    # -- list --------------------------------------------------------------------------------------------

    async def _list(self) -> None:
        """Read all objects, and report how they differ from those in the store."""
        listing = await self._server.list(
            self._resource,
            self._namespace,
            resource_version=self._minimum,
        )
        self._recovered()
        present = {key_of(item.metadata): item for item in listing.items}
        for key in listing.unreadable & self.store.keys():
            # It exists, so its last readable state is kept.
            present[key] = self.store[key]
        del listing.items[:]
        await self._apply_list(present)
        self._version = listing.resource_version
        self._behind = 0
        self.synced.set()

    async def _apply_list(self, present: dict[str, T]) -> None:
        """Report deletions first, so that what they free is known before additions take it."""
        gone = [key for key, old in self.store.items() if not _is_same(present.get(key), old)]
        for number, key in enumerate(gone, 1):
            self._remove(key)
            if number % SLICE == 0:
                await asyncio.sleep(0)
        for number, (key, item) in enumerate(present.items(), 1):
            old = self.store.get(key)
            if old is None or old.metadata.resource_version != item.metadata.resource_version:
                # An object may return with its UID if the data of the server were restored from a backup.
                self._deleted.pop(item.metadata.uid, None)
                self._put(key, item)
            if number % SLICE == 0:
                await asyncio.sleep(0)

    # -- watch -------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        """Apply changes until the server ends the watch."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        events = 0
        watch = self._server.watch(
            self._resource,
            self._namespace,
            resource_version=self._version,
            timeout_seconds=round(self._random.uniform(SHORTEST_WATCH, LONGEST_WATCH)),
            opened=self._recovered,
        )
        try:
            async with aclosing(watch):
                async for event in watch:
                    events += 1
                    self._troubles = 0
                    if isinstance(event, Bookmark):
                        self._follow(event.resource_version)
                    else:
                        self._apply(event)
                        self._advance(event.object.metadata.resource_version)
        finally:
            if events:
                # The server works; connections that break now and again must not add up to long pauses.
                self._back_off.reset()
        if events == 0 and loop.time() - started < SHORT:
            raise ApiError(0, "ShortWatch", "the watch ended at once, without an event")

    def _advance(self, version: str) -> None:
        """Continue later watches from `version`, unless that is older than what was seen."""
        if _is_later(version, self._version):
            self._version = version
            self._behind = 0

    def _follow(self, version: str) -> None:
        """Continue from a bookmark; raises `ApiError` if the server has lost what it reported before.

        A replica of the server may be late for a moment. One that remains behind was restored from a backup,
        and would report nothing until its versions have passed those of the store.
        """
        self._advance(version)
        if _is_later(self._version, version):
            self._behind += 1
            if self._behind == 2:
                raise ApiError(410, "Expired", f"the server is at version {version}, before {self._version}")

    def written(self, item: T) -> None:
        """Apply what a write of this process has returned, of which the watch may tell late."""
        self._apply(WatchEvent(WatchEventType.MODIFIED, item))

    def _apply(self, event: WatchEvent[T]) -> None:
        """Apply one event, unless the store already has a later state of the object."""
        item = event.object
        metadata = item.metadata
        key = key_of(metadata)
        old = self.store.get(key)
        if event.type is WatchEventType.DELETED:
            if _is_same(item, old):
                self._remove(key, item)
            elif old is None:
                self._remember(metadata)
        elif not _is_later(metadata.resource_version, self._deleted.get(metadata.uid, "0")):
            return
        elif old is None:
            self._put(key, item)
        elif _is_later(metadata.resource_version, old.metadata.resource_version):
            if not _is_same(item, old):
                self._remove(key)
            self._put(key, item)

    # -- store -------------------------------------------------------------------------------------------

    def _put(self, key: str, item: T) -> None:
        old = self.store.get(key)
        self.store[key] = item
        self._tell(ObjectChange(ChangeKind.ADDED if old is None else ChangeKind.MODIFIED, item, old))

    def _remove(self, key: str, last: T | None = None) -> None:
        old = self.store.pop(key)
        if last is None:
            last = old
        self._remember(last.metadata)
        self._tell(ObjectChange(ChangeKind.DELETED, last, old))

    def _remember(self, deleted: ObjectMeta) -> None:
        if deleted.uid not in self._deleted and len(self._deleted) >= REMEMBERED:
            del self._deleted[next(iter(self._deleted))]
        self._deleted[deleted.uid] = deleted.resource_version

    def _tell(self, change: ObjectChange[T]) -> None:
        try:
            self._handler(change)
        except CONTAINED:
            self.handler_failures += 1
            name = key_of(change.object.metadata)
            _log.exception("bug: %s of %s %s was not handled", change.kind.value, self._resource.kind, name)


def _is_same(one: ApiObject | None, other: ApiObject | None) -> bool:
    """Return True for two states of one object."""
    return one is not None and other is not None and one.metadata.uid == other.metadata.uid


def _is_later(version: str, than: str) -> bool:
    """Return True if `version` is later; versions are numbers, and others are later if they differ."""
    if version.isdecimal() and than.isdecimal():
        return int(version) > int(than)
    return bool(version) and version != than
