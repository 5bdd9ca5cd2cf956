"""Elastic gangs in scenarios: they start with a part of their tasks, grow, and lose the rest first."""

from __future__ import annotations

from pathlib import Path

import pytest

from yunikorn.cli.main import main
from yunikorn_commands.input_source import InputError
from yunikorn_lab.simulation.scenario_reader import read_scenario
from yunikorn_lab.simulation.scenario_writer import scenario_lines

CONFIG = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues: [{name: low}, {name: high, resources: {guaranteed: {vcore: 8}}}]
"""
SCENARIO = """
nodes: [{name: n, count: 2, resources: {vcore: 8}}]
applications:
  - id: elastic
    queue: root.low
    gang: %s
    preempted: restart
    tasks: [{count: 16, atleast: %s, resources: {vcore: 1}, runtime: 1h}]
  - id: urgent
    queue: root.high
    submit: 5m
    gang: Atomic
    tasks: [{count: 12, resources: {vcore: 1}, runtime: 10m}]
"""


def test_what_is_beyond_the_minimum_is_reclaimed_and_grows_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    config, workload = tmp_path / "queues.yaml", tmp_path / "s.yaml"
    config.write_text(CONFIG.replace("vcore: 8", "vcore: 12"))
    workload.write_text(SCENARIO % ("Atomic", 4))
    assert main(["simulate", "--config", str(config), "--workload", str(workload)]) == 0
    out = capsys.readouterr().out
    assert "28 asked for: 28 ended, 0 running, 0 waiting; 12 restarts" in out
    assert "2 submitted: 2 fully allocated" in out


@pytest.mark.parametrize(("step", "restarts"), [("", 12), (", step: 2", 12), (", step: 4", 12)])
def test_steps_are_reclaimed_and_grow_again(
    step: str, restarts: int, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    config, workload = tmp_path / "queues.yaml", tmp_path / "s.yaml"
    config.write_text(CONFIG.replace("vcore: 8", "vcore: 12"))
    workload.write_text(SCENARIO % ("Atomic", f"4{step}"))
    assert main(["simulate", "--config", str(config), "--workload", str(workload)]) == 0
    assert f"28 asked for: 28 ended, 0 running, 0 waiting; {restarts} restarts" in capsys.readouterr().out


def test_tasks_beyond_the_minimum_wait_for_their_step(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    config, workload = tmp_path / "queues.yaml", tmp_path / "s.yaml"
    config.write_text(CONFIG)
    workload.write_text(SCENARIO % ("Atomic", "4, step: 6"))
    assert main(["simulate", "--config", str(config), "--workload", str(workload)]) == 2
    assert "step divides atleast and the count of the tasks" in capsys.readouterr().err
    text = (SCENARIO % ("Atomic", "6, step: 6")).replace("count: 16", "count: 18")
    workload.write_text(text)
    explain = ["--explain", "elastic@1m"]
    assert main(["simulate", "--config", str(config), "--workload", str(workload), *explain]) == 0
    assert "elastic at 1m: 6 tasks waiting, 12 tasks running" in capsys.readouterr().out


def test_minimum_is_written_and_read_again() -> None:
    workload = read_scenario(SCENARIO % ("Atomic", 4), "s.yaml", "s")
    again = read_scenario("\n".join(scenario_lines(workload)), "again.yaml", "s")
    assert list(again.applications) == list(workload.applications)
    assert again.applications[0].least == 4
    assert again.applications[1].least == 12


def test_step_is_written_and_read_again() -> None:
    workload = read_scenario(SCENARIO % ("Atomic", "4, step: 2"), "s.yaml", "s")
    again = read_scenario("\n".join(scenario_lines(workload)), "again.yaml", "s")
    assert list(again.applications) == list(workload.applications)
    assert again.applications[0].tasks[0].step == 2


@pytest.mark.parametrize(("gang", "least"), [("Atomic", 17), ("Soft", 4)])
def test_minimum_that_no_gang_can_have_is_refused(gang: str, least: int) -> None:
    with pytest.raises(InputError) as caught:
        read_scenario(SCENARIO % (gang, least), "s.yaml", "s")
    message = "atleast is at most the count of the tasks, in an application with gang: Atomic"
    assert f"applications[0].tasks (line 8, column 12): {message}" in str(caught.value)


@pytest.mark.parametrize(("gang", "step"), [("Atomic", 3), ("Soft", 4)])
def test_step_that_no_gang_can_have_is_refused(gang: str, step: int) -> None:
    text = (SCENARIO % (gang, 4)).replace("atleast: 4", f"step: {step}")
    with pytest.raises(InputError) as caught:
        read_scenario(text, "s.yaml", "s")
    message = "step divides atleast and the count of the tasks, in an application with gang: Atomic"
    assert f"applications[0].tasks (line 8, column 12): {message}" in str(caught.value)
