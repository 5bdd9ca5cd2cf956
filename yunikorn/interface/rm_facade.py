"""The resource manager as the core's plugins see it: the callback behind the `rm` of a configuration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from yunikorn.interface.event_records import EventRecords
from yunikorn.interface.messages import NodePredicatesArgs, PredicatesArgs

if TYPE_CHECKING:
    from yunikorn.api import Ask, Event, Node
    from yunikorn.interface.callback import CallbackAdapter


class RMFacade:
    """Implementation of `yunikorn.api.ResourceManager` for one session; its callback can be replaced."""

    def __init__(self, callback_adapter: CallbackAdapter, queue_of: Callable[[str], str]) -> None:
        self.callback_adapter = callback_adapter
        self._records = EventRecords(queue_of)

    @property
    def answers_at_once(self) -> bool:
        """True if the callback implements `node_predicates`, which takes precedence over `predicates`."""
        return self.callback_adapter.answers_at_once

    def refusal(self, ask: Ask, node: Node, *, allocate: bool) -> str | None:
        """Return None if the RM lets the node run the ask, or be reserved for the ask, else the reason.

        Raises `CallbackError`.
        """
        callback_adapter = self.callback_adapter
        if callback_adapter.answers_at_once:
            return self.refusals(ask, [node], allocate=allocate)[0]
        if callback_adapter.answers:
            return callback_adapter.refusal(PredicatesArgs(ask.key, node.id, allocate, ask.app.id))
        return None

    def refusals(self, ask: Ask, nodes: Sequence[Node], *, allocate: bool) -> Sequence[str | None]:
        """Return the results of `refusal` for several nodes; raise `CallbackError`."""
        if not self.callback_adapter.answers_at_once:
            return [self.refusal(ask, node, allocate=allocate) for node in nodes]
        ids = [node.id for node in nodes]
        reasons = self.callback_adapter.refusals(NodePredicatesArgs(ask.key, ask.app.id, ids, allocate))
        return [reasons.get(node_id) for node_id in ids]

    def send_events(self, batch: Sequence[Event]) -> None:
        """Send events as records; raise `CallbackError`."""
        if "send_events" in self.callback_adapter.methods and (records := self._records.of(batch)):
            self.callback_adapter.send_events(records)
