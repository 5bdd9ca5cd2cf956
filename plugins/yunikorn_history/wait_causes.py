"""Causes of waits: why the pending requests of an application wait, from what the core has noted anyway.

The names are those of the checks of explanations (`yunikorn.explain.explanations`), with the meanings in
`docs/history.md`. An application has one cause at a time: that of its first request which could be placed.
Nothing is searched, so that thousands of waiting applications cost little; an explanation looks closer, and
at all requests.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from yunikorn.model.queue import Queue
from yunikorn.scheduling.obstacles import first_obstacle
from yunikorn.states import ACTIVE, STOPPED

if TYPE_CHECKING:
    from yunikorn.model.application import Application
    from yunikorn.model.ask import Ask
    from yunikorn.scheduling.partition_scheduler import PartitionScheduler

LOOKED_AT = 50
"""Number of requests among which one that waits is looked for."""


def cause_of(at: PartitionScheduler, app: Application) -> str:
    """Return why an application waits; empty if it does not."""
    if not app.has_waiting:
        return "permit" if app.unannounced else "admission" if app.unanswered else ""
    if at.partition.state != ACTIVE or any(queue.state == STOPPED for queue in app.chain):
        return "stopped"
    if app.max_apps_blocker is not None:
        return "application limit"
    if app.held is not None:
        return "admission"
    if not app.admitted:
        return "order"
    if app.backoff_timer is not None:
        return "back-off"
    ask = app.requests.first(-1)
    if ask is None:
        ask = next((one for one in islice(app.asks.values(), LOOKED_AT) if one.pending), None)
    return "gang" if ask is None else _cause_of_request(ask, at.partition.clock.now())


def _cause_of_request(ask: Ask, now: int) -> str:
    ask_class = ask.ask_class
    if ask.gang_blocked:
        return "gang"
    if ask.is_paused(now):
        return "start"
    if ask.unpermitted:
        return "permit"
    if ask.eviction is not None and ask.eviction.is_awaited and ask.eviction.outstanding:
        return "preemption"
    obstacle = first_obstacle(ask)
    if obstacle is not None:
        if not isinstance(obstacle, Queue):
            return "limit"
        # The whole cluster is the quota of root.
        return "nodes" if obstacle.parent is None else "quota"
    if ask.reserved is not None:
        return "reservation"
    if not (ask.unschedulable or ask_class.unschedulable):
        return "order"
    if ask.gang is not None:
        return "gang"
    return "predicates" if ask.refusals else "nodes"
