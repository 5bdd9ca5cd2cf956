"""`yunikorn simulate --gantt`: files, notes, and options that do not apply."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from yunikorn.cli.main import main

CONFIG = 'partitions: [{name: default, queues: [{name: root, submitacl: "*", queues: [{name: default}]}]}]\n'
SCENARIO = (
    "nodes: [{name: n, count: 61, resources: {vcore: 1}}]\n"
    "applications: [{id: a, queue: root.default, tasks: [{count: 3, resources: {vcore: 1}, runtime: 10}]}]\n"
)

Call = Callable[..., tuple[int, str]]


@pytest.fixture
def call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run `yunikorn simulate` with options; return exit status and standard error."""
    (tmp_path / "queues.yaml").write_text(CONFIG, "utf-8")
    (tmp_path / "workload.yaml").write_text(SCENARIO, "utf-8")

    def run(*options: str) -> tuple[int, str]:
        files = ["--config", str(tmp_path / "queues.yaml"), "--workload", str(tmp_path / "workload.yaml")]
        status = main(["simulate", *files, *options])
        _, err = capsys.readouterr()
        assert "Traceback" not in err
        return status, err

    return run


def test_table_is_written_and_replaced_with_a_note_on_what_is_left_out(call: Call, tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "out"), "--no-plots")
    status, err = call(*out, "--gantt", "nodes")
    assert status == 0
    assert "note: gantt: 60 of 61 nodes are shown, those registered first; choose with --gantt-row" in err
    lines = (tmp_path / "out" / "gantt.csv").read_text("utf-8").splitlines()
    assert lines[0].startswith("partition,node,start,end,kind,application")
    assert len(lines) == 4
    status, err = call(*out)
    assert status == 0
    assert "gantt" not in err
    assert not (tmp_path / "out" / "gantt.csv").exists()


@pytest.mark.slow
def test_picture_is_written_and_on_the_page(call: Call, tmp_path: Path) -> None:
    status, err = call("--out", str(tmp_path / "out"), "--gantt", "applications", "--to", "5s")
    assert (status, "gantt" in err) == (0, False)
    assert (tmp_path / "out" / "gantt.png").read_bytes().startswith(b"\x89PNG")
    assert "gantt.png" in (tmp_path / "out" / "report.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--gantt", "nodes"), "--gantt writes files to --out: give --out"),
        (("--from", "5"), "--from selects a part of the chart of --gantt: give --gantt"),
        (("--to", "5"), "--to selects a part of the chart of --gantt: give --gantt"),
        (("--gantt-row", "n"), "--gantt-row selects a part of the chart of --gantt: give --gantt"),
        (("OUT", "--gantt", "nodes", "--from", "5", "--to", "5s"), "--to has to be later than --from"),
        (("OUT", "--gantt", "nodes", "--to", "0"), "--to has to be later than 0"),
        (
            ("OUT", "--gantt", "nodes", "--from", "5", "--until", "5"),
            "--from has to be earlier than --until, where the run ends",
        ),
        (("OUT", "--gantt", "nodes", "--from", "noon"), "expected seconds or a duration such as 90"),
        (
            ("OUT", "--gantt", "nodes", "--gantt-row", "x"),
            "--gantt-row x: the workload has no such node",
        ),
    ],
)
def test_options_that_do_not_apply_are_refused(
    call: Call, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    out = tmp_path / "out"
    given = [part for option in options for part in (["--out", str(out)] if option == "OUT" else [option])]
    status, err = call(*given)
    assert status == 2
    assert message in err
    assert not out.exists()
