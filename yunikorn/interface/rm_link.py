"""What the core's plugins reach of a resource manager: the callback behind the `rm` of a configuration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from yunikorn.interface.event_records import EventRecords
from yunikorn.interface.messages import NodePredicatesArgs, PredicatesArgs

if TYPE_CHECKING:
    from yunikorn.api import Ask, Event, Node
    from yunikorn.interface.callback import Reach


class RMLink:
    """`yunikorn.api.ResourceManager`, for one session; its callback may become another."""

    def __init__(self, reach: Reach, queue_of: Callable[[str], str]) -> None:
        self.reach = reach
        self._records = EventRecords(queue_of)

    @property
    def answers_at_once(self) -> bool:
        """Whether its callback implements `node_predicates`, which goes before `predicates`."""
        return self.reach.answers_at_once

    def refusal(self, ask: Ask, node: Node, *, allocate: bool) -> str | None:
        """None if it lets the request be placed on the node, or kept for it, else its reason.

        Raises `CallbackError`.
        """
        reach = self.reach
        if reach.answers_at_once:
            return self.refusals(ask, [node], allocate=allocate)[0]
        if reach.answers:
            return reach.refusal(PredicatesArgs(ask.key, node.id, allocate, ask.app.id))
        return None

    def refusals(self, ask: Ask, nodes: Sequence[Node], *, allocate: bool) -> Sequence[str | None]:
        """The same for several nodes; raises `CallbackError`."""
        if not self.reach.answers_at_once:
            return [self.refusal(ask, node, allocate=allocate) for node in nodes]
        ids = [node.id for node in nodes]
        reasons = self.reach.refusals(NodePredicatesArgs(ask.key, ask.app.id, ids, allocate))
        return [reasons.get(node_id) for node_id in ids]

    def send_events(self, batch: Sequence[Event]) -> None:
        """Hand events over as records; raises `CallbackError`."""
        if "send_events" in self.reach.methods and (records := self._records.of(batch)):
            self.reach.send_events(records)
