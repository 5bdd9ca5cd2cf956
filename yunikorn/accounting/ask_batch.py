"""Batch of plain asks of one application: added one by one, accounted for together.

A plain ask has no tags, task group or flags, and is new to an application that is active. Nearly all asks of
a large application are plain. A batch has the same effect as a call of `PendingAccounting.add` for each ask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.model.ask import DEFAULT_SPEC, Ask
from yunikorn.states import ASK

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from yunikorn.accounting.partition import Partition
    from yunikorn.model.application import Application
    from yunikorn.model.ask_class import AskClass
    from yunikorn.model.pending_class import PendingClass
    from yunikorn.resources import Resource, Tally

_PENDING = ASK.moves["Initial", "ask"]


class AskBatch:
    """Asks of one application that are not accounted for until `book`."""

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
        """True if plain asks of equal size have the same ask class."""
        self._once = once
        """True if the key of an allocation also marks an ask as known."""
        self._now = partition.clock.now()
        self._resource: Resource | None = None
        self._pending_class: PendingClass | None = None
        """Pending class of the previous ask; most consecutive asks of an application are alike."""
        self._pending_classes: dict[int, tuple[Resource, PendingClass]] = {}
        """Pending classes of all previous asks, by the identity of their resources.

        The values keep these resources alive, so that no identity is reused."""
        self.asks: list[Ask] = []

    def add(self, key: str, resource: Resource, count: int, priority: int) -> bool:
        """Add a new ask; return False if the key belongs to an ask (or an allocation, if `once`)."""
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
        """Account for all asks as pending; return the first ask, or None if there is none."""
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
