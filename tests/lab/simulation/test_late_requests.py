"""Tasks that an application requests some time after its submission."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from yunikorn.clock import SECOND
from yunikorn.framework.registry import Registry
from yunikorn_lab.reporting.full_report import FullReport, study
from yunikorn_lab.reporting.observations import ApplicationRow
from yunikorn_lab.simulation.recorder import Recorder
from yunikorn_lab.simulation.rm_state import Running
from yunikorn_lab.simulation.scenario_reader import read_scenario
from yunikorn_lab.simulation.scenario_writer import scenario_lines

CONFIG = 'partitions: [{name: default, queues: [{name: root, submitacl: "*", queues: [{name: a}]}]}]'


class Starts(Recorder):
    """Placements of tasks (seconds), with their ask and wait."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, str, float]] = []

    def started(self, moment: int, task: Running) -> None:
        wait = (moment - task.ask.asked) / SECOND
        self.seen.append((moment / SECOND, task.ask.key, wait))


def scenario(*tasks: str, cores: int = 4, more: str = "") -> str:
    """Return one application with these tasks, each of one core, on one node."""
    lines = "".join(f"      - {{resources: {{vcore: 1}}, {task}}}\n" for task in tasks)
    return (
        f"nodes: [{{name: n, resources: {{vcore: {cores}}}}}]\n"
        f"applications:\n  - id: job\n    queue: root.a\n    submit: 5\n{more}    tasks:\n{lines}"
    )


@pytest.fixture
def run(registry: Registry) -> Callable[..., tuple[Starts, FullReport, list[ApplicationRow]]]:
    """Return a function that simulates a scenario."""

    def run(text: str) -> tuple[Starts, FullReport, list[ApplicationRow]]:
        starts, rows = Starts(), list[ApplicationRow]()
        found = study(
            CONFIG, read_scenario(text, "s.yaml", "s.yaml"), registry, recorder=starts, rows=rows.append
        )
        return starts, found, rows

    return run


Run = Callable[..., tuple[Starts, FullReport, list[ApplicationRow]]]


def test_tasks_are_requested_after_their_delay(run: Run) -> None:
    starts, result, rows = run(scenario("runtime: 60", "runtime: 10, delay: 20, count: 2"))
    assert [start[1:] for start in starts.seen] == [("task-1", 0), ("task-2", 0), ("task-2", 0)]
    assert [round(start[0]) for start in starts.seen] == [5, 25, 25]
    counts = result.report.tasks
    assert (counts.asked, counts.ended, counts.waiting) == (3, 3, 0)
    assert (round(rows[0].ended or 0), rows[0].tasks) == (65, 3)


def test_wait_of_an_application_is_that_of_its_first_tasks(run: Run) -> None:
    """The second task waits for the end of the first, and the third is requested much later."""
    _, result, rows = run(scenario("runtime: 30, count: 2", "runtime: 1, delay: 1h", cores=1))
    assert round(rows[0].whole_wait or 0) == 30
    assert result.figures.slowdown is not None
    assert round(result.figures.slowdown.max, 3) == 1  # it could not end earlier than an hour later


def test_application_that_completed_in_between_comes_again(run: Run) -> None:
    starts, result, _ = run(scenario("runtime: 1", "runtime: 1, delay: 1h", "runtime: 1, delay: 2h"))
    assert [round(start[0]) for start in starts.seen] == [5, 3605, 7205]
    assert result.report.applications.finished == 1
    assert not result.report.tasks.refused


def test_late_tasks_are_no_members_of_a_gang(run: Run) -> None:
    for style in ("Atomic", "Hard"):
        starts, result, _ = run(
            scenario("runtime: 60, count: 3", "runtime: 5, delay: 10", more=f"    gang: {style}\n", cores=3)
        )
        assert [round(start[0]) for start in starts.seen] == [5, 5, 5, 65]
        assert result.report.gangs is not None
        assert result.report.gangs.whole == 1


def test_late_tasks_of_a_rejected_application_are_forgotten(run: Run) -> None:
    text = scenario("runtime: 1", "runtime: 1, delay: 10h").replace("root.a", "root.b")
    starts, result, _ = run(text)
    assert not starts.seen
    assert (result.report.applications.rejected, result.report.tasks.asked) == (1, 1)
    assert result.report.times.stopped < 3600


def test_delay_is_written_and_read_again() -> None:
    workload = read_scenario(scenario("runtime: 60", "runtime: 10, delay: 1h30m"), "s.yaml", "s.yaml")
    again = read_scenario("\n".join(scenario_lines(workload)), "s.yaml", "s.yaml")
    assert list(again.applications) == list(workload.applications)
    assert [group.delay for group in workload.applications[0].tasks] == [0, 5400 * SECOND]
    assert attrs.asdict(again.applications[0]) == attrs.asdict(workload.applications[0])
