"""Position of a pending request: its rank among all pending requests, by the current orders.

Computed on demand. Queue orders are not updated: members with an outdated position are sorted in a copy, so
that explanations do not affect later decisions.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

import attrs

from yunikorn.containment import contained
from yunikorn.scheduling.member_order import behind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from yunikorn.index.sorted_blocks import SortKey
    from yunikorn.model.application import Application
    from yunikorn.model.ask import Ask
    from yunikorn.model.queue import Queue


@attrs.frozen
class QueuePosition:
    """Rank of a queue among the siblings with pending requests."""

    queue: str
    place: int
    of: int
    parent: str

    def __str__(self) -> str:
        if self.of == 1:
            return f"queue {self.queue} is the only one with pending requests under {self.parent}"
        place = f"{ordinal(self.place)} of {self.of}"
        return f"queue {self.queue} is {place} with pending requests under {self.parent}"


@attrs.frozen
class RequestPosition:
    """Rank of a request within its queue, and of its queue and each ancestor among siblings, leaf first.

    All pending requests count, including blocked ones; an ask counts once per pending replica.
    """

    first: int
    last: int
    of: int
    queue: str
    queues: tuple[QueuePosition, ...]
    ordered_by: str = ""
    """Name of the sort policy of the queue, if it orders the requests of an application; else empty."""

    def __str__(self) -> str:
        return "; ".join([self._own, *map(str, self.queues)])

    @property
    def _own(self) -> str:
        if self.of == 1:
            return f"the only pending request in queue {self.queue}"
        place = ordinal(self.first)
        if self.last != self.first:
            place = f"{place} to {ordinal(self.last)}"
        text = f"{place} of {self.of} pending requests in queue {self.queue}"
        if self.ordered_by:
            text += f", where {self.ordered_by} orders the requests of an application"
        return text


@attrs.frozen
class PlacedPosition(RequestPosition):
    """Position of a request that is placed, and no longer among the pending requests."""

    def __str__(self) -> str:
        return f"placed in queue {self.queue}"


def placed_position(app: Application) -> PlacedPosition:
    """Return the position of a request of `app` whose placements permit policies hold."""
    return PlacedPosition(0, 0, 0, app.chain[0].path, ())


def request_positions(app: Application, now: int) -> dict[str, RequestPosition]:
    """Return the position of each pending request of `app`, by allocation key; empty without a queue."""
    leaf = app.queue
    if leaf is None:
        return {}
    waiting = [other for other in leaf.applications.values() if other.has_waiting or other is app]
    ahead = total = 0
    for other in in_order(leaf, waiting, now):
        if other is app:
            ahead = total
        total += sum(ask.pending for ask in other.asks.values())
    queues = tuple(_queue_positions(leaf, now))
    found: dict[str, RequestPosition] = {}
    name = orders_requests(leaf)
    for ask in _in_order_of_app(app):
        found[ask.key] = RequestPosition(ahead + 1, ahead + ask.pending, total, leaf.path, queues, name)
        ahead += ask.pending
    return found


def orders_requests(leaf: Queue) -> str:
    """Return the name of the sort policy of a queue if it orders the requests of an application; else ""."""
    return "" if leaf.order.ask_order is None else leaf.settings.app_sort


def _in_order_of_app(app: Application) -> list[Ask]:
    return sorted((ask for ask in app.asks.values() if ask.pending), key=lambda ask: ask.order)


def _queue_positions(leaf: Queue, now: int) -> Iterable[QueuePosition]:
    queue, parent = leaf, leaf.parent
    while parent is not None:
        waiting = [child for child in parent.children.values() if child.waiting or child is queue]
        place = in_order(parent, waiting, now).index(queue) + 1
        yield QueuePosition(queue.path, place, len(waiting), parent.path)
        queue, parent = parent, parent.parent


def in_order(queue: Queue, members: Iterable[Any], now: int) -> list[Any]:
    """Return `members` of `queue` in the order of a decision at `now`; changes nothing."""
    order = queue.order
    renewed = queue.sorted_members.version != queue.cluster.version or order.would_be_due(now)
    sort_keys: list[SortKey] = []
    found: list[Any] = []
    for member in members:
        current = None if renewed or member.is_dirty else member.sort_key
        sort_key = order.sort_key(member, quiet=True) if current is None else current
        try:
            at = bisect_left(sort_keys, sort_key)
        except contained():
            # Invalid keys of a plugin: sorted behind all others, as in the real order.
            sort_key = behind(member)
            at = bisect_left(sort_keys, sort_key)
        sort_keys.insert(at, sort_key)
        found.insert(at, member)
    return found


def ordinal(number: int) -> str:
    """Return an ordinal such as `1st`, `2nd`, `3rd`, `11th`, `21st`."""
    last = number % 10 if number % 100 // 10 != 1 else 0
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(last, 'th') }"
