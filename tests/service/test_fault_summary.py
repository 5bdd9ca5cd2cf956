"""Summary of plugin failures: in the log at the end of a run, and in `yunikorn plugins --faults`."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import NamedTuple

import pytest

from yunikorn.api import Context
from yunikorn.cli.main import main
from yunikorn.framework.plugin_failures import PluginFailures
from yunikorn_service.logs import logging_to, parse_levels


def run_of(*operations: tuple[str, str, int], ends: bool = True) -> str:
    """Return the log of a run in which these plugins failed: plugin, operation, number of times."""
    stream = io.StringIO()
    with logging_to(stream, parse_levels([]), "json"):
        failures = PluginFailures()
        for plugin, operation, times in operations:
            for number in range(times):
                failures.report(plugin, operation, f"no {number}")
        if ends:
            failures.sum_up()
    return stream.getvalue()


class Shown(NamedTuple):
    """Output of the command."""

    exit_code: int
    output: str
    stderr: str


class Command:
    """The command `yunikorn plugins --faults` on a log."""

    def __init__(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._path, self._capsys = path, capsys

    def __call__(self, log: str, *more: str) -> Shown:
        self._path.write_text(log, "utf-8")
        return Shown(main(["plugins", "--faults", str(self._path), *more]), *self._capsys.readouterr())


@pytest.fixture
def shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(tmp_path / "serve.log", capsys)


def test_failures_are_counted_at_the_end_of_a_run() -> None:
    first, end = map(json.loads, run_of(("cold of acme (acme 1.0)", "scoring", 7)).splitlines())
    assert (first["level"], first["times"]) == ("error", 1)
    assert (end["level"], end["times"], end["plugin"]) == ("warning", 7, "cold of acme (acme 1.0)")
    assert end["message"] == "7 times: plugin cold of acme (acme 1.0): scoring: no 0"


def test_the_command_shows_each_plugin_with_counts(shown: Command) -> None:
    log = run_of(("cold of acme (acme 1.0)", "scoring", 7), ("hot of b (b 2)", "opening", 1))
    result = shown("something else\n" + log)
    assert result.exit_code == 1
    assert result.output.splitlines() == [
        "cold of acme (acme 1.0)",
        "       7 x plugin cold of acme (acme 1.0): scoring: no 0",
        "hot of b (b 2)",
        "       1 x plugin hot of b (b 2): opening: no 0",
    ]


def test_runs_are_summed_and_a_killed_run_counts_once(shown: Command) -> None:
    operation = ("cold of acme (acme 1.0)", "scoring", 7)
    result = shown(run_of(operation) + run_of(operation, ends=False) + run_of(operation), "--json")
    (failure,) = json.loads(result.output)["faults"]
    assert failure["times"] == 7 + 1 + 7
    assert failure["first"].endswith("scoring: no 0")


def test_self_reported_failures_are_logged_if_new_and_counted_once(
    shown: Command,
) -> None:
    stream = io.StringIO()
    with logging_to(stream, parse_levels([]), "json"):
        failures = PluginFailures()
        context = failures.context_of("post of acme (acme 1.0)", Context("", lambda: 0))
        for text in ("1 lost", "1 lost", "2 lost", "2 lost", "4 lost"):
            context.report("delivering", text)
            assert len(failures) == 1
        failures.sum_up()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["times"], line["message"].rpartition(": ")[2]) for line in lines] == [
        (1, "1 lost"),
        (3, "2 lost"),
        (5, "4 lost"),
        (5, "1 lost"),
    ]
    result = shown(stream.getvalue() * 2, "--json")
    assert [failure["times"] for failure in json.loads(result.output)["faults"]] == [10]


@pytest.mark.parametrize("log", ["", run_of()])
def test_log_without_failures(shown: Command, log: str) -> None:
    result = shown(log)
    assert (result.exit_code, result.output.strip()) == (
        0,
        "this log contains no plugin failures",
    )


def test_invalid_log_is_rejected(shown: Command) -> None:
    result = shown("2026-01-01 ERROR plugins: something\n")
    assert result.exit_code == 2
    assert "--log-format json" in result.stderr


def test_other_options_are_rejected_with_fault_summary(shown: Command) -> None:
    result = shown("", "--kind", "predicate")
    assert result.exit_code == 2
    assert "a log does not contain the kind" in result.stderr
