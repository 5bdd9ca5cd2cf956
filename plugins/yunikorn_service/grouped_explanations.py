"""Explanations of the pending requests of an application, equal requests together, in slices.

One slice lists a few hundred requests, or orders a few members of a queue, or evaluates a few nodes, or makes
the explanation of one request. Requests that have ended meanwhile are left out; ranks and evaluations of
nodes may be slightly older than the rest.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Generator, Hashable, Iterator
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from yunikorn.explain.explanations import Reason, answers, likeness_of
from yunikorn.explain.node_fit import SCAN, FitSummary, NodeFit, NodeScan, evaluate, home_of, is_open
from yunikorn.explain.request_position import QueuePosition, in_order, orders_requests
from yunikorn.scheduling.admission.questions import with_next_question
from yunikorn.scheduling.atomic_gangs import take_replicas

if TYPE_CHECKING:
    from yunikorn.interface.scheduler import Scheduler
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.application import Application
    from yunikorn.model.ask import Ask
    from yunikorn.model.gang import Members
    from yunikorn.model.node import Node
    from yunikorn.resources import Resource, Tally
    from yunikorn.scheduling.partition_scheduler import PartitionScheduler
    from yunikorn.scheduling.predicate_chain import PredicateChain

T = TypeVar("T")
Slices = Generator[None, None, T]

KEYS = 10
"""Number of keys that a group names."""
STEP = 100
"""Number of requests that are listed without a pause."""
MEMBERS = 8
"""Number of members of a queue that are ordered without a pause."""
SCANNED = 25
"""Number of nodes that are evaluated without a pause."""


@attrs.define
class RequestGroup:
    """Requests of one size with the same answers to all checks."""

    resource: Resource
    priority: int
    task_group: str
    reasons: tuple[Reason, ...] = ()
    """Conditions that stop the requests; empty if none does."""
    fixes: tuple[str, ...] = ()
    """The smallest set of changes that together would help."""
    reserved: str = ""
    """Node that is reserved for the requests."""
    placed: bool = False
    """True if the requests are placed, and permit policies hold the placements."""
    keys: list[str] = attrs.Factory(list)
    """Keys of the first requests, at most `KEYS` unless the caller wants more."""
    asks: int = 0
    waiting: int = 0
    """Number of allocations that the requests wait for, or that are held."""
    first: int = 0
    """Rank of the first of them among the pending requests of the queue."""
    last: int = 0

    def add(self, key: str, waiting: int, asks: int = 1, most_keys: int = KEYS) -> None:
        """Count a request."""
        if len(self.keys) < most_keys:
            self.keys.append(key)
        self.asks += asks
        self.waiting += waiting


@attrs.define
class GroupedExplanation:
    """Explanation of an application."""

    groups: list[RequestGroup] = attrs.Factory(list)
    """Groups in the order of their first requests; placed ones are last."""
    waiting: int = 0
    """Number of pending allocations of the application."""
    omitted: int = 0
    """Number of pending allocations that are in no group, because there are too many groups."""
    of: int = 0
    """Number of pending requests in the queue of the application."""
    ordered_by: str = ""
    """Name of the sort policy of the queue, if it orders the requests of an application; else empty."""
    queues: tuple[QueuePosition, ...] = ()
    """Rank of the queue and of each queue above among siblings with pending requests."""


def explained_in_slices(scheduler: Scheduler, slices: Slices[T]) -> Slices[T]:
    """Continue `slices` with the calls of plugins refused, and pause where they pause."""
    while True:
        with scheduler.explaining():
            try:
                next(slices)
            except StopIteration as end:
                found: T = end.value
                return found
        yield


def explain_in_groups(
    at: PartitionScheduler, app: Application, limit: int, most_keys: int = KEYS
) -> Slices[GroupedExplanation]:
    """Explain the pending requests of `app` in at most `limit` groups, each with up to `most_keys` keys."""
    found = GroupedExplanation()
    if app.queue is not None:
        requests = yield from _in_order_of_app(app)
        found.ordered_by = "" if app.queue is None else orders_requests(app.queue)
        ahead, found.of = yield from _ahead(app, at.partition.clock.now())
        found.queues = tuple((yield from _queue_positions(app, at.partition.clock.now())))
        yield from _explain_requests(at, requests, ahead, limit, found, most_keys)
    yield from _add_held(at, app, limit, found)
    return found


def _in_order_of_app(app: Application) -> Slices[list[Ask]]:
    """Return the pending requests of an application in their order."""
    asks = list(app.asks.values())
    parts: list[list[Ask]] = []
    for start in range(0, len(asks), STEP):
        parts.append(
            sorted((ask for ask in asks[start : start + STEP] if ask.pending), key=attrgetter("order"))
        )
        yield
    found: list[Ask] = []
    for ask in heapq.merge(*parts, key=attrgetter("order")):
        found.append(ask)
        if len(found) % STEP == 0:
            yield
    return found


def _ahead(app: Application, now: int) -> Slices[tuple[int, int]]:
    """Return the number of pending requests in the queue of `app` before its own, and of all of them."""
    ahead = total = 0
    leaf = app.queue
    if leaf is None:
        return ahead, total
    others = [other for other in leaf.applications.values() if other.has_waiting and other is not app]
    for part in _parts(others):
        if app.queue is not leaf:
            break
        is_before = True
        for other in in_order(leaf, [*(one for one in part if one.queue is leaf), app], now):
            if other is app:
                is_before = False
                continue
            pending = yield from _pending(other)
            total += pending
            ahead += pending if is_before else 0
        yield
    total += yield from _pending(app)
    return ahead, total


def _pending(app: Application) -> Slices[int]:
    """Return the number of pending allocations of an application."""
    asks = list(app.asks.values())
    total = 0
    for start in range(0, len(asks), STEP):
        total += sum(ask.pending for ask in asks[start : start + STEP])
        if start:
            yield
    return total


def _queue_positions(app: Application, now: int) -> Slices[list[QueuePosition]]:
    found: list[QueuePosition] = []
    queue = app.queue
    parent = None if queue is None else queue.parent
    while queue is not None and parent is not None:
        others = [child for child in parent.children.values() if child.waiting and child is not queue]
        place = 1
        for part in _parts(others):
            # A queue with applications is not removed; its siblings may be.
            if app.queue is None:
                return found
            there = [child for child in part if parent.children.get(child.name) is child]
            place += in_order(parent, [*there, queue], now).index(queue)
            yield
        found.append(QueuePosition(queue.path, place, len(others) + 1, parent.path))
        queue, parent = parent, parent.parent
    return found


def _parts(members: list[Any]) -> Iterator[list[Any]]:
    return (members[start : start + MEMBERS] for start in range(0, len(members), MEMBERS))


def _explain_requests(
    at: PartitionScheduler,
    requests: list[Ask],
    ahead: int,
    limit: int,
    found: GroupedExplanation,
    most_keys: int,
) -> Slices[None]:
    known: dict[Hashable, RequestGroup] = {}
    alike: dict[Hashable, RequestGroup] = {}
    for number, ask in enumerate(requests):
        if number % STEP == STEP - 1:
            yield
        pending = ask.pending
        if not pending or ask.app.asks.get(ask.key) is not ask or ask.app.queue is None:
            continue
        found.waiting += pending
        # A reservation policy may answer differently for each request.
        of_one = at.cycle.reservations.restricted and ask.key
        key = (likeness_of(at, ask), of_one, ask.priority, tuple(sorted(ask.resource.items())))
        group = known.get(key)
        if group is None and len(known) < limit:
            scan = yield from _scan(at, ask)
            if not ask.pending or ask.app.asks.get(ask.key) is not ask:
                found.waiting -= pending
                continue
            group = known[key] = _explained(at, ask, scan, alike, found)
            yield
        if group is None:
            found.omitted += pending
        else:
            group.add(ask.key, pending, most_keys=most_keys)
            group.first = group.first or ahead + 1
            group.last = ahead + pending
        ahead += pending


def _scan(at: PartitionScheduler, ask: Ask) -> Slices[NodeScan]:
    """Evaluate all nodes for a request if its explanation needs that."""
    nodes, predicates = at.partition.nodes, at.policies.predicates
    gang = ask.whole_gang
    if ask.gang_blocked:
        if gang is None:
            return SCAN
        at.partition.gangs.formation.choose_members(gang)
        return (yield from _scan_for_gang(list(gang.members), nodes.values(), predicates))
    if ask.ask_class.required:
        return SCAN
    return (yield from _scan_nodes(ask, nodes.values(), predicates))


def _explained(
    at: PartitionScheduler,
    ask: Ask,
    scan: NodeScan,
    alike: dict[Hashable, RequestGroup],
    found: GroupedExplanation,
) -> RequestGroup:
    """Return the group of a request; requests that were explained one by one may turn out to be equal."""
    reasons, fixes = answers(at, ask, scan)
    reserved = "" if ask.reserved is None else ask.reserved.id
    size = tuple(sorted(ask.resource.items()))
    key = (reasons, fixes, reserved, size, ask.priority, ask.task_group)
    group = alike.get(key)
    if group is None:
        group = RequestGroup(ask.resource, ask.priority, ask.task_group, reasons, fixes, reserved)
        alike[key] = group
        found.groups.append(group)
    return group


def _add_held(
    at: PartitionScheduler, app: Application, limit: int, found: GroupedExplanation
) -> Slices[None]:
    """Add placements that permit policies hold."""
    if not app.unannounced:
        return
    held: dict[Hashable, RequestGroup] = {}
    known: set[str] = set()
    for number, one in enumerate(list(app.allocations.values())):
        if number % STEP == STEP - 1:
            yield
        if one.hold is None or app.allocations.get(one.uuid) is not one:
            continue
        key = (one.hold.policy, one.hold.message, tuple(sorted(one.resource.items())), one.priority)
        if key not in held:
            if len(found.groups) >= limit:
                found.omitted += 1
                continue
            held[key] = _held(at, one)
            found.groups.append(held[key])
        held[key].add(one.key, 1, asks=one.key not in known)
        known.add(one.key)


def _held(at: PartitionScheduler, one: Allocation) -> RequestGroup:
    hold = one.hold
    assert hold is not None
    summary = f"placed, and held by permit policy {hold.policy}"
    reason = Reason(
        "permit", summary, f"placed, {with_next_question(hold, at.partition.clock.now())}", hold.policy
    )
    return RequestGroup(one.resource, one.priority, one.task_group, (reason,), placed=True)


# -- nodes -------------------------------------------------------------------------------------------------


@attrs.define
class FinishedScan(NodeScan):
    """Evaluation of the nodes that was made before, with pauses."""

    found: FitSummary | None = None
    best: NodeFit | None = None
    fitting: int = 0

    def summary(self, ask: Ask, nodes: Collection[Node], predicates: PredicateChain) -> FitSummary | None:
        """Return what was found."""
        return self.found

    def closest(self, ask: Ask, nodes: Collection[Node], predicates: PredicateChain) -> NodeFit | None:
        """Return what was found."""
        return self.best

    def room(self, members: Members, nodes: Collection[Node], predicates: PredicateChain) -> int:
        """Return what was found."""
        return self.fitting


def _scan_nodes(ask: Ask, nodes: Collection[Node], predicates: PredicateChain) -> Slices[FinishedScan]:
    """Evaluate nodes for a request, with pauses; stop at the first one that accepts the request."""
    found = FinishedScan(FitSummary())
    for part in _node_parts(nodes):
        home = home_of(ask)
        with predicates.expecting(ask, partial(iter, part)):
            for node in part:
                fit = evaluate(ask, node, home)
                fit.refusal = predicates.evaluate(ask, node)
                if fit.takes_it:
                    return FinishedScan(None, fit)
                if found.found is not None:
                    found.found.add(fit)
                if found.best is None or fit.distance < found.best.distance:
                    found.best = fit
        yield
    return found


def _scan_for_gang(
    members: Members, nodes: Collection[Node], predicates: PredicateChain
) -> Slices[FinishedScan]:
    """Count how many members of a gang fit at once, with pauses."""
    rooms: dict[Node, Tally] = {}
    placed = 0
    for ask, count in members:
        left = count
        for part in _node_parts(nodes):
            home = home_of(ask)
            with predicates.expecting(ask, partial(iter, part)):
                for node in part:
                    if left and is_open(ask, node, predicates, home):
                        left -= take_replicas(rooms.setdefault(node, dict(node.available)), ask, left)
            yield
            if not left:
                break
        placed += count - left
    return FinishedScan(fitting=placed)


def _node_parts(nodes: Collection[Node]) -> Iterator[list[Node]]:
    everything = list(nodes)
    return (everything[start : start + SCANNED] for start in range(0, len(everything), SCANNED))
