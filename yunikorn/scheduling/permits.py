"""Permit policies: a placement is announced to the RM when all of them permit it.

A placement is booked first, and the policies are asked afterwards, so that they see the cluster as it would
be. One that they hold stays booked, so that nothing else takes its place. Policies are asked again by timers
of the core, and about the placements of one group also when another of the group is permitted
(docs/decisions/0069).

Held placements cost nothing per decision. A permitted placement leads to questions about its group, in order
of placement, up to the first that still waits. A new one that is held leads to questions about the rest of
its group only when nothing more can be placed, and about `MOST_AT_ONCE` of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import attrs

from yunikorn.api import PermitPolicy, Wait
from yunikorn.clock import SECOND
from yunikorn.config.durations import describe_duration
from yunikorn.containment import contained, read_attribute, safe_repr, text_or_none
from yunikorn.framework.plugin_failures import read_seconds
from yunikorn.model.ask import Unpermitted
from yunikorn.model.gang import GangClass
from yunikorn.scheduling.predicate_calls import keeper_of
from yunikorn.scheduling.questions import AFTER_FAILURE, Rounds, checked
from yunikorn.scheduling.unschedulable_queue import PAUSE
from yunikorn.states import STOPPED

if TYPE_CHECKING:
    from yunikorn.accounting.books import Keeper
    from yunikorn.accounting.held_placements import HeldPlacements
    from yunikorn.accounting.partition import Partition
    from yunikorn.framework.instances import PluginInstance
    from yunikorn.framework.plugin_failures import PluginFailures
    from yunikorn.model.allocation import Allocation, PlacementHold
    from yunikorn.model.application import Application
    from yunikorn.model.ask import Ask
    from yunikorn.model.gang import AtomicGang
    from yunikorn.model.node import Node
    from yunikorn.scheduling.allocator import Allocator
    from yunikorn.scheduling.ask_admission import AskAdmission
    from yunikorn.scheduling.preemption.preemption import Preemption
    from yunikorn.scheduling.unschedulable_queue import UnschedulableQueue

MOST_AT_ONCE = 64
"""Number of held placements of one group, the oldest ones, to ask about when nothing can be placed."""

TIMEOUT = 300.0
"""Time (s) for which a policy without a valid timeout of its own may hold a placement."""

Place = tuple[int, str]
"""Position of a policy, and a group of the placements that it holds."""


@attrs.frozen(slots=True)
class PermitVerdict:
    """Answer of the policies to one question."""

    at: int = 0
    """Position of the policy that refuses or makes wait."""
    refusal: str = ""
    """Reason for a refusal."""
    wait: Wait | None = None


ACCEPTED = PermitVerdict()


@attrs.frozen
class _Policy:
    """A permit policy in use."""

    name: str
    origin: str
    plugin: PermitPolicy
    permit: Callable[[Allocation], Any]
    group: Callable[[Allocation], Any] | None
    """Method of the plugin; None if it has no groups."""
    keeper: Keeper | None
    """Books of the plugin; None if it keeps none."""

    @classmethod
    def of(cls, made: PluginInstance) -> _Policy:
        """Return the policy of an instance."""
        plugin, has_groups = made.plugin, type(made.plugin).group is not PermitPolicy.group
        return cls(
            made.name,
            made.origin,
            plugin,
            read_attribute(plugin, "permit"),
            read_attribute(plugin, "group") if has_groups else None,
            keeper_of(plugin, made.origin),
        )


class PermitChain:
    """Permit policies of a configuration, asked in order."""

    def __init__(self, policies: Sequence[PluginInstance], failures: PluginFailures) -> None:
        self._failures = failures
        self._policies = [_Policy.of(one) for one in policies]
        self._timeouts: list[int] = []

    def __len__(self) -> int:
        return len(self._policies)

    def bind(self) -> None:
        """Read the timeouts of the policies; called after opening."""
        self._timeouts = [
            round((read_seconds(one.plugin, "timeout", one.origin, self._failures) or TIMEOUT) * SECOND)
            for one in self._policies
        ]

    def keepers(self) -> list[Keeper]:
        """Return the policies that keep books."""
        return [one.keeper for one in self._policies if one.keeper is not None]

    def name(self, at: int) -> str:
        """Return the name of the policy at this position."""
        return self._policies[at].name

    def timeout(self, at: int) -> int:
        """Return how long (ns) the policy at this position may hold a placement."""
        return self._timeouts[at]

    def ask(self, at: int, allocation: Allocation) -> PermitVerdict:
        """Ask the policy at this position about a placement; one that fails makes the placement wait."""
        policy = self._policies[at]
        if policy.keeper is not None and policy.keeper.failed:
            return PermitVerdict(at, wait=Wait(AFTER_FAILURE, policy.keeper.failed))
        try:
            answer = policy.permit(allocation)
            if answer is None:
                return ACCEPTED
            said = checked(answer)
            if isinstance(said, Wait):
                return PermitVerdict(at, wait=said)
            return PermitVerdict(at, f"permit policy {policy.name} refuses the placement: {said}")
        except contained() as error:
            blame = self._failures.report(policy.origin, "permitting", error, allocation.label)
            # The failure may pass: the placement is not refused, and not permitted either.
            return PermitVerdict(at, wait=Wait(AFTER_FAILURE, str(blame)))

    def group(self, at: int, allocation: Allocation) -> str:
        """Return the group of a placement under the policy at this position; empty without one."""
        policy = self._policies[at]
        if policy.group is None:
            return ""
        try:
            answer = policy.group(allocation)
            if answer is None:
                return ""
            text = text_or_none(answer)
            if text is not None:
                return text
            what: BaseException | str = f"{safe_repr(answer)} is neither None nor text"
        except contained() as error:
            what = error
        self._failures.report(policy.origin, "finding the group of", what, allocation.label)
        return ""


class Permits:
    """Permit policies of one partition, and the placements that they hold."""

    def __init__(
        self,
        partition: Partition,
        asks: AskAdmission,
        preemption: Preemption,
        allocator: Allocator,
        unschedulable_queue: UnschedulableQueue,
    ) -> None:
        """Create without policies, which `use` adds."""
        self._partition, self._allocator = partition, allocator
        self._held: HeldPlacements = partition.held
        self._unschedulable_queue = unschedulable_queue
        self._preempt = preemption.review
        self._chain: PermitChain
        self._rounds: Rounds[PlacementHold] = Rounds(
            partition.clock, partition.timers, lambda hold: hold.number, self._due
        )
        self._groups: dict[Place, dict[PlacementHold, None]] = {}
        """Held placements by policy and group."""
        self._permitted: dict[Place, None] = {}
        """Groups in which a placement has been permitted."""
        self._changed: dict[Place, int] = {}
        """Groups that changed since the last idle decision, with the number of the change."""
        self._change_count = 0
        readers = partition.changes.readers
        readers.hold_ended.append(self._leave)
        readers.request_returning.append(asks.classify)
        readers.hold_refused.append(self._set_aside)
        readers.request_returned.append(preemption.notice)
        self.review: Callable[[], object] = self._preempt
        """Asks about the groups that have changed if there are policies, then preempts where that is due;
        called when nothing can be placed. Returns True if a policy was asked."""

    def use(self, chain: PermitChain) -> None:
        """Ask these policies about placements from now on, or place without them if there are none."""
        self._chain = chain
        if chain:
            self._allocator.use(self.allocate, self.place_gang)
        else:
            self._allocator.use(None, None)
        self.review = self._review if chain else self._preempt

    # -- placements ---------------------------------------------------------------------------------

    def allocate(self, ask: Ask, node: Node, now: int) -> Allocation | None:
        """Place one pending replica of the ask on `node`; return None if a policy refuses it."""
        return self._start(self._held.place(ask, node))

    def place_gang(self, gang: AtomicGang, plan: Sequence[tuple[Ask, Node]]) -> Allocation | None:
        """Place all members of an atomic gang; return None if a policy refuses one."""
        return self._start(self._held.place_gang(gang, plan))

    def _start(self, hold: PlacementHold) -> Allocation | None:
        self._ask(hold, at_once=True)
        self._ask_permitted_groups()
        # A question about its group may have taken it back as well.
        placed = hold.members[-1]
        return placed if placed.uuid in hold.app.allocations else None

    def _review(self) -> bool:
        asked = bool(self._changed)
        while self._changed:
            place = next(iter(self._changed))
            change = self._changed.pop(place)
            for hold in list(islice(self._groups.get(place, ()), MOST_AT_ONCE)):
                if hold.asked < change and hold in self._groups.get(place, ()):
                    self._ask_again(hold)
            self._ask_permitted_groups()
        self._preempt()
        return asked

    def ask_all(self) -> None:
        """Ask the policies of a new configuration, from the first on, about all held placements."""
        self._rounds.forget_policies()
        for hold in self._held:
            self._leave(hold)
            hold.member, hold.at, hold.grouped = 0, 0, None
        self._permitted.clear()
        self._changed.clear()
        for hold in self._held:
            # An earlier answer may have ended others.
            if hold in self._held:
                if self._is_stopped(hold.app):
                    self._held.take_back(hold)
                else:
                    self._ask(hold)
        self._ask_permitted_groups()

    def ask_now(self) -> None:
        """Ask the policies that hold placements about all of them."""
        self._rounds.ask_now()

    # -- questions ----------------------------------------------------------------------------------

    def _ask(self, hold: PlacementHold, *, at_once: bool = False) -> bool:
        """Ask the policies about a placement, and apply their answer; return False if it is taken back."""
        answer = self._question(hold)
        refusal = answer.refusal
        if answer.wait is not None:
            refusal = self._wait(hold, answer.at, answer.wait)
        elif not refusal:
            self._report(hold, "PermitGranted", f"permitted after it was {hold.message}")
            self._held.announce(hold)
        if refusal:
            self._report(hold, "PermitRefused", f"taken back: {refusal}")
            self._held.take_back(hold, refusal, at_once=at_once)
        return not refusal

    def _question(self, hold: PlacementHold) -> PermitVerdict:
        """Ask from the present position on, until a policy does not permit a member."""
        chain, members = self._chain, hold.members
        while hold.member < len(members):
            one = members[hold.member]
            while hold.at < len(chain):
                answer = chain.ask(hold.at, one)
                if answer is not ACCEPTED:
                    return answer
                if self._groups:
                    place = (hold.at, self._group(hold))
                    if place in self._groups:
                        self._permitted[place] = None
                hold.at += 1
            hold.member += 1
            hold.at = 0
        return ACCEPTED

    def _wait(self, hold: PlacementHold, at: int, wait: Wait) -> str:
        """Hold a placement; return why it is taken back instead if the policy has held it for too long."""
        chain, now = self._chain, self._partition.clock.now()
        name, timeout = chain.name(at), chain.timeout(at)
        deadline = hold.deadlines.setdefault(name, now + timeout)
        if now >= deadline:
            time = describe_duration(timeout)
            return f"permit policy {name} did not permit the placement within {time}: {wait.why}"
        before, hold.policy, hold.why = hold.policy, name, wait.why
        self._rounds.discard(hold)
        hold.until = self._rounds.add(hold, at, wait.seconds, deadline)
        self._join_group(hold, at)
        if before != name:
            self._report(hold, "PermitWait", hold.message)
        return ""

    def _join_group(self, hold: PlacementHold, at: int) -> None:
        """Add a placement to its group under the policy that holds it."""
        key = self._group(hold)
        hold.grouped = (hold.member, at, key)
        place = (at, key) if key else None
        if place != hold.place:
            self._leave_group(hold)
            if place is not None:
                hold.place = place
                group = self._groups.setdefault(place, {})
                if group:
                    self._mark_changed(place)
                group[hold] = None
        hold.asked = self._change_count

    def _group(self, hold: PlacementHold) -> str:
        """Return the group of the present member under the present policy; empty without one.

        The group of a member that waits stays the same: two placements whose groups changed with every
        question would let each other be asked about without an end.
        """
        member, at = hold.member, hold.at
        if hold.grouped is not None and hold.grouped[:2] == (member, at):
            return hold.grouped[2]
        return self._chain.group(at, hold.members[member])

    def _mark_changed(self, place: Place) -> None:
        self._change_count += 1
        self._changed[place] = self._change_count

    def _ask_again(self, hold: PlacementHold) -> bool:
        """Ask about a held placement unless its queue is stopped; return False if nothing has changed."""
        before = (hold.member, hold.at)
        if self._is_stopped(hold.app):
            return False
        self._ask(hold)
        return hold not in self._held or (hold.member, hold.at) != before

    def _ask_permitted_groups(self) -> None:
        """Ask about each group in which a placement was permitted, up to the first that still waits."""
        while self._permitted:
            place = next(iter(self._permitted))
            del self._permitted[place]
            while (group := self._groups.get(place)) and self._ask_again(next(iter(group))):
                pass

    def _due(self, hold: PlacementHold, at: int) -> None:
        """Ask about a placement whose wait is over."""
        if self._is_stopped(hold.app):
            # The timeout applies even so, because a stopped queue may stay stopped.
            refusal = self._wait(hold, at, Wait(AFTER_FAILURE, hold.why))
            if refusal:
                self._report(hold, "PermitRefused", f"taken back: {refusal}")
                self._held.take_back(hold, refusal)
            return
        self._ask_again(hold)
        self._ask_permitted_groups()

    def _is_stopped(self, app: Application) -> bool:
        return self._partition.state == STOPPED or any(queue.state == STOPPED for queue in app.chain)

    # -- ends ---------------------------------------------------------------------------------------

    def _leave(self, hold: PlacementHold) -> None:
        """Remove a placement from timers and groups."""
        self._rounds.discard(hold)
        self._leave_group(hold)

    def _leave_group(self, hold: PlacementHold) -> None:
        place, hold.place = hold.place, None
        if place is not None:
            group = self._groups[place]
            del group[hold]
            if group:
                self._mark_changed(place)
            else:
                del self._groups[place]

    def _set_aside(self, hold: PlacementHold, why: str, at_once: bool) -> None:
        """Keep the requests of a placement that was taken back unscheduled until something changes.

        Unless the refusal came `at_once`, the end of the placement is a change. If the placement was new, the
        requests pause as well: those that are placed and refused in turn would keep the core busy without an
        end (docs/decisions/0105).
        """
        now = self._partition.clock.now()
        pausing = not at_once and now - hold.since < PAUSE
        gang = hold.gang
        if gang is not None and not gang.done:
            request = gang.request
            if request is not None and isinstance(request.ask_class, GangClass):
                request.ask_class.why = why
                if pausing:
                    self._pause(request, now)
                    return
                # The class is new: the gang is tried again at growing distances, like other requests.
                request.ask_class.tries = gang.refusals - 1
                self._partition.pending_classes.mark_unschedulable(request.ask_class)
                self._unschedulable_queue.mark_unschedulable(request.ask_class)
            return
        for ask in dict.fromkeys(one.ask for one in hold.members):
            if ask is not None and ask.pending and not ask.unschedulable:
                ask.ensure_extras().refuse(Unpermitted({why: 1}), now)
                # Room is not what the request lacks, and others may use the node.
                self._partition.accounting.node_reservations.unreserve(ask)
                if pausing:
                    self._pause(ask, now)
                else:
                    self._partition.accounting.pending_accounting.mark_unschedulable(ask)
                    self._unschedulable_queue.mark_unschedulable(ask)

    def _pause(self, ask: Ask, now: int) -> None:
        self._partition.accounting.pending_accounting.mark_unschedulable(ask)
        self._unschedulable_queue.pause(ask, now)

    # -- reports ------------------------------------------------------------------------------------

    def _report(self, hold: PlacementHold, reason: str, what: str) -> None:
        """Record an event about each member; nothing is recorded about what is permitted at once."""
        if reason != "PermitGranted" or hold.policy:
            self._partition.changes.requests.permit(hold, reason, what)
