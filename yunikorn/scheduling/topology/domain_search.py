"""Search for the domain of a gang: one attempt, from the closest preferred level to the required one.

At each level, the domains that have room for every part of the gang are tried in the order of the gang
placement policy. That is a necessary condition; predicates, and amounts that several parts share, are met by
placing members one by one and by undoing that. What was found about a domain is remembered for gangs of the
same class, until a node in the domain directly above changes.
"""

from __future__ import annotations

import heapq
from collections import Counter
from typing import TYPE_CHECKING

from yunikorn.containment import LONGEST_TEXT
from yunikorn.model.ask import NodeOwner
from yunikorn.scheduling.topology.domain_rooms import DomainVerdict
from yunikorn.scheduling.topology.gang_views import DomainView, EqualMembers, MemberGroup
from yunikorn.scheduling.topology.member_placement import MemberPlacement
from yunikorn.scheduling.topology.node_states import work_of_others
from yunikorn.scheduling.topology.topology_tree import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

    from yunikorn.model.allocation import Allocation
    from yunikorn.model.ask import Ask
    from yunikorn.model.gang import AtomicGang
    from yunikorn.model.gang_topology import GangTopology
    from yunikorn.model.node import Node
    from yunikorn.scheduling.node_orders import NodeOrders
    from yunikorn.scheduling.topology.domain_rooms import DomainRooms, RoomCounts
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
        home: TreeDomain | None = None,
    ) -> None:
        """Create an attempt; with `home`, in that domain, which is of the required level."""
        self._home, self.exclusive = home, topology.exclusive
        self._gang, self._rules, self._rooms, self._now = gang, rules, rooms, now
        self._tree = rooms.tree
        self._views: dict[TreeDomain, DomainView] = {}
        parts = [
            EqualMembers(
                ask.task_group,
                asks,
                rooms.of(ask),
                rooms.of(ask, topology.of(ask.task_group).slices),
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
        if gang.request is not None:
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

    @property
    def domains(self) -> list[TreeDomain]:
        """Domains of the widest level that the gang takes."""
        return [*self._tree.domains(self._tree.numbers.get(self._group.topology.required, ROOT), self._home)]

    @property
    def widest(self) -> dict[TreeDomain, int]:
        """The same domains, each with its shortage."""
        return self._shortages(self._tree.numbers.get(self._group.topology.required, ROOT))

    def fits_in(self, domain: TreeDomain) -> list[tuple[Ask, Node]] | None:
        """Return a node in a domain for every member, or None; leaves no changes."""
        if self.fault or self.lacking(domain) > 0 or self.sharing(domain):
            return None
        if not self._place(domain):
            return None
        return self._members.finish(self._group)

    @property
    def parts(self) -> Sequence[EqualMembers]:
        """Equal members of the gang."""
        return self._group.parts

    def others(self, most: int) -> str:
        """Return why the gang is in none of the domains after the best one: the next ones, then by reason."""
        levels = [*self._levels(self._group, ROOT)]
        level = next((level for level, until in levels if until > self._now), levels[-1][0])
        size, found = self._group.size, list[tuple[int, str, str, str]]()
        for domain, lacking in self._shortages(level).items():
            verdict = self._judged.get(domain)
            refusal = None if verdict is None else verdict.refusal
            sharing = self.sharing(domain)
            reason = sharing or refusal or "no place for all members together"
            text = f"room for {size - lacking} of {size} members" if lacking and not sharing else reason
            found.append((lacking, domain.path, text, "too little room" if lacking else reason))
        found.sort()
        counts = Counter(reason for *_, reason in found[1 + most :])
        named = [f"{path}: {text}" for _, path, text, _ in found[1 : 1 + most]]
        named += [f"{count} more: {reason}" for reason, count in counts.most_common(most)]
        return "; ".join(named)[:LONGEST_TEXT]

    # -- the domain of the gang ---------------------------------------------------------------------

    def _find(self, level: int) -> bool:
        """Place the gang in one domain of a level; False, with the reason, if none has room."""
        nothing = (self._group.size + 1, "")
        only = self._only(level)
        if only is not None and (known := only.most.get(level, nothing))[0] < self._group.size:
            self.why = self._reason(level, (self._group.size - known[0], known[1]), {})
            return False
        shortages = self._shortages(level)
        refusals: dict[str, None] = {}
        candidates = []
        for number, (domain, shortage) in enumerate(shortages.items()):
            if shortage:
                continue
            verdict = self._verdict(domain)
            refusal = self.sharing(domain) or verdict.refusal
            if refusal is not None:
                refusals[f"{self._label(domain)}: {refusal}"] = None
            else:
                candidates.append((verdict.turn, verdict.rank, domain.path, number, domain))
        if len(self._judged) > 2 * len(candidates) + MOST_TRIES:
            for domain in [one for one in self._judged if shortages.get(one)]:
                del self._judged[domain]
        if not candidates:
            best = min(((lacking, one.path) for one, lacking in shortages.items()), default=nothing)
            if only is not None and not refusals:
                # Other gangs of such members, and later attempts, need not look at all domains again.
                only.most[level] = (self._group.size - best[0], best[1])
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
        seen = self._rooms.changes[domain if above is None or above.level == ROOT else above]
        verdict = self._judged.get(domain)
        if verdict is None or verdict.seen != seen:
            view = DomainView.of(domain, self._rooms, self._views)
            refusal = self._rules.refusal(self._group, view)
            failed = -1 if verdict is None else verdict.failed
            rank = () if refusal else self._rules.rank(self._group, view)
            verdict = self._judged[domain] = DomainVerdict(seen, refusal, rank)
            verdict.failed = failed
        return verdict

    def sharing(self, domain: TreeDomain, gone: Set[Allocation | Ask] = frozenset()) -> str:
        """Return what keeps a domain from being of the gang alone, if it must be; empty for nothing.

        Allocations and owners that are `gone` do not.
        """
        if not self.exclusive:
            return ""
        number = self._tree.numbers[self.exclusive]
        above = next(one for one in domain.chain if one.level == number)
        work = work_of_others(above, self._gang.app, gone or self._rooms.states.gone)
        use = "has it alone" if isinstance(work, NodeOwner) else "uses it"
        return "" if work is None else f"{work.app.label} {use}"

    def lacking(self, domain: TreeDomain) -> int:
        """Return the number of members that a domain surely has no room for."""
        return self._shortages(domain.level, domain)[domain]

    def _only(self, level: int) -> RoomCounts | None:
        """Return the counts of a gang of equal members that are all in one domain of a level."""
        if len(self._group.parts) > 1 or self._level_of(self._groups[0], level) > level or self._home:
            return None
        counts = self._group.parts[0].whole
        return counts if counts.by_domain else None

    def _level_of(self, group: MemberGroup, level: int) -> int:
        """Return the level of the domains that have all members of a group, for a gang in one of `level`."""
        return max(level, self._tree.numbers.get(group.topology.required, ROOT))

    def _shortages(self, level: int, only: TreeDomain | None = None) -> dict[TreeDomain, int]:
        """Return the number of members that each domain of a level, or one, surely has no room for."""
        domains = [*self._tree.domains(level, self._home)] if only is None else [only]
        found = dict.fromkeys(domains, 0)
        for group in self._groups:
            inner = self._level_of(group, level)
            inside = domains if inner == level else [*self._tree.domains(inner, only)]
            numbers = [0] * len(inside)
            for part in group.parts:
                rooms, count = part.whole.by_domain, part.count
                numbers = [
                    lacking + (count - room if (room := rooms.get(domain, 0)) < count else 0)
                    for lacking, domain in zip(numbers, inside, strict=True)
                ]
            lacking = dict(zip(inside, numbers, strict=True))
            if inner != level:
                lacking = self._best_inside(group, domains, lacking)
            found = {domain: number + lacking[domain] for domain, number in found.items()}
        return found

    def _best_inside(
        self, group: MemberGroup, domains: Iterable[TreeDomain], lacking: Mapping[TreeDomain, int]
    ) -> dict[TreeDomain, int]:
        """Return the smallest shortage of a group in the domains inside each of `domains`."""
        found = dict.fromkeys(domains, group.size)
        for one, number in lacking.items():
            for above in one.chain:
                if number < found.get(above, 0):
                    found[above] = number
        return found

    def _try(self, domains: Iterable[TreeDomain]) -> bool:
        """Place the gang in the first of `domains` that takes it, or in the best of several plans."""
        plans: list[tuple[float, int, TreeDomain]] = []
        tried: list[DomainVerdict] = []
        for domain in domains:
            verdict = self._judged[domain]
            if verdict.failed == self._rooms.changes[domain]:
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
                    verdict.failed = self._rooms.changes[domain]
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
        """Place all task groups in a domain, those with the fewest choices first, or else last."""
        in_order = sorted(self._groups, key=lambda one: self._slack(one, domain))
        orders = (in_order, in_order[::-1])[: len(in_order)]
        return any(self._place_in_order(groups, domain) for groups in orders)

    def _place_in_order(self, groups: Sequence[MemberGroup], domain: TreeDomain) -> bool:
        """Place task groups one after the other; take a choice back that leaves no room for a later group."""
        marks, choices = [0], [self._choices(groups[0], domain)]
        for _ in range(MOST_TRIES + 2 * len(groups)):
            while (inside := next(choices[-1], None)) is None:
                choices.pop()
                self._members.undo(marks.pop())
                if not choices:
                    return False
                self._members.undo(marks[-1])
            if self._members.place(groups[len(choices) - 1], inside):
                if len(choices) == len(groups):
                    return True
                marks.append(len(self._members.nodes))
                choices.append(self._choices(groups[len(choices)], domain))
        self._members.undo()
        return False

    def _slack(self, group: MemberGroup, domain: TreeDomain) -> tuple[int, float]:
        """Return the number of domains for a group with a level of its own, then how much room is left."""
        required = self._level_of(group, domain.level)
        inside = [domain] if required == domain.level else [*self._tree.domains(required, domain)]
        fitting = sum(not self._members.shortage(group, each) for each in inside)
        parts = group.parts
        rooms = min(part.rooms.by_domain.get(domain, 0) / part.count for part in parts)
        return (fitting if required != domain.level else len(domain.nodes), rooms)

    def _choices(self, group: MemberGroup, domain: TreeDomain) -> Iterator[TreeDomain]:
        """Yield the domains of its own levels that a task group may take, inside the domain of its gang."""
        for level, until in self._levels(group, domain.level):
            if level <= domain.level:
                yield domain
                return
            inside = [
                (self._rules.rank(group, view), each.path, number, each)
                for number, each in enumerate(self._tree.domains(level, domain))
                if not self._members.shortage(group, each)
                and self._rules.refusal(group, view := DomainView.of(each, self._rooms, self._views)) is None
            ]
            yield from [each[-1] for each in sorted(inside)[:MOST_TRIES]]
            if until > self._now:
                self._give_up_later(until)
                break


def _by_kind(gang: AtomicGang) -> list[list[tuple[Ask, int]]]:
    """Return the members of each task group and ask class."""
    found: dict[tuple[str, object], list[tuple[Ask, int]]] = {}
    for ask, count in gang.members:
        found.setdefault((ask.task_group, ask.ask_class), []).append((ask, count))
    return list(found.values())
