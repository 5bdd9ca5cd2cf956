"""Checks of the accounting of a scheduler against the slow reference, which recomputes every sum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from tests.core.kit import RM
from tests.core.reference import App, Reference, total_of
from yunikorn.accounting.partition import Partition


def plain(amount: Mapping[str, int]) -> dict[str, int]:
    """Return the amounts without zeros."""
    return {name: value for name, value in amount.items() if value}


def check_accounting(rm: RM, reference: Reference) -> None:
    """Assert that every counter of the partition equals the sum that the reference computes."""
    partition = rm.at_work().partition
    _check_allocations(rm, partition, reference)
    _check_nodes(partition, reference)
    _check_applications(partition, reference)
    _check_queues(partition, reference)
    _check_ask_classes(partition)
    _check_usage(partition, reference)


def _check_allocations(rm: RM, partition: Partition, reference: Reference) -> None:
    wanted = {
        one.uuid: (app.id, one.node.id, plain(one.resource))
        for app in reference.apps.values()
        for one in app.running
    }
    found = {
        uuid: (one.app.id, one.node.id, plain(one.resource))
        for uuid, one in partition.accounting.allocations.items()
    }
    assert found == wanted
    assert set(rm.running) == set(wanted), "the RM believes something else to be running"


def _check_nodes(partition: Partition, reference: Reference) -> None:
    assert set(partition.nodes) == set(reference.nodes)
    assert partition.cluster.total == plain(reference.cluster)
    for node_id, node in partition.nodes.items():
        wanted = reference.nodes[node_id]
        assert set(node.allocations) == {one.uuid for one in wanted.running}
        names = {*node.available, *wanted.capacity, *wanted.occupied}
        assert plain(node.available) == plain({name: wanted.available(name) for name in names}), node
        assert node.schedulable == wanted.schedulable


def _check_applications(partition: Partition, reference: Reference) -> None:
    assert set(partition.applications) == set(reference.apps)
    for app_id, app in partition.applications.items():
        wanted = reference.apps[app_id]
        assert app.state == wanted.state, app
        assert plain(app.allocated) == plain(wanted.allocated()), app
        asks = {ask.key: ask.pending for ask in app.asks.values()}
        assert asks == {ask.key: ask.pending for ask in wanted.asks.values()}, app
        assert app.priority == wanted.priority, app
        assert app.submitted == wanted.submitted, app
        assert app.requests.unschedulable == sum(ask.unschedulable for ask in app.asks.values())
        waiting = {ask.key for ask in app.asks.values() if ask.pending and not ask.unschedulable}
        assert {ask.key for ask in app.requests} == waiting


def _check_queues(partition: Partition, reference: Reference) -> None:
    assert {queue.path for queue in partition.queues} == {queue.path for queue in reference.root.walk()}
    for queue in partition.queues:
        wanted = reference.queue(queue.path)
        assert wanted is not None, queue
        assert plain(queue.allocated) == plain(wanted.allocated()), queue
        assert plain(queue.pending) == plain(wanted.pending()), queue
        assert queue.waiting == sum(bool(app.waiting) for app in wanted.all_apps()), queue
        running = [app for app in wanted.all_apps() if app.state in ("Starting", "Running")]
        assert queue.running == len(running), queue
        assert queue.priority == wanted.published(), queue
        assert set(queue.applications) == set(wanted.apps), queue
        assert {**queue.fair_max} == {**reference._fair_max(wanted)}, queue


def _check_ask_classes(partition: Partition) -> None:
    waiting = [
        ask.ask_class for app in partition.applications.values() for ask in app.asks.values() if ask.pending
    ]
    counted = Counter(id(ask_class) for ask_class in waiting)
    for ask_class in partition.ask_classes:
        assert ask_class.asks == counted.pop(id(ask_class), 0), ask_class.key
    assert not counted, "requests wait under shapes that were forgotten"
    bits = [ask_class.bit for ask_class in partition.ask_classes]
    assert len(set(bits)) == len(bits), "two shapes share a bit"


def _check_usage(partition: Partition, reference: Reference) -> None:
    """Assert that usage per user, group and queue is the sum over their allocations."""
    wanted: dict[tuple[str, str, str], list[App]] = {}
    for app in reference.apps.values():
        for queue in app.queue.up():
            wanted.setdefault(("user", app.user, queue.path), []).append(app)
            if app.group:
                wanted.setdefault(("group", app.group, queue.path), []).append(app)
    found = {(one.kind, one.name, one.path): one for one in partition.usage}
    assert set(found) == set(wanted)
    for key, apps in wanted.items():
        tracker = found[key]
        assert tracker.members == len(apps), key
        assert plain(tracker.usage) == plain(total_of(app.allocated() for app in apps)), key
        run = {app.id for app in apps if app.counts_for_limits}
        assert set(tracker.applications) == run, key
        assert tracker.full == tracker.is_full, key


def check_reservations(rm: RM) -> None:
    """Assert that asks and nodes agree on all reservations, and that no reservation is left over."""
    partition = rm.at_work().partition
    held = {ask for node in partition.nodes.values() for ask in node.reservations}
    for app in partition.applications.values():
        for ask in app.asks.values():
            assert (ask in held) == (ask.reserved is not None), ask
    for node in partition.nodes.values():
        for ask in node.reservations:
            assert ask.reserved is node
            assert ask.pending or ask in partition.accounting.node_reservations.inheritable, ask
        others = [ask for ask in node.reservations if not ask.ask_class.required]
        assert len(others) <= 1, node
        assert not others or len(node.reservations) == 1, node
