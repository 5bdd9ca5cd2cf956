"""Events of `events.k8s.io/v1`, which `kubectl describe` shows; sent after everything else, or not at all."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import TypeVar

import attrs

from yunikorn.clock import Clock
from yunikorn.containment import describe_error
from yunikorn.errors import CONTAINED
from yunikorn_kubernetes.api_server.api_resources import (
    CONFIG_MAPS,
    EVENTS,
    NODES,
    PODS,
    ApiObject,
    ApiResource,
)
from yunikorn_kubernetes.api_server.api_times import micro_time
from yunikorn_kubernetes.api_server.back_off import BackOff, RandomSource
from yunikorn_kubernetes.api_server.calls import ApiError, ApiServer
from yunikorn_kubernetes.api_server.rate_limit import RateLimit
from yunikorn_kubernetes.objects import Json, ObjectReference, Pod

_log = logging.getLogger("yunikorn.kubernetes")

CONTROLLER = "yunikorn"
LONGEST_NOTE = 1024
"""Bytes of a note that the API server accepts."""
LONGEST_WORD = 128
"""Characters of a reason, action or instance that the API server accepts."""
LONGEST_NAME = 220
"""Characters of an object's name in the name of its event."""
SERIES_TIME = 360.0
"""Seconds after which a repeated event is a new one; this is the time of Kubernetes' own recorders."""
SERIES_SPACING = 60.0
"""Minimum seconds between two writes of the number of repetitions."""
REMEMBERED = 8192
"""Events that are remembered to recognise repetitions."""
CAPACITY = 10_000
"""Events that wait; more are dropped."""
FIRST = (CONFIG_MAPS.kind,)
"""Kinds of objects whose events go before all others, and are never dropped because others wait."""
FORBIDDEN_PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds before the next attempts after a 403: a server that has just started knows no rights yet."""
A = TypeVar("A", bound=ApiObject)

RATE, BURST = 50.0, 100.0
"""Events per second, and at once."""
BUSY_PAUSE = 0.1
"""Seconds between looks whether more important writes wait."""
DROPS_SPACING = 60.0
"""Minimum seconds between two log entries about dropped events."""


def reference(resource: ApiResource[A], item: A) -> ObjectReference:
    """Return a reference to an object, for an event about the object."""
    meta = item.metadata
    return ObjectReference(
        resource.api_version, resource.kind, meta.namespace, meta.name, meta.uid, meta.resource_version
    )


@attrs.define(eq=False)
class _Event:
    """Event with the number of its occurrences."""

    regarding: ObjectReference
    type: str
    reason: str
    action: str
    note: str
    time: str
    """Time of the first occurrence."""
    name: str
    count: int = 1
    last_time: str = ""
    last_at: float = 0.0
    """Time of the loop of the last occurrence."""
    written: int = 0
    """Number of occurrences that the server knows."""
    refusals: int = 0
    """Number of answers in a row that the server forbids the event."""
    waits: bool = True
    """True while the event is in the queue, or waits for its next write."""

    @property
    def namespace(self) -> str:
        """Namespace of the event; objects without namespace have theirs in `default`."""
        return self.regarding.namespace or "default"


class PodEvents:
    """Events about pods and other objects, sent while `run` runs.

    `report` never waits. Events that do not fit in the queue, or that the server refuses, are dropped and
    counted in `dropped`; those that it forbids are tried again for half a minute before. While `busy` returns
    True, nothing is sent. Equal events of one object are one series with a number.
    """

    def __init__(
        self,
        server: ApiServer,
        *,
        instance: str,
        clock: Clock,
        random: RandomSource,
        busy: Callable[[], bool] = lambda: False,
        capacity: int = CAPACITY,
        rate_limit: RateLimit | None = None,
    ) -> None:
        self._server = server
        self._instance = instance[:LONGEST_WORD]
        self._clock = clock
        self._busy = busy
        self._capacity = capacity
        self._rate_limit = rate_limit or RateLimit(RATE, BURST)
        self._back_off = BackOff(random)
        self._known: OrderedDict[tuple[str, ...], _Event] = OrderedDict()
        self._queue: deque[_Event] = deque()
        self._first: deque[_Event] = deque()
        """Events that do not wait for those of pods: refusals of a configuration concern everyone."""
        self._arrived = asyncio.Event()
        self._all_sent = asyncio.Event()
        self._all_sent.set()
        self._numbers = count()
        self._timers: set[asyncio.TimerHandle] = set()
        self._forbidden = 0
        """Number of events that wait for another attempt after a 403."""
        self._dropped_at: float | None = None
        """Time of the loop of the last log entry about dropped events."""
        self.dropped = 0
        """Number of events that were not sent."""

    def report(
        self,
        regarding: ObjectReference,
        reason: str,
        action: str,
        note: str,
        *,
        warning: bool = False,
    ) -> None:
        """Report an event about an object; texts that are too long are cut."""
        now = asyncio.get_running_loop().time()
        note, type = cut_note(note), "Warning" if warning else "Normal"
        key = (regarding.kind, regarding.namespace, regarding.name, regarding.uid, type, reason, action, note)
        known = self._known.get(key)
        if known is not None and now - known.last_at <= SERIES_TIME:
            self._repeat(known, now)
            return
        if len(self._queue) >= self._capacity and regarding.kind not in FIRST:
            self._drop("the queue is full")
            return
        time = micro_time(self._clock)
        name = f"{regarding.name[:LONGEST_NAME]}.{self._clock.now():x}{next(self._numbers) % 4096:03x}"
        event = _Event(regarding, type, reason[:LONGEST_WORD], action[:LONGEST_WORD], note, time, name)
        event.last_time, event.last_at = time, now
        self._known[key] = event
        self._known.move_to_end(key)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        self._enqueue(event)

    def pod(self, pod: Pod, reason: str, action: str, note: str, *, warning: bool = False) -> None:
        """Report an event of a pod."""
        self.report(reference(PODS, pod), reason, action, note, warning=warning)

    def node(self, name: str, uid: str, reason: str, note: str, *, warning: bool = False) -> None:
        """Report an event of a node."""
        regarding = ObjectReference(api_version=NODES.api_version, kind=NODES.kind, name=name, uid=uid)
        self.report(regarding, reason, reason, note, warning=warning)

    def _repeat(self, event: _Event, now: float) -> None:
        event.count += 1
        event.last_time, event.last_at = micro_time(self._clock), now
        if not event.waits:
            self._enqueue_later(event, SERIES_SPACING)

    def _enqueue(self, event: _Event) -> None:
        event.waits = True
        (self._first if event.regarding.kind in FIRST else self._queue).append(event)
        self._arrived.set()
        self._all_sent.clear()

    def _enqueue_later(self, event: _Event, seconds: float) -> None:
        """Write an event after a while, with all repetitions until then."""
        event.waits = True
        loop = asyncio.get_running_loop()

        def due() -> None:
            self._timers.discard(timer)
            self._forbidden -= event.refusals > 0
            if len(self._queue) < self._capacity or event.regarding.kind in FIRST:
                self._enqueue(event)
                return
            event.waits = False
            if not event.written:
                self._drop("the queue is full")

        timer = loop.call_later(seconds, due)
        self._timers.add(timer)

    def _drop(self, why: str) -> None:
        self.dropped += 1
        now = asyncio.get_running_loop().time()
        if self._dropped_at is None or now - self._dropped_at >= DROPS_SPACING:
            self._dropped_at = now
            _log.warning("events are dropped, %d until now: %s", self.dropped, why)

    # -- sending -----------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Send events until cancelled."""
        try:
            while True:
                while not (self._first or self._queue):
                    self._arrived.clear()
                    await self._arrived.wait()
                while self._busy():
                    await asyncio.sleep(BUSY_PAUSE)
                await self._rate_limit.acquire()
                await self._send((self._first or self._queue).popleft())
                if not (self._first or self._queue or self._forbidden):
                    self._all_sent.set()
        finally:
            for timer in self._timers:
                timer.cancel()

    async def drain(self, seconds: float) -> None:
        """Wait until all events that were reported are sent, but not longer than this, while `run` runs."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._all_sent.wait()

    async def _send(self, event: _Event) -> None:
        """Send an event, as soon as the server answers; an event that the server refuses is dropped."""
        while True:
            number, last_time = event.count, event.last_time
            try:
                await self._write(event, number, last_time)
            except ApiError as error:
                if error.is_temporary:
                    await asyncio.sleep(max(self._back_off.next_delay(), error.retry_after or 0.0))
                    continue
                if error.is_forbidden and self._tries_again(event):
                    return
                self._drop(str(error))
            except CONTAINED as error:
                _log.exception("bug: an event of %s was not sent", event.regarding.name)
                self._drop(describe_error(error))
            event.refusals = 0
            event.written = number
            event.waits = False
            if event.count > number:
                self._enqueue_later(event, SERIES_SPACING)
            return

    def _tries_again(self, event: _Event) -> bool:
        """Write a forbidden event again later, and others meanwhile; return False after the last attempt."""
        is_full = len(self._queue) + len(self._timers) >= self._capacity
        if is_full or event.refusals == len(FORBIDDEN_PAUSES):
            return False
        self._enqueue_later(event, FORBIDDEN_PAUSES[event.refusals])
        self._forbidden += 1
        event.refusals += 1
        return True

    async def _write(self, event: _Event, number: int, last_time: str) -> None:
        series = {"count": number, "lastObservedTime": last_time}
        if event.written:
            try:
                await self._server.patch(EVENTS, event.namespace, event.name, {"series": series})
                return
            except ApiError as error:
                if not error.is_not_found:
                    raise
                # The server has deleted the event because of its age.
        body = self._body(event)
        if number > 1:
            body["series"] = series
        try:
            await self._server.create(EVENTS, event.namespace, body)
        except ApiError as error:
            # A former attempt without an answer was executed.
            if not error.is_conflict:
                raise

    def _body(self, event: _Event) -> Json:
        body: Json = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": event.name, "namespace": event.namespace},
            "eventTime": event.time,
            "reportingController": CONTROLLER,
            "reportingInstance": self._instance,
            "type": event.type,
            "reason": event.reason,
            "action": event.action,
            "note": event.note,
            "regarding": event.regarding,
        }
        return body


def cut_note(text: str) -> str:
    """Return a text of at most 1024 bytes, with dots if something is left out."""
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= LONGEST_NOTE:
        return text
    return encoded[: LONGEST_NOTE - 3].decode("utf-8", "ignore") + "..."
