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
        return "node_predicates" in self.reach.methods

    def refusal(self, ask: Ask, node: Node, *, allocate: bool) -> str | None:
        """None if it lets the request be placed on the node, or kept for it, else its reason.

        Raises `CallbackError`.
        """
        methods = self.reach.methods
        if "node_predicates" in methods:
            return self.refusals(ask, [node], allocate=allocate)[0]
        if "predicates" in methods:
            return self.reach.refusal(PredicatesArgs(ask.key, node.id, allocate, ask.app.id))
        return None

    def refusals(self, ask: Ask, nodes: Sequence[Node], *, allocate: bool) -> Sequence[str | None]:
        """The same for several nodes; raises `CallbackError`."""
        if not self.answers_at_once:
            return [self.refusal(ask, node, allocate=allocate) for node in nodes]
        args = NodePredicatesArgs(ask.key, ask.app.id, [node.id for node in nodes], allocate)
        reasons = self.reach.refusals(args)
        return [reasons.get(node.id) for node in nodes]

    def send_events(self, batch: Sequence[Event]) -> None:
        """Hand events over as records; raises `CallbackError`."""
        if "send_events" in self.reach.methods:
            self.reach.send_events(self._records.of(batch))
