"""Shrunk nodes: optional preemption on nodes with less capacity than usage.

Off by default: YuniKorn 1.9 keeps running allocations and places nothing new (`docs/decisions/0036`). Queues
keep their guarantees and protected allocations stay, so that a node may remain overcommitted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.resources import Tally, grow
from yunikorn.scheduling.preemption.candidates import may_go
from yunikorn.scheduling.preemption.snapshot import PreemptionSnapshot
from yunikorn.scheduling.preemption.victim_search import least

if TYPE_CHECKING:
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.node import Node


def victims_of(node: Node) -> list[Allocation]:
    """Return the victims that let the rest fit `node`: lowest priority first, then the latest."""
    snapshot = PreemptionSnapshot()
    short = _overuse(node, [])
    chosen: list[Allocation] = []
    running = reversed(list(node.allocations.values()))
    for victim in sorted((one for one in running if may_go(one)), key=least):
        if not short:
            break
        helps = any(victim.resource.get(name, 0) > 0 for name in short)
        if helps and snapshot.keeps_guarantees(victim):
            snapshot.go(victim)
            chosen.append(victim)
            short = _overuse(node, chosen)
    kept = list(chosen)
    for victim in reversed(chosen):
        rest = [one for one in kept if one is not victim]
        if _overuse(node, rest) == short:
            kept = rest
    return kept


def _overuse(node: Node, going: list[Allocation]) -> Tally:
    room = dict(node.available)
    for one in [one for one in node.allocations.values() if one.eviction is not None] + going:
        grow(room, one.resource)
    return {name: -amount for name, amount in room.items() if amount < 0}
