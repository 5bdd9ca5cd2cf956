"""Victims on the node that a request requires.

Guarantees and fences do not protect victims here, since the request can run on no other node. Free room
counts first, so that nothing is preempted for room that already exists.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from yunikorn.resources import grow
from yunikorn.scheduling.preemption.candidate_pool import shortage
from yunikorn.scheduling.preemption.candidates import may_go, uses_any_of
from yunikorn.scheduling.preemption.victim_search import least

if TYPE_CHECKING:
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.ask import Ask
    from yunikorn.model.node import Node


def victims_on(node: Node, ask: Ask, rivals: Iterable[Ask] = ()) -> list[Allocation] | None:
    """Return the victims on `node` for `ask`; empty if pending releases suffice, None if no choice does.

    `rivals` are requests whose victims on the same node have not ended yet.
    """
    wanted = dict(ask.ask_class.pairs)
    for rival in rivals:
        grow(wanted, rival.resource)
    pairs = tuple((name, amount) for name, amount in wanted.items() if name in ask.ask_class.resource)
    short = shortage(node, pairs)
    chosen: list[Allocation] = []
    running = reversed(list(node.allocations.values()))
    candidates = [one for one in running if may_go(one) and one.priority <= ask.priority]
    for victim in sorted(candidates, key=lambda one: (*least(one), sum(one.resource.values()))):
        if not short:
            break
        if uses_any_of(victim, tuple(short.items())):
            chosen.append(victim)
            short = shortage(node, pairs, chosen)
    if short:
        return None
    kept = list(chosen)
    for victim in reversed(chosen):
        rest = [one for one in kept if one is not victim]
        if not shortage(node, pairs, rest):
            kept = rest
    return kept
