"""Reports of usage: each figure is calculated again with numpy from the rows of tasks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.core.kit import RM
from tests.history.reports_kit import ReportRun, periods, window_options
from tests.history.small_history import BEGIN, END, QUEUES, MadeTask, SmallHistory, ran
from tests.rest.commands.operator_kit import answered, through
from tests.rest.kit import Rest
from yunikorn.clock import MILLISECOND
from yunikorn_commands.command_group import main
from yunikorn_history.history_tables import DAY, HOUR, PLACEHOLDER, PREEMPTED, QUEUE_SERIES
from yunikorn_rest.kept_history import KeptHistory

UNITS = {"vcore": 1000 * HOUR, "memory": 2**30 * HOUR, "nvidia.com/gpu": HOUR}
SUBJECTS: dict[str, Callable[[MadeTask], str]] = {
    "queue": lambda task: task.app.queue,
    "user": lambda task: task.app.user,
    "group": lambda task: task.app.group,
    "tag:team": lambda task: task.app.team or "",
    "template": lambda task: task.app.template,
}
WINDOWS = {
    "whole": (None, None, BEGIN, END),
    "hours": (
        "2026-02-27T05:20",
        "2026-03-02T02:10",
        BEGIN + 7 * DAY + 5 * HOUR,
        BEGIN + 10 * DAY + 3 * HOUR,
    ),
    "days": ("2026-02-21T05:20", "2026-03-10T02:10", BEGIN + DAY, BEGIN + 19 * DAY),
}
"""Options, and the time in whole hours or days that a report is of."""


def calculated(tasks: list[MadeTask], by: str, period: str, since: int, until: int) -> dict[Any, Any]:
    """Return the figures by group and period, from arrays of all tasks."""
    subject = np.array([SUBJECTS[by](task) for task in tasks])
    placed = np.array([task.placed for task in tasks], dtype=np.int64)
    ended = np.array([END if task.ended is None else task.ended for task in tasks], dtype=np.int64)
    is_open = np.array([task.ended is None for task in tasks])
    flags = np.array([task.flags for task in tasks])
    holds = flags & PLACEHOLDER != 0
    lost = (flags & PREEMPTED != 0) & ~holds
    found = {}
    for name, begin, end in periods(period, since, until):
        clipped = np.maximum(np.minimum(ended, end) - np.maximum(placed, begin), 0)
        for group in np.unique(subject):
            mine = subject == group
            sums = {}
            for key, chosen in (
                ("hours", mine),
                ("lost_hours", mine & lost),
                ("placeholder_hours", mine & holds),
            ):
                for kind, unit in UNITS.items():
                    amounts = np.array([task.size.get(kind, 0) for task in tasks], dtype=np.float64)
                    sums[key, kind] = float((amounts * clipped)[chosen].sum() / unit)
            began = mine & ~holds & (placed >= begin) & (placed < end)
            over = mine & ~holds & ~is_open & (ended >= begin) & (ended < end)
            counts = int(began.sum()), int(over.sum()), int((over & lost).sum())
            if any(sums.values()) or any(counts):
                found[str(group), name] = sums, counts
    return found


@pytest.mark.parametrize("period", ["", "day", "week", "month"])
@pytest.mark.parametrize("by", SUBJECTS)
@pytest.mark.parametrize("when", WINDOWS)
def test_usage_is_that_of_the_tasks(
    report: ReportRun, history: SmallHistory, by: str, period: str, when: str
) -> None:
    since, until, begin, end = WINDOWS[when]
    found = report("usage", "--by", ",".join(filter(None, (by, period))), *window_options(since, until))
    assert (found["since"], found["until"]) == (begin, end)
    expected = calculated(history.tasks, by, period, begin, end)
    rows = {(row[by], row.get(period, "")): row for row in found["tables"]["usage"]}
    assert expected.keys() == rows.keys()
    for key, (sums, counts) in expected.items():
        row = rows[key]
        assert (row["tasks"], row["ended"], row["preempted"]) == counts, key
        for (figure, kind), value in sums.items():
            assert row[figure].get(kind, 0) == pytest.approx(value, abs=2e-6), (key, figure, kind)


def guaranteed_hours(history: SmallHistory, queue: str, begin: int, end: int) -> dict[str, float]:
    """Return the guarantee of a queue over a time, by the days that have one and the days after them."""
    days = np.arange(BEGIN, END, DAY)
    steps = {
        time: data.get("guaranteed", {})
        for kind, name, level, time, data in history.series
        if kind == QUEUE_SERIES and name == queue and level == 3
    }
    known = np.array([day in steps for day in days])
    latest = np.maximum.accumulate(np.where(known, np.arange(len(days)), -1))
    latest = np.where(latest < 0, np.argmax(known), latest)
    parts = [(max(day, begin), min(day + DAY, end)) for day in range(BEGIN, END, DAY)]
    lengths = np.array([ran(since, max(since, until)) for since, until in parts])
    found = {}
    for kind in QUEUES[queue]:
        amounts = np.array([steps[days[index]].get(kind, 0) for index in latest], dtype=np.float64)
        found[kind] = float((amounts * lengths).sum() / UNITS[kind])
    return found


def test_the_used_part_of_a_guarantee_is_that_of_all_days(report: ReportRun, history: SmallHistory) -> None:
    for row in report("usage")["tables"]["usage"]:
        expected = guaranteed_hours(history, row["queue"], BEGIN, END)
        assert row["guarantee_hours"] == pytest.approx(expected, abs=1e-5)
        shares = {kind: row["hours"][kind] / value for kind, value in expected.items()}
        assert row["use_of_guarantee"] == pytest.approx(shares, abs=1e-5)
        assert row["of_guarantee"] == (pytest.approx(max(shares.values()), abs=1e-5) if shares else None)


PRICES = """\
currency: EUR
prices: {vcore: 0.03, memory: 0.004, nvidia.com/gpu: 2}
queues:
  root.science: {vcore: 0.02}
  root.science.biology: {nvidia.com/gpu: 0}
"""


def test_cost_follows_the_prices_of_the_nearest_queue(report: ReportRun, tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(PRICES)
    prices = {"vcore": 0.03, "memory": 0.004, "nvidia.com/gpu": 2.0}
    science = prices | {"vcore": 0.02}
    own = {"root.science.physics": science, "root.science.biology": science | {"nvidia.com/gpu": 0.0}}
    found = report("usage", "--prices", str(file))
    assert found["currency"] == "EUR"
    total = 0.0
    for row in found["tables"]["usage"]:
        mine = own.get(row["queue"], prices)
        cost = sum(mine[kind] * hours for kind, hours in row["hours"].items())
        assert row["cost"] == pytest.approx(cost, abs=0.006)
        total += row["cost"]
    by_user = report("usage", "--by", "user,week", "--prices", str(file))["tables"]["usage"]
    assert sum(row["cost"] for row in by_user) == pytest.approx(total, abs=0.3)
    assert len(by_user) > 8


def test_filters_leave_out_other_queues_and_users(report: ReportRun, history: SmallHistory) -> None:
    found = report("usage", "--by", "user", "--queue", "root.science", "--user", "ada")
    tasks = [
        task for task in history.tasks if task.app.queue.startswith("root.science") and task.app.user == "ada"
    ]
    ((sums, counts),) = calculated(tasks, "user", "", BEGIN, END).values()
    (row,) = found["tables"]["usage"]
    assert row["hours"]["vcore"] == pytest.approx(sums["hours", "vcore"], abs=2e-6)
    assert row["tasks"] == counts[0]


def test_problems_of_prices_are_all_listed_with_their_places(
    history_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text("prices: {vcore: -2, memory: x}\nqueues:\n  science: {vcore: 1}\nother: 1\n")
    assert main(["report", "usage", "--history", history_file, "--prices", str(file)]) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"Error: {file}: prices.vcore (line 1, column 17): expected a price from 0 to 1e+12, got -2",
        f"{file}: prices.memory (line 1, column 29): expected a number, got 'x'",
        f"{file}: queues.science (line 3, column 3): expected the full path of a queue, such as root.batch",
        f"{file}: other (line 4, column 1): unknown key; known: currency, prices, queues",
    ]


@pytest.mark.parametrize("source", ["database", "server"])
def test_prices_of_unknown_resource_types_and_queues_are_refused(
    history_file: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    source: str,
) -> None:
    if source == "server":
        answered(monkeypatch, through(Rest(RM(), past=KeptHistory(history_file, lambda: END * MILLISECOND))))
    file = tmp_path / "prices.yaml"
    known = "root.science: {vcore: 1}, root.science.physics: {vcore: 2}, root: {vcore: 3}"
    file.write_text(f"prices: {{vcores: 0.03}}\nqueues: {{root.science.biologie: {{vcore: 1}}, {known}}}\n")
    # A queue that did nothing in the time of the report is known, too.
    options = ["--prices", str(file), "--until", "2026-02-21"]
    options += ["--history", history_file] if source == "database" else []
    assert main(["report", "usage", *options]) == 2
    assert capsys.readouterr().err == (
        f"Error: {file}: the history has no resource type 'vcores', did you mean 'vcore'?; "
        f"known: memory, nvidia.com/gpu, vcore\n{file}: queues.root.science.biologie: the history has no "
        "queue 'root.science.biologie', did you mean 'root.science.biology'?\n"
    )
