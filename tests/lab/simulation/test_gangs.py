"""Gangs in simulations: with placeholders, Atomic, and jobs of a trace as rigid gangs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.example_counts import examples
from yunikorn.clock import SECOND
from yunikorn.errors import UsageError
from yunikorn.framework.registry import Registry
from yunikorn_commands.input_source import InputError
from yunikorn_lab.simulation.reader import read_workload
from yunikorn_lab.simulation.recorder import Recorder
from yunikorn_lab.simulation.report import Report
from yunikorn_lab.simulation.run import simulate
from yunikorn_lab.simulation.scenario_reader import read_scenario
from yunikorn_lab.simulation.swf import SwfOptions, read_swf
from yunikorn_lab.simulation.workload import Workload, WorkloadNode

CONFIG = """
partitions:
  - name: default
    queues: [{name: root, submitacl: "*", queues: [{name: a}]}]
"""
PAGE = Path(__file__).parents[3] / "docs" / "comparing.md"


def three_teams(policy: str) -> str:
    """Return the configuration used for the trace in docs/comparing.md, with this policy."""
    found = re.search(r"^`teams.yaml`\n\n```yaml\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    assert found is not None
    assert found[1].count("policy: fifo\n") == 1
    return found[1].replace("policy: fifo\n", f"policy: {policy}\n")


class StartsAndEnds(Recorder):
    """Records when tasks started, in seconds, and how placeholders ended."""

    def __init__(self) -> None:
        self.starts: dict[str, list[float]] = {}
        self.places: list[tuple[float, str]] = []

    def allocated(self, moment: int, allocation: object) -> None:
        if not allocation.placeholder:  # type: ignore[attr-defined]
            app_id = allocation.application_id  # type: ignore[attr-defined]
            self.starts.setdefault(app_id, []).append(moment / SECOND)

    def released(self, moment: int, allocation: object, reason: str) -> None:
        if allocation.placeholder:  # type: ignore[attr-defined]
            self.places.append((moment / SECOND, reason))


def play(registry: Registry, applications: str, config: str = CONFIG) -> tuple[Report, StartsAndEnds]:
    nodes = "nodes: [{name: n, count: 2, resources: {vcore: 4}}]\n"
    workload = read_scenario(f"{nodes}applications: [{applications}]", "file", "name")
    fates = StartsAndEnds()
    return simulate(config, workload, registry, recorder=fates), fates


def test_an_atomic_gang_starts_as_a_whole_when_all_of_it_fits(registry: Registry) -> None:
    report, fates = play(
        registry,
        "{id: one, queue: root.a, tasks: [{count: 4, resources: {vcore: 1}, runtime: 50}]},"
        "{id: gang, queue: root.a, submit: 10, gang: Atomic,"
        " tasks: [{count: 5, resources: {vcore: 1}, runtime: 10}, {resources: {vcore: 1}, runtime: 1}]},"
        "{id: small, queue: root.a, submit: 20, tasks: [{count: 3, resources: {vcore: 1}, runtime: 5}]}",
    )
    assert fates.starts == {"one": [0] * 4, "small": [20] * 3, "gang": [50] * 6}
    assert report.applications.finished == 3


def test_gang_requests_its_tasks_when_all_placeholders_are_placed(
    registry: Registry,
) -> None:
    report, fates = play(
        registry,
        "{id: one, queue: root.a, tasks: [{count: 4, resources: {vcore: 1}, runtime: 50}]},"
        "{id: gang, queue: root.a, submit: 10, gang: Soft,"
        " tasks: [{count: 6, resources: {vcore: 1}, runtime: 10}]},"
        "{id: small, queue: root.a, submit: 20, tasks: [{count: 3, resources: {vcore: 1}, runtime: 5}]}",
    )
    # Its placeholders take the available room, and keep it from the small application.
    assert fates.starts == {"one": [0] * 4, "gang": [50] * 6, "small": [50, 50, 55]}
    assert fates.places == [(50, "replaced")] * 6
    assert (report.applications.finished, report.tasks.ended) == (3, 13)


@pytest.mark.parametrize(("style", "outcome"), [("Soft", [11, 11, 41]), ("Hard", [])])
def test_incomplete_gang_continues_without_placeholders_or_fails(
    registry: Registry, style: str, outcome: list[float]
) -> None:
    report, fates = play(
        registry,
        f"{{id: gang, queue: root.a, submit: 1, gang: {style}, gangtimeout: 10,"
        " tasks: [{count: 3, resources: {vcore: 4}, runtime: 30}]}",
    )
    assert fates.starts.get("gang", []) == outcome
    assert fates.places == [(11, "timed out")] * 2
    soft = style == "Soft"
    assert (report.applications.finished, report.applications.failed) == (int(soft), int(not soft))


def test_gang_that_can_never_run_is_reported_as_oversized(registry: Registry) -> None:
    report, fates = play(
        registry,
        "{id: gang, queue: root.a, gang: Atomic, tasks: [{count: 9, resources: {vcore: 1}, runtime: 1}]},"
        "{id: small, queue: root.a, submit: 3600, tasks: [{resources: {vcore: 1}, runtime: 1}]}",
    )
    assert fates.starts == {"small": [3600]}
    assert [reason.reason for reason in report.waiting] == ["larger than the whole cluster"]


def test_an_unknown_style_is_an_error_of_the_scenario() -> None:
    text = """
    nodes: [{name: n, resources: {vcore: 4}}]
    applications: [{id: a, gang: atomic, tasks: [{resources: {vcore: 1}, runtime: 1}]}]
    """
    with pytest.raises(InputError, match="expected Soft or Hard or Atomic, got 'atomic'"):
        read_scenario(text, "file", "name")


def read(jobs: str) -> Workload:
    text = "; MaxProcs: 8\n1 0 -1 10 4 -1 -1 4 -1 -1 1 7 3 5 1 2 -1 -1\n"
    return read_swf(text, "trace", "trace", SwfOptions(jobs=jobs), [])


def test_jobs_of_a_trace_can_be_gangs() -> None:
    assert [application.gang for application in read("tasks").applications] == [""]
    assert [application.gang for application in read("atomic").applications] == ["Atomic"]
    with pytest.raises(UsageError, match="unknown kind of jobs 'rigid'; known: atomic, tasks"):
        read("rigid")


class Crowd(StartsAndEnds):
    """Asserts besides that no node exceeds its capacity."""

    def __init__(self, nodes: list[WorkloadNode]) -> None:
        super().__init__()
        self._free = {node.name: dict(node.resources) for node in nodes}

    def _take(self, allocation: Any, times: int) -> None:
        free = self._free[allocation.node_id]
        for name, amount in allocation.resource_per_alloc.items():
            free[name] -= amount * times
            assert free[name] >= 0, f"node {allocation.node_id} is over its {name}"

    def allocated(self, moment: int, allocation: object) -> None:
        super().allocated(moment, allocation)
        self._take(allocation, 1)

    def released(self, moment: int, allocation: object, reason: str) -> None:
        super().released(moment, allocation, reason)
        self._take(allocation, -1)


def test_every_job_of_a_real_trace_starts_as_a_whole(traces: Path, registry: Registry) -> None:
    """The trace on which docs/comparing.md compares policies, under three of them."""
    waits, jobs = {}, min(examples(800), 3170)
    for policy in ("fifo", "fair", "stateaware"):
        workload = read_workload(traces / "swf" / "hpc2n.swf", swf=SwfOptions(queue=""))
        workload = attrs.evolve(workload, applications=workload.applications[:jobs])
        fates = Crowd(workload.nodes)
        report = simulate(three_teams(policy), workload, registry, recorder=fates)
        assert (report.applications.submitted, report.applications.finished) == (jobs, jobs)
        tasks = report.tasks
        assert tasks.asked == tasks.ended == report.allocations - tasks.restarted
        assert report.allocations == report.releases
        restarts = 0
        for application in workload.applications:
            starts, size = fates.starts[application.id], application.size
            # Guarantees preempt, and what a job loses it loses as a whole, so that it starts again as one.
            attempts = [starts[at : at + size] for at in range(0, len(starts), size)]
            assert attempts == [[attempt[0]] * size for attempt in attempts]
            restarts += len(starts) - size
        assert report.preemptions == tasks.restarted == restarts > 0
        assert report.gangs is not None
        assert (report.gangs.whole, report.gangs.given_up) == (jobs, 0)
        assert report.gangs.wait == report.application_wait
        waits[policy] = report.application_wait
    # Waiting jobs have no allocations: all are equal for `fair`, and the first to arrive is served first.
    assert waits["fair"] == waits["fifo"]
    # `stateaware` starts one job at a time per queue, so no small job overtakes.
    assert waits["fifo"] is not None
    assert waits["stateaware"] is not None
    assert waits["stateaware"].mean > waits["fifo"].mean
