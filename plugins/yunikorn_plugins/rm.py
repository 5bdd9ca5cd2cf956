"""The resource manager itself as a predicate and as an event sink, both called `rm`.

    partitions:
      - name: default
        predicates: [taints, rm]    # the taints first, then the resource manager
    events:
      sinks: [rm, log]

A resource manager whose callback implements `predicates` is asked, and one that implements `send_events`
is told, whether a configuration names `rm` or not: naming it gives it a place among the others. To have it
left alone: `plugins: {disable: [rm]}`, or `predicate:rm`, or `event-sink:rm`. Where a callback does not
implement the method, and where there is no resource manager at all, `rm` refuses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from yunikorn.api import Ask, Context, Event, EventSink, Node, Predicate, ResourceManager, hookimpl


@attrs.define(eq=False)
class AskResourceManager(Predicate):
    """What the resource manager's callback says of a node."""

    name = "rm"
    refresh_every = 5.0
    _rm: ResourceManager | None = attrs.field(init=False, default=None, repr=False)

    def opened(self, context: Context) -> None:
        """Learn whom to ask."""
        self._rm = context.rm

    @property
    def asks_ahead(self) -> bool:
        """Whether it wants to be asked about many nodes at once, because it is far away."""
        return self._rm is not None and self._rm.answers_at_once

    def check(self, ask: Ask, node: Node) -> str | None:
        """Its reason, if it does not let the request be placed there."""
        return None if self._rm is None else self._rm.refusal(ask, node, allocate=True)

    def check_reservation(self, ask: Ask, node: Node) -> str | None:
        """Its reason, if it does not let the node be kept for the request."""
        return None if self._rm is None else self._rm.refusal(ask, node, allocate=False)

    def check_nodes(self, ask: Ask, nodes: Sequence[Node], *, allocate: bool) -> Sequence[str | None]:
        """Its reasons, for each node."""
        if self._rm is None:
            return [None] * len(nodes)
        return self._rm.refusals(ask, nodes, allocate=allocate)


@attrs.define(eq=False)
class TellResourceManager(EventSink):
    """Into the resource manager's callback."""

    name = "rm"
    _rm: ResourceManager | None = attrs.field(init=False, default=None, repr=False)

    def opened(self, context: Context) -> None:
        """Learn whom to tell."""
        self._rm = context.rm

    def send(self, batch: Sequence[Event]) -> None:
        """Hand them over."""
        if self._rm is not None:
            self._rm.send_events(batch)


@hookimpl
def yunikorn_predicates() -> list[type[Predicate]]:
    """The resource manager is asked."""
    return [AskResourceManager]


@hookimpl
def yunikorn_event_sinks() -> list[type[EventSink]]:
    """The resource manager is told."""
    return [TellResourceManager]
