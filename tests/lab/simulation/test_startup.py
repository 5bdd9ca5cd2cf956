"""Start-up of tasks: fixed and drawn times, and tasks that lose their node or are preempted meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from yunikorn.cli.main import main
from yunikorn.clock import SECOND
from yunikorn.errors import UsageError
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import Allocation
from yunikorn_commands.input_source import InputError
from yunikorn_lab.commands.workload import WorkloadSource
from yunikorn_lab.reporting.full_report import FullReport, study
from yunikorn_lab.simulation.distributions import DrawnAmounts, Exponential
from yunikorn_lab.simulation.reader import read_workload
from yunikorn_lab.simulation.recorder import Recorder
from yunikorn_lab.simulation.rm_state import Running
from yunikorn_lab.simulation.rng import Rng
from yunikorn_lab.simulation.scenario_reader import read_scenario
from yunikorn_lab.simulation.scenario_writer import scenario_lines
from yunikorn_lab.simulation.workload import StartUp

CONFIG = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: a
          - name: b
            resources: {guaranteed: {vcore: 1}}
            properties: {preemption.delay: 20s}
"""
# One core: the second task waits until the first has started up for 5 s and run for 10.
TWO = """
%s
nodes: [{name: n, resources: {vcore: 1}}]
applications:
  - {id: one, queue: root.a, tasks: [{resources: {vcore: 1}, runtime: 10%s}]}
  - {id: two, queue: root.a, submit: 1, tasks: [{resources: {vcore: 1}, runtime: 10}]}
"""

Play = Callable[..., FullReport]


class Starts(Recorder):
    """The start-up times of all started tasks, in order."""

    def __init__(self) -> None:
        self.found: list[tuple[str, float]] = []

    def started(self, moment: int, task: Running) -> None:
        """Note a start."""
        self.found.append((task.owner.plan.id, task.startup / SECOND))

    def released(self, moment: int, allocation: Allocation, reason: str) -> None:
        """Note the end of an allocation."""


@pytest.fixture
def play(registry: Registry) -> Play:
    """Return a function that simulates a scenario."""

    def run(scenario: str, **more: Any) -> FullReport:
        return study(CONFIG, read_scenario(scenario, "s.yaml", "s"), registry, **more)

    return run


def test_start_up_uses_resources_before_the_run_time_begins(play: Play) -> None:
    report = play(TWO % ("startup: 5s", "")).report
    assert report.times.last_end == 30
    assert report.application_wait is not None
    assert report.startup is not None
    # The wait ends with the placement: the second task is placed when the first has ended.
    assert (report.application_wait.mean, report.application_wait.max) == (7, 14)
    assert (report.startup.count, report.startup.mean) == (2, 5)
    assert report.utilisation == {"default": {"vcore": 1.0}}


def test_task_has_a_time_of_its_own(play: Play) -> None:
    assert play(TWO % ("startup: 5s", ", startup: 0")).report.times.last_end == 25
    report = play(TWO % ("", ", startup: 7s")).report
    assert report.times.last_end == 27
    assert report.startup is not None
    assert report.startup.count == 1
    assert play(TWO % ("", "")).report.startup is None


def test_slowdown_counts_the_start_up_as_a_delay(play: Play) -> None:
    figures = play(TWO % ("startup: 10s", "")).figures
    assert figures.slowdown is not None
    assert figures.slowdown.max == 3.9  # 39 s from submission to end, for a run time of 10
    assert figures.wait is not None
    assert figures.wait.max == 19


def test_task_that_loses_its_node_while_it_starts_up_starts_again_without_lost_work(play: Play) -> None:
    lost = "events: [{at: 3, node: n, action: remove}, {at: 4, node: n, action: add}]\nstartup: 5s"
    starts = Starts()
    report = play(TWO % (lost, ""), recorder=starts).report
    assert [(one.reason, one.tasks, one.seconds) for one in report.lost_work] == [("node left", 1, 0)]
    assert report.tasks.restarted == 1
    assert [startup for _, startup in starts.found] == [5, 5, 5]
    assert report.times.last_end == 34


def test_task_preempted_after_its_start_up_loses_its_run_only(play: Play) -> None:
    scenario = """
    nodes: [{name: n, resources: {vcore: 1}}]
    applications:
      - {id: low, queue: root.a, tasks: [{resources: {vcore: 1}, runtime: 1h, startup: %s, priority: -1}]}
      - {id: high, queue: root.b, submit: 1, tasks: [{resources: {vcore: 1}, runtime: 5m, priority: 9}]}
    """
    during, after = play(scenario % "30m").report, play(scenario % "10s").report
    assert (during.preemptions, after.preemptions) == (1, 1)
    assert during.lost_work[0].seconds == 0
    assert after.lost_work[0].seconds > 0
    assert during.times.last_end is not None
    assert after.times.last_end is not None
    assert during.times.last_end - after.times.last_end == 30 * 60 - 10


def test_drawn_times_do_not_depend_on_what_else_is_drawn(registry: Registry) -> None:
    startup = StartUp(DrawnAmounts(Exponential(10 * SECOND), 1, 0, 100 * SECOND), 7)
    first: dict[str, Rng] = {}
    alone = [startup.draw("app", "main", first) for _ in range(5)]
    second: dict[str, Rng] = {}
    mixed = []
    for number in range(5):
        startup.draw("other", "main", {})
        startup.draw("app", "side", second)
        mixed.append(startup.draw("app", "main", second))
        assert alone[number] == mixed[number]
    assert len(set(alone)) == 5
    assert StartUp(startup.amounts, 8).draw("app", "main", {}) != alone[0]


@pytest.mark.parametrize(
    "startup",
    [
        "90s",
        "{distribution: exponential, mean: 20s}",
        "{distribution: lognormal, median: 20s, sigma: 1.5, max: 5m, step: 1s}",
        "{distribution: uniform, low: 1s, high: 10s}",
        "{distribution: choice, values: {1s: 3, 1m: 0.25}}",
        "{distribution: zipf, values: [1s, 5s, 30s], exponent: 1.3}",
        "{distribution: pareto, low: 1s, shape: 1.2, min: 2s}",
    ],
)
def test_scenario_is_written_with_its_start_up_times(startup: str) -> None:
    workload = read_scenario(TWO % (f"seed: 9\nstartup: {startup}", ", startup: 3.5"), "s.yaml", "s")
    again = read_scenario("\n".join(scenario_lines(workload)), "again.yaml", "s")
    first: dict[str, Rng] = {}
    second: dict[str, Rng] = {}
    drawn = [workload.startup.draw("a", "b", first) for _ in range(30)]
    redrawn = [again.startup.draw("a", "b", second) for _ in range(30)]
    assert drawn == redrawn
    assert list(again.applications) == list(workload.applications)
    assert again.applications[0].tasks[0].startup == 3.5 * SECOND


@pytest.mark.parametrize(
    ("startup", "message"),
    [
        ("forever", "expected a time or a distribution; a start-up cannot last forever"),
        ("soon", "expected seconds or a duration"),
        ("{distribution: exponetial, mean: 1s}", "did you mean 'exponential'?"),
    ],
)
def test_bad_start_up_times_are_refused(startup: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_scenario(TWO % (f"startup: {startup}", ""), "s.yaml", "s")
    assert message in str(caught.value)


def test_option_sets_the_times_of_any_workload(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    trace, config = tmp_path / "t.swf", tmp_path / "queues.yaml"
    config.write_text(CONFIG)
    trace.write_text("; MaxProcs: 1\n1 0 0 10 1 -1 -1 1 -1 -1 1 1 1 1 1 1 -1 -1\n")
    call = ["simulate", "--config", str(config), "--workload", str(trace), "--swf-queue", "root.a"]
    for given, text in (("30s", "30s"), ("choice,30s=1", "30s"), ("uniform,low=30s,high=30s", "30s")):
        assert main([*call, "--startup-delay", given]) == 0
        out = capsys.readouterr().out
        assert f"1 start: mean {text}, longest {text}" in out
    for given, text in (
        ("exponential,mean=x", "--startup-delay 'exponential,mean=x': mean: expected seconds or a duration"),
        ("forever", "a start-up cannot last forever"),
        ("often,mean=1", "--startup-delay: no distribution is called 'often'"),
        ("", "--startup-delay '': "),
    ):
        status = main([*call, "--startup-delay", given])
        out, err = capsys.readouterr()
        assert (status, out) == (2, "")
        assert text in err


def test_long_scenario_is_read_with_its_start_up_times(tmp_path: Path) -> None:
    path = tmp_path / "long.yaml"
    path.write_text(
        "\n".join(scenario_lines(read_scenario(TWO % ("startup: 4s", ", startup: 2s"), "s", "s")))
    )
    workload = read_workload(path)
    assert workload.startup.draw("a", "b", {}) == 4 * SECOND
    assert next(iter(workload.applications)).tasks[0].startup == 2 * SECOND


def test_seed_of_a_trace_changes_drawn_start_up_times_only(tmp_path: Path) -> None:
    trace = tmp_path / "t.swf"
    trace.write_text("; MaxProcs: 1\n1 0 0 10 1 -1 -1 1 -1 -1 1 1 1 1 1 1 -1 -1\n")

    def draws(seed: int | None, delay: str | None = "exponential,mean=1m") -> list[int]:
        workload = WorkloadSource(workload=trace, seed=seed, startup_delay=delay).read()
        known: dict[str, Rng] = {}
        return [workload.startup.draw("job-1", "task", known) for _ in range(5)]

    assert draws(None) == draws(0) == draws(None)
    assert draws(1) == draws(1) != draws(2)
    for delay in (None, "5s"):
        with pytest.raises(UsageError, match="a seed has no effect"):
            draws(1, delay)
