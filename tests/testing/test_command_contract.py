"""Violations that the contract of commands detects."""

from __future__ import annotations

import sys
from pathlib import Path

import attrs
import click
import pytest

from yunikorn.api import Command
from yunikorn_testing import CommandContract


@click.group()
def tools() -> None:
    """Tools for queues."""


@tools.command()
@click.argument("file")
@click.option("--depth", default=1, help="Levels to print.")
def tree(file: str, depth: int) -> None:
    """Print the queues of FILE."""
    click.echo(f"{file} {depth}")


class Tools(Command):
    """Print queues in several forms."""

    name = "queue-tools"

    def command(self) -> click.Command:
        return tools


def violations(command: Command, *tests: str) -> dict[str, str]:
    """Return those of these tests of the contract that fail, with their messages."""

    class TestIt(CommandContract):
        pass

    setattr(TestIt, "command", command)  # noqa: B010
    case, found = TestIt(), {}
    for name in tests:
        try:
            getattr(case, name)()
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
    return found


IMPORT = "test_import_prints_nothing"
TESTS = [name for name in dir(CommandContract) if name.startswith("test_") and name != IMPORT]


def test_correct_command_passes_the_contract() -> None:
    assert violations(Tools(), *TESTS) == {}


class NoSentence(Tools):
    """Tools for queues"""

    name = "no-sentence"


class OddSection(Tools):
    """Print queues."""

    name = "odd-section"
    section = ""


class NoCommand(Tools):
    """Print queues."""

    name = "no-command"

    def command(self) -> click.Command:
        return print  # type: ignore[return-value]


class NoHelp(Tools):
    """Print queues."""

    name = "no-help"

    def command(self) -> click.Command:
        return click.Command("no-help", callback=lambda: None)


class NoHelpOfOption(Tools):
    """Print queues."""

    name = "no-help-of-option"

    def command(self) -> click.Command:
        return click.Command("odd", help="Print queues.", params=[click.Option(["--depth"])])


class TakesAll(Tools):
    """Print queues."""

    name = "takes-all"

    def command(self) -> click.Command:
        settings = {"ignore_unknown_options": True, "allow_extra_args": True}
        return click.Command("odd", help="Print queues.", context_settings=settings, callback=lambda: None)


class HelpFails(Tools):
    """Print queues."""

    name = "help-fails"

    def command(self) -> click.Command:
        class NoTerminal(click.Command):
            def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
                raise ValueError("no terminal")

        return NoTerminal("odd", help="Print queues.")


class Opens(Tools):
    """Print queues."""

    name = "opens"

    def command(self) -> click.Command:
        with open("/dev/null"):
            return tools


@attrs.frozen
class HasOptions(Tools):
    """Print queues."""

    name = "has-options"
    depth: int = 3


@pytest.mark.parametrize(
    ("command", "test", "text"),
    [
        (NoSentence(), "test_help_line_is_a_sentence", "end it with a full stop"),
        (OddSection(), "test_section_is_a_text", "write the title of a section"),
        (NoCommand(), "test_help_is_printed", "return a click command"),
        (NoHelp(), "test_every_command_has_help", "write a docstring"),
        (NoHelpOfOption(), "test_every_command_has_help", "--depth of `yunikorn no-help-of-option`"),
        (TakesAll(), "test_unknown_options_are_refused", "an unknown option must be an error"),
        (HelpFails(), "test_help_is_printed", "no terminal"),
        (Opens(), "test_command_is_made_without_opening_anything", "opens a file"),
        (HasOptions(), "test_command_needs_no_options_of_the_class", "depth"),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_violation_is_found(command: Command, test: str, text: str) -> None:
    assert text in violations(command, test)[test]


@pytest.mark.parametrize("printing", ["", 'print("welcome")'], ids=["quiet", "loud"])
def test_import_that_prints_is_found(printing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loud_tools.py").write_text(
        f"import click\nfrom yunikorn.api import Command\n{printing}\n"
        'class Loud(Command):\n    """Print queues."""\n    name = "loud"\n'
        '    def command(self):\n        return click.Command("loud", help="Print queues.")\n'
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    __import__("loud_tools")
    module = sys.modules.pop("loud_tools")
    found = violations(module.Loud(), IMPORT)
    assert bool(found) == bool(printing)
    assert not printing or "prints 'welcome\\n'" in found[IMPORT]
