"""Plain asks of one application that come together: taken in one by one, and booked in one go.

Plain is an ask without tags, task group or flags, new to an application that has begun: nearly all asks of a
large application. What they lead to is what `PendingAccounting.add` would have led to for each of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.objects.ask import Ask
from yunikorn.objects.ask_spec import DEFAULT_SPEC
from yunikorn.states import ASK

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from yunikorn.objects.application import Application
    from yunikorn.objects.ask_class import AskClass
    from yunikorn.objects.partition import Partition
    from yunikorn.objects.pending_class import PendingClass
    from yunikorn.resources import Resource, Tally

_PENDING = ASK.moves["Initial", "ask"]


class AskBatch:
    """Asks of one application that are there, but in no books yet, until `book`."""

    __slots__ = (
        "_app",
        "_ask_class_of",
        "_now",
        "_once",
        "_partition",
        "_pending_class",
        "_pending_classes",
        "_resource",
        "alike",
        "asks",
    )

    def __init__(
        self,
        app: Application,
        partition: Partition,
        ask_class_of: Callable[[Ask], AskClass],
        *,
        alike: bool,
        once: bool = False,
    ) -> None:
        self._app = app
        self._partition = partition
        self._ask_class_of = ask_class_of
        self.alike = alike
        """Whether plain asks of one size have one ask class."""
        self._once = once
        """Whether an ask with the key of an allocation is not a new one."""
        self._now = partition.clock.now()
        self._resource: Resource | None = None
        self._pending_class: PendingClass | None = None
        """Of the ask before: tasks of an application are mostly alike."""
        self._pending_classes: dict[int, tuple[Resource, PendingClass]] = {}
        """By identity of their amounts, which stay as long as they are here: those of all asks before."""
        self.asks: list[Ask] = []

    def add(self, key: str, resource: Resource, count: int, priority: int) -> bool:
        """Take in a new ask; False if there is one with this key (`once`: or an allocation)."""
        app, partition = self._app, self._partition
        if key in app.asks or (self._once and app.of_key(key)):
            return False
        partition.arrivals = arrival = partition.arrivals + 1
        ask = Ask(key, app, resource, count, priority, self._now, arrival, DEFAULT_SPEC)
        pending_class = self._pending_class
        if (
            pending_class is None
            or not self.alike
            or (resource is not self._resource and resource != self._resource)
        ):
            pending_class = self._pending_class_of(ask)
        ask.pending_class = pending_class
        if resource is not pending_class.ask_class.resource:
            ask.share_amount()
        ask.state = _PENDING
        if pending_class.asks:
            pending_class.asks += 1
        else:
            partition.pending_classes.wait(pending_class)
        app.asks[key] = ask
        self.asks.append(ask)
        return True

    def _pending_class_of(self, ask: Ask) -> PendingClass:
        resource = ask.resource
        known = self._pending_classes.get(id(resource)) if self.alike else None
        if known is None:
            known = (resource, self._partition.pending_classes.of(self._ask_class_of(ask), self._app.owner))
            self._pending_classes[id(resource)] = known
        self._resource, self._pending_class = known
        return known[1]

    def book(self) -> Ask | None:
        """Have all of them wait; returns the first, if there are any."""
        asks, self.asks = self.asks, []
        if not asks:
            return None
        app, first = self._app, asks[0]
        app.submitted = min(app.submitted, self._now)
        self._partition.accounting.pending_accounting.queue_up_all(app, asks)
        if max(ask.priority for ask in asks) > app.priority:
            app.reprioritise()
        repeats: dict[PendingClass, int] = {}
        for ask in asks:
            repeats[ask.pending_class] = repeats.get(ask.pending_class, 0) + ask.pending
        bits = 0
        demand: Tally = {}
        for pending_class, count in repeats.items():
            bits |= pending_class.bit
            for name, amount in pending_class.ask_class.pairs:
                demand[name] = demand.get(name, 0) + amount * count
        app.activate(bits)
        self._partition.accounting.pending_accounting.book(app, demand, 1)
        self._tell(asks)
        return first

    def _tell(self, asks: Sequence[Ask]) -> None:
        pending_accounting, event_recorder = (
            self._partition.accounting.pending_accounting,
            self._partition.event_recorder,
        )
        watcher, index = pending_accounting.watcher, pending_accounting.index
        if index is not None:
            for ask in asks:
                index.add(ask.app, ask.key)
        if watcher is not None:
            for ask in asks:
                watcher.waits(ask)
        if event_recorder.enabled:
            for ask in asks:
                event_recorder.record(
                    "APP", ask.app.id, ask.key, change="ADD", detail="APP_REQUEST", resource=ask.resource
                )
