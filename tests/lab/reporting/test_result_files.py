"""The files of --out: their contents, and no partial file looks complete."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import re
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import IO, Any

import pytest
from rich.console import Console

from yunikorn.errors import UsageError
from yunikorn_lab.reporting import result_files
from yunikorn_lab.reporting.full_report import FullReport
from yunikorn_lab.reporting.result_files import ResultFiles
from yunikorn_lab.reporting.tables import Table
from yunikorn_lab.reporting.terminal_output import print_report, print_tables
from yunikorn_lab.simulation.out_folder import CLAIM, OutFolder

Observe = Callable[..., FullReport]
SCENARIO = """
name: "<b>tuesday"
nodes: [{name: n, resources: {vcore: 2}}]
applications:
  - {id: x, queue: root.a, user: ann, tasks: [{name: t, count: 3, resources: {vcore: 1}, runtime: 20}]}
  - {id: y, queue: root.a, submit: 10, tasks: [{resources: {vcore: 1}, runtime: 50}]}
events: [{at: 5, node: n, action: capacity, resources: {vcore: 3}}]
"""
GUARANTEED = "          - {name: a, resources: {guaranteed: {vcore: 1}, max: {vcore: 2}}}"
PLAIN = [
    "applications.csv",
    "applications.jsonl",
    "decisions.jsonl",
    "idle.csv",
    "nodes.jsonl",
    "queues.csv",
    "report.json",
    "results.json.gz",
    "users.csv",
    "utilisation.csv",
]


@pytest.fixture
def write(observe: Observe, tmp_path: Path) -> Callable[..., Path]:
    """Return a function that simulates the scenario into a folder; `until` is in seconds."""

    def run(name: str = "out", until: float | None = None, **options: Any) -> Path:
        folder = tmp_path / name
        with ResultFiles(folder, **{"pictures": False, **options}) as files:
            result = observe(SCENARIO, GUARANTEED, until=until, recorder=files, rows=files)
            files.write(result)
        return folder

    return run


def table(path: Path) -> Iterator[dict[str, str]]:
    """Return the rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def names(folder: Path) -> list[str]:
    """Return the names of the results in a folder."""
    return sorted(path.name for path in folder.iterdir() if path.name != CLAIM)


def test_applications_csv(write: Callable[..., Path]) -> None:
    x, y = table(write(until=45) / "applications.csv")
    assert x == {
        "application": "x",
        "user": "ann",
        "partition": "default",
        "queue": "root.a",
        "size": "over 100 %",
        "tasks": "3",
        "restarts": "0",
        "submitted": "0",
        "started": "0",
        "whole": "20",
        "ended": "40",
        "outcome": "finished",
        "wait": "0",
        "whole_wait": "20",
        "slowdown": "2",
        "reason": "",
        "recorded_wait": "",
    }
    assert (y["outcome"], y["started"], y["ended"], y["slowdown"]) == ("running", "20", "", "")


def test_tasks_csv_is_written_on_request(write: Callable[..., Path]) -> None:
    assert "tasks.csv" not in names(write("without"))
    rows = list(table(write(tasks=True, until=45) / "tasks.csv"))
    columns = ("application", "task", "node", "asked", "started", "ended", "wait", "ran", "reason")
    assert [tuple(row[name] for name in columns) for row in rows] == [
        ("x", "t", "n", "0", "0", "20", "0", "20", "ended"),
        ("x", "t", "n", "0", "0", "20", "0", "20", "ended"),
        ("x", "t", "n", "0", "20", "40", "20", "20", "ended"),
        ("y", "task-1", "n", "10", "20", "", "10", "", ""),
    ]
    assert len({row["allocation"] for row in rows}) == 4


def test_utilisation_csv_has_means_of_intervals(write: Callable[..., Path]) -> None:
    rows = list(table(write() / "utilisation.csv"))
    assert len(rows) == 70
    assert rows[4] == {
        "start": "4",
        "end": "5",
        "partition": "default",
        "resource": "vcore",
        "capacity": "2000",
        "used": "2000",
        "share": "1",
        "unusable": "0",
        "waiting_tasks": "1",
        "running_tasks": "2",
    }
    assert (rows[5]["capacity"], rows[5]["share"]) == ("3000", "0.666667")


def test_queues_csv_has_use_guarantee_and_limit(write: Callable[..., Path]) -> None:
    rows = list(table(write() / "queues.csv"))
    assert rows[15] == {
        "start": "15",
        "end": "16",
        "partition": "default",
        "queue": "root.a",
        "resource": "vcore",
        "used": "2000",
        "wanted": "2000",
        "guaranteed": "1000",
        "max": "2000",
        "of_guarantee": "2",
        "waiting_tasks": "2",
        "running_tasks": "2",
    }


def test_equal_runs_write_equal_files(write: Callable[..., Path]) -> None:
    one, other = write("one", tasks=True, pictures=True), write("other", tasks=True, pictures=True)
    assert names(one) == names(other)
    for name in names(one):
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


def test_page_is_self_contained(write: Callable[..., Path]) -> None:
    folder = write(pictures=True)
    page = (folder / "report.html").read_text("utf-8")
    drawn = [name for name in result_files.PICTURES if name not in ("calibration.png", "gantt.png")]
    assert names(folder) == sorted([*PLAIN, "report.html", *drawn])
    assert page.count("<figure>") == page.count("<svg ") == len(drawn)
    assert "http" not in page.replace("http://www.w3.org/1999/xlink", "")
    assert "&lt;b&gt;tuesday" in page
    assert "<b>tuesday" not in page
    assert "Guarantees" in page


def test_page_contains_everything_printed_to_the_terminal(observe: Observe, tmp_path: Path) -> None:
    stray = "  - {id: z, queue: root.nowhere, tasks: [{resources: {vcore: 1}, runtime: 5}]}"
    lost = "events: [{at: 12, node: n, action: remove}, {at: 13, node: n, action: add}]"
    scenario = f"{SCENARIO[: SCENARIO.index('events')]}{stray}\n{lost}\n"
    with ResultFiles(tmp_path) as files:
        result = observe(scenario, until=15, recorder=files, rows=files)
        files.write(result)
    page = (tmp_path / "report.html").read_text("utf-8")
    console = Console(record=True, width=1000, file=io.StringIO())
    print_report(result, console, "fast")
    shown = re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", page)))
    words = re.sub(r"[─\s]+", " ", console.export_text()).replace("speed fast ", "")
    assert all(reported in words for reported in ("lost work", "Rejected applications", "Waiting tasks"))
    missing = [word for word in words.split() if word not in shown]
    assert not missing
    assert "(until 15s)" in shown


def test_numbers_that_do_not_fit_the_terminal_are_marked() -> None:
    console = Console(width=40, file=io.StringIO(), record=True)
    row = ["root.a", *["123,456,789,012"] * 3]
    print_tables([Table("Queues", ["queue", "use", "wait", "longest"], [row])], console)
    assert console.export_text().count("123,456,78…") == 3


def test_missing_extra_is_reported_and_other_files_are_written(
    observe: Observe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(result_files, "NEEDED", ("matplotlib_that_is_not_there", "jinja2"))
    with ResultFiles(tmp_path) as files:
        reported = files.write(observe(SCENARIO, recorder=files, rows=files))
    assert reported == (
        "report.html and the plots are not written: matplotlib_that_is_not_there is not installed; "
        "install with pip install 'yunikorn[plots]'"
    )
    assert names(tmp_path) == PLAIN


def test_files_of_an_earlier_run_are_removed(write: Callable[..., Path]) -> None:
    write(tasks=True, pictures=True)
    folder = write()
    (folder / "notes.txt").write_text("mine", "utf-8")
    (folder / "tasks.csv.part").write_text("half of a run that was killed", "utf-8")
    write()
    assert names(folder) == sorted([*PLAIN, "notes.txt"])


def test_failed_run_leaves_partial_files_and_those_of_the_earlier_run(
    observe: Observe, write: Callable[..., Path]
) -> None:
    folder = write()
    before = (folder / "decisions.jsonl").read_bytes()

    def stop(_: object) -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), ResultFiles(folder, pictures=False) as files:
        observe(SCENARIO, recorder=files, rows=files, watch=stop)
    assert (folder / "decisions.jsonl").read_bytes() == before
    assert "decisions.jsonl.part" in names(folder)
    write()
    assert names(folder) == PLAIN


def test_full_disk_is_reported_and_leaves_no_complete_files(
    observe: Observe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        """A file on a full disk."""

        def __init__(self, file: IO[str]) -> None:
            self._file = file

        def write(self, text: str) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def close(self) -> None:
            self._file.close()

    opened = OutFolder.open
    monkeypatch.setattr(
        OutFolder,
        "open",
        lambda self, name: Full(opened(self, name)) if name == "decisions.jsonl" else opened(self, name),
    )
    with pytest.raises(UsageError, match=r"No space left on device; files that end in \.part are not"):  # noqa: SIM117
        with ResultFiles(tmp_path / "out", pictures=False) as files:
            observe(SCENARIO, recorder=files, rows=files)
    assert all(name.endswith(".part") for name in names(tmp_path / "out"))


def test_disk_full_at_the_start_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(path: Path, content: bytes) -> int:
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fill)
    with pytest.raises(UsageError, match="No space left on device"):
        OutFolder(tmp_path).prepare()
    assert names(tmp_path) == []


def test_unwritable_folder_is_reported_before_the_run(observe: Observe, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(UsageError, match="cannot write to"):  # noqa: SIM117
        with ResultFiles(tmp_path / "file") as files:
            observe(SCENARIO, recorder=files, rows=files, watch=lambda progress: pytest.fail("it ran"))


def test_report_contains_the_figures(write: Callable[..., Path]) -> None:
    report = json.loads((write() / "report.json").read_text("utf-8"))
    assert report["figures"]["slowdown"]["count"] == 2
    assert report["figures"]["users"][0]["name"] == "ann"
