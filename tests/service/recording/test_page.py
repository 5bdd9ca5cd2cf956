"""Checks of docs/replay.md: its example replays as described, its program runs, its tables are complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from yunikorn.cli.main import main
from yunikorn_service.recording.recorded_entry import AROUND, KINDS

PAGE = (Path(__file__).parents[3] / "docs" / "replay.md").read_text("utf-8")


def block(language: str, index: int = 0) -> str:
    """Return a code block of the page."""
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return found[index]


def test_example_of_the_page_replays_as_documented(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "report.jsonl"
    file.write_text(block("json"), "utf-8")
    assert main(["replay", str(file)]) == 0
    assert capsys.readouterr().out == block("text")


def test_program_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block("python"), "docs/replay.md", "exec"), {})
    assert (tmp_path / "run.jsonl").read_text("utf-8").startswith('{"at": 0, "recording": ')


def test_page_describes_exactly_the_existing_kinds_of_lines() -> None:
    rows = re.findall(r"^\| (`[a-z_`, ]+`) \|", PAGE, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert named == {*KINDS, *AROUND}
