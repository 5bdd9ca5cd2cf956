"""Simulations with the real core: partitions, policies, misbehaving plugins."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.kit import plugin_with
from yunikorn.api import (
    AdmissionPolicy,
    Allocation,
    Application,
    AppSortPolicy,
    PermitPolicy,
    Plugin,
    Wait,
    hookimpl,
)
from yunikorn.clock import SECOND
from yunikorn.errors import ConfigError
from yunikorn.framework.registry import Registry
from yunikorn.quantities import in_words
from yunikorn_lab.simulation.engine import Progress
from yunikorn_lab.simulation.recorder import Recorder
from yunikorn_lab.simulation.run import simulate
from yunikorn_lab.simulation.scenario_reader import read_scenario

TWO_PARTITIONS = """
partitions:
  - name: default
    queues: [{name: root, submitacl: "*", queues: [{name: a}]}]
  - name: gpu
    queues: [{name: root, submitacl: "*", queues: [{name: a, resources: {max: {vcore: 1}}}]}]
"""

ONE_QUEUE = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues: [{name: a, properties: {application.sort.policy: %s}}]
"""


class Starts(Recorder):
    """Records start time (s) and application of all placements."""

    def __init__(self) -> None:
        self.lines: list[tuple[float, str]] = []

    def allocated(self, moment: int, allocation: Any) -> None:
        self.lines.append((moment / SECOND, allocation.application_id))


def test_partitions_do_not_mix(registry: Registry) -> None:
    workload = read_scenario(
        """
        nodes:
          - {name: plain, resources: {vcore: 2}}
          - {name: fast, resources: {vcore: 2, gpu: 2}, partition: gpu}
          - {name: lost, resources: {vcore: 2}, partition: nowhere}
        applications:
          - {id: one, queue: root.a, tasks: [{count: 4, resources: {vcore: 1}, runtime: 10}]}
          - {id: two, queue: root.a, partition: gpu, tasks: [{count: 2, resources: {vcore: 1}, runtime: 10}]}
          - {id: three, queue: root.a, partition: nowhere, tasks: [{resources: {vcore: 1}, runtime: 10}]}
        """,
        "file",
        "name",
    )
    report = simulate(TWO_PARTITIONS, workload, registry)
    assert [(queue.partition, queue.queue, queue.ended) for queue in report.queues] == [
        ("default", "root.a", 4),
        ("gpu", "root.a", 2),
    ]
    assert report.utilisation == {"default": {"vcore": 1.0}, "gpu": {"gpu": 0.0, "vcore": 0.5}}
    assert (report.applications.finished, report.applications.rejected) == (2, 1)
    assert [trouble.partition(":")[0] for trouble in report.node_troubles] == ["node lost was rejected"]


def test_a_policy_named_in_the_configuration_decides() -> None:
    class Backwards(AppSortPolicy):
        name = "backwards"

        def key(self, app: Application) -> int:
            return -app.submitted

    class Plugin:
        @hookimpl
        def yunikorn_app_sort_policies(self) -> list[type[AppSortPolicy]]:
            return [Backwards]

    registry = Registry.load(third_party=False)
    assert registry.register(Plugin(), "backwards")
    workload = read_scenario(
        """
        nodes: [{name: n, resources: {vcore: 1}}]
        applications:
          - {id: x, count: 4, every: 1, queue: root.a, tasks: [{resources: {vcore: 1}, runtime: 10}]}
        """,
        "file",
        "name",
    )
    orders = {}
    for policy in ("fifo", "backwards"):
        starts = Starts()
        simulate(ONE_QUEUE % policy, workload, registry, recorder=starts)
        orders[policy] = [name for _, name in starts.lines]
    assert orders == {"fifo": ["x-1", "x-2", "x-3", "x-4"], "backwards": ["x-1", "x-4", "x-3", "x-2"]}


def test_a_policy_that_raises_is_named_in_the_report(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(AppSortPolicy):
        name = "broken"

        def key(self, app: Application) -> int:
            raise ZeroDivisionError("by accident")

    class Plugin:
        @hookimpl
        def yunikorn_app_sort_policies(self) -> list[type[AppSortPolicy]]:
            return [Broken]

    registry = Registry.load(third_party=False)
    assert registry.register(Plugin(), "acme-sorting", "acme", "1.2")
    workload = read_scenario(
        """
        nodes: [{name: n, resources: {vcore: 1}}]
        applications:
          - {id: x, count: 3, queue: root.a, tasks: [{resources: {vcore: 1}, runtime: 10}]}
        """,
        "file",
        "name",
    )
    report = simulate(ONE_QUEUE % "broken", workload, registry)
    assert report.applications.finished == 3
    (failure,) = report.plugin_faults
    assert "acme-sorting (acme 1.2)" in failure
    assert "ZeroDivisionError: by accident" in failure
    assert "by accident" in caplog.text


def test_a_bad_configuration_is_refused_before_anything_is_written(registry: Registry) -> None:
    class Never(Recorder):
        def begin(self) -> None:
            raise AssertionError("began")

    workload = read_scenario(
        "{nodes: [{name: n, resources: {vcore: 1}}], "
        "applications: [{id: x, tasks: [{resources: {vcore: 1}, runtime: 1}]}]}",
        "file",
        "name",
    )
    with pytest.raises(ConfigError, match="application sort policy"):
        simulate(ONE_QUEUE % "unheard-of", workload, registry, recorder=Never())


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        ({"vcore": 2000, "memory": 4 * 2**30}, "memory 4Gi, vcore 2"),
        ({"vcore": 1500}, "vcore 1500m"),
        ({"memory": 3 * 2**20, "gpu": 2}, "gpu 2, memory 3Mi"),
        ({"memory": 1025}, "memory 1025"),
        ({"memory": 0}, "memory 0"),
    ],
)
def test_amounts_are_written_as_in_a_configuration(amount: dict[str, int], words: str) -> None:
    assert in_words(amount) == words


def test_the_report_says_why_tasks_still_wait(registry: Registry) -> None:
    workload = read_scenario(
        """
        nodes: [{name: n1, resources: {vcore: 4}}]
        applications:
          - {id: first, queue: root.a, tasks: [{count: 6, resources: {vcore: 1}, runtime: 100}]}
          - {id: huge, queue: root.a, tasks: [{count: 2, resources: {vcore: 5}, runtime: 100}]}
        """,
        "file",
        "name",
    )
    report = simulate(ONE_QUEUE % "fifo", workload, registry, until=50 * SECOND)
    assert report.tasks.waiting == 4
    assert [(one.reason, one.count, one.example) for one in report.waiting] == [
        ("the cluster is full", 2, "first"),
        ("larger than the whole cluster", 2, "huge"),
    ]
    report = simulate(ONE_QUEUE % "fifo", workload, registry)
    assert [(one.reason, one.count, one.example) for one in report.waiting] == [
        ("larger than the whole cluster", 2, "huge")
    ]


def test_placements_that_are_only_held_do_not_keep_a_simulation_going(registry: Registry) -> None:
    """A group that never fits is placed, held and taken back every five minutes."""
    config = TWO_PARTITIONS.replace("  - name: default\n", "  - name: default\n    permits: [together]\n", 1)
    workload = read_scenario(
        """
        nodes: [{name: n, resources: {vcore: 4}}]
        applications:
          - id: group
            queue: root.a
            tasks:
              - count: 9
                tags: {together: all, together-count: "9"}
                resources: {vcore: 1}
                runtime: 10
        """,
        "file",
        "name",
    )
    week = 7 * 24 * 3600 * SECOND
    report = simulate(config, workload, registry, watch=lambda progress: progress.moment < week)
    assert report.outcome == "complete"
    assert report.tasks.waiting == 9
    assert report.allocations == 0


class NotYet(AdmissionPolicy):
    """Makes every application wait for as short as possible."""

    name = "not-yet"

    def admit(self, app: Application) -> Wait:
        return Wait(0, "not yet")


class Releases(PermitPolicy):
    """Holds every placement, and is asked again as often as possible."""

    name = "releases"

    def permit(self, allocation: Allocation) -> Wait:
        return Wait(0, "not yet")


@pytest.mark.parametrize(
    ("kind", "key", "policy", "reason"),
    [
        ("admission_policies", "admission", NotYet, "held by admission policy not-yet"),
        ("permit_policies", "permits", Releases, "placed, and held by permit policy releases"),
    ],
)
def test_policy_that_always_waits_ends_the_simulation_and_is_named(
    kind: str, key: str, policy: type[Plugin], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("yunikorn_lab.simulation.engine.MOST_IDLE", 500)
    config = TWO_PARTITIONS.replace(
        "  - name: default\n", f"  - name: default\n    {key}: [{policy.name}]\n", 1
    )
    workload = read_scenario(
        """
        nodes: [{name: n, resources: {vcore: 4}}]
        applications:
          - {id: one, queue: root.a, tasks: [{count: 3, resources: {vcore: 1}, runtime: 10}]}
          - {id: two, queue: root.a, submit: 1h, tasks: [{count: 1, resources: {vcore: 1}, runtime: 10}]}
        """,
        "file",
        "name",
    )
    registry = Registry.load(third_party=False)
    assert registry.register(plugin_with(**{kind: [policy]}), "mine")
    seconds: list[float] = []

    def watch(progress: Progress) -> bool:
        seconds.append(progress.moment / SECOND)
        return True

    report = simulate(config, workload, registry, watch=watch)
    assert report.outcome == "complete"
    assert 3600 + 49 < seconds[-1] < 3600 + 900, "soon after the last event, and not a day later"
    assert {(one.reason, one.count) for one in report.waiting} == {(reason, 4)}
