"""Search for the domain of a gang: one attempt, from the closest preferred level to the required one.

At each level, the domains that have room for every part of the gang are tried in the order of the gang
placement policy. That is a necessary condition; predicates, and amounts that several parts share, are met by
placing members one by one and by undoing that. What was found about a domain is remembered for gangs of the
same class, until a node in the domain directly above changes.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from yunikorn.containment import LONGEST_TEXT
from yunikorn.scheduling.topology.domain_rooms import DomainVerdict
from yunikorn.scheduling.topology.gang_views import DomainView, EqualMembers, MemberGroup
from yunikorn.scheduling.topology.member_placement import MemberPlacement
from yunikorn.scheduling.topology.topology_tree import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from yunikorn.model.ask import Ask
    from yunikorn.model.gang import AtomicGang
    from yunikorn.model.gang_topology import GangTopology
    from yunikorn.model.node import Node
    from yunikorn.scheduling.node_orders import NodeOrders
    from yunikorn.scheduling.topology.domain_rooms import DomainRooms
    from yunikorn.scheduling.topology.gang_placement_rules import GangPlacementRules
    from yunikorn.scheduling.topology.topology_tree import TreeDomain

MOST_TRIES = 32
"""Largest number of domains that are tried at one level before other requests are served."""


class DomainSearch:
    """One attempt to plan a gang."""

    def __init__(
        self,
        gang: AtomicGang,
        topology: GangTopology,
        rules: GangPlacementRules,
        rooms: DomainRooms,
        orders: NodeOrders,
        now: int,
        empty: Mapping[Node, Mapping[str, int]] | None = None,
    ) -> None:
        """Search in the present rooms of nodes, or only compare with these `empty` ones."""
        self._gang, self._rules, self._rooms, self._now = gang, rules, rooms, now
        self._tree = rooms.tree
        self._views: dict[TreeDomain, DomainView] = {}
        parts = [
            EqualMembers(
                ask.task_group,
                asks,
                rooms.of(ask) if empty is None else rooms.count(ask, empty),
                sum(count for _, count in asks),
            )
            for asks in _by_kind(gang)
            for ask in (asks[0][0],)
        ]
        self._group = MemberGroup(gang.app, tuple(parts), topology)
        self._groups = [
            MemberGroup(gang.app, own, topology.of(name))
            for name in dict.fromkeys(part.task_group for part in parts)
            for own in (tuple([part for part in parts if part.task_group == name]),)
        ]
        self._members = MemberPlacement(rules, rooms, orders, self._views)
        self._judged: dict[TreeDomain, DomainVerdict] = {}
        if empty is None and gang.request is not None:
            self._judged = rooms.judged_for(
                (gang.request.ask_class, gang.app if rules.per_application else None)
            )
        self.fault = self._find_fault()
        """Reason why the gang can never be placed; empty if it can."""
        self.why = ""
        """Reason why there is no plan."""
        self.unfinished = False
        """True if there is no plan, and domains are left to try."""
        self.retry_at: int | None = None
        """Time at which a preferred level is given up that has no domain for the gang now (ns)."""

    @property
    def refusals(self) -> Mapping[str, int]:
        """Reasons why predicates refused members, with counts."""
        return self._members.refusals

    def _find_fault(self) -> str:
        for group in self._groups:
            for part in group.parts:
                for each in group.topology.slices[:1]:
                    if part.count % each.size:
                        named = f"{part.count} members of task group '{part.task_group}'"
                        return f"{named} are no multiple of the slice size {each.size}"
        return ""

    # -- levels -------------------------------------------------------------------------------------

    def plan(self) -> list[tuple[Ask, Node]] | None:
        """Return a node for every member, or None with the reason; leaves no changes."""
        if self.fault:
            self.why = self.fault
            return None
        for level, until in self._levels(self._group, ROOT):
            if self._find(level):
                return self._members.finish(self._group)
            if until > self._now:
                self._give_up_later(until)
                break
        return None

    def _levels(self, group: MemberGroup, outer: int) -> Iterator[tuple[int, int]]:
        """Yield the levels to try for a group, each with the time until which it is not given up (ns)."""
        first_try = self._gang.first_try
        start = self._now if first_try is None else first_try
        wanted, numbers = group.topology, self._tree.numbers
        for each in wanted.preferred:
            yield numbers[each.level], start + self._rules.wait(group, each.level, each.wait)
        yield numbers.get(wanted.required, outer), 0

    def _give_up_later(self, at: int) -> None:
        self.retry_at = at if self.retry_at is None else min(at, self.retry_at)

    def fits_widest(self) -> bool:
        """Return True if a domain of the widest level of the gang has room for each part."""
        *_, (level, _) = self._levels(self._group, ROOT)
        return any(self._lacking(domain) <= 0 for domain in self._tree.domains(level))

    # -- the domain of the gang ---------------------------------------------------------------------

    def _find(self, level: int) -> bool:
        """Place the gang in one domain of a level; False, with the reason, if none has room."""
        best = (self._group.size + 1, "")
        refusals: dict[str, None] = {}
        candidates = []
        for number, domain in enumerate(self._tree.domains(level)):
            verdict = self._verdict(domain)
            if verdict.shortage > 0:
                best = min(best, (verdict.shortage, domain.path))
            elif verdict.refusal is not None:
                refusals[f"{self._label(domain)}: {verdict.refusal}"] = None
            else:
                candidates.append((verdict.turn, verdict.rank, domain.path, number, domain))
        if not candidates:
            self.why = self._reason(level, best, refusals)
            return False
        heapq.heapify(candidates)
        first = candidates[0][-1]
        if self._try(heapq.heappop(candidates)[-1] for _ in range(len(candidates))):
            return True
        label = self._label(first)
        self.why = f"its members do not fit together in {label}, which has room for each part of them"
        return False

    def _verdict(self, domain: TreeDomain) -> DomainVerdict:
        above = domain.parent
        seen = domain.changed if above is None or above.level == ROOT else above.changed
        verdict = self._judged.get(domain)
        if verdict is None or verdict.seen != seen:
            shortage, view = self._lacking(domain), DomainView.of(domain, self._rooms, self._views)
            refusal = None if shortage else self._rules.refusal(self._group, view)
            rank = () if shortage or refusal else self._rules.rank(self._group, view)
            failed = -1 if verdict is None else verdict.failed
            verdict = self._judged[domain] = DomainVerdict(seen, shortage, refusal, rank)
            verdict.failed = failed
        return verdict

    def _lacking(self, domain: TreeDomain) -> int:
        """Return the number of members that a domain surely has no room for."""
        return sum(self._lacking_inside(each, domain) for each in self._groups)

    def _lacking_inside(self, group: MemberGroup, domain: TreeDomain) -> int:
        """Return the same for one task group, whose own level may be inside the domain."""
        required = self._tree.numbers.get(group.topology.required, ROOT)
        if required <= domain.level:
            return self._members.shortage(group, domain)
        inside = (self._members.shortage(group, each) for each in self._tree.domains(required, domain))
        return min(inside, default=group.size)

    def _try(self, domains: Iterable[TreeDomain]) -> bool:
        """Place the gang in the first of `domains` that takes it, or in the best of several plans."""
        plans: list[tuple[float, int, TreeDomain]] = []
        tried: list[DomainVerdict] = []
        for domain in domains:
            verdict = self._judged[domain]
            if verdict.failed == domain.changed:
                continue
            if len(tried) == MOST_TRIES:
                # The next attempt begins with the others.
                self.unfinished = not plans
                for one in tried:
                    one.turn += 1
                break
            tried.append(verdict)
            if not self._place(domain):
                if self.retry_at is None and not self.refusals:
                    # Refusals of predicates may end without a change in the domain.
                    verdict.failed = domain.changed
                continue
            if self._rules.compares == 1:
                return True
            plans.append((self._rules.score(self._group, self._members.nodes), len(plans), domain))
            self._members.undo()
            if len(plans) == self._rules.compares:
                break
        return bool(plans) and self._place(min(plans)[-1])

    def _label(self, domain: TreeDomain) -> str:
        if domain.level == ROOT:
            return "the whole cluster"
        return f"{self._tree.levels[domain.level]} {domain.path}"

    def _reason(self, level: int, best: tuple[int, str], refusals: Mapping[str, None]) -> str:
        """Return why no domain of a level is tried."""
        size = self._group.size
        if refusals:
            return "; ".join(refusals)[:LONGEST_TEXT]
        if level == ROOT:
            return f"the nodes have room for {size - best[0]} of {size} members"
        name = self._tree.levels[level]
        if best[0] > size:
            return f"no node has a {name}"
        return f"{name} {best[1]}, the best, has room for {size - best[0]} of {size} members"

    # -- task groups in the domain ------------------------------------------------------------------

    def _place(self, domain: TreeDomain) -> bool:
        """Place all task groups in a domain, the scarcest first, or else in the opposite order."""
        in_order = sorted(self._groups, key=lambda one: self._slack(one, domain))
        for groups in (in_order, in_order[::-1])[: len(in_order)]:
            if all(self._place_inside(each, domain) for each in groups):
                return True
            self._members.undo()
        return False

    def _slack(self, group: MemberGroup, domain: TreeDomain) -> float:
        """Return the lowest ratio of room and need in a group; 0 for a group with a level of its own."""
        if group.topology.required:
            return 0.0
        return min(part.rooms.by_domain.get(domain, 0) / part.count for part in group.parts)

    def _place_inside(self, group: MemberGroup, domain: TreeDomain) -> bool:
        """Place a task group in a domain of its own levels inside the domain of its gang."""
        for level, until in self._levels(group, domain.level):
            if level <= domain.level:
                return self._members.place(group, domain)
            inside = [
                (self._rules.rank(group, view), each.path, number, each)
                for number, each in enumerate(self._tree.domains(level, domain))
                if not self._members.shortage(group, each)
                and self._rules.refusal(group, view := DomainView.of(each, self._rooms, self._views)) is None
            ]
            if any(self._members.place(group, each[-1]) for each in sorted(inside)[:MOST_TRIES]):
                return True
            if until > self._now:
                self._give_up_later(until)
                break
        return False


def _by_kind(gang: AtomicGang) -> list[list[tuple[Ask, int]]]:
    """Return the members of each task group and ask class."""
    found: dict[tuple[str, object], list[tuple[Ask, int]]] = {}
    for ask, count in gang.members:
        found.setdefault((ask.task_group, ask.ask_class), []).append((ask, count))
    return list(found.values())
