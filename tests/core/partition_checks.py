"""Checks of a whole partition for random histories: accounting, bounds, placements and victims.

Every counter is recomputed from allocations and asks, and compared with the records of the `StrictRM`. Unlike
`accounting_checks.py`, no reference scheduler is needed, so gangs and preemption can take part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tests.core.accounting_checks import plain
from tests.core.integrated_service import IntegratingClock
from tests.core.machine import REQUIRED
from tests.core.predicate_tags import DISK, ZONE
from tests.core.strict import StrictRM
from yunikorn.accounting.partition import Partition
from yunikorn.interface.messages import Allocation as Placed
from yunikorn.model.allocation import Allocation
from yunikorn.model.application import Application
from yunikorn.model.ask import Ask
from yunikorn.model.queue import Queue
from yunikorn.resources import INT32_MIN, sum_of
from yunikorn.scheduling.partition_scheduler import PartitionScheduler
from yunikorn.states import STOPPED

Amounts = Mapping[str, int]
QueuePosition = dict[tuple[str, str], tuple[int, int]]
"""Used amount and bound by object and resource type."""


def total(amounts: Iterable[Amounts]) -> dict[str, int]:
    """Return the sum without zeros."""
    return plain(sum_of(amounts))


def check_partition_accounting(rm: StrictRM) -> None:
    """Assert that every counter of the partition equals the sum recomputed from its parts."""
    assert rm.failures() == []
    check_sums(rm)


def check_sums(rm: StrictRM) -> None:
    """Assert the same, although plugins may have failed."""
    partition = rm.at_work().partition
    _check_rm(rm, partition)
    _check_nodes(rm, partition)
    for app in partition.applications.values():
        _check_application(app)
        _check_asks(rm, app)
        if isinstance(rm.clock, IntegratingClock):
            rm.clock.check(app)
    _check_queues(partition)
    _check_trackers(partition)
    _check_pending_classes(partition)
    _check_evictions(partition)
    _check_reservations(partition)


def _check_rm(rm: StrictRM, partition: Partition) -> None:
    known = {
        uuid: (one.app.id, one.node.id, plain(one.resource))
        for uuid, one in partition.accounting.allocations.items()
        if one.hold is None
    }
    running = {
        uuid: (one.application_id, one.node_id, plain(one.resource_per_alloc))
        for uuid, one in rm.running.items()
    }
    assert known == running, "the RM believes something else to be running"
    evictions = {
        uuid: one.releasing
        for uuid, one in partition.accounting.allocations.items()
        if one.releasing is not None
    }
    assert evictions == {uuid: one.termination_type for uuid, one in rm.evicted.items()}
    assert set(partition.applications) == set(rm.apps)
    for app_id, app in partition.applications.items():
        assert app.state == rm.apps[app_id].state


def _check_nodes(rm: StrictRM, partition: Partition) -> None:
    assert set(partition.nodes) == set(rm.nodes)
    assert plain(partition.cluster.total) == total(node.capacity for node in partition.nodes.values())
    everywhere = set()
    for node in partition.nodes.values():
        held = total(one.resource for one in node.allocations.values())
        others = total([node.reported, *(one.resource for one in partition.foreign if one.node is node)])
        assert plain(node.allocated) == held, node
        assert plain(node.occupied) == others, node
        left = Counter(node.capacity)
        left.subtract(held)
        left.subtract(others)
        assert plain(node.available) == plain(left), node
        everywhere |= set(node.allocations)
        for one in node.allocations.values():
            assert one.node is node
            assert one.replaces is not None or partition.accounting.allocations[one.uuid] is one
    assert set(partition.accounting.allocations) <= everywhere


def _check_application(app: Application) -> None:
    assert plain(app.allocated) == total(one.resource for one in app.allocations.values()), app
    assert plain(app.pending) == _wanted([app]), app
    waiting = [ask for ask in app.asks.values() if ask.pending]
    gang = (
        [app.whole_gang.request] if app.whole_gang is not None and app.whole_gang.request is not None else []
    )
    assert {*app.requests} == {ask for ask in (*gang, *waiting) if not ask.unschedulable}, app
    assert app.requests.unschedulable == sum(ask.unschedulable for ask in (*gang, *waiting)), app
    assert app.priority == max((ask.priority for ask in waiting), default=INT32_MIN), app
    active = app.state in ("Starting", "Running")
    held = [one for one in app.allocations.values() if one.hold is not None]
    assert app.unannounced == len(held), app
    assert not held or app.state not in ("New", "Completing", "Failing"), app
    assert app.counted == (active or (app.state in ("Accepted", "Resuming") and bool(app.allocations))), app
    if app.state == "Failing":
        assert not waiting, f"{app} waits for {waiting}"
        assert app.allocations, f"{app} fails, and for nothing"
    states = [entry.state for entry in app.state_log]
    if app.is_idle and states[-2:] != ["Resuming", "Accepted"]:
        raise AssertionError(f"{app} has nothing and wants nothing")
    if app.gang is not None:
        placeholders = [one for one in app.allocations.values() if one.placeholder and one.hold is None]
        assert app.gang.placeholders == len(placeholders), app
        assert plain(app.gang.placed) == total(one.resource for one in placeholders), app


def _wanted(apps: Iterable[Application]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for app in apps:
        for ask in app.asks.values():
            for name, amount in ask.resource.items():
                counts[name] += amount * ask.pending
    return plain(counts)


def _check_asks(rm: StrictRM, app: Application) -> None:
    coming = [one.replacement for one in app.allocations.values() if one.replacement is not None]
    live = Counter(id(one.ask) for one in [*app.allocations.values(), *coming] if one.ask is not None)
    for key, ask in app.asks.items():
        assert ask.key == key
        assert ask.app is app
        assert ask.live == live[id(ask)], ask
        assert ask.live or ask.pending, f"{ask} has nothing more to say"
        promised = sum(1 for real in coming if real.ask is ask)
        held = sum(1 for one in app.allocations.values() if one.ask is ask and one.hold is not None)
        assert ask.pending + promised + held == rm.wanted[app.id, key], f"{ask} was lost, or gained"
    for (app_id, key), count in rm.wanted.items():
        is_lost = app_id == app.id and count and key not in app.asks and (app_id, key) not in rm.denied
        assert not is_lost, f"{key} of {app} was lost"


def _check_queues(partition: Partition) -> None:
    for queue in partition.queues:
        apps = [app for app in partition.applications.values() if queue in app.chain]
        assert plain(queue.allocated) == total(app.allocated for app in apps), queue
        assert plain(queue.pending) == _wanted(apps), queue
        assert queue.running == sum(app.counted for app in apps), queue
        assert queue.waiting == sum(any(ask.pending for ask in app.asks.values()) for app in apps), queue
        going = [one for app in apps for one in app.allocations.values() if one.eviction is not None]
        assert plain(queue.preempting) == total(one.resource for one in going), queue
        assert queue.full == (0 < queue.max_applications <= queue.running), queue
        if queue.is_leaf:
            assert set(queue.applications) == {app.id for app in apps}, queue


def _check_trackers(partition: Partition) -> None:
    found = set()
    for app in partition.applications.values():
        found |= set(app.tracked)
        assert {one.path for one in app.tracked} == {queue.path for queue in app.chain}
    assert found == set(partition.usage)
    for tracker in partition.usage:
        apps = [app for app in partition.applications.values() if tracker in app.tracked]
        assert tracker.members == len(apps)
        assert plain(tracker.usage) == total(app.allocated for app in apps), tracker.label
        # From the first allocation on. One without an allocation still counts if it has waited for more ever
        # since its latest one; what happened within a step is not known here, only that it had one.
        run = {app.id for app in apps if app.allocations}
        had_some = [app for app in apps if app.lifetime is not None]
        may_run = {app.id for app in had_some if not app.not_started and app.has_unplaced}
        assert run <= set(tracker.applications) <= run | may_run, tracker.label
        assert tracker.full == tracker.is_full, tracker.label


def _check_pending_classes(partition: Partition) -> None:
    waiting = [ask for app in partition.applications.values() for ask in app.asks.values() if ask.pending]
    waiting += [
        app.whole_gang.request
        for app in partition.applications.values()
        if app.whole_gang is not None and app.whole_gang.request is not None
    ]
    pending_classes, ask_classes = (
        Counter(ask.pending_class for ask in waiting),
        Counter(ask.ask_class for ask in waiting),
    )
    for ask_class in partition.ask_classes:
        assert ask_class.asks == ask_classes.pop(ask_class, 0), ask_class.key
        for pending_class in ask_class.pending_classes.values():
            assert pending_class.asks == pending_classes.pop(pending_class, 0), ask_class.key
    assert not ask_classes, "requests wait under shapes that were forgotten"
    assert not pending_classes, "requests wait under claims that were forgotten"


def _check_evictions(partition: Partition) -> None:
    for one in partition.accounting.allocations.values():
        if one.eviction is not None:
            assert one.uuid in one.eviction.outstanding, one
            for uuid in one.eviction.outstanding:
                assert uuid in partition.accounting.allocations, uuid


def _check_reservations(partition: Partition) -> None:
    held = {ask for node in partition.nodes.values() for ask in node.reservations}
    for ask in [ask for app in partition.applications.values() for ask in app.asks.values()]:
        assert (ask in held) == (ask.reserved is not None), ask
    for node in partition.nodes.values():
        for ask in node.reservations:
            assert ask.reserved is node, ask
            served = ask in partition.accounting.node_reservations.inheritable
            assert served or (ask.pending and ask.app.asks.get(ask.key) is ask), f"{node} is kept for {ask}"
        others = [ask for ask in node.reservations if not ask.ask_class.required]
        assert not others or len(node.reservations) == 1, node


# -- bounds -------------------------------------------------------------------------------------------


def usage_and_bounds(partition: Partition) -> QueuePosition:
    """Return usage and bound of every quota, limit, node and `maxapplications`."""
    found: QueuePosition = {}
    for queue in partition.queues:
        for name, most in (queue.max or {}).items():
            found[queue.label, name] = (queue.allocated.get(name, 0), most)
        if queue.parent is None:
            for name in queue.allocated:
                found.setdefault((queue.label, name), (queue.allocated[name], 2**62))
        if queue.max_applications:
            found[queue.label, "applications"] = (queue.running, queue.max_applications)
    for one in partition.usage:
        for name, most in (one.max_resources or {}).items():
            found[one.label, name] = (one.usage.get(name, 0), most)
    for node in partition.nodes.values():
        for name, amount in node.available.items():
            found[node.label, name] = (-amount, 0)
    return found


def check_bounds(before: QueuePosition, after: QueuePosition) -> None:
    """Assert that usage grew beyond no bound; usage above a bound before may remain, but not grow."""
    for key, (used, most) in after.items():
        had = before[key][0] if key in before else 0
        assert used <= most or used <= had, f"{key}: {used} of {most}, {had} before"


def may_go_on(partition: Partition) -> dict[str, bool]:
    """Return the started applications, each with True if it counts for its user and group."""
    counted = {app_id for one in partition.usage for app_id in one.applications}
    return {app.id: app.id in counted for app in partition.applications.values() if not app.not_started}


def check_starts(before: Mapping[str, bool], partition: Partition) -> None:
    """Assert that applications started only within `maxapplications` of their users and groups."""
    for one in partition.usage:
        held = list(one.applications)
        # Applications that became idle and ask again are exempt: the limit is checked only at the start.
        again = [app_id for app_id in held if before.get(app_id) is False]
        started = [app_id for app_id in held if app_id not in before]
        if started and one.max_applications:
            assert len(held) - len(again) <= one.max_applications, f"{started} started: {one.label}"


def closed_queues(partition: Partition) -> set[str]:
    """Return the paths of all queues that are stopped or below a stopped queue."""
    closed = {queue.path for queue in partition.queues if queue.state == STOPPED}
    return {queue.path for queue in partition.queues if closed & {each.path for each in queue.chain}}


def is_wanted(ask: Ask) -> bool:
    """Return True if a replica of an ask is pending, or placed without the knowledge of the RM."""
    return ask.pending > 0 or any(
        one.ask is ask and one.hold is not None for one in ask.app.allocations.values()
    )


def check_places(at: PartitionScheduler, placed: Iterable[Placed], closed: set[str], held: set[str]) -> None:
    """Assert that placements respect stopped queues, drained nodes, required nodes and predicates.

    Those of the uuids `held` were placed earlier, maybe when there were other predicates.
    """
    wanted = {"zone": ZONE, "disk": DISK}
    asked = [wanted[one.name] for one in at.config.predicates if one.name in wanted]
    for one in placed:
        node = at.partition.nodes[one.node_id]
        required = one.allocation_tags.get(REQUIRED, "")
        assert at.partition.state != STOPPED, one
        assert one.queue_name not in closed, one
        assert required in ("", node.id), one
        assert required or node.schedulable, f"{one} went to {node}"
        for tag in asked if one.uuid not in held else ():
            assert one.allocation_tags.get(tag, "") in ("", node.attributes.get(tag)), f"{one} on {node}"


def check_victims(victims: Sequence[Allocation], ask: Ask | None, promised: Iterable[Ask]) -> None:
    """Assert that these victims may be preempted, and that every queue keeps its guaranteed share.

    Queues of the request itself are exempt: a victim may be larger than the request
    (docs/decisions/archive/0049).
    """
    promises = list(promised)
    daemon = ask is not None and ask.ask_class.required
    is_dirty: dict[Queue, None] = {}
    for victim in victims:
        assert victim.releasing is None, victim
        assert victim.may_be_preempted, victim
        assert not (victim.tags or {}).get("yunikorn.apache.org/requiredNode"), victim
        is_dirty |= dict.fromkeys(victim.app.chain)
    for queue in ask.app.chain if ask is not None else ():
        is_dirty.pop(queue, None)
    for queue in is_dirty if not daemon else ():
        used = Counter(queue.allocated)
        used.subtract(queue.preempting)
        for one in promises:
            if queue in one.app.chain:
                used.update(one.resource)
        had = Counter(queue.allocated)
        had.subtract(queue.preempting)
        going = total(victim.resource for victim in victims if queue in victim.app.chain)
        for name, amount in going.items():
            if name in queue.guaranteed:
                least = min(queue.guaranteed[name], had[name])
                assert used[name] - amount >= least, f"{queue} goes below what {name} it is guaranteed"


def check_empty(partition: Partition) -> None:
    """Assert that the partition is empty and all its counters are zero."""
    assert partition.applications == {}
    assert partition.accounting.allocations == {}
    assert not partition.accounting.node_reservations.inheritable
    assert list(partition.usage) == []
    assert not any(ask_class.asks for ask_class in partition.ask_classes)
    for node in partition.nodes.values():
        assert not node.reservations, node
        assert not node.allocations, node
        assert not any(node.allocated.values()), node
    for queue in partition.queues:
        for tally in (queue.allocated, queue.pending, queue.preempting):
            assert not any(tally.values()), queue
        assert (queue.running, queue.waiting, queue.applications) == (0, 0, {}), queue
        assert queue.priority == INT32_MIN, queue
        assert {*queue.sorted_members} <= {*queue.dirty}, queue
    assert not [gang for gang in partition.gangs.formation.overdue if gang.overdue]
