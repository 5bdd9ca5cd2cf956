"""Provenance of results, finished runs that are taken over, and comparison of finished folders."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lab.commands.comparison_kit import CONFIG, WORKLOAD
from yunikorn import __version__
from yunikorn.cli.main import main
from yunikorn_lab.reporting import runs
from yunikorn_lab.reporting.provenance import digest
from yunikorn_lab.reporting.saved_run import LOG, RESULT, pack_result, read_result

POLICY = "partitions[0].queues[0].queues[0].properties.application.sort.policy"

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run `simulate` or `compare` on texts; return exit status, standard output, standard error."""

    def run(
        command: str, out: str, *arguments: str, config: str = CONFIG, workload: str = WORKLOAD
    ) -> tuple[int, str, str]:
        (tmp_path / "queues.yaml").write_text(config, "utf-8")
        (tmp_path / "workload.yaml").write_text(workload, "utf-8")
        files = ["--config", str(tmp_path / "queues.yaml"), "--workload", str(tmp_path / "workload.yaml")]
        extra = ["--jobs", "1"] if command == "compare" else []
        status = main([command, *files, "--out", str(tmp_path / out), "--no-plots", *extra, *arguments])
        found = capsys.readouterr()
        assert "Traceback" not in found.err
        return status, found.out, found.err

    return run


@pytest.fixture
def compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run `compare` on finished folders; return exit status, standard output, standard error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(
            ["compare", *(one if one.startswith("-") else str(tmp_path / one) for one in arguments)]
        )
        found = capsys.readouterr()
        assert "Traceback" not in found.err
        return status, found.out, found.err

    return run


def played(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that receives the name of each variant that is simulated from now on."""
    names: list[str] = []
    play = runs._play

    def note(order: runs.Order, *more: Any) -> Any:
        if not order.questions:
            names.append(order.name)
        return play(order, *more)

    monkeypatch.setattr(runs, "_play", note)
    return names


def test_report_names_all_that_decided_it(call: Call, tmp_path: Path) -> None:
    config = CONFIG + "plugins: {load: [./mine.py]}\n"
    plugin = "from yunikorn.api import hookimpl\n\n@hookimpl\ndef yunikorn_event_sinks():\n    return []\n"
    (tmp_path / "mine.py").write_text(plugin, "utf-8")
    (tmp_path / "more.yaml").write_text("nodes: [{name: n, resources: {vcore: 1}}]\n", "utf-8")
    more = ("--nodes", str(tmp_path / "more.yaml"), "--until", "10m", "--hold")
    status, out, err = call("simulate", "out", "--json", *more, config=config)
    assert status == 0, err
    found = json.loads(out)["provenance"]
    assert (found["version"], found["config"], found["config_text"]) == (__version__, "queues.yaml", config)
    assert found["seed"] is None
    assert found["options"]["--until"] == "10m"
    assert found["options"]["--hold"] == "yes"
    assert found["options"]["--speed-up"] == "1"
    assert not {"--out", "--json", "--no-plots"} & set(found["options"])
    assert [(one["role"], one["name"]) for one in found["inputs"]] == [
        ("workload", "workload.yaml"),
        ("nodes", "more.yaml"),
        ("plugin file", "mine.py"),
    ]
    assert found["inputs"][0]["sha256"] == digest(WORKLOAD.encode())
    assert str(tmp_path) not in out


def test_a_configuration_that_is_loaded_later_has_a_checksum(call: Call, tmp_path: Path) -> None:
    (tmp_path / "later.yaml").write_text(CONFIG, "utf-8")
    workload = WORKLOAD + "events: [{at: 5, config: later.yaml}]\n"
    found = json.loads(call("simulate", "out", "--json", workload=workload)[1])["provenance"]["inputs"]
    assert found[1] == {
        "role": "configuration loaded later",
        "name": "later.yaml",
        "sha256": digest(CONFIG.encode()),
    }


def test_the_page_ends_with_the_provenance(call: Call, tmp_path: Path) -> None:
    (tmp_path / "queues.yaml").write_text(CONFIG, "utf-8")
    (tmp_path / "workload.yaml").write_text(WORKLOAD, "utf-8")
    files = ["--config", str(tmp_path / "queues.yaml"), "--workload", str(tmp_path / "workload.yaml")]
    assert main(["simulate", *files, "--out", str(tmp_path / "out")]) == 0
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    end = page[page.index("<h2>Provenance") :]
    assert digest(WORKLOAD.encode()) in end
    assert "application.sort.policy: fifo" in end


def test_a_saved_result_is_read_as_it_was(call: Call, tmp_path: Path) -> None:
    report = call("simulate", "out", "--json", "--explain", "short-1@20s")[1]
    found = read_result(tmp_path / "out")
    assert found.to_json() == report
    assert pack_result(found) == (tmp_path / "out" / RESULT).read_bytes()


def test_a_result_of_an_earlier_version_has_no_dates(call: Call, tmp_path: Path) -> None:
    call("simulate", "out")
    path = tmp_path / "out" / RESULT
    content = json.loads(gzip.decompress(path.read_bytes()))
    del content["history"]["origin"], content["report"]["began"]
    path.write_bytes(gzip.compress(json.dumps(content).encode()))
    found = read_result(tmp_path / "out")
    assert (found.history.origin, found.report.began) == (None, None)


def test_finished_runs_are_taken_over(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = call("compare", "out", "--set", f"{POLICY}=fifo,fair", "--json")
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    names = played(monkeypatch)
    status, out, err = call("compare", "out", "--set", f"{POLICY}=fifo,fair", "--json")
    assert (status, out) == first[:2]
    assert names == []
    assert "note: 2 finished runs with the same input were taken over" in err
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()} == before


def test_runs_with_other_inputs_are_repeated(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    setting = ("--set", f"{POLICY}=fifo,fair")
    call("compare", "out", *setting)
    names = played(monkeypatch)
    call("compare", "out", *setting, config=CONFIG + "# comments are no part of a changed text\n")
    assert names == []
    call("compare", "out", *setting, config=CONFIG.replace("name: a", "name: a, submitacl: '*'"))
    assert names == ["fifo", "fair"]
    call("compare", "out", *setting, workload=WORKLOAD.replace("runtime: 20", "runtime: 30"))
    assert names == ["fifo", "fair"] * 2
    call("compare", "out", *setting, "--preempted", "fail")
    assert names == ["fifo", "fair"] * 3


@pytest.mark.parametrize("damage", ["missing", "cut", "empty", "other", "log"])
def test_a_run_that_was_killed_while_it_wrote_is_repeated(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    setting = ("--set", f"{POLICY}=fifo,fair", "--json")
    first = call("compare", "out", *setting)
    path = tmp_path / "out" / "2-fair" / RESULT
    content = path.read_bytes()
    if damage == "missing":
        path.rename(path.with_name(f"{RESULT}.part"))
    elif damage == "log":
        path.with_name(LOG).unlink()
    else:
        path.write_bytes(
            {"cut": content[:-20], "empty": b"", "other": gzip.compress(b'{"report": 5}')}[damage]
        )
    names = played(monkeypatch)
    assert call("compare", "out", *setting)[:2] == first[:2]
    assert names == ["fair"]
    assert path.read_bytes() == content


def test_finished_folders_are_compared(call: Call, compare: Call) -> None:
    call("simulate", "one", "--json")
    call("simulate", "two", "--json", config=CONFIG.replace("fifo", "fair"))
    status, out, err = compare("one", "two")
    assert (status, err) == (0, "")
    differing, _, table = out.partition("2 variants of workload.yaml")
    assert differing.splitlines()[:4] == [
        "The inputs of one and two differ:",
        "  configuration",
        "    one: queues.yaml: - {name: a, properties: {application.sort.policy: fifo}}",
        "    two: queues.yaml: - {name: a, properties: {application.sort.policy: fair}}",
    ]
    assert "wait, first task, mean" in table
    assert (
        "after 3 equal decisions, one places t of long (root.a) on n-2, while two places t of short-1" in out
    )


def test_finished_folders_give_the_table_of_the_comparison(call: Call, compare: Call) -> None:
    whole = json.loads(call("compare", "out", "--set", f"{POLICY}=fifo,fair", "--json")[1])
    found = json.loads(compare("out/1-fifo", "out/2-fair", "--json", "--out", "again", "--no-plots")[1])
    assert found["rows"] == whole["rows"]
    assert found["reports"] == whole["reports"]
    assert [one["equal"] for one in found["divergences"]] == [one["equal"] for one in whole["divergences"]]


def test_another_workload_is_a_warning(call: Call, compare: Call) -> None:
    call("simulate", "one")
    call("simulate", "two", workload=WORKLOAD.replace("runtime: 20", "runtime: 30"))
    _, out, err = compare("one", "two")
    assert err == "warning: two has another workload or other nodes than one\n"
    assert "  workload\n    one: workload.yaml (" in out


def test_equal_runs_have_equal_inputs(call: Call, compare: Call) -> None:
    call("simulate", "one")
    call("simulate", "two")
    out = compare("one", "two")[1]
    assert "one and two have equal inputs." in out
    assert "two makes the same decisions as one" in out


def test_unusable_folders_are_reported_together(call: Call, compare: Call, tmp_path: Path) -> None:
    call("simulate", "one")
    call("compare", "out", "--set", f"{POLICY}=fifo,fair")
    (tmp_path / "empty").mkdir()
    status, _, err = compare("one", "empty", "missing", "out")
    assert status == 2
    assert f"{tmp_path / 'empty'}: is not the folder of a finished run: it has no results.json.gz" in err
    assert f"{tmp_path / 'missing'}: is no folder" in err
    assert f"is the folder of a whole comparison; name its runs, such as {tmp_path / 'out' / '1-fifo'}" in err
    assert "is one folder; name another one" in compare("one")[2]
    assert "the same folder is given twice" in compare("one", "one")[2]
    assert "--until: does not apply to finished runs" in compare("one", "out/1-fifo", "--until=5")[2]


def test_folders_of_another_version_and_without_files_are_refused(
    call: Call, compare: Call, tmp_path: Path
) -> None:
    call("simulate", "one")
    shutil.copytree(tmp_path / "one", tmp_path / "old")
    content = json.loads(gzip.decompress((tmp_path / "old" / RESULT).read_bytes()))
    content["provenance"]["version"] = "0.0.9"
    del content["figures"]["fairness"]
    (tmp_path / "old" / RESULT).write_bytes(gzip.compress(json.dumps(content).encode()))
    status, _, err = compare("one", "old")
    assert status == 2
    assert f"{tmp_path / 'old' / RESULT}: was written by yunikorn 0.0.9" in err
    call("simulate", "two")
    (tmp_path / "two" / "decisions.jsonl").unlink()
    status, _, err = compare("one", "two")
    assert status == 2
    assert "decisions.jsonl: cannot be read: No such file" in err
