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
from itertools import islice
from typing import TYPE_CHECKING, Any

from yunikorn.clock import SECOND
from yunikorn.config.durations import describe_duration
from yunikorn.containment import WrongAnswer, contained, read_attribute, safe_repr, text_or_none
from yunikorn.errors import PluginError
from yunikorn.framework.plugin_failures import LONGEST_SECONDS, read_seconds
from yunikorn.framework.policy_calls import PolicyAnswer, may_block
from yunikorn.model.ask import Unpermitted
from yunikorn.model.gang import GangClass
from yunikorn.scheduling.admission.asked_policies import (
    AFTER_FAILURE,
    NO_OBJECTION,
    AskedPolicy,
    PolicyMethod,
    waiting_for,
)
from yunikorn.scheduling.admission.policy_copies import AllocationCopy
from yunikorn.scheduling.admission.questions import AWAITED, Questions
from yunikorn.scheduling.predicate_calls import keeper_of
from yunikorn.scheduling.unschedulable_queue import PAUSE
from yunikorn.states import STOPPED

if TYPE_CHECKING:
    from yunikorn.accounting.held_placements import HeldPlacements
    from yunikorn.accounting.partition import Partition
    from yunikorn.framework.instances import PluginInstance
    from yunikorn.framework.plugin_failures import PluginFailures
    from yunikorn.model.allocation import Allocation, PlacementHold
    from yunikorn.model.application import Application
    from yunikorn.model.ask import Ask
    from yunikorn.model.gang import AtomicGang
    from yunikorn.model.node import Node
    from yunikorn.scheduling.admission.asked_policies import Steps
    from yunikorn.scheduling.admission.worker_questions import WorkerQuestions
    from yunikorn.scheduling.allocator import Allocator
    from yunikorn.scheduling.ask_admission import AskAdmission
    from yunikorn.scheduling.decision_states import DecisionStates
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


PERMIT = PolicyMethod("permit policy", "permit", "permitting", "{0.label}", copy=AllocationCopy.of)


class AskedPermitPolicy(AskedPolicy):
    """A permit policy in use."""

    def __init__(self, made: PluginInstance, failures: PluginFailures) -> None:
        """Create without calls. Raises `PluginError` for a policy that blocks and keeps books."""
        super().__init__(made.plugin, made.name, made.origin, PERMIT, failures)
        self.keeper = keeper_of(made.plugin, made.origin)
        """Books of the policy; None if it keeps none."""
        if self.keeper is not None and may_block(made.plugin, made.origin, failures):
            raise PluginError(made.origin, "reading its placed", BLOCKS_WITH_BOOKS)
        self._group: Callable[[Allocation], Any] = read_attribute(made.plugin, "group")
        self.timeout = 0
        """Time (ns) for which the policy may hold a placement."""

    def bind(self, *, workers: bool) -> None:
        """Read the timeout, and whether the policy may block."""
        super().bind(workers=workers)
        seconds = read_seconds(self.plugin, "timeout", self.origin, self.failures) or TIMEOUT
        self.timeout = round(seconds * SECOND)

    def answer(self, subject: Any) -> PolicyAnswer:
        """Call the policy; one with unknown books makes the placement wait."""
        if self.keeper is not None and self.keeper.failed:
            return PolicyAnswer(wait=AFTER_FAILURE, why=self.keeper.failed)
        return super().answer(subject)

    def group(self, allocation: Allocation) -> str:
        """Return the group of a placement; empty without one."""
        try:
            answer = self._group(allocation)
            text = "" if answer is None else text_or_none(answer)
            if text is None:
                raise WrongAnswer(f"{safe_repr(answer)} is neither None nor text")
            return text
        except contained() as error:
            self.failures.report(self.origin, "finding the group of", error, allocation.label)
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
        workers: WorkerQuestions | None,
        states: DecisionStates,
    ) -> None:
        """Create without policies, which `use` adds."""
        self._partition, self._allocator = partition, allocator
        self._states = states
        self._held: HeldPlacements = partition.held_placements
        self._unschedulable_queue = unschedulable_queue
        self._preempt = preemption.review
        self._policies: Sequence[AskedPermitPolicy] = ()
        self._questions: Questions[PlacementHold, PolicyAnswer] = Questions(
            partition, workers, self._steps, self._answered, self._ask_due, order=lambda hold: hold.number
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

    def use(self, policies: Sequence[AskedPermitPolicy]) -> None:
        """Ask these policies about placements from now on, or place without them if there are none."""
        self._policies = policies
        self._allocator.use(*((self.allocate, self.place_gang) if policies else (None, None)))
        self.review = self._review if policies else self._preempt

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
        self._questions.forget_groups()
        for hold in self._held:
            self._leave(hold)
            hold.member, hold.at, hold.group = 0, 0, None
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
        self._questions.ask_now()

    # -- questions ----------------------------------------------------------------------------------

    def _ask(self, hold: PlacementHold, *, at_once: bool = False) -> None:
        """Ask the policies about a placement, and apply their answer, at once or when workers have it."""
        answer = self._questions.ask(hold)
        self._states.forget()
        if answer is not None:
            self._apply(hold, answer, at_once=at_once)

    def _answered(self, hold: PlacementHold, answer: PolicyAnswer) -> None:
        """Apply an answer that workers have given."""
        self._apply(hold, answer)
        self._ask_permitted_groups()

    def _apply(self, hold: PlacementHold, answer: PolicyAnswer, *, at_once: bool = False) -> None:
        refusal = ""
        if answer.wait is not None:
            refusal = self._wait(hold, answer.why, answer.wait)
        elif answer.reason is not None:
            refusal = self._policies[hold.at].refusal(answer, "refuses the placement")
        else:
            self._report(hold, "PermitGranted", f"permitted after it was {hold.message}")
            self._held.announce(hold)
        if refusal:
            self._take_back(hold, refusal, at_once=at_once)

    def _take_back(self, hold: PlacementHold, refusal: str, *, at_once: bool = False) -> None:
        self._report(hold, "PermitRefused", f"taken back: {refusal}")
        self._held.take_back(hold, refusal, at_once=at_once)

    def _steps(self, hold: PlacementHold) -> Steps[PolicyAnswer]:
        """Ask from the present position on, until a policy does not permit a member."""
        policies, members = self._policies, hold.members
        while hold.member < len(members):
            one = members[hold.member]
            while hold.at < len(policies):
                policy = policies[hold.at]
                if policy.at_once:
                    self._await(hold)
                    answer = yield from policy.ask(one)
                    if self._is_stopped(hold.app):
                        return PolicyAnswer(wait=AFTER_FAILURE, why="its queue is stopped")
                else:
                    answer = policy.answer(one)
                if answer is not NO_OBJECTION and answer != NO_OBJECTION:
                    return waiting_for(answer)
                if self._groups:
                    place = (hold.at, self._group(hold))
                    if place in self._groups:
                        self._permitted[place] = None
                hold.at, hold.group = hold.at + 1, None
            hold.member += 1
            hold.at = 0
        return NO_OBJECTION

    def _await(self, hold: PlacementHold) -> None:
        """Hold a placement until a worker has the answer, at most until the timeout of the policy."""
        until = self._hold(hold, AWAITED, round(LONGEST_SECONDS * SECOND))
        hold.until = min(until, self._partition.clock.now() + self._partition.timeouts.policy_answer)

    def _wait(self, hold: PlacementHold, why: str, wait: int) -> str:
        """Hold a placement; return why it is taken back instead if the policy has held it for too long."""
        policy = self._policies[hold.at]
        if self._partition.clock.now() >= self._deadline(hold):
            time = describe_duration(policy.timeout)
            return f"{policy.title} did not permit the placement within {time}: {why}"
        hold.until = self._hold(hold, why, wait)
        return ""

    def _deadline(self, hold: PlacementHold) -> int:
        policy = self._policies[hold.at]
        return hold.deadlines.setdefault(policy.name, self._partition.clock.now() + policy.timeout)

    def _hold(self, hold: PlacementHold, why: str, wait: int) -> int:
        """Hold a placement for so long (ns), and return the time (ns) of the next question."""
        name = self._policies[hold.at].name
        before, hold.policy, hold.why = hold.policy, name, why
        until = self._questions.ask_after(hold, hold.at, wait, self._deadline(hold))
        self._join_group(hold)
        if before != name:
            self._report(hold, "PermitWait", hold.message)
        return until

    def _join_group(self, hold: PlacementHold) -> None:
        """Add a placement to its group under the policy that holds it."""
        key = self._group(hold)
        place = (hold.at, key) if key else None
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
        if hold.group is None:
            hold.group = self._policies[hold.at].group(hold.members[hold.member])
        return hold.group

    def _mark_changed(self, place: Place) -> None:
        self._change_count += 1
        self._changed[place] = self._change_count

    def _ask_again(self, hold: PlacementHold) -> bool:
        """Ask about a held placement unless its queue is stopped; return False if nothing has changed."""
        before = (hold.member, hold.at)
        if self._questions.outdate(hold) or self._is_stopped(hold.app):
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
            at_once = self._policies[place[0]].at_once
            if at_once:
                for hold in list(islice(self._groups.get(place, ()), at_once)):
                    self._ask_again(hold)
                continue
            while (group := self._groups.get(place)) and self._ask_again(next(iter(group))):
                pass

    def _ask_due(self, hold: PlacementHold) -> None:
        """Ask about a placement whose wait is over, or which has changed since the question."""
        if hold not in self._held:
            return
        awaited = self._questions.outdate(hold)
        if awaited and self._partition.clock.now() < self._deadline(hold):
            self._await(hold)
        elif awaited or self._is_stopped(hold.app):
            # The timeout applies even so: a stopped queue may stay stopped, and an answer may not come.
            if refusal := self._wait(hold, hold.why, AFTER_FAILURE):
                self._take_back(hold, refusal)
        else:
            self._ask_again(hold)
            self._ask_permitted_groups()

    def _is_stopped(self, app: Application) -> bool:
        return self._partition.state == STOPPED or any(queue.state == STOPPED for queue in app.chain)

    # -- ends ---------------------------------------------------------------------------------------

    def _leave(self, hold: PlacementHold) -> None:
        """Remove a placement from timers, questions and groups."""
        self._questions.withdraw(hold)
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
        gang, pending = hold.gang, self._partition.accounting.pending_accounting
        if gang is not None and not gang.done:
            request = gang.request
            if request is not None and isinstance(request.ask_class, GangClass):
                request.ask_class.why = why
                request.ask_class.log_search(request, {why: 1}, now)
                if pausing:
                    pending.mark_unschedulable(request)
                    self._unschedulable_queue.pause(request, now)
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
                pending.mark_unschedulable(ask)
                if pausing:
                    self._unschedulable_queue.pause(ask, now)
                else:
                    self._unschedulable_queue.mark_unschedulable(ask)

    # -- reports ------------------------------------------------------------------------------------

    def _report(self, hold: PlacementHold, reason: str, what: str) -> None:
        """Record an event about each member; nothing is recorded about what is permitted at once."""
        if reason != "PermitGranted" or hold.policy:
            self._partition.changes.requests.permit(hold, reason, what)
