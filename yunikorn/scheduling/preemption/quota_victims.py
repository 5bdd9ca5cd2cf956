"""Shedding: which work a queue gives up to come down by an amount (facts §9.7).

It never gives up more than the amount of any type, and never takes a queue below its guarantee.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from yunikorn.clock import SECOND
from yunikorn.resources import Tally, shrink
from yunikorn.scheduling.preemption.candidates import may_go
from yunikorn.scheduling.preemption.snapshot import PreemptionSnapshot

if TYPE_CHECKING:
    from yunikorn.objects.allocation import Allocation
    from yunikorn.objects.queue import Queue

HOUR = 3600 * SECOND


def select_for_quota(queue: Queue, amount: Mapping[str, int]) -> list[Allocation]:
    """The victims in `queue` and below that bring it down by `amount`, or as near to that as can be.

    Queues below give in proportion to what they have above their guarantees; what that leaves over,
    because work is not as small as shares are, is then taken wherever it fits.
    """
    snapshot = PreemptionSnapshot()
    victims = _share(queue, amount, snapshot)
    rest: Tally = dict(amount)
    for victim in victims:
        _reduce(rest, victim)
    left = [one for leaf in queue.walk() if leaf.is_leaf for one in _victims(leaf) if one not in victims]
    victims += _take(left, rest, queue, snapshot)
    return victims


def _share(queue: Queue, amount: Mapping[str, int], snapshot: PreemptionSnapshot) -> list[Allocation]:
    if queue.is_leaf:
        return _take(_victims(queue), dict(amount), queue, snapshot)
    shares = [(child, _above_guarantee(child, snapshot)) for child in queue.children.values()]
    victims: list[Allocation] = []
    for child, own in shares:
        part: Tally = {}
        for name, wanted in amount.items():
            whole = sum(share.get(name, 0) for _, share in shares)
            if own.get(name, 0):
                part[name] = own[name] * wanted // whole
        if any(part.values()):
            victims += _share(child, part, snapshot)
    return victims


def _above_guarantee(queue: Queue, snapshot: PreemptionSnapshot) -> Tally:
    guaranteed = queue.guaranteed
    return {
        name: used - guaranteed.get(name, 0)
        for name, used in snapshot.used(queue).items()
        if used > guaranteed.get(name, 0)
    }


def _victims(leaf: Queue) -> list[Allocation]:
    return [
        one
        for app in leaf.applications.values()
        for one in app.allocations.values()
        if may_go(one, originators=True)
    ]


def _take(
    candidates: Sequence[Allocation], amount: Tally, queue: Queue, snapshot: PreemptionSnapshot
) -> list[Allocation]:
    """Those that fit what is still to be given up, the first in order first; `amount` is used up."""
    taken: list[Allocation] = []
    types = [name for name, value in amount.items() if value > 0]
    for victim in in_order(candidates, types, queue.max or {}):
        resource = victim.resource
        fits = all(resource.get(name, 0) <= amount.get(name, 0) for name in types)
        if fits and any(resource.get(name, 0) for name in types) and snapshot.keeps_guarantees(victim):
            snapshot.go(victim)
            _reduce(amount, victim)
            taken.append(victim)
    return taken


def _reduce(amount: Tally, victim: Allocation) -> None:
    shrink(amount, {name: value for name, value in victim.resource.items() if name in amount})


def in_order(
    candidates: Iterable[Allocation], types: Sequence[str], most: Mapping[str, int]
) -> list[Allocation]:
    """Who goes first: originators last, then by how much of it is of the types that are wanted, then the
    least important, then the youngest by the hour, then the smallest of these types."""

    def rank(victim: Allocation) -> tuple[float, ...]:
        held = [name for name, amount in victim.resource.items() if amount]
        wanted = [name for name in held if name in types]
        size = sum(victim.resource[name] / (most.get(name) or 1) for name in wanted)
        match = len(wanted) / len(held) if held else 0.0
        return (victim.originator, -match, victim.priority, -(victim.placed // HOUR), size)

    return sorted(reversed(list(candidates)), key=rank)
