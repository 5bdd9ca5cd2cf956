"""Comparison of finished folders repeats runs for the reasons of their first different decisions."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lab.commands.comparison_kit import CONFIG, WORKLOAD
from yunikorn.cli.main import main
from yunikorn_lab.commands import repeated_runs
from yunikorn_lab.reporting import order_reason, runs
from yunikorn_lab.reporting.saved_run import PLACES, RESULT

SETTING = "root.a.properties.application.sort.policy=fifo,fair"
LIST = """
nodes: [{name: n, count: 2, resources: {vcore: 1}}]
applications:
  - {id: x, count: 9, queue: root.a, tasks: [{name: t, count: 4, resources: {vcore: 1}, runtime: 30}]}
  - {id: y, count: 9, queue: root.a, tasks: [{name: t, count: 2, resources: {vcore: 1}, runtime: 20}]}
"""
GENERATED = """
nodes: [{name: n, count: 2, resources: {vcore: 1}}]
generate:
  - {id: g, count: 20, arrivals: {process: poisson, every: 20}, queue: root.a,
     tasks: [{name: t, count: 4, resources: {vcore: 1}, runtime: {distribution: exponential, mean: 20}}]}
"""
SWF = "; MaxProcs: 4\n" + "".join(
    f"{job} {job * 20000} -1 {30000 + job * 900} {size} -1 -1 {size} -1 -1 1 {job % 3} 1 1 1 1 -1 -1\n"
    for job, size in ((job, 1 + job % 4) for job in range(1, 41))
)
FAIR = "fair: short-1 has share 0, long 0.5."

Compare = Callable[..., tuple[int, Any, str]]


@pytest.fixture
def compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Compare:
    """Run `compare` in the folder of the test; return exit status, output and standard error."""

    def run(*arguments: str, files: bool = False) -> tuple[int, Any, str]:
        given = ["--config", str(tmp_path / "queues.yaml")] if files else []
        capsys.readouterr()
        status = main(["compare", *given, *arguments, "--json"])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return status, json.loads(out) if out else None, err

    return run


def written(
    tmp_path: Path, compare: Compare, text: str = WORKLOAD, name: str = "work.yaml", *more: str
) -> Any:
    """Compare two policies with `--out out`; return the result."""
    (tmp_path / "queues.yaml").write_text(CONFIG, "utf-8")
    (tmp_path / name).write_text(text, "utf-8")
    given = [
        "--workload",
        str(tmp_path / name),
        "--set",
        SETTING,
        "--out",
        str(tmp_path / "out"),
        "--no-plots",
    ]
    status, found, err = compare(*given, "--jobs", "1", *more, files=True)
    assert status == 0, err
    return found


def folders(tmp_path: Path) -> list[str]:
    return [str(tmp_path / "out" / "1-fifo"), str(tmp_path / "out" / "2-fair")]


@pytest.mark.parametrize(
    ("text", "name", "options"),
    [
        (WORKLOAD, "work.yaml", ()),
        (WORKLOAD, "work.yaml", ("--until", "1m30s", "--preempted", "fail")),
        (
            WORKLOAD,
            "work.yaml",
            ("--startup-delay", "exponential,mean=20s", "--seed", "3", "--speed-up", "1.5"),
        ),
        (GENERATED, "work.yaml", ("--seeds", "3,4")),
        (LIST, "work.yaml", ("--shuffle", "7")),
        (LIST, "work.yaml", ("--seeds", "2-3")),
        (SWF, "log.swf", ("--swf-queue", "root.a", "--swf-jobs", "tasks")),
        (
            SWF,
            "log.swf",
            ("--swf-queue", "root.a", "--swf-jobs", "tasks", "--resample", "days", "--seed", "5"),
        ),
        (SWF, "log.swf", ("--swf-queue", "root.a", "--swf-jobs", "tasks", "--seeds", "1-2")),
        (SWF, "log", ("--swf-queue", "root.a", "--swf-jobs", "tasks", "--format", "swf", "--kill-at-limit")),
    ],
)
def test_folders_give_the_reasons_of_the_comparison_that_made_them(
    tmp_path: Path, compare: Compare, text: str, name: str, options: tuple[str, ...]
) -> None:
    whole = written(tmp_path, compare, text, name, *options)
    status, found, err = compare(*folders(tmp_path))
    assert (status, err) == (0, "")
    sentence = whole["divergences"][0]["sentence"]
    assert "; fair: " in sentence
    assert found["divergences"][0]["sentence"] == sentence.replace("fifo p", "1-fifo p").replace(
        "fair p", "2-fair p"
    )


def test_the_first_run_is_repeated_where_another_one_decides_earlier(
    tmp_path: Path, compare: Compare
) -> None:
    (tmp_path / "queues.yaml").write_text(CONFIG, "utf-8")
    (tmp_path / "work.yaml").write_text(WORKLOAD, "utf-8")
    out = ["--out", str(tmp_path / "out"), "--no-plots", "--jobs", "1"]
    setting = ["--workload", str(tmp_path / "work.yaml"), "--set", "root.a.resources.max.vcore=1,2"]
    whole = compare(*setting, *out, files=True)[1]
    sentence = whole["divergences"][0]["sentence"]
    names = sorted(path.name for path in (tmp_path / "out").iterdir() if path.is_dir())
    _, found, err = compare(*(str(tmp_path / "out" / name) for name in names))
    for variant, name in zip(whole["variants"], names, strict=True):
        sentence = sentence.replace(variant, name)
    assert "is stopped by: " in sentence
    assert (found["divergences"][0]["sentence"], err) == (sentence, "")
    (tmp_path / "work.yaml").unlink()
    err = compare(*(str(tmp_path / "out" / name) for name in names))[2]
    assert f"of {names[1]}: {tmp_path / 'work.yaml'} does not exist" in err


def test_nodes_and_plugin_files_are_found_again(tmp_path: Path, compare: Compare) -> None:
    policy = """
from yunikorn.api import AppSortPolicy, hookimpl

class Last(AppSortPolicy):
    name = "last"

    def key(self, app):
        return -app.submitted

@hookimpl
def yunikorn_app_sort_policies():
    return [Last]
"""
    (tmp_path / "last.py").write_text(policy, "utf-8")
    (tmp_path / "nodes.yaml").write_text("nodes: [{name: m, count: 2, resources: {vcore: 1}}]\n", "utf-8")
    for name in ("fifo", "last"):
        config = CONFIG.replace("fifo", name) + "plugins: {load: [./last.py]}\n"
        (tmp_path / "queues.yaml").write_text(config, "utf-8")
        (tmp_path / "work.yaml").write_text(WORKLOAD, "utf-8")
        given = [
            "--workload",
            str(tmp_path / "work.yaml"),
            "--nodes",
            str(tmp_path / "nodes.yaml"),
            "--no-plots",
        ]
        assert (
            main(
                ["simulate", "--config", str(tmp_path / "queues.yaml"), *given, "--out", str(tmp_path / name)]
            )
            == 0
        )
    both = [str(tmp_path / "fifo"), str(tmp_path / "last")]
    shutil.move(tmp_path / "nodes.yaml", tmp_path / "moved.yaml")
    _, found, err = compare(*both)
    assert "nodes.yaml does not exist: give the file of that run with --nodes FILE" in err
    assert found["divergences"][0]["sentence"].endswith("on m-2.")
    moved = ["--nodes", str(tmp_path / "moved.yaml")]
    _, found, err = compare(*both, *moved)
    assert f"add --load-plugins {tmp_path}" in err, "a folder of a run is only data"
    moved += ["--load-plugins", str(tmp_path)]
    _, found, err = compare(*both, *moved)
    assert "; last: short-2 has key -60000000000, long 0" in found["divergences"][0]["sentence"]
    (tmp_path / "last.py").write_text(policy + "# changed\n", "utf-8")
    _, found, err = compare(*both, *moved)
    assert "of last: its inputs have changed (plugin file: last.py (" in err


def test_a_workload_that_moved_or_changed_is_asked_for(tmp_path: Path, compare: Compare) -> None:
    written(tmp_path, compare)
    work = tmp_path / "work.yaml"
    (tmp_path / "kept.yaml").write_bytes(work.read_bytes())
    work.write_text(WORKLOAD + "# changed\n", "utf-8")
    for problem in ("is not the workload of the run, it has another checksum", "does not exist"):
        status, found, err = compare(*folders(tmp_path))
        assert status == 0
        assert err == (
            f"note: no reason for the first different decision of 2-fair: {work} {problem}: give the file of "
            "that run with --workload FILE\n"
        )
        [report] = found["divergences"]
        assert report["sentence"].endswith("2-fair places t of short-1 (root.a) on n-2.")
        assert report["reason_unknown"] in err
        work.unlink(missing_ok=True)
    _, found, err = compare(*folders(tmp_path), "--workload", str(tmp_path / "kept.yaml"))
    assert (found["divergences"][0]["sentence"].rpartition("; ")[2], err) == (FAIR, "")


def test_folders_and_inputs_may_move_together(tmp_path: Path, compare: Compare) -> None:
    written(tmp_path, compare)
    (tmp_path / "archive").mkdir()
    for name in ("queues.yaml", "work.yaml", "out"):
        shutil.move(tmp_path / name, tmp_path / "archive" / name)
    _, found, err = compare(*folders(tmp_path / "archive"))
    assert (found["divergences"][0]["sentence"].rpartition("; ")[2], err) == (FAIR, "")
    text = (tmp_path / "archive" / "out" / "2-fair" / PLACES).read_text("utf-8")
    assert json.loads(text) == {
        "configuration": "../../queues.yaml",
        "workload": "../../work.yaml",
        "nodes": None,
    }


def test_no_run_is_repeated_that_another_version_made_or_nobody_wants(
    tmp_path: Path, compare: Compare, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, compare)
    monkeypatch.setattr(runs, "find_order_reason", lambda *_, **__: pytest.fail("a run was repeated"))
    _, found, err = compare(*folders(tmp_path), "--no-reasons")
    assert (found["divergences"][0]["reason_unknown"], err) == ("", "")
    monkeypatch.setattr(repeated_runs, "__version__", "99.0")
    _, _, err = compare(*folders(tmp_path))
    assert "of 2-fair: the run was made by yunikorn" in err
    assert "and this is 99.0: run it again" in err


def test_the_end_of_a_run_is_a_reason(tmp_path: Path, compare: Compare) -> None:
    (tmp_path / "queues.yaml").write_text(CONFIG, "utf-8")
    (tmp_path / "work.yaml").write_text(WORKLOAD, "utf-8")
    files = [
        "--config",
        str(tmp_path / "queues.yaml"),
        "--workload",
        str(tmp_path / "work.yaml"),
        "--no-plots",
    ]
    assert main(["simulate", *files, "--out", str(tmp_path / "whole")]) == 0
    assert main(["simulate", *files, "--out", str(tmp_path / "part"), "--until", "30s"]) == 0
    for names in (("whole", "part"), ("part", "whole")):
        _, found, err = compare(*(str(tmp_path / name) for name in names))
        assert found["divergences"][0]["sentence"].endswith("; part ends at 30s, as --until says.")
        assert err == ""


def test_another_workload_needs_no_reason(tmp_path: Path, compare: Compare) -> None:
    written(tmp_path, compare)
    shutil.move(tmp_path / "out", tmp_path / "first")
    written(tmp_path, compare, WORKLOAD.replace("runtime: 20", "runtime: 30"))
    _, found, err = compare(str(tmp_path / "first" / "1-fifo"), folders(tmp_path)[1])
    assert err == "warning: 2-fair has another workload or other nodes than 1-fifo\n"
    assert found["divergences"][0]["reason_unknown"] == ""


def test_a_signal_ends_the_repetition_and_keeps_the_table(
    tmp_path: Path, compare: Compare, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, compare)
    find = order_reason.find_order_reason

    def interrupted(*arguments: Any, **named: Any) -> str:
        signal.raise_signal(signal.SIGINT)
        return find(*arguments, **named)

    monkeypatch.setattr(runs, "find_order_reason", interrupted)
    status, found, err = compare(*folders(tmp_path))
    assert status == 0
    assert "interrupted: comparing without the reasons that are still missing" in err
    assert found["divergences"][0]["reason_unknown"] == "interrupted"
    assert found["rows"]


@pytest.mark.parametrize("text", ["", "[]", '{"workload": 5}', "\0"])
def test_unreadable_places_are_like_missing_ones(tmp_path: Path, compare: Compare, text: str) -> None:
    written(tmp_path, compare)
    (tmp_path / "out" / "2-fair" / PLACES).write_text(text, "utf-8")
    status, _, err = compare(*folders(tmp_path))
    assert status == 0
    assert "the folder does not name the place of work.yaml: give the file of that run" in err
    assert (tmp_path / "out" / "2-fair" / RESULT).is_file()
