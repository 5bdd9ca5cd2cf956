"""Commands of installed packages: called, listed and completed, and what a broken package does to others."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.lab.commands.test_plugins import install
from yunikorn.cli.main import main

HEAD = """
import click
from yunikorn.api import Command, hookimpl

class Mine(Command):
    "Print a greeting."
    name = "NAME"
    def command(self):
        BODY

@hookimpl
def yunikorn_commands():
    return [Mine]
"""
GREETS = """
        def greet(name):
            click.echo("hello " + name)
            return 3
        option = click.Option(["--name"], required=True)
        return click.Command("greet", callback=greet, params=[option], help="Print a greeting.")
"""


class Site:
    """Folder of installed packages."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self._folder, self._patch = folder, patch
        patch.syspath_prepend(str(folder))
        patch.delenv("YUNIKORN_PLUGINS", raising=False)

    def install(self, distribution: str, source: str) -> None:
        """Install a package with this module."""
        install(self._folder, distribution, "1.0", source)
        self._patch.delitem(sys.modules, distribution.replace("-", "_"), raising=False)

    def command(self, distribution: str, name: str, body: str) -> None:
        """Install a package with one command."""
        self.install(distribution, HEAD.replace("NAME", name).replace("BODY", body))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(tmp_path, monkeypatch)


def test_a_command_prints_its_results_and_gives_the_exit_status(
    site: Site, capfd: pytest.CaptureFixture[str]
) -> None:
    site.command("greetings", "greet", GREETS)
    assert main(["greet", "--name", "ann"]) == 3
    assert capfd.readouterr().out == "hello ann\n"
    assert main(["greet", "--nam", "ann"]) == 2
    assert main(["--help"]) == 0
    assert "Commands of plugins:\n  greet       Print a greeting.\n" in capfd.readouterr().out


def test_help_is_printed_with_a_broken_package(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.install("broken", "import nothing_of_this_name\n")
    site.command("greetings", "greet", GREETS)
    assert main(["--help"]) == 0
    printed = capsys.readouterr().out
    assert "Print a greeting." in printed
    assert "not loaded: plugin broken (broken 1.0): importing: ModuleNotFoundError" in printed
    assert main(["gret"]) == 2
    printed = capsys.readouterr().err
    assert "did you mean 'greet'?" in printed
    assert "; not loaded: plugin broken (broken 1.0)" in printed


def test_help_with_a_package_imports_neither_the_core_nor_a_service(
    tmp_path: Path, site: Site, run_python: Callable[..., CompletedProcess[str]]
) -> None:
    site.command("greeter", "greet", GREETS)
    code = (
        "import sys; from yunikorn.cli.main import main; main(['--help'])\n"
        "heavy = {'yunikorn.interface.scheduler', 'yunikorn_service.service'} & set(sys.modules)\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)"
    )
    done = run_python("-c", code, installed=tmp_path)
    assert "greet " in done.stdout
    assert done.returncode == 0, done.stderr


def test_the_name_of_a_default_command_is_refused(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.command("greetings", "serve", GREETS)
    assert main(["serve", "--help"]) == 0
    assert "Print a greeting." not in capsys.readouterr().out
    assert main(["plugins", "--kind", "command"]) == 1
    printed = capsys.readouterr().out
    assert "plugin greetings (greetings 1.0)" in printed
    assert "'serve'" in printed


def test_two_packages_with_one_command_are_called_by_their_distributions(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        site.command(name, "greet", f"return click.Command('greet', callback=lambda: click.echo('{name}'))")
    assert main(["greet"]) == 2
    assert "write greet@one or greet@two" in capsys.readouterr().err
    assert main(["greet@two"]) == 0
    assert capsys.readouterr().out == "two\n"
    assert main(["greet@three"]) == 2
    assert "not offered by 'three'" in capsys.readouterr().err
    assert main(["--help"]) == 0
    assert "greet@one" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("raise ImportError('no numpy')", "cannot be made: ImportError: no numpy"),
        ("return 3", "command() returned 3 instead of a click command"),
        ("import sys; sys.exit(0)", "cannot be made: SystemExit: 0"),
    ],
)
def test_a_command_that_cannot_be_made_names_its_package(
    body: str, text: str, site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    site.command("greetings", "greet", body)
    assert main(["greet"]) == 2
    printed = capsys.readouterr().err
    assert "command greet of greetings (greetings 1.0)" in printed
    assert text in printed
    assert main(["--help"]) == 0


def test_a_bug_of_a_package_is_not_ours(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.command("greetings", "greet", "return click.Command('greet', callback=lambda: 1 / 0)")
    assert main(["greet"]) == 70
    printed = capsys.readouterr().err
    assert "Error: ZeroDivisionError: division by zero" in printed
    assert "This is a bug in command greet of greetings (greetings 1.0)." in printed
    with pytest.raises(Exception, match="command greet of greetings"):
        main(["--traceback", "greet"])


@pytest.mark.parametrize("selection", ["--no-plugins", "YUNIKORN_PLUGINS"])
def test_commands_that_are_left_out_are_named(
    selection: str, site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site.command("greetings", "greet", GREETS)
    if selection == "YUNIKORN_PLUGINS":
        monkeypatch.setenv(selection, "off")
    assert main([*([selection] if selection.startswith("--") else []), "greet", "--name", "ann"]) == 2
    assert "left out, by --no-plugins or YUNIKORN_PLUGINS: greetings" in capsys.readouterr().err


def completed(words: str, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> list[str]:
    """Return what a shell offers for the last of these words."""
    patch.setenv("_YUNIKORN_COMPLETE", "bash_complete")
    patch.setenv("COMP_WORDS", words)
    patch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    main([])
    found = capsys.readouterr()
    assert found.err == ""
    return [line.partition(",")[2] for line in found.out.splitlines()]


def test_names_and_options_are_completed(
    site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    site.command("greetings", "greet", GREETS)
    site.command("other", "great", "raise ImportError('no numpy')")
    site.install("broken", "import nothing_of_this_name\n")
    assert completed("yunikorn gre", capsys, monkeypatch) == ["greet", "great"]
    assert completed("yunikorn greet --n", capsys, monkeypatch) == ["--name"]
    assert completed("yunikorn great --n", capsys, monkeypatch) == ["--no-plugins"]


def test_what_a_package_prints_when_imported_is_no_result(
    site: Site, capfd: pytest.CaptureFixture[str]
) -> None:
    site.command("greetings", "greet", GREETS)
    site.install("loud", "print('welcome')\n" + HEAD.replace("NAME", "loud").replace("BODY", "return 3"))
    assert main(["greet", "--name", "ann"]) == 3
    printed = capfd.readouterr()
    assert printed.out == "hello ann\n"
    assert "welcome" in printed.err
