"""Suggested fixes: the smallest changes that would let a pending request run at its position.

There is one entry per failed check. All of them together let the request run, after the requests before it
have been served or passed over. Amounts are the current shortfalls.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from yunikorn.config.durations import describe_duration
from yunikorn.containment import contained, describe_error, safe_text
from yunikorn.explain.node_fit import SCAN, NodeFit, NodeScan
from yunikorn.model.gang import GangGrowth
from yunikorn.model.queue import Queue
from yunikorn.quantities import in_words
from yunikorn.resources import Tally, grow
from yunikorn.scheduling.obstacles import excess, obstacles, usage_of
from yunikorn.states import ACTIVE, STOPPED
from yunikorn.text import number_of

if TYPE_CHECKING:
    from yunikorn.api import Predicate
    from yunikorn.model.application import Application
    from yunikorn.model.ask import Ask
    from yunikorn.model.gang import AtomicGang
    from yunikorn.scheduling.partition_scheduler import PartitionScheduler


GANGS_SHOWN = 3
"""Maximum number of overdue gangs that are named, those that have been overdue for the longest time."""


def suggested_fixes(at: PartitionScheduler, ask: Ask, scan: NodeScan = SCAN) -> Iterator[str]:
    """Yield the fixes for `ask` in the order of the checks; nothing if no check fails."""
    app = ask.app
    yield from _of_switches(at, app)
    yield from _of_running(app)
    yield from _of_order(at, app)
    going = ask.making_way
    if ask.gang_blocked:
        yield from _of_gang(at, ask, scan)
    elif going:
        yield f"the resource manager must confirm the release of {number_of(len(going), 'allocation')}"
    else:
        yield from _of_bounds(ask)
        yield from _of_nodes(at, ask, scan)


def fix_of_position(at: PartitionScheduler) -> Iterator[str]:
    """Yield the fixes for a request that only the back-pressure of overdue gangs blocks."""
    overdue = [gang for gang in at.partition.gangs.formation.overdue if gang.overdue]
    for gang in overdue[:GANGS_SHOWN]:
        yield f"the gang of {gang.app.label} must be allocated or removed"
    if len(overdue) > GANGS_SHOWN:
        more = number_of(len(overdue) - GANGS_SHOWN, "more overdue gang")
        yield f"those of {more} that precede the request must be, too"


# -- the application ------------------------------------------------------------------------------------


def _of_switches(at: PartitionScheduler, app: Application) -> Iterator[str]:
    if at.partition.state != ACTIVE:
        yield f"start partition {at.name}"
    for queue in app.chain:
        if queue.state == STOPPED and queue.settings.stopped:
            yield f"remove queue.state: stopped from the configuration of queue {queue.path}"
        elif queue.state == STOPPED:
            yield f"start queue {queue.path}"


def _of_running(app: Application) -> Iterator[str]:
    for holder in app.max_apps_blockers:
        over = holder.count - holder.max_applications + 1
        yield f"{over} of the {number_of(holder.count, 'running application')} of {holder.label} must end"


def _of_order(at: PartitionScheduler, app: Application) -> Iterator[str]:
    if app.held is not None:
        yield f"admission policy {app.held.policy} must admit the application"
    if app.queue is not None and not app.admitted:
        yield f"an application with precedence in queue {app.queue.path} must start running or end"
    if app.backoff_timer is not None:
        left = describe_duration(max(app.backoff_timer.due - at.partition.clock.now(), 0))
        yield f"wait {left} until the back-off of the application ends"


# -- gangs ----------------------------------------------------------------------------------------------


def _of_gang(at: PartitionScheduler, ask: Ask, scan: NodeScan) -> Iterator[str]:
    gang = ask.whole_gang
    if gang is not None:
        at.partition.gangs.formation.choose_members(gang)
    if gang is None:
        yield f"a placeholder of task group {ask.task_group} must be allocated, to be replaced"
    elif gang.is_too_large:
        yield f"reduce the number of gang members (now {gang.size}): request fewer, larger members"
    elif gang.request is None and isinstance(gang, GangGrowth):
        more = number_of(gang.step - gang.waiting, "further request")
        yield f"submit {more} of task group {gang.task_group}"
    elif gang.request is None:
        yield f"submit further requests of the gang, for {in_words(_missing_of(gang))} in total"
    else:
        yield from _of_bounds(gang.request)
        yield from _of_members(at, gang, scan)


def _missing_of(gang: AtomicGang) -> Tally:
    missing: Tally = dict(gang.total)
    for ask in gang.app.asks.values():
        if ask.gang_blocked:
            grow(missing, ask.resource, -ask.pending)
    return {name: amount for name, amount in missing.items() if amount > 0}


def _of_members(at: PartitionScheduler, gang: AtomicGang, scan: NodeScan) -> Iterator[str]:
    size = gang.size
    lacking = size - scan.room(gang.members, at.partition.nodes.values(), at.policies.predicates)
    if lacking:
        each = {in_words(ask.resource) for ask, _ in gang.members}
        amount = f" ({each.pop()} each)" if len(each) == 1 else ""
        yield f"free room on nodes for {lacking} more of its {size} members{amount}"
    elif gang.request is not None and gang.request.ask_class.unschedulable and not gang.refusals:
        if gang.app.topology is not None:
            levels = gang.app.topology.levels
            yield f"free room together, by {' or '.join(reversed(levels))}, or let the gang use a wider level"
        else:
            yield (
                "reduce fragmentation of the free resources: "
                f"its {size} members must fit on the nodes at once"
            )


# -- quotas and limits ----------------------------------------------------------------------------------


def _of_bounds(ask: Ask) -> Iterator[str]:
    """Suggest to raise the bounds that `ask` exceeds, or to end work below them where that is sufficient."""
    for obstacle in obstacles(ask):
        if not isinstance(obstacle, Queue):
            what, where = f"the limit of {obstacle.label}", f"of {obstacle.kind} {obstacle.name} there"
        elif obstacle.parent is not None:
            what, where = f"the max of {obstacle.label}", "there"
        else:
            continue
        over, used = excess(obstacle, ask.ask_class.pairs), usage_of(obstacle)
        can_end = all(used.get(name, 0) >= amount for name, amount in over.items())
        release = f", or release the same amount {where}" if can_end else ""
        if isinstance(obstacle, Queue) and obstacle.policy_quota is not None:
            policy = obstacle.policy_quota.policy
            yield f"quota policy {policy} must allow {in_words(over)} more in {obstacle.label}{release}"
            continue
        yield f"raise {what} by {in_words(over)}{release}"


# -- nodes ----------------------------------------------------------------------------------------------


def _of_nodes(at: PartitionScheduler, ask: Ask, scan: NodeScan) -> Iterator[str]:
    nodes, required = at.partition.nodes, ask.ask_class.required
    if required and required not in nodes:
        yield f"add node {required}"
        return
    best = scan.closest(ask, [nodes[required]] if required else nodes.values(), at.policies.predicates)
    if best is None or best.distance[0]:
        yield _another_node(ask, best)
        return
    if not best.takes_it:
        yield from _at_node(best, "" if required else " (the nearest)")
    yield from _of_cluster(at.partition.queues.root, ask, best)


def _at_node(fit: NodeFit, remark: str) -> Iterator[str]:
    node = f"node {fit.node.id}{remark}"
    if fit.drained:
        if fit.node.drained_by_operator:
            yield f"undrain {node}: it is drained by an operator"
        if fit.node.drained_by_rm:
            yield f"make {node} schedulable again: it is drained"
    if fit.reserved:
        other = next(iter(fit.node.reservations))
        yield f"{other.label}, which {node} is reserved for, must be allocated or released"
    if fit.lacking:
        yield f"free {in_words(fit.lacking)} on {node}"


def _of_cluster(root: Queue, ask: Ask, fit: NodeFit) -> Iterator[str]:
    """Suggest room to free elsewhere in the cluster, for example if another node is overcommitted."""
    over = excess(root, ask.ask_class.pairs)
    rest = {name: amount - fit.lacking.get(name, 0) for name, amount in over.items()}
    rest = {name: amount for name, amount in rest.items() if amount > 0}
    if rest:
        yield f"free {in_words(rest)} more anywhere in the cluster"


def _another_node(ask: Ask, best: NodeFit | None) -> str:
    """Suggest a new or larger node, because no existing node would accept the request even if empty."""
    amount, required = in_words(ask.resource), ask.ask_class.required
    refusal = best.refusal if best is not None else None
    if best is not None and refusal is None:
        if required:
            return f"enlarge node {required} by {in_words(best.missing)}"
        short = in_words(best.missing)
        return f"a node with room for {amount}: the nearest, {best.node.id}, is too small by {short}"
    if refusal is None:
        return f"a node with room for {amount}"
    wish, failed = _wish(refusal[0], ask)
    if required:
        return (
            f"give node {required} {wish}"
            if wish
            else f"predicate {refusal[0].name} must allow node {required}{failed}"
        )
    if wish:
        return f"a node with {wish} and room for {amount}"
    return f"a node with room for {amount} that predicate {refusal[0].name} allows{failed}"


def _wish(predicate: Predicate, ask: Ask) -> tuple[str, str]:
    """Return what a predicate wants, and a remark on its failure: explanations report no failures."""
    try:
        return safe_text(predicate.wanted(ask) or ""), ""
    except contained() as error:
        return "", f" (its wanted() failed: {describe_error(error)})"
