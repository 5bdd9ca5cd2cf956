"""Capacity that stands idle while work waits, by cause, with amounts calculated by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from yunikorn_lab.reporting.full_report import FullReport
from yunikorn_lab.reporting.idle_capacity import CAUSES

Observe = Callable[..., FullReport]

NODES = "nodes: [{name: n, count: %d, resources: {vcore: %d}}]\napplications:\n"


def app(name: str, submit: int, count: int, vcore: str, runtime: int, more: str = "") -> str:
    """Return the line of an application in queue a."""
    task = f"{{count: {count}, resources: {{vcore: {vcore}}}, runtime: {runtime}}}"
    return f"  - {{id: {name}, queue: root.a, submit: {submit}, {more}tasks: [{task}]}}\n"


def idle(result: FullReport, name: str = "vcore") -> dict[str, float]:
    """Return the core-seconds that stood idle, by cause."""
    [partition] = result.history.partitions
    widths = [
        after - before for before, after in zip(result.history.edges, result.history.edges[1:], strict=False)
    ]
    capacity = sum(one * width for one, width in zip(partition.capacity[name], widths, strict=True))
    found = result.figures.idle["default"][name]
    assert list(found.causes) == [cause for cause in CAUSES if cause in found.causes]
    assert sum(found.causes.values()) == pytest.approx(found.of_capacity, abs=1e-5)
    for cause, share in found.causes.items():
        series = partition.idle[cause][name]
        over_time = sum(one * width for one, width in zip(series, widths, strict=True))
        assert over_time / capacity == pytest.approx(share, abs=1e-6)
    return {cause: round(share * capacity / 1000, 1) for cause, share in found.causes.items()}


def test_nothing_is_idle_without_waiting_work(observe: Observe) -> None:
    assert idle(observe(NODES % (2, 4) + app("x", 0, 2, "1", 100))) == {}


def test_no_more_than_the_waiting_work_wants_is_idle(observe: Observe) -> None:
    # From 0 to 100 there is a core free on each of four nodes, and one task of two cores waits.
    busy = app("x", 0, 4, "3", 100)
    assert idle(observe(NODES % (4, 4) + busy + app("y", 0, 1, "2", 10))) == {"fragmentation": 200}


def test_room_that_a_gang_and_what_waits_behind_it_cannot_use(observe: Observe) -> None:
    # 4 of 16 cores are free until 100. The gang wants 8, and is overdue from 30 on; the small one could run.
    long, gang = app("long", 0, 12, "1", 100), app("gang", 0, 8, "1", 10, "gang: Atomic, ")
    result = observe(NODES % (4, 4) + long + gang + app("small", 60, 2, "1", 10), patience="30s")
    assert idle(result) == {"held for a gang": 400}
    # Without a gang that holds it back the small one runs at once, and leaves 2 cores for 10 seconds.
    result = observe(NODES % (4, 4) + long + gang + app("small", 60, 2, "1", 10), patience="1h")
    assert idle(result) == {"held for a gang": 400 - 2 * 10}


def test_room_that_placeholders_hold(observe: Observe) -> None:
    # The gang of 4 holds 2 cores from 0 to 100, while it waits for the other two.
    scenario = (
        NODES % (2, 2) + app("x", 0, 2, "1", 100) + app("g", 0, 4, "1", 10, "gang: Soft, gangtimeout: 1h, ")
    )
    assert idle(observe(scenario)) == {"held by placeholders": 200}


def test_room_that_quotas_limits_and_numbers_of_applications_close(observe: Observe) -> None:
    scenario = NODES % (1, 8) + app("x", 0, 1, "2", 100) + app("y", 0, 1, "1", 10)
    quota = "          - {name: a, resources: {max: {vcore: 2}}}"
    limit = '          - {name: a, limits: [{limit: all, users: ["*"], maxresources: {vcore: 2}}]}'
    most = "          - {name: a, maxapplications: 1}"
    assert idle(observe(scenario, quota)) == {"quota": 100}
    assert idle(observe(scenario, limit)) == {"limit": 100}
    assert idle(observe(scenario, most)) == {"max applications": 100}


def test_room_is_attributed_first_to_what_keeps_unblocked_requests_from_it(observe: Observe) -> None:
    # Two nodes have one free core each until 100: too little for z (2 cores), and y is over the quota.
    queues = "          - {name: a}\n          - {name: b, resources: {max: {vcore: 1}}}"
    over = app("y", 0, 2, "1", 100).replace("root.a", "root.b")
    scenario = NODES % (2, 4) + app("x", 0, 1, "3", 100) + app("v", 0, 1, "2", 100) + over
    assert idle(observe(scenario + app("z", 0, 1, "2", 10), queues)) == {"fragmentation": 200}
    assert idle(observe(scenario, queues)) == {"quota": 100}


def test_room_of_a_reservation_is_lost_to_requests_of_other_sizes(observe: Observe) -> None:
    # Until 100 a core is free on each node, too little for y, which reserves the first node after 2 s.
    # At 10 a task of z fills the second node. The other one could use the room that is reserved for y.
    scenario = NODES % (2, 4) + app("x", 0, 2, "3", 100) + app("y", 0, 1, "2", 10)
    found = idle(observe(scenario + app("z", 10, 2, "1", 1000), until=100))
    assert found == {"reserved": 90, "fragmentation": 20}


def test_room_on_drained_nodes_comes_after_that_on_others(observe: Observe) -> None:
    drain = "events: [{at: 0, node: n-2, action: drain}, {at: 50, node: n-2, action: resume}]\n"
    scenario = NODES % (2, 4) + app("x", 1, 1, "3", 98) + app("y", 1, 1, "3", 10)
    assert idle(observe(drain + scenario)) == {"fragmentation": 49, "drained": 2 * 49}


def test_requests_that_fit_no_empty_node_are_apart(observe: Observe) -> None:
    scenario = NODES % (2, 4) + app("x", 0, 1, "1", 100) + app("y", 0, 1, "6", 10)
    assert idle(observe(scenario, until=100)) == {"too large": 600}
    bigger = "events: [{at: 50, node: n-1, action: capacity, resources: {vcore: 6}}]\n"
    # From 50 on it fits on the first node, once the task there has ended.
    assert idle(observe(bigger + scenario, until=100)) == {"fragmentation": 300, "too large": 300}


def test_overcommitted_nodes_take_no_room_from_others(observe: Observe) -> None:
    shrink = "events: [{at: 10, node: n-1, action: capacity, resources: {vcore: 1}}]\n"
    scenario = NODES % (2, 4) + app("x", 0, 2, "3", 100) + app("y", 10, 1, "2", 10)
    assert idle(observe(shrink + scenario)) == {"fragmentation": 90}
