"""`yunikorn history`: the history of a database, and that of a running scheduler."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.core.kit import RM
from tests.history.written_history import START, WrittenHistory, small_history
from tests.rest.commands.operator_kit import answered, through
from tests.rest.kit import Rest
from yunikorn.clock import MILLISECOND
from yunikorn.model.allocation import TerminationType
from yunikorn_history.commands.record_columns import columns_of
from yunikorn_history.commands.record_formats import write_csv
from yunikorn_history.history_kinds import KINDS
from yunikorn_history.history_tables import AUDIT, CONFIGS, HOUR
from yunikorn_rest.kept_history import KeptHistory

NOW = (START + 24 * HOUR) * MILLISECOND
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of the history of a day."""
    location = str(tmp_path_factory.mktemp("command") / "history.db")
    small_history(location)
    return location


@pytest.fixture(params=["database", "server"])
def history(
    request: pytest.FixtureRequest, stored: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """Run the command on the history of a day, read from its database or from a scheduler."""
    monkeypatch.setattr("yunikorn.clock.SystemClock.now", lambda _: NOW)
    monkeypatch.setenv("TZ", "UTC")
    if request.param == "server":
        answered(monkeypatch, through(Rest(RM(), past=KeptHistory(stored, lambda: NOW))))
    source = ["--history", stored] if request.param == "database" else []
    return lambda *arguments: run("history", *arguments, *source)


def test_apps(history: Run) -> None:
    status, out, err = history("apps", "--user", "bob", "--queue", "root.web")
    assert (status, err) == (0, "")
    title, *rows = (line.split() for line in out.splitlines())
    assert title[:8] == ["APPLICATION", "QUEUE", "USER", "STATE", "SUBMITTED", "WAITED", "RAN", "TASKS"]
    assert [row[:8] for row in rows] == [
        [f"job-{hour}", queue, "bob", state, f"2025-11-27T{hour:02}:00:00+00:00", "1m0s", "1h59m", "2"]
        for hour, queue, state in (
            (10, "root.web", "Completed"),
            (7, "root.web.eu", "Failed"),
            (4, "root.web", "Completed"),
            (1, "root.web.eu", "Completed"),
        )
    ]
    assert {" ".join(row[8:]) for row in rows} == {"0 vcore 4 -"}


def test_tasks_and_series(history: Run) -> None:
    assert history("tasks", "--preempted", "--columns", "task,node,exit,preempted by")[1].splitlines() == [
        "TASK  NODE    EXIT                    PREEMPTED BY",
        "b9    node-1  PREEMPTED_BY_SCHEDULER  job-10, a10",
    ]
    _, out, _ = history("queues", "--queue", "root.batch", "--since", "3h", "--bucket", "hour")
    assert [line.split()[:2] for line in out.splitlines()] == [
        ["TIME", "NAME"],
        *([f"2025-11-27T{hour}:00:00+00:00", "root.batch"] for hour in (23, 22, 21)),
    ]
    _, out, _ = history("usage", "--user", "cid", "--since", "2025-11-27T22:00Z", "--columns", "user,service")
    assert out.splitlines() == ["USER  RESOURCE HOURS", "cid   vcore 277777.777", "cid   vcore 277777.777"]


def test_formats_for_programs(history: Run) -> None:
    wanted = ("apps", "--state", "failed")
    (found,) = json.loads(history(*wanted, "--format", "json")[1])
    assert (found["applicationID"], found["ended"]) == ("job-7", START + 9 * HOUR)
    lines = history("apps", "--user", "bob", "--format", "jsonl", "--columns", "applicationID,waited")[1]
    assert [json.loads(line) for line in lines.splitlines()][:1] == [
        {"applicationID": "job-22", "waited": 60_000}
    ]
    assert len(lines.splitlines()) == 8
    (row,) = csv.DictReader(io.StringIO(history(*wanted, "--format", "csv")[1]))
    assert (row["submitted"], row["service"]) == ("2025-11-27T07:00:00+00:00", '{"vcore": 14400000000}')
    assert json.loads(history("runs", "--format", "json")[1]) == []


class Terminal(io.StringIO):
    """Stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_control_characters_of_names_are_escaped_in_csv_on_a_terminal_alone() -> None:
    column, name = columns_of("apps", KINDS["apps"])["applicationID"], "=a\x1b[2J\u202e"
    for stream, shown in ((io.StringIO(), name), (Terminal(), "=a\\x1b[2J\\u202e")):
        write_csv([column], [{"applicationID": name}], stream)
        assert stream.getvalue().splitlines()[1] == shown


@pytest.mark.parametrize("exit_type", [one.name for one in TerminationType])
def test_tasks_are_found_by_every_end(history: Run, exit_type: str) -> None:
    status, out, _ = history("tasks", "--exit", exit_type.lower(), "--format", "json", "--columns", "exit")
    assert status == 0
    assert {one["exit"] for one in json.loads(out)} <= {exit_type}


def test_series_have_days_by_default_and_shorter_buckets_for_a_short_time(history: Run) -> None:
    for options, bucket in (((), "day"), (("--since", "5d"), "hour"), (("--since", "5h"), "minute")):
        _, out, _ = history("queues", *options, "--format", "json", "--columns", "bucket")
        assert {one["bucket"] for one in json.loads(out)} <= {bucket}


def test_a_limit_that_leaves_something_out_is_said(history: Run) -> None:
    status, out, err = history("apps", "--limit", "2")
    assert (status, len(out.splitlines())) == (0, 3)
    assert err == "note: these are the newest 2: --limit N shows more, --since and --until another time\n"
    assert history("apps", "--limit", "24")[2] == ""
    assert len(history("tasks", "--limit", "0")[1].splitlines()) == 49


def test_files(history: Run, tmp_path: Path) -> None:
    table = pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "apps.parquet"
    assert history("apps", "--format", "parquet", "--output", str(file)) == (0, "", "")
    found = table.read_table(file).to_pylist()
    assert len(found) == 24
    assert found[0]["applicationID"] == "job-23"
    assert found[0]["submitted"].isoformat() == "2025-11-27T23:00:00+00:00"
    assert dict(found[0]["service"]) == {"vcore": 4000 * HOUR}
    assert history("apps", "--format", "csv", "--output", str(tmp_path / "apps.csv"))[0] == 0
    assert sorted(one.name for one in tmp_path.iterdir()) == ["apps.csv", "apps.parquet"]
    status, _, err = history("apps", "--output", str(tmp_path / "none" / "x"))
    assert (status, err) == (2, f"Error: --output {tmp_path / 'none' / 'x'}: No such file or directory\n")


def test_all_problems_are_one_error(history: Run) -> None:
    status, out, err = history(
        *("apps", "--since", "2x", "--node", "n", "--state", "runing", "--columns", "quee,user"),
        *("--text", "1", "--format", "parquet"),
    )
    assert (status, out) == (2, "")
    assert [line.partition(" ")[0] for line in err.splitlines()] == [
        "Error:",
        "--node:",
        "--state:",
        "--columns:",
        "--format",
        "--text",
    ]
    assert "did you mean 'Running'?" in err
    assert "did you mean 'queue'?" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["apps", "--since", "1h", "--until", "2h"], "--until is not after --since"),
        (["queues", "--bucket", "year"], "--bucket: 'year' is unknown; known: minute, hour, day"),
        (["audit", "--queue", "root"], "--queue: is for apps, tasks, queues, usage, runtimes"),
        (["apps", "--columns", ","], "--columns: names no column"),
    ],
)
def test_other_refusals(history: Run, arguments: list[str], message: str) -> None:
    assert history(*arguments) == (2, "", f"Error: {message}\n")


@pytest.mark.parametrize(
    ("arguments", "unknown", "near"),
    [
        (["apps", "--user", "bobb", "--queue", "root.wep"], ["--user", "--queue"], ["bob", "root.web"]),
        (["tasks", "--node", "node-x1", "--app", "job-100"], ["--node", "--app"], ["job-10"]),
        (["queues", "--queue", "nope"], ["--queue"], []),
        (["apps", "--rm", "x", "--partition", "defalt"], ["--rm", "--partition"], ["default"]),
        (["usage", "--user", "bob", "--since", "1m"], [], []),
    ],
)
def test_names_that_a_history_does_not_have(
    history: Run, request: pytest.FixtureRequest, arguments: list[str], unknown: list[str], near: list[str]
) -> None:
    status, _, err = history(*arguments)
    if request.node.callspec.params["history"] == "server":
        assert (status, "check the spelling of --" in err) == (0, True)
        return
    assert status == (2 if unknown else 0)
    named = [line.removeprefix("Error: ").partition(":")[0] for line in err.splitlines()]
    assert sorted(named) == sorted(unknown)
    for name in near:
        assert f"did you mean '{name}'?" in err


@pytest.fixture
def changed(tmp_path: Path) -> str:
    """A history of two configurations and an action."""
    history = WrittenHistory()
    for number, text in enumerate(("partitions:\n- name: default\n", "partitions:\n- name: other\n")):
        history.add(CONFIGS, time=START + number, text=text, checksum=str(number), source="file", by="ann")
    history.add(
        AUDIT, time=START, operator="ann\x1b[2J", role="admin", what="stop queue", target={}, outcome="done"
    )
    history.write(str(tmp_path / "history.db"))
    return str(tmp_path / "history.db")


@pytest.mark.parametrize("is_served", [False, True])
def test_texts_of_configurations(
    run: Run, changed: str, is_served: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = [] if is_served else ["--history", changed]
    if is_served:
        answered(monkeypatch, through(Rest(RM(), past=KeptHistory(changed, lambda: NOW))))
    assert run("history", "configs", "--text", "1", *source)[1] == "partitions:\n- name: default\n"
    assert run("history", "configs", "--diff", "1", "2", *source)[1].splitlines() == [
        "--- configuration 1",
        "+++ configuration 2",
        "@@ -1,2 +1,2 @@",
        " partitions:",
        "-- name: default",
        "+- name: other",
    ]
    assert run("history", "configs", "--text", "7", *source)[0] == 1


def test_names_cannot_control_the_terminal(run: Run, changed: str) -> None:
    _, out, _ = run("history", "audit", "--history", changed)
    assert "\x1b" not in out
    assert "ann\\x1b[2J" in out


def test_histories_that_cannot_be_read(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = str(tmp_path / "none.db")
    status, _, err = run("history", "apps", "--history", missing)
    assert (status, err.startswith(f"Error: history {missing}: no such file")) == (2, True)
    status, _, err = run("history", "apps", "--history", missing, "--server", "x")
    assert (status, err) == (2, "Error: --history and --server exclude each other\n")
    answered(monkeypatch, through(Rest(RM())))
    status, _, err = run("history", "apps")
    assert (status, "--history FILE" in err) == (2, True)


def test_parquet_needs_its_extra(
    run: Run, stored: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    arguments = ("apps", "--history", stored, "--format", "parquet", "--output", str(tmp_path / "x"))
    status, _, err = run("history", *arguments)
    assert (status, err.endswith("needed for --format parquet: pip install 'yunikorn[parquet]'\n")) == (
        2,
        True,
    )


def test_buckets_fit_the_time(history: Run) -> None:
    assert len(history("queues", "--queue", "root.batch", "--since", "1d")[1].splitlines()) == 25
    assert len(history("queues", "--queue", "root.batch")[1].splitlines()) == 1


def test_run_times_by_groups(history: Run) -> None:
    status, out, err = history("runtimes", "--by", "user,resource", "--queue", "root.batch")
    assert (status, err) == (0, "")
    head, first, *_ = out.splitlines()
    assert head.split() == ["USER", "RESOURCE", "TASKS", "P50", "P90", "P95", "P99"]
    assert first.split()[1] in ("vcore", "memory")
    found = json.loads(history("runtimes", "--format", "json")[1])
    assert found == sorted(found, key=lambda one: -one["tasks"])
    assert all(set(one) >= {"user", "template", "tasks", "p50"} for one in found)
    status, out, err = history("runtimes", "--by", "user,colour")
    assert (status, out, "--by: 'colour' is unknown" in err) == (2, "", True)
