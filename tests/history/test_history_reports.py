"""Reports of waits, fairness, preemption and waste: each figure is calculated again with numpy."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from tests.core.kit import RM
from tests.history.reports_kit import ReportRun, hours_of, period_label, window_options
from tests.history.small_history import (
    BEGIN,
    CAPACITY,
    END,
    PARENTS,
    QUEUES,
    MadeApplication,
    MadeTask,
    SmallHistory,
    add,
    ran,
    text,
    wait_bound,
)
from tests.rest.commands.operator_kit import answered, through
from tests.rest.kit import Rest
from yunikorn.clock import MILLISECOND
from yunikorn_commands.command_group import main
from yunikorn_history.database import open_writer
from yunikorn_history.history_tables import (
    DAY,
    HOUR,
    LEVELS,
    MINUTE,
    PARTITION_SERIES,
    QUEUE_SERIES,
    RUNS,
    SERIES,
)
from yunikorn_history.row_writer import RowWriter
from yunikorn_history.rows import Ids, RowBatch
from yunikorn_rest.kept_history import KeptHistory

QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "max": 1.0}
SUBJECTS: dict[str, Callable[[MadeApplication], str]] = {
    "queue": lambda app: app.queue,
    "user": lambda app: app.user,
    "group": lambda app: app.group,
    "tag:team": lambda app: app.team or "",
    "template": lambda app: app.template,
}
HALF = ("2026-02-27T05:20", "2026-03-02T02:10", BEGIN + 7 * DAY + 5 * HOUR, BEGIN + 10 * DAY + 3 * HOUR)
WINDOWS = {"whole": (None, None, BEGIN, END), "hours": HALF}
Series = list[tuple[str, int, dict[str, Any]]]


def quantiles(waits: list[int]) -> dict[str, float | None]:
    """Return the quantiles by nearest rank, in seconds."""
    if not waits:
        return dict.fromkeys(QUANTILES)
    found = {
        name: np.quantile(np.array(waits), part, method="inverted_cdf") for name, part in QUANTILES.items()
    }
    return {name: float(value) / 1000 for name, value in found.items()}


def series_of(history: SmallHistory, kind: int, level: int, since: int, until: int) -> Series:
    """Return the rows of a series in a time."""
    return [
        (name, time, data)
        for of, name, at, time, data in history.series
        if (of, at) == (kind, level) and since <= time < until
    ]


# -- waits ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("period", ["", "week"])
@pytest.mark.parametrize("by", SUBJECTS)
@pytest.mark.parametrize("when", WINDOWS)
def test_waits_are_those_of_applications_and_tasks(
    report: ReportRun, history: SmallHistory, by: str, period: str, when: str
) -> None:
    since, until, begin, end = WINDOWS[when]
    found = report("waits", "--by", ",".join(filter(None, (by, period))), *window_options(since, until))
    apps: dict[Any, list[MadeApplication]] = defaultdict(list)
    tasks: dict[Any, list[int]] = defaultdict(list)
    for app in history.applications:
        if begin <= app.submitted < end:
            apps[SUBJECTS[by](app), period_label(period, app.submitted)].append(app)
    for task in history.tasks:
        if begin <= task.placed < end and task.has_wait:
            key = SUBJECTS[by](task.app), period_label(period, task.placed)
            tasks[key].append(wait_bound(task.placed - task.requested))
    rows = {(row[by], row.get(period, "")): row for row in found["tables"]["waits"]}
    assert rows.keys() == apps.keys() | tasks.keys()
    for key, row in rows.items():
        waits = [app.started - app.submitted for app in apps[key] if app.started is not None]
        assert (row["applications"], row["started"], row["tasks"]) == (
            len(apps[key]),
            len(waits),
            len(tasks[key]),
        )
        assert row["wait"] == quantiles(waits)
        assert row["task_wait"] == quantiles(tasks[key])
    causes: dict[Any, int] = defaultdict(int)
    for key, those in apps.items():
        for app in those:
            for cause, milliseconds in app.waits.items():
                causes[(*key, cause)] += milliseconds
    assert {
        (row[by], row.get(period, ""), row["cause"]): row["seconds"] for row in found["tables"]["causes"]
    } == {key: value / 1000 for key, value in causes.items()}


def test_the_longest_waits_are_those_of_applications_that_started_or_did_not(
    report: ReportRun, history: SmallHistory
) -> None:
    longest = sorted(
        ((app.started or app.ended or END) - app.submitted for app in history.applications), reverse=True
    )
    rows = report("waits")["tables"]["longest"]
    assert [row["wait"] for row in rows] == [wait / 1000 for wait in longest[:20]]
    assert {row["started"] for row in rows} == {True, False}


# -- fairness ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("period", ["", "day", "week"])
def test_shares_of_queues_are_among_siblings(report: ReportRun, history: SmallHistory, period: str) -> None:
    found = report("fairness", "--by", ",".join(filter(None, ("queue", period))))
    used: dict[Any, float] = defaultdict(float)
    for path in (*QUEUES, *PARENTS):
        mine = [task for task in history.tasks if f"{task.app.queue}.".startswith(f"{path}.")]
        for label, hours in hours_of(mine, "vcore", period, BEGIN, END).items():
            used[path, label] = hours
    for row in found["tables"]["fairness"]:
        path, label = row["queue"], row.get(period, "")
        assert row["hours"].get("vcore", 0) == pytest.approx(used[path, label], abs=2e-6)
        if path != "root":
            parent = path.rpartition(".")[0]
            among = [one for one in (*QUEUES, *PARENTS) if one.rpartition(".")[0] == parent]
            total = sum(used[one, label] for one in among)
            expected = used[path, label] / total if total else None
            assert row["share"].get("vcore") == (
                pytest.approx(expected, abs=2e-6) if expected is not None else None
            )


@pytest.mark.parametrize("when", WINDOWS)
def test_time_below_a_guarantee_is_that_of_means_with_pending_requests(
    report: ReportRun, history: SmallHistory, when: str
) -> None:
    since, until, begin, end = WINDOWS[when]
    level, length = (3, DAY) if when == "whole" else (2, HOUR)
    rows = report("fairness", *window_options(since, until))["tables"]["fairness"]
    for row in rows:
        mine = [
            (time, data)
            for name, time, data in series_of(history, QUEUE_SERIES, level, begin, end)
            if name == row["queue"] and data.get("guaranteed")
        ]
        lengths = np.array([ran(time, min(time + length, end)) for time, _ in mine], dtype=np.float64)
        is_below = np.zeros(len(mine), dtype=bool)
        kinds = {kind for _, data in mine for kind in data["guaranteed"]}
        assert row["guarantee_met"].keys() == kinds
        for kind in kinds:
            guaranteed, use, pending = (
                np.array([data.get(field, {}).get(kind, 0) for _, data in mine], dtype=np.float64)
                for field in ("guaranteed", "used", "pending")
            )
            owed = np.minimum(guaranteed, use + pending)
            had = np.minimum(use, owed)
            assert row["guarantee_met"][kind] == pytest.approx((had @ lengths) / (owed @ lengths), abs=1e-6)
            is_below |= (pending > 0) & (use < guaranteed)
        assert row["below_seconds"] == float(lengths[is_below].sum()) / 1000


@pytest.mark.parametrize("by", ["queue", "group", "tag:team"])
def test_evenness_is_that_of_the_used_hours(report: ReportRun, history: SmallHistory, by: str) -> None:
    found = report("fairness", "--by", f"{by},week")
    used: dict[str, list[float]] = defaultdict(list)
    for group in {SUBJECTS[by](app) for app in history.applications}:
        mine = [task for task in history.tasks if SUBJECTS[by](task.app) == group]
        for label, hours in hours_of(mine, found["resource"], "week", BEGIN, END).items():
            used[label].append(hours)
    for row in found["tables"]["evenness"]:
        values = np.array([hours for hours in used[row["week"]] if hours])
        assert row["groups"] == len(values)
        if not len(values):
            assert row["jain_of_use"] is None
            continue
        jain = values.sum() ** 2 / (len(values) * (values**2).sum())
        assert row["jain_of_use"] == pytest.approx(jain, abs=1e-5)
        apart = np.abs(values[:, None] - values[None, :]).sum()
        assert row["gini_of_use"] == pytest.approx(apart / (2 * len(values) * values.sum()), abs=1e-5)


# -- preemption -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("period", ["", "month"])
@pytest.mark.parametrize("by", ["queue", "group", "template", "tag:team"])
@pytest.mark.parametrize("when", WINDOWS)
def test_losses_are_those_of_preempted_tasks(
    report: ReportRun, history: SmallHistory, by: str, period: str, when: str
) -> None:
    since, until, begin, end = WINDOWS[when]
    found = report("preemption", "--by", ",".join(filter(None, (by, period))), *window_options(since, until))
    group = SUBJECTS[by]
    apps = {app.app_id: app for app in history.applications}
    expected: dict[Any, list[MadeTask]] = defaultdict(list)
    for task in history.tasks:
        if task.is_preempted and task.ended is not None and begin <= task.ended < end:
            to = group(apps[json.loads(task.preemptor)[0]]) if task.preemptor[0] == "[" else task.preemptor
            expected[group(task.app), to, period_label(period, task.ended)].append(task)
    rows = {(row[by], row[f"for_{by}"], row.get(period, "")): row for row in found["tables"]["preemption"]}
    assert rows.keys() == expected.keys()
    for key, tasks in expected.items():
        own = [task for task in tasks if not task.is_placeholder]
        row = rows[key]
        assert (row["tasks"], row["placeholders"]) == (len(own), len(tasks) - len(own))
        assert row["applications"] == len({task.app.app_id for task in tasks})
        ran = np.array([(task.ended or 0) - task.placed for task in own], dtype=np.float64)
        cores = np.array([task.size["vcore"] for task in own], dtype=np.float64)
        assert row["lost_hours"].get("vcore", 0) == pytest.approx(float(ran @ cores) / 3.6e9, abs=1e-6)
        mean = pytest.approx(float(ran.mean()) / 1000, abs=1e-6) if own else None
        assert row["mean_seconds"] == mean
    own = [task for tasks in expected.values() for task in tasks if not task.is_placeholder]
    _, counts = np.unique([task.app.app_id for task in own], return_counts=True)
    assert found["tables"]["applications"][0]["tasks"] == max(counts, default=0)


def test_preemption_by_periods_adds_up_all_groups(report: ReportRun) -> None:
    whole, weeks = (report("preemption", "--by", by)["tables"]["preemption"] for by in ("queue", "week"))
    assert sum(row["tasks"] for row in weeks) == sum(row["tasks"] for row in whole) > 0
    assert {tuple(row)[:2] for row in weeks} == {("week", "tasks")}


def test_all_resource_hours_have_their_price(
    report: ReportRun, history: SmallHistory, tmp_path: Path
) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text("prices: {vcore: 0.03}\nqueues: {root.science: {vcore: 0.02}}\n")
    prices = ("--prices", str(file))
    costs = {row["queue"]: row["cost"] for row in report("usage", *prices)["tables"]["usage"]}
    fair = {row["queue"]: row["cost"] for row in report("fairness", *prices)["tables"]["fairness"]}
    assert fair == pytest.approx({**fair, **costs, "root": sum(costs.values())}, abs=0.02)
    groups = report("fairness", "--by", "group", *prices)["tables"]["fairness"]
    assert sum(row["cost"] for row in groups) == pytest.approx(sum(costs.values()), abs=0.02)

    lost = [task for task in history.tasks if task.is_preempted and not task.is_placeholder]
    paid = np.array([0.02 if task.app.queue.startswith("root.science") else 0.03 for task in lost])
    used = np.array([((task.ended or 0) - task.placed) * task.size["vcore"] for task in lost]) / 3.6e9
    rows = report("preemption", "--by", "user", *prices)["tables"]["preemption"]
    assert sum(row["cost"] for row in rows) == pytest.approx(float(paid @ used), abs=0.01 * len(rows))

    held = [task for task in history.tasks if task.is_placeholder]
    spent = sum(
        (0.02 if task.app.queue.startswith("root.science") else 0.03) * hours
        for task in (*held, *lost)
        for hours in hours_of([task], "vcore", "", BEGIN, END).values()
    )
    waste = report("waste", "--by", "month", *prices)["tables"]
    idle = sum(row["idle_hours"] for row in waste["waste"] if row["resource"] == "vcore")
    total = sum(row["cost"] for row in waste["waste"])
    assert total == pytest.approx(spent + 0.03 * idle, abs=0.1)
    assert sum(row["cost"] for row in waste["causes"]) == pytest.approx(0.03 * idle, abs=0.1)


# -- waste ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("period", ["day", "week", "month"])
@pytest.mark.parametrize("when", WINDOWS)
def test_waste_is_that_of_the_partition_and_its_tasks(
    report: ReportRun, history: SmallHistory, period: str, when: str
) -> None:
    since, until, begin, end = WINDOWS[when]
    level, length = (3, DAY) if when == "whole" else (2, HOUR)
    found = report("waste", "--by", period, *window_options(since, until))
    whole = series_of(history, PARTITION_SERIES, level, begin, end)
    rows = {(row[period], row["resource"]): row for row in found["tables"]["waste"]}
    causes = {(row[period], row["resource"], row["cause"]): row["hours"] for row in found["tables"]["causes"]}
    units = {"vcore": 3.6e9, "memory": 2**30 * 3.6e6, "nvidia.com/gpu": 3.6e6}
    holds = [task for task in history.tasks if task.is_placeholder]
    lost = [task for task in history.tasks if task.is_preempted and not task.is_placeholder]
    for kind, unit in units.items():
        held, gone = (hours_of(tasks, kind, period, begin, end) for tasks in (holds, lost))
        for label in held:
            mine = [(time, data) for _, time, data in whole if period_label(period, time) == label]
            if not mine:
                continue
            lengths = np.array([ran(time, min(time + length, end)) for time, _ in mine], dtype=np.float64)
            use = np.array([data["used"][kind] for _, data in mine])
            row = rows[label, kind]
            assert row["capacity_hours"] == pytest.approx(CAPACITY[kind] * lengths.sum() / unit)
            assert row["used_hours"] == pytest.approx(float(use @ lengths) / unit, abs=1e-5)
            assert row["placeholder_hours"] == pytest.approx(held[label], abs=2e-6)
            assert row["lost_hours"] == pytest.approx(gone[label], abs=2e-6)
            idle = 0.0
            for cause in {cause for _, data in mine for cause in data["idle"]}:
                stood = sum(data["idle"].get(cause, {}).get(kind, 0) for _, data in mine) / unit
                assert causes.get((label, kind, cause), 0) == pytest.approx(stood, abs=2e-6)
                idle += stood
            assert row["idle_hours"] == pytest.approx(idle, abs=1e-5)


# -- times in which the scheduler ran -----------------------------------------------------------------------


def write_hours(file: str, runs: list[tuple[int, int, int | None]], series: Series) -> None:
    """Write runs (begin, latest sign, end), and rows of hours of the partition or of queues."""
    writer, names, batch = open_writer(file), Ids("names", {}), RowBatch()
    for number, (started, seen, ended) in enumerate(runs):
        add(batch, RUNS, id=number, started=started, seen=seen, ended=ended)
    for name, time, data in series:
        kind = QUEUE_SERIES if name else PARTITION_SERIES
        for level in (2, 3):
            at = time // LEVELS[level] * LEVELS[level]
            add(batch, SERIES, kind=kind, name=names.of(name), level=level, time=at, data=text(data))
    names.move_to(batch)
    RowWriter(writer).write(batch)
    writer.close()


def test_capacity_and_guarantees_count_for_the_time_in_which_a_scheduler_ran(
    report: ReportRun, tmp_path: Path
) -> None:
    first = BEGIN + 20 * MINUTE
    runs = [
        (first, first + MINUTE, first + MINUTE),
        (first + 30 * MINUTE, first + 30 * MINUTE + 25_000, None),
    ]
    whole = {"n": 3, "capacity": {"vcore": 32_000}, "used": {"vcore": 16_000}}
    guarantee = {"guaranteed": {"vcore": 8_000}, "pending": {"vcore": 1}, "used": {"vcore": 2_000}}
    file = str(tmp_path / "short.db")
    write_hours(file, runs, [("", BEGIN, whole), ("root.a", BEGIN, {"n": 3, **guarantee})])
    [waste] = report("waste", history=file)["tables"]["waste"]
    assert waste["capacity_hours"] == pytest.approx(32 * 85 / 3600, abs=1e-5)
    assert waste["used_hours"] == pytest.approx(16 * 85 / 3600, abs=1e-5)
    [fair] = report("fairness", history=file)["tables"]["fairness"]
    assert fair["below_seconds"] == 85
    assert fair["guarantee_hours"]["vcore"] == pytest.approx(8 * 85 / 3600, abs=1e-5)


def test_an_hour_whose_capacity_and_guarantee_changed_has_their_means(
    report: ReportRun, tmp_path: Path
) -> None:
    whole = {"n": 6, "capacity": {"vcore": 2_000}, "used": {"vcore": 50_000}}
    whole["mean"] = {"capacity": {"vcore": 80_000.5}}
    queue = {"n": 6, "guaranteed": {"vcore": 2_000}, "mean": {"guaranteed": {"vcore": 8_000}}}
    file = str(tmp_path / "means.db")
    write_hours(file, [(BEGIN, BEGIN + 2 * DAY, None)], [("", BEGIN, whole), ("root.a", BEGIN, queue)])
    options = "--since", "2026-02-20", "--until", "2026-03-20"
    [waste] = report("waste", *options, history=file)["tables"]["waste"]
    assert waste["capacity_hours"] == 80.0005
    [fair] = report("fairness", *options, history=file)["tables"]["fairness"]
    assert fair["guarantee_hours"]["vcore"] == 8 + 47 * 2


# -- forms ------------------------------------------------------------------------------------------------

KINDS = {
    "usage": ("--by", "tag:team,week"),
    "waits": ("--by", "template"),
    "fairness": (),
    "preemption": ("--by", "user"),
    "waste": (),
}


@pytest.mark.slow
def test_reports_of_both_kinds_of_databases_are_equal(
    report: ReportRun, history: SmallHistory, postgresql: str
) -> None:
    history.write(postgresql)
    for kind, options in KINDS.items():
        assert report(kind, *options) == report(kind, *options, history=postgresql)


ON_A_SERVER = {
    **KINDS,
    "usage of days": ("--by", "queue,month", "--queue", "root.science"),
    "usage of templates": ("--by", "template", *window_options(*HALF[:2])),
    "waits of queues": ("--by", "queue,day", *window_options(*HALF[:2])),
    "waits of a user": ("--by", "user", "--user", "ada"),
    "fairness of groups": ("--by", "group,week"),
    "preemption of tags": ("--by", "tag:team"),
}


@pytest.mark.parametrize("case", ON_A_SERVER)
def test_a_running_scheduler_gives_the_same_report(
    report: ReportRun, history_file: str, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = report(case.split()[0], *ON_A_SERVER[case])
    rest = Rest(RM(), past=KeptHistory(history_file, lambda: END * MILLISECOND))
    answered(monkeypatch, through(rest))
    assert report(case.split()[0], *ON_A_SERVER[case], history="") == expected


# -- messages ---------------------------------------------------------------------------------------------

REFUSED = {
    "an unknown group": (
        ("usage", "--by", "quue"),
        "--by: there are no groups by 'quue', did you mean 'queue'?; known: queue, user, group, template, "
        "tag:NAME, day, week, month",
    ),
    "two subjects": (
        ("waits", "--by", "queue,user"),
        "--by queue,user: expected one or two, of which one may be a period, such as queue,month",
    ),
    "a period alone": (
        ("fairness", "--by", "week"),
        "--by week: expected a group as well, such as queue,week; known: queue, user, group, template, "
        "tag:NAME, day, week, month",
    ),
    "waste of queues": (
        ("waste", "--by", "queue"),
        "--by: there are no groups by 'queue'; known: day, week, month; idle capacity belongs to no group, "
        "and `yunikorn report usage` has by group what was lost and what placeholders held",
    ),
    "an unknown tag": (
        ("preemption", "--by", "tag:teem"),
        "--by: no application of the history has the tag 'teem', did you mean 'team'?; it has: team "
        "(--history-tags of the scheduler chooses which are kept)",
    ),
    "a filter that does not apply": (
        ("fairness", "--queue", "root.web"),
        "--queue does not apply to the report of fairness",
    ),
    "two periods": (("waste", "--by", "day,week"), "--by day,week: expected one"),
    "a tag without a name": (
        ("usage", "--by", "tag:"),
        "--by: tag: needs the name of a tag, such as tag:team",
    ),
    "an unknown queue": (
        ("waits", "--queue", "root.wep"),
        "--queue: the history has no queue 'root.wep', did you mean 'root.web'?",
    ),
    "a window without data": (
        ("waste", "--since", "2027-01-01"),
        "the history has nothing of this time: it begins at 2026-02-20T00:00Z and ends at 2026-03-13T07:00Z",
    ),
    "a window that ends before it begins": (
        ("waste", "--since", "2026-03-02", "--until", "2026-03-01"),
        "--since has to be earlier than --until",
    ),
    "an unknown table": (
        ("waits", "--format", "csv", "--table", "wait"),
        "--table: the report has no table 'wait'; known: waits, causes, longest",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_calls_are_refused_in_words(
    history_file: str, case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (kind, *options), message = REFUSED[case]
    assert main(["report", kind, "--history", history_file, *options]) == 2
    assert capsys.readouterr().err == f"Error: {message}\n"


def test_a_history_without_runs_is_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "empty.db")
    open_writer(file).close()
    assert main(["report", "usage", "--history", file]) == 2
    assert "the history is empty: no scheduler has written to it yet" in capsys.readouterr().err


def test_a_run_without_any_work_has_empty_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "idle.db")
    SmallHistory([], []).write(file)
    for kind in KINDS:
        for form in ("text", "json", "csv"):
            assert main(["report", kind, "--history", file, "--format", form]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_page_is_written_whole_with_escaped_names(
    kind: str, history: SmallHistory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, page = str(tmp_path / "hostile.db"), tmp_path / "page.html"
    hostile = "<script>alert(1)</script>"
    apps = [attrs.evolve(app, app_id=hostile, template=hostile, team=hostile) for app in history.applications]
    SmallHistory(apps, history.series).write(file)
    options = ["--history", file, *KINDS[kind], "--format", "html", "--output", str(page)]
    assert main(["report", kind, *options]) == 0
    text = page.read_text("utf-8")
    assert text.endswith("</html>\n") or text.endswith("</html>")
    assert hostile not in text
    assert "<svg" in text
    assert capsys.readouterr().out == ""
