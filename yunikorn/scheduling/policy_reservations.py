"""Reservations that a policy decides about: who reserves, how many do, for how long, and on which node.

A request that found no room is offered a reservation. If the policy refuses, the ask class waits, and is
looked at again, with all its requests, when a reservation ends or a delay is over. Such a look visits the
queues, applications and requests in the order of their policies, and leaves out queues and applications whose
bound is reached. Reservations are counted when they begin and end, per application and queue, so that nothing
is counted again for a decision (docs/decisions/archive/0079).

Not subject to the policy, and not counted, are reservations of required nodes and of nodes on which victims
make room.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

import attrs

from yunikorn.clock import MICROSECOND
from yunikorn.config.durations import describe_duration
from yunikorn.scheduling.obstacles import obstacles
from yunikorn.scheduling.reservation_rules import ReservationRefusal

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.clock import Timer
    from yunikorn.model.application import Application
    from yunikorn.model.ask import Ask
    from yunikorn.model.ask_class import AskClass
    from yunikorn.model.node import Node
    from yunikorn.model.queue import Queue
    from yunikorn.scheduling.reservation_rules import ReservationRules

LOOK_PAUSE = 50 * MICROSECOND
"""Pause after a long look, per visited request: several times the duration of the visit itself."""
SHORT_LOOK = 100
"""Number of visited requests of a look that no pause follows."""

HoldingBack = Mapping["Application", tuple["Ask", "Queue"]]
"""Applications whose gangs hold back others, each with the gang's request and the queue in which it does."""
Rank = Callable[["Ask", "Node"], "float | None"]
"""Function that ranks a node for a request, the lowest first; None for a node that must not be reserved."""


class Reserving(Protocol):
    """Choice of nodes, and reservations, as a policy needs them."""

    def best_node(self, ask: Ask, rank: Rank | None = None) -> Node | None:
        """Return the node to reserve for `ask`: the best fit, or that of lowest rank; None without one."""
        ...

    def reserve(self, ask: Ask, node: Node) -> None:
        """Reserve `node` for `ask`."""
        ...

    def retry(self, ask_class: AskClass) -> None:
        """Try the requests of an ask class again."""
        ...


def owners_of(app: Application) -> tuple[Queue | Application, ...]:
    """Return the queues and the application whose bounds apply to a reservation."""
    owners: list[Queue | Application] = [*app.chain, app]
    return tuple(owners)


@attrs.define(eq=False)
class _Counted:
    """A reservation that counts against bounds."""

    owners: tuple[Queue | Application, ...]
    since: int
    """Time since which the ask class has had the reservation (ns)."""
    timer: Timer | None = None
    """Timer that ends the reservation; None without an end."""


class PolicyReservations:
    """The reservations of one partition under a policy that restricts them."""

    def __init__(
        self,
        partition: Partition,
        rules: ReservationRules,
        reservations: Reserving,
        put_in_order: Callable[[Queue], None],
    ) -> None:
        """Begin without reservations; `put_in_order` brings the order of a queue's members up to date."""
        self._partition = partition
        self._pending_classes = partition.pending_classes
        self._node_reservations = partition.accounting.node_reservations
        self.rules = rules
        self._reservations = reservations
        self.put_in_order = put_in_order
        self.due = False
        """True if waiting ask classes should be looked at."""
        self._counted: dict[Ask, _Counted] = {}
        self.counts: dict[Queue | Application, int] = {}
        """Number of reservations by queue, requests of queues below included, and by application."""
        self._waiting: dict[AskClass, None] = {}
        """Ask classes that found no room and to which the policy refused a reservation."""
        self._bits = 0
        """Bits of the pending classes of the waiting ask classes."""
        self._made = 0
        """Value of `PendingClasses.made` when `_bits` was computed."""
        self._paused: dict[AskClass, int] = {}
        """Ask classes whose reservation was given up, with the time of the next one (ns)."""
        self._timer: Timer | None = None
        """Timer of the next look."""
        self._seen = (-1, -1, -1)
        """Value of `_version` at the last look."""
        self._pause_until = self._rest_until = 0
        """Times before which no further look begins (ns): one that is due, and one after other changes."""
        self._since: dict[Ask, int] = {}
        """Times since which reservations last that the present look may pass on (ns)."""
        readers = partition.changes.readers
        readers.reservation_ended.append(self.forget)
        readers.pending_bits_dropped.append(self._forget_bits)
        readers.ask_class_dropped.append(self._drop)
        # Excluded applications, those in back-off, and requests after an overdue gang are not looked at.
        readers.more_to_try.append(self.look_again)

    def close(self) -> None:
        """Stop: another policy decides from now on."""
        readers = self._partition.changes.readers
        readers.reservation_ended.remove(self.forget)
        readers.pending_bits_dropped.remove(self._forget_bits)
        readers.ask_class_dropped.remove(self._drop)
        readers.more_to_try.remove(self.look_again)
        for counted in self._counted.values():
            if counted.timer is not None:
                counted.timer.cancel()
        if self._timer is not None:
            self._timer.cancel()

    @property
    def now(self) -> int:
        """The present time (ns)."""
        return self._partition.clock.now()

    # -- waiting ask classes ------------------------------------------------------------------------

    def consider(self, ask: Ask) -> None:
        """Reserve a node for `ask`, which found no room, or let its ask class wait."""
        ask_class = ask.ask_class
        if self.is_exempt(ask):
            self._reserve(ask)
            return
        if ask_class in self._paused:
            return
        # While a look is due, requests that are earlier in order may get the reservation. Applications in
        # back-off have no place in the order, so that a look would not visit them.
        if self.due and ask.app.backoff_timer is None:
            self._wait(ask_class)
        elif isinstance(self.attempt(ask, Bounds(self)), ReservationRefusal):
            self._wait(ask_class)
            self.due = True
        else:
            self.settled(ask_class)

    def _wait(self, ask_class: AskClass) -> None:
        self._waiting[ask_class] = None
        for pending_class in ask_class.pending_classes.values():
            self._bits |= pending_class.bits

    def settled(self, ask_class: AskClass) -> None:
        """Forget an ask class that has reserved a node, or for which there is none to reserve."""
        if ask_class in self._waiting:
            del self._waiting[ask_class]
            for pending_class in ask_class.pending_classes.values():
                self._bits &= ~pending_class.bits

    def _forget_bits(self, bits: int) -> None:
        self._bits &= ~bits

    def _drop(self, ask_class: AskClass) -> None:
        self._waiting.pop(ask_class, None)
        self._paused.pop(ask_class, None)

    @staticmethod
    def is_exempt(ask: Ask) -> bool:
        """Return True if victims make room for `ask` on a node, so that the policy is not asked."""
        eviction = ask.eviction
        return eviction is not None and eviction.node is not None and eviction.is_awaited

    # -- looks --------------------------------------------------------------------------------------

    def look_again(self) -> None:
        """Look at the waiting ask classes when no request can be placed: others may have become visible."""
        if self._waiting:
            self.due = True

    def look(self, holding_back: HoldingBack) -> None:
        """Make the reservations that the policy permits, in order, if something may have changed.

        Called when no request can be placed. Requests after a gang in `holding_back` make none.
        """
        # These no longer count, so that their owners may inherit them or reserve other nodes.
        holders = [holder for holder in self._node_reservations.inheritable if holder in self._counted]
        self._since = {holder: self._counted[holder].since for holder in holders}
        for holder in holders:
            self.forget(holder)
        if not self._waiting:
            self.due = False
        elif self.due or self._seen != self._version:
            # Other changes than those that make a look due seldom matter, so that a pause always follows.
            until = self._pause_until if self.due else self._rest_until
            self.due = False
            if self.now < until:
                self._look_at(until)
            else:
                self._visit_waiting(holding_back)

    @property
    def _version(self) -> tuple[int, int, int]:
        """Changes that may alter an answer of the policy, or make other requests the first ones."""
        partition = self._partition
        return partition.accounting.change_count, partition.arrivals, partition.ask_changes

    def _visit_waiting(self, holding_back: HoldingBack) -> None:
        now = self.now
        self._seen = self._version
        if self._made != self._pending_classes.made:
            self._made = self._pending_classes.made
            for ask_class in self._waiting:
                self._wait(ask_class)
        look = _Look(self, self._partition.queues.root, self._bits, holding_back)
        look.visit(look.root)
        self._rest_until = now + LOOK_PAUSE * look.visited
        self._pause_until = self._rest_until if look.visited > SHORT_LOOK else now
        if look.again is not None:
            self._look_at(look.again)

    def _look_at(self, time: int) -> None:
        timer = self._timer
        if timer is not None and timer.call is not None:
            if timer.due <= time:
                return
            timer.cancel()
        self._timer = self._partition.timers.at(time, self._look_now)

    def _look_now(self) -> None:
        self.due = True

    def is_settled(self, ask_class: AskClass) -> bool:
        """Return True if a request of the class has a reservation that cannot be inherited."""
        holder = ask_class.reserving_ask
        return holder is not None and holder not in self._node_reservations.inheritable

    # -- one request --------------------------------------------------------------------------------

    def attempt(self, ask: Ask, bounds: Bounds) -> Node | ReservationRefusal | None:
        """Reserve a node for `ask` and return it, or why the policy refuses; None if there is no node."""
        refusal = self._refusal(ask, bounds)
        if refusal is not None:
            return refusal
        lasts = self.rules.lasts(ask, self.now)
        if isinstance(lasts, ReservationRefusal):
            return lasts
        since, holder = self.now, ask.ask_class.reserving_ask
        if holder is not None:
            counted = self._counted.get(holder)
            since = self._since.get(holder, since) if counted is None else counted.since
        node = self._reserve(ask)
        if node is not None:
            self._count(ask, since, lasts)
        return node

    def _refusal(self, ask: Ask, bounds: Bounds) -> ReservationRefusal | None:
        delay = self._partition.timeouts.reservation
        refusal = self.rules.too_early(ask, delay, self.now, quiet=bounds.quiet)
        if refusal is not None:
            return refusal
        holder = ask.ask_class.reserving_ask
        # A reservation that is inherited continues to count for the owners that both requests share.
        counted = None if holder is None else self._counted.get(holder)
        shared = () if counted is None else counted.owners
        for owner in owners_of(ask.app):
            refusal = bounds.refusal(owner, less=owner in shared)
            if refusal is not None:
                return refusal
        return None

    def _reserve(self, ask: Ask) -> Node | None:
        """Let `ask` inherit the reservation of its ask class, or reserve a node; None if there is none."""
        holder = ask.ask_class.reserving_ask
        if holder is not None:
            node = holder.reserved
            self._node_reservations.transfer(holder, ask)
            return node
        node = self._reservations.best_node(ask, self.rules.rank if self.rules.ranks_nodes else None)
        if node is not None:
            self._reservations.reserve(ask, node)
        return node

    def _count(self, ask: Ask, since: int, lasts: int | None) -> None:
        owners = owners_of(ask.app)
        counted = self._counted[ask] = _Counted(owners, since)
        for owner in owners:
            self.counts[owner] = self.counts.get(owner, 0) + 1
        if lasts is not None:
            due = max(since + lasts, self.now)
            counted.timer = self._partition.timers.at(due, lambda: self._give_up(ask))

    def forget(self, ask: Ask) -> None:
        """Count a reservation no longer: it has ended, or is kept whatever the policy says."""
        counted = self._counted.pop(ask, None)
        if counted is None:
            return
        if counted.timer is not None:
            counted.timer.cancel()
        for owner in counted.owners:
            left = self.counts[owner] - 1
            if left:
                self.counts[owner] = left
            else:
                del self.counts[owner]
        if self._waiting:
            self.due = True

    # -- the end of a reservation -------------------------------------------------------------------

    def _give_up(self, ask: Ask) -> None:
        """Give up a reservation whose time is over; its ask class pauses."""
        ask_class = ask.ask_class
        until = self._paused[ask_class] = self.now + self.rules.pause
        self._partition.timers.at(until, lambda: self._resume(ask_class))
        self._node_reservations.unreserve(ask)

    def _resume(self, ask_class: AskClass) -> None:
        if ask_class in self._paused and self._paused[ask_class] <= self.now:
            del self._paused[ask_class]
            if ask_class.reserving_ask is None:
                self._reservations.retry(ask_class)

    # -- explanations -------------------------------------------------------------------------------

    def explain(self, ask: Ask) -> ReservationRefusal | None:
        """Return why `ask` has no reservation, if the policy is the reason; changes nothing."""
        until = self._paused.get(ask.ask_class)
        if until is not None:
            text = "the reservation of requests like it was given up, and they pause"
            left = describe_duration(max(until - self.now, 0))
            return ReservationRefusal(text, f"{text}: the next one is possible in {left}")
        return self._refusal(ask, Bounds(self, quiet=True))


class Bounds:
    """Bounds of queues and applications; the policy is asked about each at most once."""

    def __init__(self, owner: PolicyReservations, *, quiet: bool = False) -> None:
        """Begin without answers; with `quiet`, failures of the policy are not reported."""
        self._rules, self._counts = owner.rules, owner.counts
        self._now = owner.now
        self.quiet = quiet
        self._most: dict[Queue | Application, int | ReservationRefusal | None] = {}

    def refusal(self, owner: Queue | Application, *, less: bool = False) -> ReservationRefusal | None:
        """Return why the bound of a queue or application permits no further reservation, or None.

        With `less`, one of its reservations is about to end.
        """
        if owner in self._most:
            most = self._most[owner]
        else:
            most = self._most[owner] = self._rules.most(owner, self._now, quiet=self.quiet)
        if most is None or isinstance(most, ReservationRefusal):
            return most
        used = self._counts.get(owner, 0)
        if used - less < most:
            return None
        summary = f"all reservations of {owner.label} are in use"
        return ReservationRefusal(summary, f"{used} of {most} reservations of {owner.label} in use")


class _Look:
    """One visit of the requests of waiting ask classes, in the order of the policies.

    The visit leaves a queue where it comes to a gang that holds back the requests after it.
    """

    def __init__(
        self, owner: PolicyReservations, root: Queue, wanted: int, holding_back: HoldingBack
    ) -> None:
        self._owner = owner
        self.root = root
        self._wanted = wanted
        """Bits of the pending classes that still want a reservation."""
        self._holding_back = holding_back
        self._gangs = 0
        """Bits of the pending classes of these gangs, so that they are visited, too."""
        for request, _ in holding_back.values():
            self._gangs |= request.pending_class.bits
        self._bounds = Bounds(owner)
        self.visited = 0
        """Number of visited queues, applications and requests."""
        self.again: int | None = None
        """Time of the next look without a change (ns); None if only a change can alter an answer."""

    def visit(self, queue: Queue) -> None:
        """Visit a queue and everything below."""
        self.visited += 1
        if self._is_full(queue):
            return
        self._owner.put_in_order(queue)
        for member in queue.sorted_members.having(self._wanted | self._gangs):
            if not member.bits & (self._wanted | self._gangs):
                continue
            if queue.is_leaf:
                self._visit_application(member)
            else:
                self.visit(member)
            if not self._wanted or self._is_held_back_after(member) or self._is_full(queue):
                return

    def _is_held_back_after(self, member: Queue | Application) -> bool:
        """Return True if a gang of an application, or in a queue, holds back the members after it."""
        if member in self._holding_back:
            return True
        # The queue above the member is the one in which the gang holds back others, or is below that.
        return any(
            member in app.chain and app.chain.index(member) < app.chain.index(within)
            for app, (_, within) in self._holding_back.items()
        )

    def _visit_application(self, app: Application) -> None:
        self.visited += 1
        gang = self._holding_back.get(app)
        bits = app.requests.bits & self._wanted
        while bits and not any(map(self._is_full, owners_of(app))):
            ask = app.requests.first(bits if gang is None else bits | gang[0].pending_class.bit)
            if ask is None or (gang is not None and ask is gang[0]):
                return
            bits &= ~ask.pending_class.bit
            self._visit_request(ask)

    def _visit_request(self, ask: Ask) -> None:
        self.visited += 1
        if not self._owner.is_settled(ask.ask_class):
            obstacle = next(obstacles(ask, to_start=True), None)
            if obstacle is not None and obstacle is not self.root:
                return
            outcome = self._owner.attempt(ask, self._bounds)
            if isinstance(outcome, ReservationRefusal):
                self._note(outcome)
                return
        for pending_class in ask.ask_class.pending_classes.values():
            self._wanted &= ~pending_class.bits
        self._owner.settled(ask.ask_class)

    def _is_full(self, owner: Queue | Application) -> bool:
        refusal = self._bounds.refusal(owner)
        if refusal is not None:
            self._note(refusal)
        return refusal is not None

    def _note(self, refusal: ReservationRefusal) -> None:
        if refusal.until is not None and (self.again is None or refusal.until < self.again):
            self.again = refusal.until
