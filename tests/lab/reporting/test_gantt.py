"""Gantt charts: rows, bars, the window, and what is left out with a note."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from yunikorn.clock import SECOND
from yunikorn.errors import UsageError
from yunikorn_lab.reporting import gantt
from yunikorn_lab.reporting.full_report import FullReport
from yunikorn_lab.reporting.gantt import (
    APPLICATIONS,
    NODES,
    GanttChart,
    GanttRequest,
    gantt_recorder,
    write_table,
)
from yunikorn_lab.reporting.mpl import png, styled
from yunikorn_lab.reporting.palette import QueueColours
from yunikorn_lab.reporting.plot_gantt import plot_gantt
from yunikorn_lab.simulation.scenario_reader import read_scenario

Observe = Callable[..., FullReport]

# Two nodes of one core. first runs 0 to 30, second 0 to 20, third waits from 5 to 20; lost never runs.
SCENARIO = """
nodes: [{name: n1, resources: {vcore: 1}}, {name: n2, resources: {vcore: 1}}]
applications:
  - {id: first, queue: root.a, user: eva, tasks: [{name: t, resources: {vcore: 1}, runtime: 30}]}
  - {id: second, queue: root.a, user: tom, tasks: [{name: t, resources: {vcore: 1}, runtime: 20}]}
  - {id: third, queue: root.a, user: eva, submit: 5, tasks: [{name: t, resources: {vcore: 1}, runtime: 40}]}
  - {id: lost, queue: root.nowhere, submit: 6, tasks: [{resources: {vcore: 1}, runtime: 40}]}
"""


def chart_of(observe: Observe, of: str, scenario: str = SCENARIO, **more: Any) -> GanttChart:
    """Return the chart of a scenario; `start`, `stop` and `until` are in seconds."""
    until = more.pop("until", None)
    window = {name: more[name] * SECOND for name in ("start", "stop") if name in more}
    recorder = gantt_recorder(GanttRequest(of, names=more.get("names", ()), **window))
    return recorder.chart(observe(scenario, until=until, recorder=recorder).report.times.stopped)


def bars_of(chart: GanttChart) -> list[tuple[object, ...]]:
    """Return row, kind, start and end (seconds) and how the bar ended."""
    return [
        (bar.row[1], bar.kind, bar.start / SECOND, None if bar.end is None else bar.end / SECOND, bar.ended)
        for bar in chart.bars
    ]


def test_nodes_have_a_bar_for_each_task(observe: Observe) -> None:
    chart = chart_of(observe, NODES)
    assert chart.rows == [("default", "n1"), ("default", "n2")]
    by_application = {bar.application: bar for bar in chart.bars}
    assert len(chart.bars) == len(by_application) == 3
    third = by_application["third"]
    assert third.row == by_application["second"].row != by_application["first"].row
    assert (third.start, third.end, third.ended) == (20 * SECOND, 60 * SECOND, "ended")
    assert (third.queue, third.user, third.task, dict(third.amounts)) == (
        "root.a",
        "eva",
        "t",
        {"vcore": 1000},
    )
    assert chart.notes == []


def test_applications_have_bars_for_runs_and_waits(observe: Observe) -> None:
    chart = chart_of(observe, APPLICATIONS)
    assert [name for _, name in chart.rows] == ["first", "second", "third", "lost"]
    assert bars_of(chart) == [
        ("first", "running", 0, 30, "finished"),
        ("second", "running", 0, 20, "finished"),
        ("third", "waiting", 5, 20, "started"),
        ("lost", "waiting", 6, 6, "rejected"),
        ("third", "running", 20, 60, "finished"),
    ]


def test_bars_that_reach_into_the_window_are_whole(observe: Observe) -> None:
    chart = chart_of(observe, APPLICATIONS, start=10, stop=20)
    assert (chart.start, chart.stop) == (10 * SECOND, 20 * SECOND)
    assert bars_of(chart) == [
        ("first", "running", 0, 30, "finished"),
        ("second", "running", 0, 20, "finished"),
        ("third", "waiting", 5, 20, "started"),
    ]
    assert {bar.application for bar in chart_of(observe, NODES, start=25, stop=28).bars} == {"first", "third"}


def test_bars_are_open_at_the_end_of_the_run(observe: Observe) -> None:
    chart = chart_of(observe, APPLICATIONS, until=12)
    assert chart.stop == 12 * SECOND
    assert ("first", "running", 0, None, "") in bars_of(chart)
    assert ("third", "waiting", 5, None, "") in bars_of(chart)
    assert {bar.end for bar in chart_of(observe, NODES, until=12).bars} == {None}


RESTARTED = """
nodes: [{name: n1, resources: {vcore: 2}}]
events:
  - {at: 10, action: remove, node: n1}
  - {at: 15, action: add, node: n2, resources: {vcore: 2}}
applications: [{id: x, queue: root.a, tasks: [{count: 2, resources: {vcore: 1}, runtime: 20}]}]
"""


def test_lost_node_ends_bars_and_the_application_waits_again(observe: Observe) -> None:
    chart = chart_of(observe, APPLICATIONS, RESTARTED)
    assert bars_of(chart) == [
        ("x", "running", 0, 10, "node left"),
        ("x", "waiting", 10, 15, "started"),
        ("x", "running", 15, 35, "finished"),
    ]
    assert [(bar.tasks, dict(bar.amounts)) for bar in chart.bars if bar.kind == "running"] == [
        (2, {"vcore": 2000})
    ] * 2
    nodes = chart_of(observe, NODES, RESTARTED)
    assert [name for _, name in nodes.rows] == ["n1", "n2"]
    assert [bar.ended for bar in nodes.bars] == ["node left"] * 2 + ["ended"] * 2
    # n1 has left before the window begins, and n2 comes after it ends.
    assert [name for _, name in chart_of(observe, NODES, RESTARTED, start=12).rows] == ["n2"]
    assert [name for _, name in chart_of(observe, NODES, RESTARTED, stop=12).rows] == ["n1"]


def test_gang_shows_what_placeholders_hold(observe: Observe) -> None:
    scenario = """
nodes: [{name: n, resources: {vcore: 2}}]
applications:
  - {id: x, queue: root.a, tasks: [{resources: {vcore: 1}, runtime: 10}]}
  - {id: gang, queue: root.a, gang: Soft, tasks: [{count: 2, resources: {vcore: 1}, runtime: 10}]}
"""
    bars = bars_of(chart_of(observe, NODES, scenario))
    assert ("n", "placeholder", 0, 10, "replaced") in bars
    assert [bar[1:] for bar in bars if bar[2] == 10] == [("task", 10, 20, "ended")] * 2


def test_rows_are_chosen_by_name_or_pattern_and_the_rest_is_counted(
    observe: Observe, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [row[1] for row in chart_of(observe, NODES, names=("n2",)).rows] == ["n2"]
    assert [row[1] for row in chart_of(observe, APPLICATIONS, names=("*ir*",)).rows] == ["first", "third"]
    monkeypatch.setattr("yunikorn_lab.reporting.gantt.MOST_ROWS", 1)
    chart = chart_of(observe, APPLICATIONS)
    assert [row[1] for row in chart.rows] == ["third"]  # the only one that waited
    assert chart.notes == [
        "gantt: 1 of 4 applications are shown, those that waited longest in this time; choose with "
        "--gantt-row NAME (several times, or a pattern such as 'a*')"
    ]
    assert (
        chart_of(observe, NODES).notes[0].startswith("gantt: 1 of 2 nodes are shown, those registered first")
    )


def test_too_many_bars_are_counted(observe: Observe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yunikorn_lab.reporting.gantt.MOST_BARS", 2)
    for of, whole in ((NODES, 3), (APPLICATIONS, 5)):
        chart = chart_of(observe, of)
        assert len(chart.bars) == 2
        [note] = chart.notes
        assert note.startswith(f"gantt: 2 of {whole} bars are shown, those that ended first")


@pytest.mark.parametrize("of", gantt.KINDS)
def test_window_without_anything_says_so(observe: Observe, of: str) -> None:
    chart = chart_of(observe, of, start=100)
    assert chart.notes == ["gantt: the run ended at 1m, before --from: nothing is shown"]
    assert plot_gantt(chart, QueueColours(["root.a"])) is None


def test_names_without_row_are_all_reported() -> None:
    workload = read_scenario(SCENARIO, "scenario.yaml", "test")
    GanttRequest(NODES, names=("n*", "n1")).check(workload)
    with pytest.raises(UsageError) as raised:
        GanttRequest(APPLICATIONS, names=("first", "thirt", "z*")).check(workload)
    assert str(raised.value).splitlines() == [
        "--gantt-row thirt: the workload has no such application, did you mean 'third'?",
        "--gantt-row z*: the workload has no such application",
    ]


def test_table_has_a_row_for_each_bar(observe: Observe, tmp_path: Path) -> None:
    path = tmp_path / "gantt.csv"
    with path.open("w", encoding="utf-8") as file:
        write_table(file, chart_of(observe, NODES, until=30))
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    third = next(row for row in rows if row["application"] == "third")
    assert third == {
        "partition": "default",
        "node": third["node"],
        "start": "20",
        "end": "",
        "kind": "task",
        "application": "third",
        "task": "t",
        "queue": "root.a",
        "user": "eva",
        "tasks": "1",
        "ended": "",
        "amount_vcore": "1000",
    }


def test_pictures_of_equal_charts_are_equal(observe: Observe) -> None:
    with styled():
        figures = [
            plot_gantt(chart_of(observe, NODES, RESTARTED), QueueColours(["root.a"])) for _ in range(2)
        ]
        one, other = (png(figure) for figure in figures if figure is not None)
    assert one == other
