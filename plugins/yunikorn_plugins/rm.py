"""Predicate and event sink that forward to the resource manager, both called `rm`.

    partitions:
      - name: default
        predicates: [taints, rm]    # the taints first, then the resource manager
    events:
      sinks: [rm, log]

A callback that implements `predicates` or `send_events` is called even if the configuration does not name
`rm`. Naming it determines its position among the others. To disable it, use `plugins: {disable: [rm]}`, or
`predicate:rm`, or `event-sink:rm`. If the callback lacks the method, or if there is no resource manager, `rm`
refuses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from yunikorn.api import Ask, Context, Event, EventSink, Node, Predicate, ResourceManager, hookimpl


@attrs.define(eq=False)
class AskResourceManager(Predicate):
    """Only nodes that the resource manager's callback accepts."""

    name = "rm"
    refresh_every = 5.0
    _rm: ResourceManager | None = attrs.field(init=False, default=None, repr=False)

    def opened(self, context: Context) -> None:
        """Keep the resource manager of the partition."""
        self._rm = context.rm

    @property
    def asks_ahead(self) -> bool:
        """True if the callback prefers one call for many nodes, because it is remote."""
        return self._rm is not None and self._rm.answers_at_once

    def check(self, ask: Ask, node: Node) -> str | None:
        """Return the callback's reason if it refuses an allocation, else None."""
        return None if self._rm is None else self._rm.refusal(ask, node, allocate=True)

    def check_reservation(self, ask: Ask, node: Node) -> str | None:
        """Return the callback's reason if it refuses a reservation, else None."""
        return None if self._rm is None else self._rm.refusal(ask, node, allocate=False)

    def check_nodes(self, ask: Ask, nodes: Sequence[Node], *, allocate: bool) -> Sequence[str | None]:
        """Return the callback's answers, one per node."""
        if self._rm is None:
            return [None] * len(nodes)
        return self._rm.refusals(ask, nodes, allocate=allocate)


@attrs.define(eq=False)
class TellResourceManager(EventSink):
    """Events sent to the resource manager's callback."""

    name = "rm"
    wants = ("REQUEST", "APP", "NODE", "QUEUE", "USERGROUP")
    _rm: ResourceManager | None = attrs.field(init=False, default=None, repr=False)

    def opened(self, context: Context) -> None:
        """Keep the resource manager of the partition."""
        self._rm = context.rm

    def send(self, batch: Sequence[Event]) -> None:
        """Send the events to the callback, if there is one."""
        if self._rm is not None:
            self._rm.send_events(batch)


@hookimpl
def yunikorn_predicates() -> list[type[Predicate]]:
    """Return the predicate."""
    return [AskResourceManager]


@hookimpl
def yunikorn_event_sinks() -> list[type[EventSink]]:
    """Return the event sink."""
    return [TellResourceManager]
