"""Failed starts of a request: allocations that the resource manager could not start.

A request that failed to start is tried again, on other nodes first: a node is avoided for a while after each
failure there. From the second failure on the request pauses as well. See `docs/decisions/archive/0120`.
"""

from __future__ import annotations

from yunikorn.clock import SECOND

AVOIDED, LONGEST_AVOIDED = 10 * SECOND, 300 * SECOND
"""Time (ns) for which a node is avoided after its first failure, doubled by each further one; maximum."""
PAUSE, LONGEST_PAUSE = SECOND, 60 * SECOND
"""Pause (ns) of a request after its second failure, doubled by each further one; maximum."""
MOST_DOUBLINGS = 16
"""Number of doublings that exceeds both maxima."""


class FailedStarts:
    """Failures of the RM to start the allocations of one request."""

    __slots__ = ("_by_node", "avoided", "count", "message", "node_id", "paused_until")

    def __init__(self) -> None:
        self.count = 0
        """Number of failures, on any node."""
        self.node_id = self.message = ""
        """Node of the latest failure, and the RM's message."""
        self.paused_until = 0
        """Time before which the request is not tried (ns)."""
        self.avoided: dict[str, int] = {}
        """Nodes that are avoided, each with the end of this time (ns)."""
        self._by_node: dict[str, int] = {}

    def note(self, node_id: str, message: str, now: int, *, avoidable: bool) -> None:
        """Note a failure on a node; with `avoidable` False no other node could run the request."""
        self.count += 1
        self.node_id, self.message = node_id, message
        here = self._by_node[node_id] = self._by_node.get(node_id, 0) + 1
        repeated = self.count - 1
        if avoidable:
            self.avoided[node_id] = now + _doubled(AVOIDED, here - 1, LONGEST_AVOIDED)
            repeated -= 1
        if repeated >= 0:
            self.paused_until = now + _doubled(PAUSE, repeated, LONGEST_PAUSE)

    def review(self, now: int) -> None:
        """Forget the nodes that need not be avoided any more."""
        for node_id in [node_id for node_id, end in self.avoided.items() if end <= now]:
            del self.avoided[node_id]

    @property
    def next_end(self) -> int:
        """Earliest time at which a node need not be avoided any more (ns); there must be one."""
        return min(self.avoided.values())

    @property
    def nodes(self) -> frozenset[str]:
        """Nodes that are avoided."""
        return frozenset(self.avoided)

    @property
    def text(self) -> str:
        """Explanation of the latest failure."""
        times = "once" if self.count == 1 else f"{self.count} times"
        why = f": {self.message}" if self.message else ""
        return f"could not be started ({times}), at last on node {self.node_id}{why}"


def _doubled(span: int, times: int, most: int) -> int:
    return min(span << min(times, MOST_DOUBLINGS), most)
