"""Obstacles of a request on any node: quotas of its queues, and limits of its user and groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Union

from yunikorn.model.queue import Queue
from yunikorn.resources import NOTHING, Tally

if TYPE_CHECKING:
    from yunikorn.model.application import Application
    from yunikorn.model.ask import Ask
    from yunikorn.model.usage_tracker import UsageTracker

Holder = Union[Queue, "UsageTracker"]
"""Holder of a bound on usage: a queue with its quota, or a user or group with its limit at a queue.

What is left is the `headroom` of the holder.
"""


def holders(app: Application) -> tuple[Holder, ...]:
    """Return the queues of `app` from the leaf up, then the usage trackers with a limit."""
    return (*app.chain, *app.limit_trackers)


def first_obstacle(ask: Ask) -> Holder | None:
    """Return the first of `obstacles(ask)`, or None; faster than the iterator, for every decision."""
    app, pairs = ask.app, ask.pending_class.ask_class.pairs
    for queue in app.chain[0].capped:
        if not queue.has_room(pairs):
            return queue
    for tracker in app.limit_trackers:
        if not tracker.has_room(pairs):
            return tracker
    return None


def obstacles(ask: Ask, *, to_start: bool = False) -> Iterator[Holder]:
    """Yield the holders without room for one replica of `ask`, in the order of `holders`.

    With `to_start`, also the holders whose maximum of running applications keeps the application from
    starting.
    """
    app, pairs = ask.app, ask.pending_class.ask_class.pairs
    not_started = to_start and app.not_started
    for holder in holders(app):
        if not holder.has_room(pairs) or (not_started and holder.full):
            yield holder


def bound_of(holder: Holder) -> Mapping[str, int]:
    """Return the quota or limit of `holder` itself; missing types are unlimited."""
    bound = holder.max if isinstance(holder, Queue) else holder.max_resources
    return bound or NOTHING


def usage_of(holder: Holder) -> Mapping[str, int]:
    """Return the usage that counts against the bound of `holder`."""
    return holder.allocated if isinstance(holder, Queue) else holder.usage


def excess(holder: Holder, pairs: Sequence[tuple[str, int]]) -> Tally:
    """Return the amounts by which a request would exceed the bound of `holder`; empty if there is room."""
    bound, used = bound_of(holder), usage_of(holder)
    over = {name: used.get(name, 0) + amount - bound[name] for name, amount in pairs if name in bound}
    return {name: amount for name, amount in over.items() if amount > 0}


def replicas_within(
    holder: Holder, pairs: Sequence[tuple[str, int]], most: int, claimed: Mapping[str, int]
) -> int:
    """Return how many replicas fit the bound of `holder` in addition to `claimed`, up to `most`."""
    bound, used = bound_of(holder), usage_of(holder)
    for name, amount in pairs:
        if name in bound:
            left = bound[name] - used.get(name, 0) - claimed.get(name, 0)
            most = min(most, max(left, 0) // amount)
    return most


def over_limit(ask: Ask) -> bool:
    """Return True if a user or group limit has no room for `ask`; nothing is preempted for it then."""
    return any(not isinstance(obstacle, Queue) for obstacle in obstacles(ask))
