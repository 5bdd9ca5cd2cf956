"""Selection of victims that bring a queue down to its quota.

The victims never exceed the excess of any resource type, and leave every queue its guarantee. The rules are
those of YuniKorn 1.9.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from yunikorn.clock import SECOND
from yunikorn.resources import Tally, shrink
from yunikorn.scheduling.preemption.candidates import may_go
from yunikorn.scheduling.preemption.snapshot import PreemptionSnapshot

if TYPE_CHECKING:
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.queue import Queue

HOUR = 3600 * SECOND


def select_for_quota(queue: Queue, amount: Mapping[str, int]) -> list[Allocation]:
    """Return victims in `queue` and its descendants whose sum is close to, and at most, `amount`.

    Children contribute in proportion to their usage above their guarantees. The remainder, left because
    allocations do not divide evenly, is then taken from any leaf.
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
    """Return the candidates that fit into `amount`, in order; reduces `amount` accordingly."""
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
    """Return the candidates in the order of preemption.

    Originators are last. Then come, in this order: the largest share of wanted resource types, the lowest
    priority, the youngest by the hour, and the smallest amount of these types.
    """

    def rank(victim: Allocation) -> tuple[float, ...]:
        held = [name for name, amount in victim.resource.items() if amount]
        wanted = [name for name in held if name in types]
        size = sum(victim.resource[name] / (most.get(name) or 1) for name in wanted)
        match = len(wanted) / len(held) if held else 0.0
        return (victim.originator, -match, victim.priority, -(victim.placed // HOUR), size)

    return sorted(reversed(list(candidates)), key=rank)
