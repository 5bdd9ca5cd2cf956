"""Reservation of a node: the node is kept free of other requests until the one that it is reserved for fits.

When a request that has waited long enough finds no room, the best-fitting node is reserved for it: hidden
from all other requests, and tried for this request whenever the node gains room. Unlike YuniKorn 1.9, there
is one reservation per ask class, held by its first request and inherited by the next. Pending requests
therefore reserve as many nodes as they have ask classes, and not the whole cluster. A request that requires a
node reserves that node at once, and replaces the reservations of other requests there.

The reservation policy says from which age requests reserve, how many do, for how long, and on which node
(`reservation_rules`). An ask class that is refused waits. Under the default policy a timer tries its requests
again; a policy with bounds may refuse the first request and accept another, so that all its requests are
looked at, in order, when a reservation ends or a delay is over (`reservation_look`). Reservations are then
counted when they begin and end, per application and queue, so that nothing is counted again for a decision
(docs/decisions/archive/0079). Not subject to the policy, and not counted, are reservations of required nodes
and of nodes on which victims make room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

import attrs

from yunikorn.clock import MICROSECOND
from yunikorn.config.durations import describe_duration
from yunikorn.model.ask import NodeOwner
from yunikorn.model.ask_class import RestrictedClass
from yunikorn.model.gang import GangClass
from yunikorn.scheduling.obstacles import obstacles
from yunikorn.scheduling.reservations.reservable_nodes import ReservableNodes
from yunikorn.scheduling.reservations.reservation_look import Backpressure, ReservationLook, owners_of
from yunikorn.scheduling.reservations.reservation_rules import ReservationRefusal
from yunikorn.states import STOPPED

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.clock import Timer
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.ask import Ask
    from yunikorn.model.ask_class import AskClass
    from yunikorn.model.node import Node
    from yunikorn.model.queue import Queue
    from yunikorn.scheduling.allocator import Allocator
    from yunikorn.scheduling.node_orders import NodeOrders
    from yunikorn.scheduling.reservations.reservation_rules import Owner, ReservationRules

    Bounds = dict[Owner, int | ReservationRefusal | None]
    """Answers of the policy about bounds at one moment, so that it is asked about each at most once."""

LOOK_PAUSE = 50 * MICROSECOND
"""Pause after a long look, per visited request: several times the duration of the visit itself."""
SHORT_LOOK = 100
"""Number of visited requests of a look that no pause follows."""


@attrs.define(eq=False)
class _Counted:
    """A reservation that counts against bounds."""

    owners: tuple[Owner, ...]
    since: int
    """Time since which the ask class has had the reservation (ns)."""
    timer: Timer | None = None
    """Timer that ends the reservation; None without an end."""


class Reservations:
    """Makes, serves and cancels the reservations of a partition."""

    def __init__(
        self,
        partition: Partition,
        orders: NodeOrders,
        allocator: Allocator,
        foremost: Callable[[int], Ask | None],
        put_in_order: Callable[[Queue], None],
    ) -> None:
        """Create for a cycle: `foremost` returns the first request in order with any of the given bits.

        `put_in_order` brings the order of a queue's members up to date.
        """
        self._partition, self._allocator = partition, allocator
        self._first, self._put_in_order = foremost, put_in_order
        self._node_reservations = partition.accounting.node_reservations
        self._orders = orders
        self._nodes = ReservableNodes(partition, orders, self.retry)
        self._rules: ReservationRules
        """The policy, set by `use`."""
        self.restricted = False
        """True if the policy restricts reservations, so that ask classes that it refused are looked at."""
        self._delayed: set[AskClass] = set()
        """Ask classes whose first request has not waited long enough; a timer retries each of them."""
        self.due = False
        """True if waiting ask classes should be looked at."""
        self._waiting: dict[AskClass, None] = {}
        """Ask classes that found no room and to which the policy refused a reservation."""
        self._bits = 0
        """Bits of the pending classes of the waiting ask classes."""
        self._made = 0
        """Value of `PendingClasses.made` when `_bits` was computed."""
        self._counted: dict[Ask, _Counted] = {}
        self.counts: dict[Owner, int] = {}
        """Number of reservations by queue, requests of queues below included, and by application."""
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
        readers.reservation_ended.append(self._forget)
        readers.pending_bits_dropped.append(self._forget_bits)
        readers.ask_class_dropped.append(self._drop)
        # Excluded applications, those in back-off, and requests after an overdue gang are not looked at.
        readers.more_to_try.append(self._look_again)

    def use(self, rules: ReservationRules) -> None:
        """Use this reservation policy from now on.

        A reload has ended the reservations of all pending requests before, so that the policy decides about
        each of them.
        """
        self._rules, self.restricted = rules, not rules.unrestricted
        for ask in list(self._counted):
            self._forget(ask)
        if self._timer is not None:
            self._timer.cancel()
        self._waiting, self._paused, self._since, self._bits = {}, {}, {}, 0
        self._seen, self._pause_until, self._rest_until, self.due = (-1, -1, -1), 0, 0, False

    @property
    def now(self) -> int:
        """The present time (ns)."""
        return self._partition.clock.now()

    # -- making -------------------------------------------------------------------------------------

    def consider(self, ask: Ask) -> None:
        """Reserve a node for `ask`, which found no room, or let its ask class wait."""
        ask_class = ask.ask_class
        if ask_class.required:
            self._require(ask)
        elif ask.reserved is not None or self.is_settled(ask_class):
            return
        elif self.is_exempt(ask):
            self._take(ask)
        elif ask_class in self._paused:
            return
        # While a look is due, requests that are earlier in order may get the reservation. Applications in
        # back-off have no place in the order, so that a look would not visit them.
        elif self.due and ask.app.backoff_timer is None:
            self._wait(ask_class)
        else:
            outcome = self._attempt(ask, {})
            if not isinstance(outcome, ReservationRefusal):
                self._settled(ask_class)
            elif self.restricted:
                self._wait(ask_class)
                self.due = True
            elif outcome.until is not None and ask_class not in self._delayed:
                self._delayed.add(ask_class)
                self._partition.timers.at(outcome.until, lambda: self._become_eligible(ask_class))

    def _require(self, ask: Ask) -> None:
        node = self._partition.nodes.get(ask.ask_class.required)
        if node is None or ask.reserved is not None or not node.could_host(ask.ask_class.pairs):
            return
        if ask.ask_class.fits(node):
            return  # A predicate refuses the request, so that keeping room free would not help.
        for other in [other for other in node.reservations if not other.ask_class.required]:
            self._node_reservations.unreserve(other)
        self.reserve(ask, node)

    def reserve(self, ask: Ask, node: Node) -> None:
        """Reserve `node` for `ask`; a previous reservation of `ask` is cancelled."""
        if ask.reserved is not None:
            self._node_reservations.unreserve(ask)
        self._node_reservations.reserve(ask, node)

    def keep_for_victims(self, ask: Ask, node: Node) -> None:
        """Reserve `node`, on which victims make room for `ask`, whatever the policy says."""
        if ask.reserved is not node:
            self.reserve(ask, node)
        else:
            self._forget(ask)

    def _become_eligible(self, ask_class: AskClass) -> None:
        self._delayed.discard(ask_class)
        self.retry(ask_class)

    def is_exempt(self, ask: Ask) -> bool:
        """Return True if victims make room for `ask` on a node, so that the policy is not asked."""
        eviction = ask.eviction
        return eviction is not None and eviction.node is not None and eviction.is_awaited and self.restricted

    def is_settled(self, ask_class: AskClass) -> bool:
        """Return True if a request of the class has a reservation that cannot be inherited."""
        holder = ask_class.reserving_ask
        return holder is not None and holder not in self._node_reservations.inheritable

    def reconsider(self) -> None:
        """Retry requests that lost their reservation, or that may reserve a new or changed node."""
        ask_classes = dict(self._node_reservations.lost)
        hosts = list(self._node_reservations.changed_hosts)
        if hosts and (self._partition.timeouts.reservation is not None or self.restricted):
            most = _largest_amounts(hosts)
            waiting = (
                ask_class
                for ask_class in self._partition.ask_classes
                if ask_class.waiting
                and ask_class.reserving_ask is None
                and all([amount <= most.get(name, 0) for name, amount in ask_class.pairs])
            )
            ask_classes |= {
                ask_class: None
                for ask_class in waiting
                if any(may_reserve(node, ask_class) for node in hosts)
            }
        self._node_reservations.changed_hosts.clear()
        self._node_reservations.lost.clear()
        for ask_class in ask_classes:
            if ask_class.reserving_ask is None:
                self.retry(ask_class)

    def give_up_stopped(self) -> None:
        """Cancel the reservations of requests in stopped queues."""
        for node in self._partition.nodes.values():
            for ask in list(node.reservations):
                if any(queue.state == STOPPED for queue in ask.app.chain):
                    self._node_reservations.unreserve(ask)

    def retry(self, ask_class: AskClass) -> None:
        """Try the requests of an ask class again."""
        if ask_class.waiting:
            self._partition.pending_classes.mark_schedulable(ask_class)
            root = self._partition.queues.root
            for pending_class in ask_class.pending_classes.values():
                root.retry(pending_class)

    def _wait(self, ask_class: AskClass) -> None:
        self._waiting[ask_class] = None
        for pending_class in ask_class.pending_classes.values():
            self._bits |= pending_class.bits

    def _settled(self, ask_class: AskClass) -> None:
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

    # -- one request --------------------------------------------------------------------------------

    def _attempt(self, ask: Ask, bounds: Bounds) -> Node | ReservationRefusal | None:
        """Reserve a node for `ask` and return it, or why the policy refuses; None if there is no node."""
        refusal = self._refusal(ask, bounds)
        if refusal is not None:
            return refusal
        lasts = self._rules.lasts(ask, self.now)
        if isinstance(lasts, ReservationRefusal):
            return lasts
        since, holder = self.now, ask.ask_class.reserving_ask
        if holder is not None:
            counted = self._counted.get(holder)
            since = self._since.get(holder, since) if counted is None else counted.since
        node = self._take(ask)
        if node is not None:
            self._count(ask, since, lasts)
        return node

    def _refusal(self, ask: Ask, bounds: Bounds, *, quiet: bool = False) -> ReservationRefusal | None:
        delay = self._partition.timeouts.reservation
        refusal = self._rules.too_early(ask, delay, self.now, quiet=quiet)
        if refusal is not None or not self.restricted:
            return refusal
        holder = ask.ask_class.reserving_ask
        # A reservation that is inherited continues to count for the owners that both requests share.
        counted = None if holder is None else self._counted.get(holder)
        shared = () if counted is None else counted.owners
        for owner in owners_of(ask.app):
            refusal = self._bound_reached(bounds, owner, less=owner in shared, quiet=quiet)
            if refusal is not None:
                return refusal
        return None

    def _take(self, ask: Ask) -> Node | None:
        """Let `ask` inherit the reservation of its ask class, or reserve a node; None if there is none."""
        holder = ask.ask_class.reserving_ask
        if holder is not None:
            node = holder.reserved
            self._node_reservations.transfer(holder, ask)
            return node
        node = self._nodes.best(ask, self._rules.rank)
        if node is not None:
            self.reserve(ask, node)
        return node

    def _bound_reached(
        self, bounds: Bounds, owner: Owner, *, less: bool = False, quiet: bool = False
    ) -> ReservationRefusal | None:
        """Return why the bound of a queue or application permits no further reservation, or None.

        With `less`, one of its reservations is about to end.
        """
        if owner not in bounds:
            bounds[owner] = self._rules.most(owner, self.now, quiet=quiet)
        most, used = bounds[owner], self.counts.get(owner, 0)
        if most is None or isinstance(most, ReservationRefusal):
            return most
        if used - less < most:
            return None
        summary = f"all reservations of {owner.label} are in use"
        return ReservationRefusal(summary, f"{used} of {most} reservations of {owner.label} in use")

    def _count(self, ask: Ask, since: int, lasts: int | None) -> None:
        if not self.restricted:
            return
        owners = owners_of(ask.app)
        counted = self._counted[ask] = _Counted(owners, since)
        for owner in owners:
            self.counts[owner] = self.counts.get(owner, 0) + 1
        if lasts is not None:
            due = max(since + lasts, self.now)
            counted.timer = self._partition.timers.at(due, lambda: self._give_up(ask))

    def _forget(self, ask: Ask) -> None:
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
        until = self._paused[ask_class] = self.now + self._rules.pause
        self._partition.timers.at(until, lambda: self._resume(ask_class))
        self._node_reservations.unreserve(ask)

    def _resume(self, ask_class: AskClass) -> None:
        if ask_class in self._paused and self._paused[ask_class] <= self.now:
            del self._paused[ask_class]
            if ask_class.reserving_ask is None:
                self.retry(ask_class)

    # -- looks --------------------------------------------------------------------------------------

    def _look_again(self) -> None:
        """Look at the waiting ask classes when no request can be placed: others may have become visible."""
        if self._waiting:
            self.due = True

    def look(self, backpressure: Backpressure) -> None:
        """Make the reservations that the policy permits, in order, if something may have changed.

        Called when no request can be placed. Requests after a gang in `backpressure` make none.
        """
        # These no longer count, so that their owners may inherit them or reserve other nodes.
        holders = [holder for holder in self._node_reservations.inheritable if holder in self._counted]
        self._since = {holder: self._counted[holder].since for holder in holders}
        for holder in holders:
            self._forget(holder)
        if not self._waiting:
            self.due = False
        elif self.due or self._seen != self._version:
            # Other changes than those that make a look due seldom matter, so that a pause always follows.
            until = self._pause_until if self.due else self._rest_until
            self.due = False
            if self.now < until:
                self._look_at(until)
            else:
                self._visit_waiting(backpressure)

    @property
    def _version(self) -> tuple[int, int, int]:
        """Changes that may alter an answer of the policy, or make other requests the first ones."""
        partition = self._partition
        return partition.accounting.change_count, partition.arrivals, partition.ask_changes

    def _visit_waiting(self, backpressure: Backpressure) -> None:
        now = self.now
        self._seen = self._version
        if self._made != self._partition.pending_classes.made:
            self._made = self._partition.pending_classes.made
            for ask_class in self._waiting:
                self._wait(ask_class)
        root = self._partition.queues.root
        bounds: Bounds = {}
        reached = partial(self._bound_reached, bounds)
        look = ReservationLook(self._bits, backpressure, reached, self._put_in_order)
        for ask in look.requests(root):
            ask_class = ask.ask_class
            if not self.is_settled(ask_class):
                if next(obstacles(ask, to_start=True), root) is not root:
                    continue
                outcome = self._attempt(ask, bounds)
                if isinstance(outcome, ReservationRefusal):
                    look.note(outcome)
                    continue
            look.drop(ask_class)
            self._settled(ask_class)
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

    # -- serving ------------------------------------------------------------------------------------

    def serve(self) -> Allocation | None:
        """Place the first request that now fits its reserved node; None if there is none."""
        regained = self._orders.regained
        # Nodes whose request waits only for quota; they are tried again after the next change.
        blocked: dict[Node, None] = {}
        while regained:
            node = regained[-1]
            for ask in list(node.reservations):
                if ask.gang is not None or isinstance(ask, NodeOwner):
                    self._try_gang(ask, node)
                    continue
                if (
                    ask in self._node_reservations.inheritable
                    or not ask.ask_class.fits(node)
                    or (ask.unschedulable and not self._waits_for_victims(ask))
                    or (not ask.ask_class.required and any(one.app is not ask.app for one in node.owners))
                ):
                    continue
                obstacle = next(obstacles(ask, to_start=True), None)
                if obstacle is not None:
                    if obstacle is self._partition.queues.root or _is_making_room(ask):
                        blocked[node] = None
                    else:
                        # A reservation for a request that may not run would only block the node.
                        self._node_reservations.unreserve(ask)
                elif self._orders.predicates.judge(ask, node) is None:
                    regained[:0] = blocked
                    if ask.unschedulable:
                        # Predicates refused it everywhere until its victims ended.
                        self._partition.accounting.pending_accounting.activate(ask)
                    return self._award(node, ask)
            regained.pop()
        regained.extend(blocked)
        return None

    def _waits_for_victims(self, ask: Ask) -> bool:
        """Return True if predicates refuse `ask` elsewhere, and its victims have made room."""
        return ask.eviction is not None and not ask.gang_blocked and not ask.is_paused(self.now)

    def _try_gang(self, holder: Ask, node: Node) -> None:
        """Try the gang that a node with room is kept for, and those that may borrow the node."""
        gang = holder.gang
        if gang is not None and gang.request is not None and holder.ask_class.fits(node):
            self.retry(gang.request.ask_class)
        for ask_class in list(self._partition.ask_classes.unschedulable.values()):
            if isinstance(ask_class, RestrictedClass) and ask_class.may_borrow and ask_class.fits(node):
                self.retry(ask_class)

    def _award(self, node: Node, holder: Ask) -> Allocation | None:
        """Give the room of a reserved node to the first request in policy order, usually `holder`.

        The node is closed to smaller requests until it has room for its holder. Then the first of all
        requests that fit the node is placed. If that is another request than the holder, and other nodes have
        room for it, the request is placed on one of them. Returns None if a permit policy refuses it.
        """
        foremost = holder
        if not holder.ask_class.required and holder.eviction is None:
            foremost = self._foremost(node, holder)
        if (
            foremost is not holder
            and not foremost.ask_class.unschedulable
            and not foremost.ask_class.required
        ):
            elsewhere = self._orders.find(foremost)
            if elsewhere is not None:
                return self._allocator.place(foremost, elsewhere)
        return self._allocator.place(foremost, node)

    def _foremost(self, node: Node, holder: Ask) -> Ask:
        wanted = 0
        for ask_class in self._partition.ask_classes:
            # A gang is placed as a whole or not at all, so that no single node is given to it.
            if isinstance(ask_class, GangClass) or ask_class.required not in ("", node.id):
                continue
            if ask_class.waiting and ask_class.fits(node) and ask_class.verdicts.get(node.classes) is None:
                for pending_class in ask_class.pending_classes.values():
                    if not pending_class.over_limit:
                        wanted |= pending_class.bits
        found = self._first(wanted)
        if found is None or next(obstacles(found, to_start=True), None) is not None:
            return holder
        return found if self._orders.predicates.judge(found, node) is None else holder

    def give_up_inheritable(self) -> bool:
        """Cancel reservations that no other request of the ask class inherited; True if there were any."""
        inheritable = list(self._node_reservations.inheritable)
        for ask in inheritable:
            self._node_reservations.unreserve(ask)
        return bool(inheritable)

    # -- explanations -------------------------------------------------------------------------------

    def explain(self, ask: Ask) -> ReservationRefusal | None:
        """Return why `ask` has no reservation, if the policy is the reason; changes nothing."""
        if not self.restricted or self.is_settled(ask.ask_class):
            return None
        until = self._paused.get(ask.ask_class)
        if until is not None:
            text = "the reservation of requests like it was given up, and they pause"
            left = describe_duration(max(until - self.now, 0))
            return ReservationRefusal(text, f"{text}: the next one is possible in {left}")
        return self._refusal(ask, {}, quiet=True)


def _largest_amounts(nodes: Iterable[Node]) -> dict[str, int]:
    """Return the largest amount of each type that any of the nodes can give to requests.

    Most requests that fit no node exceed it: those that represent gangs, above all.
    """
    most: dict[str, int] = {}
    for node in nodes:
        for name, amount in node.capacity.items():
            most[name] = max(most.get(name, 0), amount - node.occupied.get(name, 0))
    return most


def may_reserve(node: Node, ask_class: AskClass) -> bool:
    """Return True if the capacity of `node` allows a reservation for a request of `ask_class`."""
    if ask_class.required:
        return ask_class.required == node.id and node.could_host(ask_class.pairs)
    return node.is_free and node.could_host(ask_class.pairs)


def _is_making_room(ask: Ask) -> bool:
    """Return True if victims of `ask` have not ended yet: their release may satisfy the quota as well."""
    return ask.eviction is not None and bool(ask.eviction.outstanding)
