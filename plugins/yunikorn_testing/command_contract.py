"""Contract test of commands."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, ClassVar

import click
from click.testing import CliRunner

from yunikorn.api import Command
from yunikorn.framework.kinds import COMMAND
from yunikorn_testing.forbidden_calls import OpenedTooEarly, nothing_is_opened
from yunikorn_testing.plugin_contract import OfferContract

UNKNOWN = "--an-option-that-no-command-has"
USAGE_ERROR = 2
IMPORTING = """
import importlib, sys
sys.path[:] = {path!r}
importlib.import_module({module!r})
"""


class CommandContract(OfferContract):
    """Tests that a command must pass; set `command = Mine()`.

    The tests call the command, and all commands below it, with `--help` and with an unknown option only.
    """

    kind = COMMAND
    subject = "command"
    opening = "the function of the click command"
    command: ClassVar[Command]

    def made(self) -> click.Command:
        """Return the click command of a new object."""
        made: Any = self._made().command()
        assert isinstance(made, click.Command), f"command() returned {made!r}; return a click command"
        return made

    def all_made(self) -> Iterator[tuple[list[str], click.Command]]:
        """Return the click command and all below it, each with the words that call it."""
        pending: list[tuple[list[str], click.Command]] = [([], self.made())]
        while pending:
            words, command = pending.pop()
            yield words, command
            if isinstance(command, click.Group):
                pending += [([*words, name], below) for name, below in command.commands.items()]

    def called(self, *arguments: str) -> tuple[int, str]:
        """Call the command; return the exit status and all output."""
        name = type(self.given).name
        done = CliRunner().invoke(self.made(), arguments, prog_name=f"yunikorn {name}")
        error = done.exception
        if error is not None and not isinstance(error, SystemExit):
            raise AssertionError(f"`{name} {' '.join(arguments)}` failed: {error!r}") from error
        return done.exit_code, done.output

    def test_help_line_is_a_sentence(self) -> None:
        """Check the first line of the docstring, which `yunikorn --help` shows."""
        (offer,) = self.registry().offers(self.kind)
        assert offer.summary.endswith("."), (
            f"the first line of {offer.cls.__qualname__}'s docstring is {offer.summary!r}; end it with a full"
            " stop, because `yunikorn --help` shows it among others that do"
        )

    def test_section_is_a_text(self) -> None:
        """Check `section`, a title in `yunikorn --help`."""
        section: object = getattr(type(self.given), "section")  # noqa: B009
        assert isinstance(section, str), f"section is {section!r}; write the title of a section"
        assert section.strip() == section != "", f"section is {section!r}; write the title of a section"

    def test_command_needs_no_options_of_the_class(self) -> None:
        """Check that the class has no attributes to set: arguments are those of the click command."""
        (offer,) = self.registry().offers(self.kind)
        names = [option.name for option in offer.options]
        assert not names, (
            f"{offer.cls.__qualname__} has the options {', '.join(names)}, which nothing sets: make them"
            " options of the click command"
        )

    def test_command_is_made_without_opening_anything(self) -> None:
        """Check that `command()` only makes the command: help and completions make it, too."""
        self.made()  # what it imports is imported
        with nothing_is_opened():
            try:
                self.made()
            except OpenedTooEarly as error:
                raise AssertionError(f"command() {error}; do this in the function of the command") from error

    def test_every_command_has_help(self) -> None:
        """Check that each command has a docstring, and each of its options a help text."""
        for words, command in self.all_made():
            name = " ".join([type(self.given).name, *words])
            assert command.help, f"`yunikorn {name}` has no help: write a docstring for its function"
            for option in command.params:
                if isinstance(option, click.Option) and not option.hidden:
                    assert option.help, f"{option.opts[-1]} of `yunikorn {name}` has no help text"

    def test_help_is_printed(self) -> None:
        """Check that `--help` prints the help of each command, and exits with 0."""
        for words, _ in self.all_made():
            status, output = self.called(*words, "--help")
            assert status == 0, f"`--help` exits with {status}"
            assert "Usage:" in output, "`--help` does not print the usage"

    def test_unknown_options_are_refused(self) -> None:
        """Check that an option that does not exist is an error of usage, with the exit status 2."""
        for words, command in self.all_made():
            if isinstance(command, click.Group) and not command.invoke_without_command:
                continue
            status, output = self.called(*words, UNKNOWN)
            assert status == USAGE_ERROR, (
                f"`{' '.join([type(self.given).name, *words])} {UNKNOWN}` exits with {status}, printing"
                f" {output!r}: an unknown option must be an error, or a mistyped one has no effect"
            )

    def test_import_prints_nothing(self) -> None:
        """Check that the import of the module prints nothing: `yunikorn --help` and completions import it."""
        module = type(self.given).__module__
        try:
            found = importlib.util.find_spec(module)
        except (ImportError, ValueError):
            found = None
        if found is None:
            return  # a class of a test, which no other process can import
        code = IMPORTING.format(path=sys.path, module=module)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"importing {module} failed: {done.stderr}"
        printed = done.stdout + done.stderr
        assert not printed, f"importing {module} prints {printed!r}; print in the function of the command"
