"""The state machines on the command line, and in the documentation."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from yunikorn_lab.commands.states import command, diagram, lifecycles, names

DOCS = Path(__file__).parents[3] / "docs" / "states.md"


def test_all_state_machines_are_printed_with_their_transitions() -> None:
    result = CliRunner().invoke(command)
    assert result.exit_code == 0
    for lifecycle in lifecycles():
        assert f"## {lifecycle.name.capitalize()}" in result.output
        for event, sources, target in lifecycle.table:
            for source in sources:
                lines = [line for line in result.output.splitlines() if f"{source} --> {target}:" in line]
                assert any(event in line for line in lines), (lifecycle.name, source, event, target)


def test_single_state_machine_is_printed_by_name() -> None:
    result = CliRunner().invoke(command, ["application"])
    assert result.exit_code == 0
    assert "Accepted --> Starting: start" in result.output
    assert "Draining" not in result.output


def test_unknown_state_machine_is_rejected_with_the_known_ones() -> None:
    result = CliRunner().invoke(command, ["app"])
    assert result.exit_code == 2
    assert all(name in result.output for name in names())


def test_documentation_shows_the_actual_state_machines() -> None:
    text = DOCS.read_text(encoding="utf-8")
    for lifecycle in lifecycles():
        assert diagram(lifecycle) in text, f"docs/states.md: run `yunikorn states` for {lifecycle.name}"
