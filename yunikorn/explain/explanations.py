"""Explanations of pending requests: everything that prevents a request from being placed now.

The checks are those of the scheduling cycle, in the same order. Several checks may fail at once; all are
reported, in the order of the cycle. Explanations are computed on demand and cost nothing otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import attrs

from yunikorn.config.durations import describe_duration
from yunikorn.explain.node_fit import SCAN, NodeScan
from yunikorn.explain.request_position import placed_position, request_positions
from yunikorn.explain.suggested_fixes import fix_of_position, suggested_fixes
from yunikorn.model.application import max_apps_message
from yunikorn.model.attempt_log import FailedAttempts
from yunikorn.model.gang import GangClass, GangGrowth
from yunikorn.model.queue import Queue
from yunikorn.quantities import in_words
from yunikorn.resources import INT64_MIN, sum_of
from yunikorn.scheduling.admission.questions import with_next_question
from yunikorn.scheduling.obstacles import bound_of, obstacles
from yunikorn.states import ACTIVE, STOPPED
from yunikorn.text import listed

if TYPE_CHECKING:
    from collections.abc import Hashable

    from yunikorn.explain.request_position import RequestPosition
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.application import Application
    from yunikorn.model.ask import Ask
    from yunikorn.model.failed_starts import FailedStarts
    from yunikorn.model.gang import AtomicGang
    from yunikorn.resources import Resource
    from yunikorn.scheduling.obstacles import Holder
    from yunikorn.scheduling.partition_scheduler import PartitionScheduler


CHECKS = (
    "stopped",
    "application limit",
    "admission",
    "order",
    "back-off",
    "preemption",
    "gang",
    "quota",
    "limit",
    "nodes",
    "predicates",
    "reservation",
    "start",
    "permit",
)
"""Checks that may stop a request; `quota` is the headroom of a queue, `limit` that of a user or group."""
AWAITS_VICTIMS = "waits for the release of its preemption victims"


@attrs.frozen
class Blocker:
    """An object that stops a request, or that a request waits for."""

    kind: str
    """`queue`, `node`, `application`, `user` or `group`."""
    name: str
    """Full path of a queue, else the name or id."""


@attrs.frozen
class Reason:
    """A condition that stops a request."""

    check: str
    """Name of the check, one of `CHECKS`."""
    summary: str
    """Summary without numbers, equal for all requests that the same condition stops; used for counting."""
    detail: str
    """Summary with the current numbers."""
    policy: str = ""
    """Name of the policy that sets the condition; empty for others."""
    blockers: tuple[Blocker, ...] = ()
    """Objects that the condition is about."""
    number: int = attrs.field(default=1, eq=False)
    """Number of times that the condition arose, for those under which a request is not tried."""
    since: int = attrs.field(default=0, eq=False)
    """The latest of these times (ns); 0 if it is unknown."""


@attrs.frozen
class Explanation:
    """Explanation of a pending request."""

    key: str
    """Allocation key of the ask."""
    waiting: int
    """Number of pending allocations."""
    resource: Resource
    """Resources of each allocation."""
    reasons: tuple[Reason, ...]
    """Conditions that stop the request, in the order of the cycle; empty if none does."""
    position: RequestPosition
    """Position of the request in the order."""
    suggested_fixes: tuple[str, ...]
    """The smallest set of changes that together would let the request run at its position."""


POSITION = Reason(
    "order",
    "not blocked: the request is tried at the next decision",
    "the request is not blocked and is tried at the next decision",
)


def why(at: PartitionScheduler, ask: Ask, scan: NodeScan = SCAN) -> list[Reason]:
    """Return the conditions that stop `ask` in partition `at`; empty if none does or `ask` is not pending.

    A request whose placement a permit policy holds counts as pending.
    """
    if ask.app.queue is None:
        return []
    if not ask.pending:
        return list(_of_holds(at, ask))
    return _or_position(
        at, [*of_application(at, ask.app), *_of_backoff(at, ask.app), *_of_request(at, ask, scan)]
    )


def explain(at: PartitionScheduler, app: Application, key: str = "") -> list[Explanation]:
    """Explain the pending requests of `app` in their order, or only the one with this allocation key.

    Requests whose placements permit policies hold are last.
    """
    known: dict[Hashable, tuple[tuple[Reason, ...], tuple[str, ...]]] = {}
    found = []
    for each, position in request_positions(app, at.partition.clock.now()).items():
        if key not in ("", each):
            continue
        ask = app.asks[each]
        # A reservation policy may answer differently for each request.
        likeness = (likeness_of(at, ask), at.cycle.reservations.restricted and ask.key)
        if likeness not in known:
            known[likeness] = answers(at, ask)
        found.append(
            Explanation(each, ask.pending, ask.resource, known[likeness][0], position, known[likeness][1])
        )
    for ask in app.asks.values() if app.unannounced else ():
        held = tuple(_of_holds(at, ask)) if key in ("", ask.key) and not ask.pending else ()
        if held:
            count = len(_held_placements(ask))
            found.append(Explanation(ask.key, count, ask.resource, held, placed_position(app), ()))
    return found


def answers(
    at: PartitionScheduler, ask: Ask, scan: NodeScan = SCAN
) -> tuple[tuple[Reason, ...], tuple[str, ...]]:
    """Return the conditions that stop a pending request, and the changes that together would help."""
    reasons = tuple(why(at, ask, scan))
    changes = tuple(suggested_fixes(at, ask, scan))
    return reasons, changes or tuple(fix_of_position(at) if reasons else ())


def failed_attempts(at: PartitionScheduler, ask: Ask) -> list[FailedAttempts]:
    """Return the failed attempts for a pending request, then the conditions under which it is not tried."""
    found, app = ask.failed_attempts, ask.app
    conditions = [*of_application(at, app), *_of_backoff(at, app)]
    gang = ask.whole_gang
    if ask.gang_blocked and (gang is None or not gang.is_unformed):
        conditions += _of_unrequested(ask, gang)
    if not found and not conditions:
        conditions = _or_position(at, conditions)
    found += [FailedAttempts(one.summary, one.number, one.since or ask.created) for one in conditions]
    return found


def _or_position(at: PartitionScheduler, found: list[Reason]) -> list[Reason]:
    position = _order_reason(at)
    return found or ([] if position is POSITION else [position])


def _order_reason(at: PartitionScheduler) -> Reason:
    """Return the reason why a request that no check stops still waits for its turn."""
    for gang in at.partition.gangs.formation.overdue:
        if gang.overdue:
            summary = "an overdue gang has precedence"
            blockers = (Blocker("application", gang.app.id),)
            return Reason("order", summary, f"{summary}: the gang of {gang.app.label}", blockers=blockers)
    return POSITION


def first_reasons(at: PartitionScheduler) -> Iterator[tuple[Ask, int, Reason]]:
    """Yield every pending request of a partition, its number of replicas, and what stops them first.

    Requests with the same answers to all checks are evaluated once. A request is included once more for each
    of its placements that a permit policy holds.
    """
    known: dict[Hashable, Reason] = {}
    for app in at.partition.applications.values():
        of_app = next(chain(of_application(at, app), _of_backoff(at, app)), None)
        running = app.allocations.values() if app.unannounced else ()
        held = {one.ask for one in running if one.hold is not None}
        for ask in app.asks.values():
            if ask in held:
                yield from ((ask, 1, reason) for reason in _of_holds(at, ask))
            if not ask.pending:
                continue
            reason = of_app
            if reason is None:
                key = likeness_of(at, ask)
                reason = known.get(key)
                if reason is None:
                    reason = known[key] = next(_of_request(at, ask, SCAN), None) or _order_reason(at)
            yield ask, ask.pending, reason


def likeness_of(at: PartitionScheduler, ask: Ask) -> Hashable:
    """Return a key that is equal for requests with the same answers to all checks."""
    app = ask.app
    if ask.gang_blocked:
        return (app.id, ask.whole_gang or ask.task_group)
    is_shared = at.policies.predicates.are_shared and ask.failed_starts is None
    alone = 0 if is_shared else ask.arrival
    return (ask.pending_class.bit, app.chain[0].path, ask.reserved, ask.eviction, alone)


# -- the application ------------------------------------------------------------------------------------


def of_application(at: PartitionScheduler, app: Application) -> Iterator[Reason]:
    """Yield the conditions that stop all requests of an application, except back-off."""
    partition = at.partition
    if partition.state != ACTIVE:
        state = partition.state.lower()
        summary = f"partition {at.name} is {state}"
        yield Reason("stopped", summary, summary, since=partition.state_since)
    for queue in app.chain:
        if queue.state == STOPPED:
            summary = f"queue {queue.path} is stopped"
            yield Reason("stopped", summary, summary, blockers=(_holder(queue),), since=queue.state_since)
    for holder in app.max_apps_blockers:
        summary, blockers = f"no more applications may run: {holder.label}", (_holder(holder),)
        number, since = holder.times_full, holder.full_since
        yield Reason("application limit", summary, max_apps_message(holder), "", blockers, number, since)
    if app.held is not None:
        summary, hold = f"held by admission policy {app.held.policy}", app.held
        detail = with_next_question(hold, partition.clock.now())
        yield Reason("admission", summary, detail, hold.policy, (), hold.number, hold.latest)
    if app.queue is not None and not app.admitted:
        summary = f"other applications of queue {app.queue.path} have precedence"
        yield Reason(
            "order",
            summary,
            f"{summary}: {app.label} is {app.state}, and the sort policy of the queue does not admit it yet",
            blockers=(_holder(app.queue),),
        )


def _holder(holder: Holder) -> Blocker:
    return Blocker("queue", holder.path) if isinstance(holder, Queue) else Blocker(holder.kind, holder.name)


def _node(node_id: str) -> tuple[Blocker, ...]:
    return (Blocker("node", node_id),)


def _of_backoff(at: PartitionScheduler, app: Application) -> Iterator[Reason]:
    if app.backoff_timer is not None:
        left = describe_duration(max(app.backoff_timer.due - at.partition.clock.now(), 0))
        summary = "the application is in back-off: its requests found no node"
        since = app.backoff_timer.due - app.chain[0].settings.backoff_delay
        yield Reason("back-off", summary, f"{summary}; next attempt in {left}", since=since)


# -- quotas and limits ----------------------------------------------------------------------------------


def _of_request(at: PartitionScheduler, ask: Ask, scan: NodeScan) -> Iterator[Reason]:
    if ask.gang_blocked:
        yield from _of_gang(at, ask, scan)
        return
    if ask.failed_starts is not None:
        yield from _of_failed_starts(at, ask.failed_starts)
    if ask.unpermitted:
        yield Reason("permit", "refused by a permit policy; tried again after a change", ask.unpermitted)
    yield from _with_preemption(at, ask, [*_of_quotas(at, ask), *_of_nodes(at, ask, scan)])


def _with_preemption(at: PartitionScheduler, ask: Ask, reasons: Sequence[Reason]) -> Iterator[Reason]:
    """Yield the reasons why a request has no room, and the state of preemption for it."""
    yield from _of_preemption(ask)
    yield from reasons
    if reasons and not ask.making_way:
        yield from _of_next_attempt(at, ask)


def _of_failed_starts(at: PartitionScheduler, failed: FailedStarts) -> Iterator[Reason]:
    now = at.partition.clock.now()
    avoided = [node_id for node_id, end in failed.avoided.items() if end > now]
    if failed.paused_until <= now and not avoided:
        return
    summary = "could not be started by the resource manager"
    text = failed.text
    if failed.paused_until > now:
        text += f"; tried again in {describe_duration(failed.paused_until - now)}"
    if avoided:
        left = describe_duration(max(failed.avoided.values()) - now)
        text += f"; avoided for up to {left}: {listed(avoided)}"
    yield Reason("start", summary, text, blockers=tuple(Blocker("node", each) for each in avoided))


def _of_gang(at: PartitionScheduler, ask: Ask, scan: NodeScan) -> Iterator[Reason]:
    gang = ask.whole_gang
    if gang is not None:
        at.partition.gangs.formation.choose_members(gang)
    yield from _of_unrequested(ask, gang)
    if gang is not None and gang.request is not None:
        request = gang.request
        reasons = [*_of_quotas(at, request), *_of_room(at, gang, request, scan)]
        yield from _with_preemption(at, request, reasons)
        if at.policies.backfills:
            yield from _of_reservation(at, ask)


def _of_unrequested(ask: Ask, gang: AtomicGang | None) -> Iterator[Reason]:
    """Yield what a request of a gang waits for while no request represents its members."""
    if gang is None:
        summary = "waits to replace a placeholder of its task group"
        yield Reason("gang", summary, f"{summary}: {ask.task_group}")
    elif gang.is_too_large:
        yield Reason("gang", "its gang has too many members", gang.too_large)
    elif gang.held:
        summary = f"waits for the permission to start the members of its {gang.noun}"
        yield Reason("gang", summary, summary)
    elif gang.request is None:
        summary, detail = f"its {gang.noun} is incomplete", f"must request {in_words(gang.total)} in total"
        if isinstance(gang, GangGrowth):
            detail = f"of a step are {gang.step}, and {gang.waiting} have been requested"
        yield Reason("gang", summary, f"{summary}: its members {detail}")


def _of_room(at: PartitionScheduler, gang: AtomicGang, request: Ask, scan: NodeScan) -> Iterator[Reason]:
    size = gang.size
    room = scan.room(gang.members, at.partition.nodes.values(), at.policies.predicates)
    ask_class, unschedulable = request.ask_class, request.unschedulable or request.ask_class.unschedulable
    if gang.refusals and room >= size and unschedulable and isinstance(ask_class, GangClass):
        summary = "a permit policy refused its gang"
        yield Reason("gang", summary, f"{summary}: {ask_class.why}")
    elif room < size or unschedulable:
        pieces = (
            f"room for {room} of {size} members" if room < size else "the free resources are too fragmented"
        )
        if gang.app.topology is not None and isinstance(ask_class, GangClass) and ask_class.why:
            others = at.planner.others(gang, gang.app.topology)
            pieces = f"{ask_class.why}; {others}" if others else ask_class.why
            if gang.relaxes_at is not None:
                left = max(0, gang.relaxes_at - at.partition.clock.now())
                pieces += f"; a wider level is tried in {describe_duration(left)}"
        kept = at.cycle.atomic.domains.of(gang)
        if kept is not None:
            pieces = f"{kept.text(at.partition.clock.now())}; {pieces}"
        summary = f"no room for its whole {gang.noun} at once"
        yield Reason("gang", summary, f"{summary} (requested {in_words(request.resource)}; {pieces})")


def _of_preemption(ask: Ask) -> Iterator[Reason]:
    going = ask.making_way
    if going:
        detail = f"{AWAITS_VICTIMS}: {len(going)} allocations, {in_words(sum_of(going))}"
        yield Reason("preemption", AWAITS_VICTIMS, detail)


def _of_next_attempt(at: PartitionScheduler, ask: Ask) -> Iterator[Reason]:
    """Yield the state of preemption for a request that found no room."""
    tried, refusal = at.preemption.next_attempt_at(ask), at.preemption.refusal(ask)
    if refusal:
        summary, tried = "its gang may not preempt", None
        yield Reason("preemption", summary, f"{summary}: {refusal}")
    if tried is None:
        return
    left = tried - at.partition.clock.now()
    if left > 0:
        summary = "may preempt only after the preemption delay"
        yield Reason("preemption", summary, f"{summary}: in {describe_duration(left)}")
    elif ask.barred_until != INT64_MIN:
        summary = "preemption found no suitable victims"
        yield Reason("preemption", summary, f"{summary}{_protections(at, ask)}")


def _protections(at: PartitionScheduler, ask: Ask) -> str:
    """Return the reasons for which the preemption policy protects allocations; empty if there are none."""
    found = at.preemption.protections(ask)
    if not found:
        return ""
    reasons = ", ".join(f"{reason} ({number})" for reason, number in found.items())
    allocations = f"{sum(found.values())} allocation{'' if sum(found.values()) == 1 else 's'}"
    return f"; policy {at.preemption.policy.name} protects {allocations}: {reasons}"


def _of_quotas(at: PartitionScheduler, ask: Ask) -> Iterator[Reason]:
    pairs = ask.ask_class.pairs
    requested = in_words(ask.resource)
    if isinstance(ask.gang, GangGrowth):
        requested += f" for a step of {ask.gang.size}"
    for obstacle in obstacles(ask):
        check, bound = "quota", bound_of(obstacle)
        too_large = any(amount > bound[name] for name, amount in pairs if name in bound)
        if not isinstance(obstacle, Queue):
            check, summary = "limit", f"over the limit of {obstacle.label}"
        elif obstacle.parent is None:
            summary = "larger than the whole cluster" if too_large else "the cluster is full"
        else:
            how = "larger than" if too_large else "over"
            summary = f"{how} the quota of {obstacle.label}"
        available = in_words(obstacle.headroom or {})
        detail = f"{summary} (requested {requested}, available {available})"
        policy = ""
        if isinstance(obstacle, Queue) and obstacle.policy_quota is not None:
            policy, now = obstacle.policy_quota.policy, at.partition.clock.now()
            detail = f"{detail}; {obstacle.policy_quota.describe(now, obstacle.configured_max)}"
        yield Reason(check, summary, detail, policy, (_holder(obstacle),))


# -- permits --------------------------------------------------------------------------------------------


def _held_placements(ask: Ask) -> list[Allocation]:
    if not ask.app.unannounced:
        return []
    return [one for one in ask.app.allocations.values() if one.ask is ask and one.hold is not None]


def _of_holds(at: PartitionScheduler, ask: Ask) -> Iterator[Reason]:
    """Yield the holds of the placements of a request by permit policies."""
    now = at.partition.clock.now()
    for one in _held_placements(ask):
        hold = one.hold
        assert hold is not None
        since = describe_duration(now - hold.since)
        detail = f"placed on node {one.node.id} {since} ago, {with_next_question(hold, now)}"
        summary = f"placed, and held by permit policy {hold.policy}"
        yield Reason("permit", summary, detail, hold.policy, _node(one.node.id))


# -- nodes ----------------------------------------------------------------------------------------------


def _of_nodes(at: PartitionScheduler, ask: Ask, scan: NodeScan) -> Iterator[Reason]:
    nodes, required = at.partition.nodes, ask.ask_class.required
    if required and required not in nodes:
        summary = "its required node does not exist"
        yield Reason("nodes", summary, f"{summary}: {required}", blockers=_node(required))
        return
    found = scan.summary(ask, [nodes[required]] if required else nodes.values(), at.policies.predicates)
    if found is None:
        return
    if required:
        summary = "its required node does not accept it"
        text = f"{summary}: {required}: {found.detail}"
        yield Reason(found.check, summary, text, blockers=_node(required))
    elif ask.reserved is not None:
        summary = "waits for room on its reserved node"
        text = f"{summary}: {ask.reserved.id}; {found.detail}"
        yield Reason("reservation", summary, text, blockers=_node(ask.reserved.id))
    else:
        is_too_large = found.too_small == found.nodes
        blockers = _node(found.reserved_node) if found.reserved_node and not is_too_large else ()
        yield Reason(found.check, found.summary, found.detail, blockers=blockers)
        yield from _of_reservation(at, ask)


def _of_reservation(at: PartitionScheduler, ask: Ask) -> Iterator[Reason]:
    """Yield why a request that found no room has no reservation, if the reservation policy is the reason."""
    refusal = at.cycle.reservations.explain(ask)
    if refusal is not None:
        yield Reason("reservation", refusal.summary, refusal.detail)
