"""New asks of one application: created one by one, accounted for together.

Most asks of a large application arrive together and are alike. A batch books them on the application and its
queues once, and finds their classes once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.model.ask import Ask
from yunikorn.states import ASK

if TYPE_CHECKING:
    from collections.abc import Callable

    from yunikorn.accounting.partition import Partition
    from yunikorn.model.application import Application
    from yunikorn.model.ask import AskSpec
    from yunikorn.model.ask_class import AskClass, PendingClass
    from yunikorn.resources import Resource

_PENDING = ASK.moves["Initial", "ask"]


class AskBatch:
    """Asks of one application that are not accounted for until `PendingAccounting.add_all`."""

    __slots__ = (
        "_ask_class_of",
        "_partition",
        "_pending_class",
        "_pending_classes",
        "app",
        "asks",
        "is_plain",
        "now",
        "resource",
        "sound",
    )

    def __init__(
        self, app: Application, partition: Partition, ask_class_of: Callable[[Ask], AskClass]
    ) -> None:
        self.app = app
        self._partition = partition
        self._ask_class_of = ask_class_of
        self.now = partition.clock.now()
        self.resource: Resource | None = None
        """Resource of the previous ask whose ask class depends on nothing else."""
        self._pending_class: PendingClass | None = None
        """Pending class of that ask; most consecutive asks of an application are alike."""
        self._pending_classes: dict[int, tuple[Resource, PendingClass]] = {}
        """Pending classes of all such asks, by the identity of their resources.

        The values keep these resources alive, so that no identity is reused."""
        self.asks: list[Ask] = []
        self.sound: dict[int, Resource] = {}
        """Checked amounts by identity, which this keeps alive: tasks mostly share one object."""
        self.is_plain = True
        """True while no ask has options of its own; all asks were then created now."""

    def add(
        self,
        key: str,
        resource: Resource,
        count: int,
        priority: int,
        created: int,
        spec: AskSpec,
        alike: bool,
    ) -> None:
        """Add a new ask; with `alike`, asks of equal resources have the same ask class."""
        app, partition = self.app, self._partition
        partition.arrivals = arrival = partition.arrivals + 1
        ask = Ask(key, app, resource, count, priority, created, arrival, spec)
        if not alike:
            pending_class = partition.pending_classes.of(self._ask_class_of(ask), app.limit_trackers)
        elif self._pending_class is not None and (resource is self.resource or resource == self.resource):
            pending_class = self._pending_class
        else:
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

    def _pending_class_of(self, ask: Ask) -> PendingClass:
        resource = ask.resource
        known = self._pending_classes.get(id(resource))
        if known is None:
            known = (
                resource,
                self._partition.pending_classes.of(self._ask_class_of(ask), self.app.limit_trackers),
            )
            self._pending_classes[id(resource)] = known
        self.resource, self._pending_class = known
        return known[1]
