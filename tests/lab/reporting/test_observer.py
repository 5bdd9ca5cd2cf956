"""The observer's counts close: after any history no task is held, missing or awaited in the end."""

from __future__ import annotations

import pytest

from yunikorn.clock import SECOND
from yunikorn.framework.registry import Registry
from yunikorn_lab.reporting.core_view import CoreView
from yunikorn_lab.reporting.observer import Observer
from yunikorn_lab.simulation.limit_waits import LimitWaits
from yunikorn_lab.simulation.run import simulate
from yunikorn_lab.simulation.scenario_reader import read_scenario

CONFIG = """
partitions:
  - name: default
    placementrules: [{name: provided, create: true}]
    queues:
      - name: root
        submitacl: "*"
        queues:
          - {name: batch}
          - {name: web, maxapplications: 2, resources: {guaranteed: {vcore: 3}, max: {vcore: 5}}}
          - {name: deep, queues: [{name: a}, {name: b}]}
"""
EVENTFUL = """
nodes: [{name: n, count: 3, resources: {vcore: 4}}]
applications:
  - {id: batch, queue: root.batch, tasks: [{count: 14, resources: {vcore: 1}, runtime: 100, timeout: 90}]}
  - {id: web, queue: root.web, submit: 10, tasks: [{count: 4, resources: {vcore: 1}, runtime: 20}]}
  - {id: soft, queue: root.web, submit: 45, gang: Soft,
     tasks: [{count: 2, resources: {vcore: 2}, runtime: 20}]}
  - {id: hard, queue: root.deep.a, submit: 46, gang: Hard, gangtimeout: 5,
     tasks: [{count: 40, resources: {vcore: 1}, runtime: 20}]}
  - {id: whole, queue: root.deep.b, submit: 50, gang: Atomic,
     tasks: [{count: 3, resources: {vcore: 2}, runtime: 9}]}
  - {id: late, queue: root.deep.b, submit: 55, timeout: 5,
     tasks: [{count: 3, resources: {vcore: 1}, runtime: 99}]}
  - {id: lost, queue: nowhere.at.all, submit: 60, tasks: [{resources: {vcore: 1}, runtime: 9}]}
events:
  - {at: 30, node: n-1, action: remove}
  - {at: 70, node: n-2, action: drain}
  - {at: 80, node: n-3, action: capacity, resources: {vcore: 8, memory: 5}}
  - {at: 90, node: n-2, action: resume}
  - {at: 95, node: n-1, action: add, resources: {vcore: 4}}
"""


@pytest.mark.parametrize("preempted", ["restart", "fail"])
@pytest.mark.parametrize("until", [None, 20, 47, 62, 101])
def test_observations_equal_those_of_the_resource_manager(
    registry: Registry, preempted: str, until: int | None
) -> None:
    view = CoreView()
    limits = LimitWaits(view.application)
    observer = Observer(view, limits)
    end = None if until is None else until * SECOND
    workload = read_scenario(EVENTFUL, "file", "eventful")
    report = simulate(
        CONFIG,
        workload,
        registry,
        recorder=observer,
        until=end,
        preempted=preempted,
        meet=view.meet,
        limits=limits,
    )
    observer.close(round(report.times.stopped * SECOND))
    partition = observer.cluster.partitions["default"]
    assert (partition.running, partition.waiting) == (report.tasks.running, report.tasks.waiting)
    top = [observation for _, _, observation in observer.queues if observation.parent is None]
    assert sum(observation.running for observation in top) == report.tasks.running
    free = {name: sum(room.free.get(name, 0) for room in partition.rooms) for name in partition.capacity}
    assert {name: free[name] + partition.allocated.get(name, 0) for name in free} == partition.capacity
    for observation in top:
        assert sum(below.running for _, _, below in observer.queues if below.parent is observation) in (
            0,
            observation.running,
        )
    if until is None:
        assert report.preemptions
        assert report.tasks.waiting == 0
        assert (partition.allocated, +partition.sizes) == ({}, {})
        for _, path, observation in observer.queues:
            assert (observation.allocated, observation.pending, observation.waiting, observation.running) == (
                {},
                {},
                0,
                0,
            ), path
    assert observer.everything.applications == report.applications.submitted
    assert observer.everything.finished == report.applications.finished
