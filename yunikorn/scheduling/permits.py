"""Permit policies: a placement is announced to the RM when all of them permit it.

A placement is booked first, and the policies are asked afterwards, so that they see the cluster as it would
be. One that they hold stays booked, so that nothing else takes its place. Policies are asked again by timers
of the core, and about the placements of one group also when another of the group is permitted
(docs/decisions/archive/0069).

Held placements cost nothing per decision. A permitted placement leads to questions about its group, in order
of placement, up to the first that still waits. A new one that is held leads to questions about the rest of
its group only when nothing more can be placed, and about `MOST_AT_ONCE` of them.

With workers, a placement is held while the answer of a policy that may block is awaited
(docs/decisions/archive/0184).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import attrs

from yunikorn.api import PermitPolicy, Wait
from yunikorn.clock import SECOND
from yunikorn.config.durations import describe_duration
from yunikorn.containment import contained, read_attribute, safe_repr, text_or_none
from yunikorn.errors import PluginError
from yunikorn.framework.plugin_failures import LONGEST_SECONDS, read_seconds
from yunikorn.framework.policy_calls import PolicyAnswer, calls_at_once, may_block
from yunikorn.model.ask import Unpermitted
from yunikorn.model.gang import GangClass
from yunikorn.scheduling.application_copies import AllocationCopy
from yunikorn.scheduling.policy_questions import AskedPolicy
from yunikorn.scheduling.policy_steps import PendingSteps, PolicyQuestion, Steps, begin
from yunikorn.scheduling.predicate_calls import keeper_of
from yunikorn.scheduling.questions import AFTER_FAILURE, AWAITED, Rounds, call, checked, said_by
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
    from yunikorn.scheduling.decision_states import DecisionStates
    from yunikorn.scheduling.policy_questions import PolicyQuestions
    from yunikorn.scheduling.preemption.preemption import Preemption
    from yunikorn.scheduling.unschedulable_queue import UnschedulableQueue

MOST_AT_ONCE = 64
"""Number of held placements of one group, the oldest ones, to ask about when nothing can be placed."""

TIMEOUT = 300.0
"""Time (s) for which a policy without a valid timeout of its own may hold a placement."""

BLOCKS_WITH_BOOKS = (
    "a permit policy with blocking = True keeps no books, which change while it is asked: leave out placed "
    "and released, and read the argument of permit"
)

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


@attrs.define
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
    blocks: bool
    asked: AskedPolicy | None = None
    """The policy, if workers call it."""

    @classmethod
    def of(cls, made: PluginInstance, failures: PluginFailures) -> _Policy:
        """Return the policy of an instance. Raises `PluginError` for one that blocks and keeps books."""
        plugin, has_groups = made.plugin, type(made.plugin).group is not PermitPolicy.group
        keeper, blocks = keeper_of(plugin, made.origin), may_block(plugin, made.origin, failures)
        if blocks and keeper is not None:
            raise PluginError(made.origin, "reading its placed", BLOCKS_WITH_BOOKS)
        return cls(
            made.name,
            made.origin,
            plugin,
            read_attribute(plugin, "permit"),
            read_attribute(plugin, "group") if has_groups else None,
            keeper,
            blocks,
        )


class PermitChain:
    """Permit policies of a configuration, asked in order."""

    def __init__(self, policies: Sequence[PluginInstance], failures: PluginFailures) -> None:
        self._failures = failures
        self._policies = [_Policy.of(one, failures) for one in policies]
        self._timeouts: list[int] = []

    def __len__(self) -> int:
        return len(self._policies)

    def bind(self, *, workers: bool) -> None:
        """Read timeouts, and let `workers` call the policies that may block; called after opening."""
        for policy in self._policies:
            if policy.blocks and workers:
                at_once = calls_at_once(policy.plugin, policy.origin, self._failures)
                title, work = f"permit policy {policy.name}", partial(call, policy.permit)
                policy.asked = AskedPolicy(policy.plugin, title, policy.origin, work, at_once)
            elif policy.blocks:
                policy.permit = partial(_permit_copy, policy.permit)
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

    def asked(self, at: int) -> AskedPolicy | None:
        """Return the policy at this position if workers call it."""
        return self._policies[at].asked

    def ask(self, at: int, allocation: Allocation) -> PermitVerdict:
        """Ask the policy at this position about a placement; one that fails makes the placement wait."""
        policy = self._policies[at]
        if policy.keeper is not None and policy.keeper.failed:
            return PermitVerdict(at, wait=Wait(AFTER_FAILURE, policy.keeper.failed))
        try:
            answer = policy.permit(allocation)
            return ACCEPTED if answer is None else self._verdict(at, checked(answer))
        except contained() as error:
            return self._failed(at, allocation, error)

    def understand(self, at: int, allocation: Allocation, answer: PolicyAnswer) -> PermitVerdict:
        """Return what a worker's answer about a placement means."""
        if answer.failed is not None:
            return self._failed(at, allocation, answer.failed)
        said = said_by(answer)
        return ACCEPTED if said is None else self._verdict(at, said)

    def _verdict(self, at: int, said: str | Wait) -> PermitVerdict:
        if isinstance(said, Wait):
            return PermitVerdict(at, wait=said)
        return PermitVerdict(at, f"permit policy {self.name(at)} refuses the placement: {said}")

    def _failed(self, at: int, allocation: Allocation, cause: BaseException | str) -> PermitVerdict:
        blame = self._failures.report(self._policies[at].origin, "permitting", cause, allocation.label)
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


def _permit_copy(permit: Callable[[Any], Any], allocation: Allocation) -> Any:
    return permit(AllocationCopy.of(allocation))


class Permits:
    """Permit policies of one partition, and the placements that they hold."""

    def __init__(
        self,
        partition: Partition,
        asks: AskAdmission,
        preemption: Preemption,
        allocator: Allocator,
        unschedulable_queue: UnschedulableQueue,
        questions: PolicyQuestions | None,
        states: DecisionStates,
    ) -> None:
        """Create without policies, which `use` adds; workers answer `questions`, if there are any."""
        self._partition, self._allocator, self._questions = partition, allocator, questions
        self._states = states
        self._held: HeldPlacements = partition.held
        self._unschedulable_queue = unschedulable_queue
        self._preempt = preemption.review
        self._chain: PermitChain
        self._rounds: Rounds[PlacementHold] = Rounds(
            partition.clock, partition.timers, lambda hold: hold.number, self._due
        )
        self._pending: dict[PlacementHold, PendingSteps[PermitVerdict]] = {}
        """Placements about which workers ask."""
        self._stale: dict[PlacementHold, bool] = {}
        """Those of them whose group has changed since the question."""
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

    def _ask(self, hold: PlacementHold, *, at_once: bool = False) -> None:
        """Ask the policies about a placement, and apply their answer, at once or when workers have it."""
        found = begin(self._steps(hold), self._questions, partial(self._answered, hold))
        self._states.forget()
        if isinstance(found, PendingSteps):
            self._pending[hold] = found
        else:
            self._apply(hold, found.result, at_once=at_once)

    def _answered(self, hold: PlacementHold, answer: PermitVerdict) -> None:
        """Apply an answer that workers have given."""
        del self._pending[hold]
        is_stale = self._stale.pop(hold, False)
        self._apply(hold, answer)
        if is_stale and answer.wait is not None and hold in self._held:
            # Its group has changed since the question.
            self._ask_again(hold)
        self._ask_permitted_groups()

    def _apply(self, hold: PlacementHold, answer: PermitVerdict, *, at_once: bool = False) -> None:
        refusal = answer.refusal
        if answer.wait is not None:
            refusal = self._wait(hold, answer.at, answer.wait)
        elif not refusal:
            self._report(hold, "PermitGranted", f"permitted after it was {hold.message}")
            self._held.announce(hold)
        if refusal:
            self._take_back(hold, refusal, at_once=at_once)

    def _take_back(self, hold: PlacementHold, refusal: str, *, at_once: bool = False) -> None:
        self._report(hold, "PermitRefused", f"taken back: {refusal}")
        self._held.take_back(hold, refusal, at_once=at_once)

    def _steps(self, hold: PlacementHold) -> Steps[PermitVerdict]:
        """Ask from the present position on, until a policy does not permit a member."""
        chain, members = self._chain, hold.members
        while hold.member < len(members):
            one = members[hold.member]
            while hold.at < len(chain):
                asked = chain.asked(hold.at)
                if asked is None:
                    answer = chain.ask(hold.at, one)
                else:
                    self._await(hold)
                    given = yield PolicyQuestion(asked, partial(AllocationCopy.of, one))
                    if self._is_stopped(hold.app):
                        return PermitVerdict(hold.at, wait=Wait(AFTER_FAILURE, "its queue is stopped"))
                    answer = chain.understand(hold.at, one, given)
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

    def _await(self, hold: PlacementHold) -> None:
        """Hold a placement until a worker has the answer, at most until the timeout of the policy."""
        assert self._questions is not None
        until = self._hold(hold, hold.at, AWAITED, LONGEST_SECONDS)
        hold.until = min(until, self._partition.clock.now() + self._questions.limit)

    def _wait(self, hold: PlacementHold, at: int, wait: Wait) -> str:
        """Hold a placement; return why it is taken back instead if the policy has held it for too long."""
        name, timeout = self._chain.name(at), self._chain.timeout(at)
        if self._partition.clock.now() >= self._deadline(hold, at):
            time = describe_duration(timeout)
            return f"permit policy {name} did not permit the placement within {time}: {wait.why}"
        hold.until = self._hold(hold, at, wait.why, wait.seconds)
        return ""

    def _deadline(self, hold: PlacementHold, at: int) -> int:
        timeout = self._chain.timeout(at)
        return hold.deadlines.setdefault(self._chain.name(at), self._partition.clock.now() + timeout)

    def _hold(self, hold: PlacementHold, at: int, why: str, seconds: float) -> int:
        """Hold a placement for so many seconds, and return the time (ns) of the next question."""
        name = self._chain.name(at)
        before, hold.policy, hold.why = hold.policy, name, why
        self._rounds.discard(hold)
        until = self._rounds.add(hold, at, seconds, self._deadline(hold, at))
        self._join_group(hold, at)
        if before != name:
            self._report(hold, "PermitWait", hold.message)
        return until

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
        if hold in self._pending:
            self._stale[hold] = True
            return False
        if self._is_stopped(hold.app):
            return False
        self._states.forget()
        self._ask(hold)
        return hold not in self._held or (hold.member, hold.at) != before

    def _ask_permitted_groups(self) -> None:
        """Ask about each group in which a placement was permitted, up to the first that still waits.

        Workers ask about as many as the policy takes at once.
        """
        while self._permitted:
            place = next(iter(self._permitted))
            del self._permitted[place]
            asked = self._chain.asked(place[0])
            if asked is not None:
                for hold in list(islice(self._groups.get(place, ()), asked.at_once)):
                    self._ask_again(hold)
                continue
            while (group := self._groups.get(place)) and self._ask_again(next(iter(group))):
                pass

    def _due(self, hold: PlacementHold, at: int) -> None:
        """Ask about a placement whose wait is over."""
        if hold in self._pending:
            self._stale[hold] = True
            if self._partition.clock.now() < self._deadline(hold, at):
                self._await(hold)
                return
        if hold in self._pending or self._is_stopped(hold.app):
            # The timeout applies even so: a stopped queue may stay stopped, and an answer may not come.
            refusal = self._wait(hold, at, Wait(AFTER_FAILURE, hold.why))
            if refusal:
                self._take_back(hold, refusal)
            return
        self._ask_again(hold)
        self._ask_permitted_groups()

    def _is_stopped(self, app: Application) -> bool:
        return self._partition.state == STOPPED or any(queue.state == STOPPED for queue in app.chain)

    # -- ends ---------------------------------------------------------------------------------------

    def _leave(self, hold: PlacementHold) -> None:
        """Remove a placement from timers, questions and groups."""
        pending = self._pending.pop(hold, None)
        if pending is not None:
            pending.withdraw()
        self._stale.pop(hold, None)
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
        end (docs/decisions/archive/0105).
        """
        now = self._partition.clock.now()
        pausing = not at_once and now - hold.since < PAUSE
        gang = hold.gang
        if gang is not None and not gang.done:
            request = gang.request
            if request is not None and isinstance(request.ask_class, GangClass):
                request.ask_class.why = why
                request.ask_class.log_search(request, {why: 1}, now)
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
