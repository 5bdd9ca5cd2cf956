"""Preemption for a gang: victims that make room for all members at once, in one domain.

Without requirements on the topology the domain is the whole cluster. Victims are whole gangs, steps of gangs,
or single allocations of others, in the order of the preemption policy. The domain is that of the lowest cost:
the highest priority of a victim, then the number of gangs that end, then the costs of the policy, unless the
policy has costs of its own for units.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from yunikorn.api import VictimUnit
from yunikorn.resources import INT64_MIN
from yunikorn.scheduling.preemption.candidates import candidates_on, is_eligible
from yunikorn.scheduling.preemption.snapshot import apart
from yunikorn.scheduling.preemption.victim_policy import may_go
from yunikorn.scheduling.preemption.victims import flat
from yunikorn.scheduling.topology.domain_clearing import by_domain
from yunikorn.scheduling.topology.topology_tree import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence, Set

    from yunikorn.api import PreemptionCause
    from yunikorn.model.allocation import Allocation, Unit
    from yunikorn.model.ask import Ask
    from yunikorn.model.queue import Queue
    from yunikorn.scheduling.preemption.candidates import EligibleLeaves
    from yunikorn.scheduling.preemption.snapshot import Bound, PreemptionSnapshot
    from yunikorn.scheduling.preemption.victim_policy import VictimPolicy
    from yunikorn.scheduling.topology.domain_clearing import Clearing, DomainClearing
    from yunikorn.scheduling.topology.topology_tree import TreeDomain


class GangCandidates:
    """Candidates for gangs of one priority and one leaf, in units; known for one round."""

    def __init__(
        self, request: Ask, eligible: EligibleLeaves, cause: PreemptionCause, policy: VictimPolicy
    ) -> None:
        """Collect the units in `eligible` leaves, without the application of `request`, in order."""
        self.cause, self.policy, self.is_stale = cause, policy, False
        self.leaf = request.app.chain[0]
        self.guarded: dict[Queue, bool] = {}
        """True for queues of which a guarantee may protect work, by leaf."""
        self.usable: dict[tuple[int, tuple[str, ...]], list[Unit]] = {}
        """Units that may end together, by identity of the list of units, and requested types."""
        self._inside: dict[tuple[TreeDomain, TreeDomain], dict[TreeDomain, list[Unit]]] = {}
        """Units by domain, by the first and the last of these domains."""
        ordered = policy.in_order(candidates_on(eligible, policy.eligible(cause)), cause)
        self.costs: Mapping[str, float] | None = None
        if policy.has_costs:
            costs = self.costs = policy.costs(ordered, cause)
            ordered = [one for one in ordered if one.uuid in costs]
        self.units: list[Unit] = []
        known: set[Allocation] = set()
        for one in ordered:
            if one.app is request.app or one in known:
                continue
            if one.app.core is None:
                self.units.append((one,))
                continue
            unit = policy.unit_of(one, cause)
            if unit and all(is_eligible(each, eligible) for each in unit):
                self.units.append(tuple([each for each in unit if each not in known]))
                known.update(unit)

    def refreshed(self) -> GangCandidates:
        """Return these candidates without those that are ending since `is_stale` was set."""
        if self.is_stale:
            self.units = [unit for unit in self.units if all(map(may_go, unit))]
            self.usable, self._inside, self.is_stale = {}, {}, False
        return self

    def inside(self, domains: Sequence[TreeDomain]) -> dict[TreeDomain, list[Unit]]:
        """Return the units that have a part in each domain."""
        if domains and domains[0].level == ROOT:
            return {domains[0]: self.units}
        if not domains:
            return {}
        key = domains[0], domains[-1]
        if key not in self._inside:
            self._inside[key] = by_domain(self.units, domains)
        return self._inside[key]


class GangVictims:
    """Search for the victims of one gang."""

    def __init__(
        self,
        request: Ask,
        candidates: GangCandidates,
        snapshot: PreemptionSnapshot,
        bounds: Sequence[Bound],
    ) -> None:
        """Create a search; `snapshot` includes the request of the gang."""
        self._candidates, self._snapshot, self._bounds = candidates, snapshot, bounds
        self._pairs, self._leaf = request.ask_class.pairs, candidates.leaf
        self._failed = False
        """True if the policy has failed to compute a cost."""

    def find(self, clearing: DomainClearing) -> tuple[list[Allocation], Clearing] | None:
        """Return the victims and the domain, or None; no victims if a domain has room, or will have."""
        units = self._candidates.units
        if not units:
            return None
        found = clearing.best(self._candidates.inside(clearing.domains), self._usable, self._cost)
        if found is None or self._failed:
            return None
        extras = self._make_bounds_hold(found.units, units)
        if extras is None:
            return None
        return flat((*found.units, *extras)), found

    def _cost(self, units: Sequence[Unit], domain: TreeDomain) -> tuple[float, ...]:
        policy, costs = self._candidates.policy, self._candidates.costs
        if policy.ranks_units:
            found = policy.cost_of_units(_views(units, domain), self._candidates.cause) if units else ()
            self._failed = self._failed or found is None
            return found or ()
        members = flat(units)
        highest = max((one.priority for one in members), default=INT64_MIN)
        each = len(members) if costs is None else sum(costs.get(one.uuid, 0.0) for one in members)
        return highest, sum(_kind(unit) == "gang" for unit in units), each

    # -- guarantees and quotas ----------------------------------------------------------------------

    def _usable(self, units: list[Unit]) -> list[Unit]:
        """Return the units that may end one after the other, so that all queues keep their guarantees."""
        key = id(units), tuple(name for name, _ in self._pairs)
        found = self._candidates.usable.get(key)
        if found is not None:
            return found
        found = self._candidates.usable[key] = []
        taken: list[Unit] = []
        guarded = self._candidates.guarded
        spent: set[Queue] = set()
        inside = {one.uuid for unit in units for one in unit}
        for unit in units:
            leaf = unit[0].app.chain[0]
            if leaf not in guarded:
                guarded[leaf] = any(queue.guaranteed for queue in apart(leaf, self._leaf))
            if leaf in spent:
                continue
            if not guarded[leaf]:
                found.append(unit)
            elif self._take(whole := (*unit, *_elsewhere(unit, inside))):
                found.append(unit)
                taken.append(whole)
            elif not self._snapshot.is_over(leaf, self._leaf, self._pairs):
                spent.add(leaf)
        self._snapshot.stay(*flat(taken))
        return found

    def _take(self, unit: Unit) -> bool:
        return self._snapshot.let_go(unit, self._leaf, self._pairs)

    def _make_bounds_hold(self, chosen: Sequence[Unit], units: Sequence[Unit]) -> list[Unit] | None:
        """Return further units, anywhere, that restore the bounds; None if there are not enough."""
        taken: list[Unit] = []
        extras: list[Unit] = []
        gone = {one.uuid for unit in chosen for one in unit}

        def take(unit: Unit) -> bool:
            whole = (*unit, *_elsewhere(unit, gone))
            if not self._take(whole):
                return False
            taken.append(whole)
            gone.update(one.uuid for one in whole)
            return True

        for unit in chosen:
            take(unit)
        lacking = self._lacking()
        for unit in units if lacking else ():
            helps = any(queue in unit[0].app.chain for queue in lacking)
            if helps and gone.isdisjoint(one.uuid for one in unit) and take(unit):
                extras.append(unit)
                lacking = self._lacking()
                if not lacking:
                    break
        self._snapshot.stay(*flat(taken))
        return None if lacking else extras

    def _lacking(self) -> list[Queue]:
        return [queue for queue, _, _ in self._snapshot.deficits(self._bounds, self._pairs)]


def _elsewhere(unit: Unit, inside: Set[str]) -> Iterator[Allocation]:
    """Yield what ends together with a unit, and is no part of the units `inside` a domain."""
    if _kind(unit) == "gang" and (core := unit[0].app.core) is not None:
        own = set(unit)
        yield from (one for one in core.members if one.uuid not in inside and one not in own and may_go(one))


def _kind(unit: Unit) -> Literal["single", "step", "gang"]:
    core = unit[0].app.core
    if len(unit) == 1 or core is None:
        return "single"
    return "gang" if core.has(unit[0]) else "step"


def _views(units: Sequence[Unit], domain: TreeDomain) -> list[VictimUnit]:
    """Return views of units that end together to make room in a domain."""
    inside = {one.uuid for unit in units for one in unit}
    found: list[VictimUnit] = []
    for unit in units:
        whole = (*unit, *_elsewhere(unit, inside))
        outside = sum(one.node not in domain.nodes for one in whole)
        found.append(VictimUnit(whole, _kind(unit), outside))
    return found
