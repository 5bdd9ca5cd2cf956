"""Figures of the full report, recomputed with numpy from the files of a run and its workload.

The recomputation shares no code with the statistics of the report. Every field of the figures is either
recomputed here, or listed with the test that calculates it by hand; a new field fails until it is listed.
"""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from tests.lab.simulation.random_scenarios import Rng
from yunikorn.clock import SECOND
from yunikorn.framework.registry import Registry
from yunikorn.model.gang import ATOMIC
from yunikorn_lab.reporting.full_report import FullReport, study
from yunikorn_lab.reporting.result_files import ResultFiles
from yunikorn_lab.reporting.run_figures import Figures
from yunikorn_lab.simulation.reader import read_workload
from yunikorn_lab.simulation.report import Report

RECOMPUTED = {
    "wait",
    "whole_wait",
    "slowdown",
    "fairness",
    "idle",
    "queues",
    "users",
    "sizes",
    "use_at_end",
    "slo",
    "calibration",
}
BY_HAND = {"fragmentation": "test_figures.py", "topology": "test_topology_rooms.py"}
PLAIN = {
    "applications",
    "application_wait",
    "preemptions",
    "preempted_placeholders",
    "decisions",
    "allocations",
    "releases",
    "nodes",
    "utilisation",
}
"""Fields of the plain report that are recomputed."""
ELSEWHERE = {
    "workload": "text of the input",
    "format": "text of the input",
    "origin": "number of the input",
    "began": "number of the input",
    "outcome": "tests/lab/simulation/test_engine.py",
    "rejections": "tests/lab/simulation/test_run.py",
    "failures": "tests/lab/reporting/test_verdict.py",
    "refusals": "tests/lab/simulation/test_run.py",
    "tasks": "tests/lab/simulation/test_counts.py",
    "task_wait": "needs the times of asks, which the files lack: tests/lab/simulation/test_run.py",
    "lost_work": "tests/lab/simulation/test_counts.py",
    "gangs": "tests/lab/simulation/test_counts.py",
    "limit_waits": "tests/lab/simulation/test_counts.py",
    "times": "tests/lab/simulation/test_run.py",
    "node_troubles": "text of the core",
    "reloads": "tests/lab/simulation/test_reloads.py",
    "queues": "recomputed by queue as figures",
    "offered_load": "needs no run: tests/lab/simulation/test_swf_memory.py",
    "dependencies": "tests/lab/simulation/test_dependencies.py",
    "input": "tests of the readers",
    "remarks": "text of the input",
    "waiting": "text of the core: tests/lab/simulation/test_explain_requests.py",
    "explanations": "text of the core: tests/lab/simulation/test_explain_requests.py",
    "easy_wait": "tests/plugins/test_backfilling.py",
    "startup": "tests/lab/simulation/test_startup.py",
    "plugin_faults": "text of plugins",
}
"""Fields of the plain report that are not recomputed, with the reason or the test that checks them."""
SEEDS = (1, 4, 7, 11)
TARGETS = {"root": 120 * SECOND, "root.a": 60 * SECOND}


class Rerun:
    """Files of a run, and the amounts over time that follow from them."""

    def __init__(self, folder: Path, workload: Any, result: FullReport) -> None:
        self.result = result
        self.plans = {plan.id: plan for plan in workload.applications}
        self.decisions, self.nodes = (
            [json.loads(line) for line in (folder / name).read_text("utf-8").splitlines()]
            for name in ("decisions.jsonl", "nodes.jsonl")
        )
        self.rows, self.idle, self.utilisation, self.users = (
            list(csv.DictReader((folder / name).read_text("utf-8").splitlines()))
            for name in ("applications.csv", "idle.csv", "utilisation.csv", "users.csv")
        )
        self.start = min(plan.submit for plan in self.plans.values()) / SECOND
        self.end = max(result.history.end, self.start)

    def integral(self, changes: list[tuple[float, float]]) -> float:
        """Return the integral of a sum of changes from the first submission to the end."""
        if not changes:
            return 0.0
        times, amounts = (np.array(each, float) for each in zip(*changes, strict=True))
        return float((amounts * (self.end - np.clip(times, self.start, self.end))).sum())

    def capacity(self, name: str) -> list[tuple[float, float]]:
        """Return the changes of the capacity of a type."""
        known: dict[str, float] = defaultdict(float)
        found = []
        for event in self.nodes:
            now = event["resources"].get(name, 0)
            found.append((event["time"], now - known[event["node"]]))
            known[event["node"]] = now
        return found


def used(lines: list[dict[str, Any]], name: str) -> list[tuple[float, float]]:
    """Return the changes of the use of a type by these decisions."""
    return [
        (line["time"], line["resources"].get(name, 0) * (1 if line["event"] == "allocation" else -1))
        for line in lines
    ]


@pytest.fixture(scope="module", params=SEEDS)
def rerun(
    request: pytest.FixtureRequest, registry: Registry, tmp_path_factory: pytest.TempPathFactory
) -> Rerun:
    """A run of random queues and applications, with gangs, preemption and events of nodes."""
    tmp_path = tmp_path_factory.mktemp("rerun")
    draw = Rng(request.param, registry)
    file = tmp_path / "workload.yaml"
    file.write_text(draw.workload)
    workload = read_workload(file)
    waits = np.random.default_rng(request.param).integers(0, 900, len(workload.applications))
    workload.applications = [
        attrs.evolve(plan, recorded_wait=None if number % 5 == 0 else int(wait) * SECOND)
        for number, (plan, wait) in enumerate(zip(workload.applications, waits, strict=True))
    ]
    with ResultFiles(tmp_path / "out", pictures=False) as files:
        result = study(
            draw.config,
            workload,
            registry,
            until=600 * SECOND if request.param % 2 else None,
            recorder=files,
            rows=files,
            targets=TARGETS,
        )
        files.write(result)
    return Rerun(tmp_path / "out", workload, result)


def test_every_figure_is_recomputed_or_calculated_by_hand() -> None:
    assert {field.name for field in attrs.fields(Figures)} == RECOMPUTED | set(BY_HAND)


def test_every_field_of_the_plain_report_is_recomputed_or_has_a_reason() -> None:
    assert {field.name for field in attrs.fields(Report)} == PLAIN | set(ELSEWHERE)
    assert not PLAIN & set(ELSEWHERE)
    named = [part for reason in ELSEWHERE.values() for part in reason.split() if part.endswith(".py")]
    assert [part for part in named if not (Path(__file__).parents[3] / part).is_file()] == []


def test_counts_of_the_plain_report(rerun: Rerun) -> None:
    report = rerun.result.report
    allocated, released = (
        ["~placeholder" in line["ask"] for line in rerun.decisions if line["event"] == event]
        for event in ("allocation", "release")
    )
    assert (report.allocations, report.releases) == (allocated.count(False), released.count(False))
    preempted = [line["ask"] for line in rerun.decisions if line.get("reason") == "preempted"]
    places = sum("~placeholder" in ask for ask in preempted)
    assert (report.preemptions, report.preempted_placeholders) == (len(preempted) - places, places)
    added = [event for event in rerun.nodes if event["event"] == "add"]
    assert report.nodes == len(added)
    outcomes = [row["outcome"] for row in rerun.rows]
    counts = report.applications
    assert counts.submitted == len(rerun.rows)
    for name in ("finished", "failed", "rejected", "running", "waiting"):
        assert getattr(counts, name) == outcomes.count(name), name
    assert report.application_wait == rerun.result.figures.wait  # recomputed below


def test_decisions_place_one_request_or_a_whole_atomic_gang(rerun: Rerun) -> None:
    found = set()
    for number, line in enumerate(rerun.decisions):
        if line["event"] == "allocation":
            name = line["application"]
            # A task that lost its place is asked for again without its gang.
            is_member = rerun.plans[name].gang == ATOMIC and "~" not in line["ask"]
            found.add(name if is_member else str(number))
    assert rerun.result.report.decisions == len(found)


def test_utilisation_of_the_plain_report(rerun: Rerun) -> None:
    tasks = [line for line in rerun.decisions if "~placeholder" not in line["ask"]]
    for name, share in rerun.result.report.utilisation["default"].items():
        had = rerun.integral(rerun.capacity(name))
        assert share == pytest.approx(rerun.integral(used(tasks, name)) / had, abs=1e-4)


def first_starts(rerun: Rerun) -> dict[str, tuple[float, float]]:
    """Return when the first task, and when the last of all tasks had been started for the first time."""
    starts: dict[str, list[float]] = defaultdict(list)
    for line in rerun.decisions:
        if line["event"] == "allocation" and "~" not in line["ask"]:
            starts[line["application"]].append(line["time"])
    return {name: (times[0], times[-1]) for name, times in starts.items()}


def test_waits_and_what_is_made_of_them(rerun: Rerun) -> None:
    starts = first_starts(rerun)
    first, whole = {}, {}
    for row in rerun.rows:
        plan = rerun.plans[row["application"]]
        if row["application"] in starts:
            first[plan.id] = starts[plan.id][0] - plan.submit / SECOND
            assert float(row["wait"]) == pytest.approx(first[plan.id], abs=1e-5)
        if row["whole_wait"]:
            whole[plan.id] = float(row["whole_wait"])
            assert starts[plan.id][1] - plan.submit / SECOND == pytest.approx(whole[plan.id], abs=1e-5)
    figures = rerun.result.figures
    for summary, waits in ((figures.wait, first), (figures.whole_wait, whole)):
        values = np.array(list(waits.values()))
        assert summary is not None
        assert summary.count == len(values)
        assert summary.mean == pytest.approx(values.mean(), abs=1e-5)
        assert (summary.median, summary.max) == pytest.approx((np.median(values), values.max()), abs=1e-5)
        assert summary.p95 == pytest.approx(np.percentile(values, 95, method="inverted_cdf"), abs=1e-5)
    groups = [(figures.queues, "queue"), (figures.users, "user"), (figures.sizes, "size")]
    for reports, column in groups:
        for group in reports:
            mine = [row for row in rerun.rows if row[column] == group.name]
            assert group.applications == len(mine)
            assert group.finished == sum(row["outcome"] == "finished" for row in mine)
            values = np.array([whole[row["application"]] for row in mine if row["application"] in whole])
            if group.whole_wait is not None:
                assert group.whole_wait.mean == pytest.approx(values.mean(), abs=1e-5)
            else:
                assert not len(values)


def test_slowdown_and_fairness(rerun: Rerun) -> None:
    figures = rerun.result.figures
    found: dict[str, dict[str, list[float]]] = {"queue": defaultdict(list), "user": defaultdict(list)}
    every = []
    for row in rerun.rows:
        plan = rerun.plans[row["application"]]
        if row["outcome"] == "finished":
            longest = max(min(task.runtime, task.timeout or task.runtime) for task in plan.tasks) / SECOND
            slowdown = max((float(row["ended"]) - float(row["submitted"])) / max(longest, 10), 1)
            assert float(row["slowdown"]) == pytest.approx(slowdown, abs=1e-5)
            every.append(slowdown)
            for column, by_name in found.items():
                by_name[row[column]].append(slowdown)
    assert figures.slowdown is not None
    assert figures.slowdown.mean == pytest.approx(np.mean(every), abs=1e-5)
    for column, index in (
        ("queue", figures.fairness.slowdown_of_queues),
        ("user", figures.fairness.slowdown_of_users),
    ):
        means = np.array([np.mean(values) for values in found[column].values()])
        assert index == pytest.approx(means.sum() ** 2 / len(means) / (means**2).sum(), abs=1e-5)
    for groups, index in (
        (figures.queues, figures.fairness.use_of_queues),
        (figures.users, figures.fairness.use_of_users),
    ):
        uses = np.array([group.use for group in groups])
        assert index == pytest.approx(uses.sum() ** 2 / len(uses) / (uses**2).sum(), abs=1e-4)


def test_use_by_queue_and_at_the_end(rerun: Rerun) -> None:
    figures = rerun.result.figures
    names = sorted({name for event in rerun.nodes for name in event["resources"]})
    had = {name: rerun.integral(rerun.capacity(name)) for name in names}
    tasks = [line for line in rerun.decisions if "~placeholder" not in line["ask"]]
    for group in figures.queues:
        mine = [line for line in tasks if line["queue"] == group.name]
        shares = [rerun.integral(used(mine, name)) / had[name] for name in names]
        assert group.use == pytest.approx(max(shares), abs=1e-5)
    for name, share in figures.use_at_end["default"].items():
        busy = sum(amount for _, amount in used(rerun.decisions, name))
        capacity = sum(amount for _, amount in rerun.capacity(name))
        assert share == pytest.approx(busy / capacity, abs=1e-5)
        for group in figures.queues:
            mine = [line for line in rerun.decisions if line["queue"] == group.name]
            busy = sum(amount for _, amount in used(mine, name))
            assert group.use_at_end[name] == pytest.approx(busy / capacity, abs=1e-5)
        assert sum(group.use_at_end[name] for group in figures.queues) == pytest.approx(share, abs=1e-4)


def test_series_of_users(rerun: Rerun) -> None:
    tasks = [line for line in rerun.decisions if "~placeholder" not in line["ask"]]
    users = {row["application"]: row["user"] for row in rerun.rows}
    shown = list(dict.fromkeys(row["user"] for row in rerun.users))
    ranked = sorted(rerun.result.figures.users, key=lambda user: (-user.use, user.name))
    assert shown == [user.name for user in ranked]  # few users, so that there are no others
    edges = sorted({float(row["start"]) for row in rerun.users} | {float(rerun.users[-1]["end"])})
    for user in shown:
        rows = [row for row in rerun.users if row["user"] == user]
        mine = [line for line in tasks if users[line["application"]] == user]
        for name in {row["resource"] for row in rows}:
            found = np.array([float(row["used"]) for row in rows if row["resource"] == name])
            most = max(found.max(), 1.0)
            assert found / most == pytest.approx(means(used(mine, name), edges) / most, abs=1e-6)
        ones = [(line["time"], 1.0 if line["event"] == "allocation" else -1.0) for line in mine]
        found = np.array([float(row["running_tasks"]) for row in rows])[:: len(rows) // (len(edges) - 1)]
        assert found == pytest.approx(means(ones, edges), abs=1e-5)
    for of in ("waiting_tasks", "running_tasks"):
        [whole] = {row["resource"] for row in rerun.utilisation[:1]}
        every = [float(row[of]) for row in rerun.utilisation if row["resource"] == whole]
        names = {row["resource"] for row in rerun.users}
        parts = np.array([float(row[of]) for row in rerun.users if row["resource"] == min(names)])
        assert parts.reshape(len(edges) - 1, -1).sum(1) == pytest.approx(every, abs=1e-5)


def means(changes: list[tuple[float, float]], edges: list[float]) -> Any:
    """Return the means of a sum of changes between edges."""
    times, amounts = (np.array(each, float) for each in zip(*changes, strict=True)) if changes else ([0], [0])
    until = np.array([(np.array(amounts) * np.clip(edge - np.array(times), 0, None)).sum() for edge in edges])
    return np.diff(until) / np.diff(edges)


def test_idle_capacity_adds_up_and_was_free(rerun: Rerun) -> None:
    held = [line for line in rerun.decisions if "~placeholder" in line["ask"]]
    for name, found in rerun.result.figures.idle["default"].items():
        rows = [row for row in rerun.idle if row["resource"] == name]
        usage = [row for row in rerun.utilisation if row["resource"] == name]
        widths = np.array([float(row["end"]) - float(row["start"]) for row in rows])
        idle = np.array([float(row["idle"]) for row in rows])
        parts = np.array([[float(row[cause]) for row in rows] for cause in list(rows[0])[5:]])
        free = np.array([float(row["capacity"]) - float(row["used"]) for row in usage])
        assert parts.sum(0) == pytest.approx(idle, rel=1e-6, abs=1e-3)
        had = rerun.integral(rerun.capacity(name))
        assert (idle * widths).sum() / had == pytest.approx(found.of_capacity, abs=1e-5)
        assert sum(found.causes.values()) == pytest.approx(found.of_capacity, abs=1e-5)
        shrunk = any(event["event"] == "capacity" for event in rerun.nodes)
        if not held and not shrunk:
            assert (idle <= free + 1e-3).all()
        waiting = np.array([float(row["waiting_tasks"]) for row in usage])
        assert not idle[waiting == 0].any()


def test_wait_targets_and_calibration(rerun: Rerun) -> None:
    figures = rerun.result.figures
    for target in figures.slo:
        limit, verdicts = TARGETS[target.queue] / SECOND, [0, 0, 0]
        for row in rerun.rows:
            if f"{row['queue']}.".startswith(f"{target.queue}."):
                last = float(row["ended"]) if row["ended"] else rerun.end
                waited = float(row["whole_wait"]) if row["whole_wait"] else last - float(row["submitted"])
                verdicts[1 if waited > limit else 0 if row["whole_wait"] else 2] += 1
        assert [target.met, target.missed, target.undecided] == verdicts
    pairs = [
        (rerun.plans[row["application"]].recorded_wait / SECOND, float(row["whole_wait"]))
        for row in rerun.rows
        if row["whole_wait"] and rerun.plans[row["application"]].recorded_wait is not None
    ]
    found = figures.calibration
    assert found is not None
    recorded, simulated = (np.array(each) for each in zip(*pairs, strict=True))
    assert found.recorded.mean == pytest.approx(recorded.mean(), abs=1e-5)
    assert found.simulated.mean == pytest.approx(simulated.mean(), abs=1e-5)
    for quantile in found.quantiles:
        expected = np.percentile(simulated, quantile.percent, method="inverted_cdf")
        assert quantile.simulated == pytest.approx(expected, abs=1e-5)
    ranks = [
        (each[:, None] > each).sum(1) + (each[:, None] == each).sum(1) / 2 for each in (recorded, simulated)
    ]
    assert found.rank_correlation == pytest.approx(np.corrcoef(*ranks)[0, 1], abs=1e-5)
    assert sum(user.recorded.count for user in found.users) == len(pairs)
