"""Dependencies between applications: predecessors, think times, failures, cycles and the end of a run."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.example_counts import examples
from yunikorn.clock import SECOND
from yunikorn.framework.registry import Registry
from yunikorn_commands.input_source import InputError
from yunikorn_lab.simulation.adjustments import Adjustments
from yunikorn_lab.simulation.dependencies import find_cycles
from yunikorn_lab.simulation.explain_requests import parse_questions
from yunikorn_lab.simulation.reader import read_workload
from yunikorn_lab.simulation.recorder import Recorder
from yunikorn_lab.simulation.report import Report
from yunikorn_lab.simulation.rm_state import Submitted
from yunikorn_lab.simulation.run import simulate
from yunikorn_lab.simulation.scenario_reader import open_scenario_file, read_scenario
from yunikorn_lab.simulation.scenario_writer import scenario_lines
from yunikorn_lab.simulation.survey import survey

Play = Callable[..., Report]
Write = Callable[[str, str], Path]

CONFIG = """
partitions:
  - name: default
    queues:
      - {name: root, submitacl: "*", queues: [{name: a}]}
"""


class Log(Recorder):
    """Submissions and ends (seconds) by application."""

    def __init__(self) -> None:
        self.submissions: dict[str, float] = {}
        self.ends: dict[str, float] = {}

    def submitted(self, moment: int, record: Submitted) -> None:
        assert record.plan.submit == moment
        self.submissions[record.plan.id] = moment / SECOND

    def application_ended(self, moment: int, record: Submitted, outcome: str, reason: str) -> None:
        self.ends[record.plan.id] = moment / SECOND


@pytest.fixture
def log() -> Log:
    """Return a recorder of submissions and ends."""
    return Log()


def test_an_application_follows_its_predecessors_after_its_think_time(
    make: Any, play: Play, core: Any, log: Log
) -> None:
    applications = [
        make.app("short", runtime=10),
        make.app("long", runtime=30),
        make.app("next", after=("short", "long"), think=5 * SECOND),
        make.app("third", after=("next",)),
        make.app("late", submit=100, after=("short",)),
    ]
    report = play(make.workload([make.node("n")], applications), core, recorder=log)
    assert log.submissions == {"short": 0, "long": 0, "next": 35, "third": 45, "late": 100}
    assert report.dependencies is not None
    assert (report.dependencies.dependents, report.dependencies.submitted) == (3, 3)
    assert report.applications.finished == 5
    assert report.application_wait is not None
    assert report.application_wait.max == 0


def test_a_predecessor_may_be_submitted_later_than_its_dependent(
    make: Any, play: Play, core: Any, log: Log
) -> None:
    applications = [make.app("first", after=("second",)), make.app("second", submit=50)]
    play(make.workload([make.node("n")], applications), core, recorder=log)
    assert log.submissions == {"second": 50, "first": 60}


def test_a_rejected_predecessor_counts_as_ended_and_is_reported(
    make: Any, play: Play, core: Any, log: Log
) -> None:
    applications = [make.app("bad"), make.app("next", after=("bad",), think=SECOND)]
    report = play(make.workload([make.node("n")], applications), core, reject="bad", recorder=log)
    assert log.submissions["next"] == 1
    assert report.dependencies is not None
    assert report.dependencies.after_failure == 1
    assert "1 application followed a predecessor that failed or was rejected" in report.remarks


def test_applications_whose_predecessor_never_ends_are_counted_and_named(
    make: Any, play: Play, core: Any
) -> None:
    applications = [
        make.app("huge", cores=99),
        make.app("next", after=("huge",)),
        make.app("last", after=("next", "huge")),
        make.app("future", submit=10**6),
    ]
    report = play(make.workload([make.node("n")], applications), core, until=60)
    assert report.applications.not_submitted == 3
    assert report.dependencies is not None
    assert report.dependencies.waiting == 2
    assert report.dependencies.examples == ["next after huge", "last after next and 1 more"]
    assert report.remarks[-1].startswith("2 applications were not submitted, because a predecessor had not")


def test_with_hold_a_dependent_never_starts_and_a_note_says_so(make: Any, play: Play, core: Any) -> None:
    applications = [make.app("a"), make.app("b", after=("a",)), make.app("c", after=("b",))]
    workload = Adjustments(hold=True).apply(make.workload([make.node("n")], applications))
    (note,) = survey(workload).notes
    assert note.startswith("2 applications will never be submitted")
    report = play(workload, core)
    assert (report.applications.submitted, report.applications.not_submitted) == (1, 2)


def test_speed_up_keeps_think_times(make: Any, play: Play, core: Any, log: Log) -> None:
    applications = [
        make.app("a", submit=100),
        make.app("b", submit=100, after=("a",), think=50 * SECOND),
        make.app("c", submit=1000, after=("b",)),
    ]
    workload = Adjustments(speed_up=10).apply(make.workload([make.node("n")], applications))  # type: ignore[arg-type]
    play(workload, core, recorder=log)
    assert log.submissions == {"a": 10, "b": 70, "c": 100}


SCENARIO = """
nodes: [{name: n, count: 2, resources: {vcore: 4}}]
applications:
  - {id: prepare, queue: root.a, tasks: [{resources: {vcore: 1}, runtime: 100}]}
  - {id: map, count: 3, queue: root.a, after: [prepare], thinktime: 10,
     tasks: [{resources: {vcore: 1}, runtime: 50}]}
  - {id: reduce, queue: root.a, after: [map, prepare], tasks: [{resources: {vcore: 1}, runtime: 5}]}
"""


def test_a_scenario_names_predecessors_and_entries() -> None:
    applications = {one.id: one for one in read_scenario(SCENARIO, "f", "n").applications}
    assert applications["map-2"].after == ("prepare",)
    assert applications["map-2"].think == 10 * SECOND
    assert applications["reduce"].after == ("map-1", "map-2", "map-3", "prepare")


def test_a_scenario_runs_under_the_real_core_and_explains_dependents(registry: Registry) -> None:
    log = Log()
    workload = read_scenario(SCENARIO, "f", "n")
    questions = parse_questions(["reduce@120"], workload, None)
    report = simulate(CONFIG, workload, registry, recorder=log, questions=questions)
    assert log.submissions["map-3"] == 110
    assert (log.submissions["reduce"], log.ends["reduce"]) == (160, 165)
    assert report.explanations[0].state == (
        "does not wait: it is submitted after the end of map-1, map-2, map-3"
    )


def test_dependencies_survive_writing_and_line_wise_reading(write: Write) -> None:
    workload = read_scenario(SCENARIO, "f", "n")
    path = write("again.yaml", "\n".join(scenario_lines(workload)) + "\n")
    opened = open_scenario_file(path)
    assert opened is not None
    assert list(opened.applications) == list(workload.applications)


def test_all_impossible_dependencies_are_reported_in_one_pass(write: Write) -> None:
    text = """nodes: [{name: n, resources: {vcore: 4}}]
applications:
  - {id: a, after: [b, x], tasks: [{resources: {vcore: 1}, runtime: 1}]}
  - {id: b, after: [c], tasks: [{resources: {vcore: 1}, runtime: 1}]}
  - {id: c, after: [a], tasks: [{resources: {vcore: 1}, runtime: 1}]}
  - {id: d, after: [d], tasks: [{resources: {vcore: 1}, runtime: 1}]}
  - {id: e, after: d, tasks: [{resources: {vcore: 1}, runtime: 1}]}
  - {id: f, thinktime: 5, tasks: [{resources: {vcore: 1}, runtime: 1}]}
generate:
  - {id: g, count: 2, after: [ff], arrivals: {process: regular, every: 1},
     tasks: [{resources: {vcore: 1}, runtime: 1}]}
"""
    with pytest.raises(InputError) as caught:
        read_workload(write("bad.yaml", text))
    lines = [(one.line, one.column, one.message) for one in caught.value.problems]
    assert lines == [
        (3, 21, "the applications a, b, c wait for each other: remove one of the names"),
        (3, 24, "no application 'x' in applications"),
        (6, 21, "the application 'd' cannot wait for its own end"),
        (7, 20, "expected a list, got 'd': write [d]"),
        (8, 24, "applies only after predecessors: add after, with their ids"),
        (10, 31, "no application 'ff' in applications, did you mean 'f'?"),
    ]


@pytest.mark.parametrize(
    "after", ['["x"]', '["b"]', '["a"]'], ids=["unknown", "cycle of two", "own predecessor"]
)
def test_line_wise_reading_leaves_impossible_dependencies_to_the_general_reader(
    write: Write, after: str
) -> None:
    task = '"tasks": [{"name": "t", "resources": {"vcore": "1"}, "runtime": 1}]'
    text = (
        'nodes:\n- {"name": "n", "resources": {"vcore": "4"}}\napplications:\n'
        f'- {{"id": "a", "after": {after}, {task}}}\n- {{"id": "b", "after": ["a"], {task}}}\n'
    )
    assert open_scenario_file(write("bad.yaml", text)) is None
    with pytest.raises(InputError, match="line 4, column"):
        read_workload(write("bad.yaml", text))


def test_generated_applications_may_follow_listed_ones() -> None:
    generate = """
generate:
  - {id: g, count: 2, queue: root.a, after: [map], arrivals: {process: regular, every: 1},
     tasks: [{resources: {vcore: 1}, runtime: 1}]}
"""
    applications = read_scenario(SCENARIO + generate, "f", "n").applications
    assert next(one for one in applications if one.id == "g-1").after == ("map-1", "map-2", "map-3")


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=40))
def test_cycles_are_those_that_a_search_finds(edges: list[tuple[int, int]]) -> None:
    after: dict[str, list[str]] = {}
    for one, other in edges:
        after.setdefault(str(one), []).append(str(other))

    def reachable(start: str) -> set[str]:
        found: set[str] = set()
        todo = list(after.get(start, ()))
        while todo:
            name = todo.pop()
            if name not in found:
                found.add(name)
                todo += after.get(name, ())
        return found

    reach = {name: reachable(name) for name in after}
    expected = {
        frozenset(other for other in after if other in reach[name] and name in reach[other])
        for name in after
        if name in reach[name]
    }
    assert {frozenset(group) for group in find_cycles(after)} == expected


def test_long_chains_are_no_recursion() -> None:
    chain = {str(number): [str(number + 1)] for number in range(20_000)}
    assert find_cycles(chain) == []
    assert len(find_cycles({**chain, "20000": ["0"]})[0]) == 20_001


@settings(max_examples=examples(20))
@given(seed=st.integers(0, 10**6))
def test_no_application_starts_before_its_predecessors_have_ended(
    make: Any, core_class: Any, seed: int
) -> None:
    from yunikorn.clock import ManualClock
    from yunikorn_lab.simulation.engine import Simulation

    rng = random.Random(seed)
    names = [f"a{number}" for number in range(rng.randint(1, 25))]
    order = rng.sample(names, len(names))
    applications = []
    for place, name in enumerate(order):
        after = tuple(rng.sample(order[:place], min(place, rng.randint(0, 3))))
        applications.append(
            make.app(
                name,
                submit=rng.randint(0, 50),
                count=rng.randint(1, 3),
                runtime=rng.randint(0, 20),
                after=after,
                think=rng.choice([0, 0, 7]) * SECOND if after else 0,
            )
        )
    log = Log()
    workload = make.workload([make.node("n")], applications)
    simulation = Simulation(workload, core_class(), ManualClock(), config=rng.choice(names), recorder=log)
    report = simulation.run()
    assert report.applications.submitted == len(names)
    for one in applications:
        due = max([one.submit / SECOND, *(log.ends[name] + one.think / SECOND for name in one.after)])
        assert log.submissions[one.id] == due
