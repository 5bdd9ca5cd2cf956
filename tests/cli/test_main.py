"""The command line itself: help, version, and one clear line for every failure."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from yunikorn import __version__
from yunikorn.errors import UsageError
from yunikorn_commands import command_group as shell
from yunikorn_commands.build import kind_of_build
from yunikorn_commands.command_group import MIDDLE, OLD, YOUNG
from yunikorn_commands.default_commands import DEFAULT_COMMANDS, DefaultCommand

CHECKOUT = Path(shell.__file__).parent.parent.parent


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], list[str]]:
    """Return a function that makes `yunikorn fake` run a function."""

    def install(function: Callable[[], object]) -> list[str]:
        module = types.ModuleType("yunikorn_lab.commands.fake")
        module.command = click.command()(function)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "yunikorn_lab.commands.fake", module)
        monkeypatch.setitem(DEFAULT_COMMANDS, "fake", DefaultCommand("A test.", "lab.fake"))
        return ["fake"]

    return install


def failing(error: BaseException) -> Callable[[], object]:
    """A command that raises."""

    def command() -> None:
        raise error

    return command


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.main(["--version"]) == 0
    assert capsys.readouterr().out == f"yunikorn {__version__} ({kind_of_build()})\n"


def test_garbage_collector_is_configured_in_own_processes_only(
    fake: Callable[[Callable[[], object]], list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    threshold, frozen = gc.get_threshold(), gc.get_freeze_count()
    assert shell.main(fake(lambda: None)) == 0
    # Frozen objects of the test run may end during the command, so there may be fewer.
    assert gc.get_threshold() == threshold
    assert gc.get_freeze_count() <= frozen

    script = (
        "import gc, sys, types, click; from yunikorn_commands import command_group as shell\n"
        "from yunikorn_commands.output import echo\n"
        "def command(): echo(f'{gc.get_threshold()} {gc.get_freeze_count() > 0}')\n"
        "from yunikorn_commands.default_commands import DEFAULT_COMMANDS, DefaultCommand\n"
        "module = sys.modules['yunikorn_lab.commands.fake'] = types.ModuleType('fake')\n"
        "DEFAULT_COMMANDS['fake'] = DefaultCommand('A test.', 'lab.fake')\n"
        "module.command = click.command()(command)\n"
        "sys.argv[1:] = ['fake']; shell.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=CHECKOUT, check=True
    )
    assert done.stdout == f"{(YOUNG, MIDDLE, OLD)} True\n"


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_lists_every_command(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.main([flag]) == 0
    text = capsys.readouterr().out
    for name, found in DEFAULT_COMMANDS.items():
        assert name in text
        assert found.line in text


@pytest.mark.parametrize("name", list(DEFAULT_COMMANDS))
def test_every_command_exists_and_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.main([name, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: yunikorn {name} ")


COMMAND_LINE_ONLY = {"rich", "pluggy", "cattrs", "yaml", "yunikorn.framework.registry"}


@pytest.mark.parametrize(
    ("option", "heavy"),
    [("--help", COMMAND_LINE_ONLY), ("--version", {*COMMAND_LINE_ONLY, "importlib.metadata"})],
)
def test_help_and_version_import_no_command(option: str, heavy: set[str]) -> None:
    code = (
        f"import sys; from yunikorn.cli.main import main; main([{option!r}])\n"
        f"heavy = {heavy!r} & set(sys.modules)\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr


def test_an_unknown_command_gets_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.main(["simulat"]) == 2
    assert "no command is called 'simulat', did you mean 'simulate'?; known: " in capsys.readouterr().err


def test_yunikorn_errors_are_printed_as_messages(
    fake: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert shell.main(fake(failing(UsageError("no nodes: give some")))) == 2
    assert capsys.readouterr().err == "Error: no nodes: give some\n"


def test_system_errors_are_printed_as_messages(
    fake: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert shell.main(fake(failing(FileNotFoundError(2, "No such file or directory", "queues.yaml")))) == 2
    assert capsys.readouterr().err == "Error: queues.yaml: No such file or directory\n"


def test_internal_error_is_reported_as_a_bug(
    fake: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert shell.main(fake(failing(ZeroDivisionError("division by zero")))) == 70
    text = capsys.readouterr().err
    assert text.startswith("Error: ZeroDivisionError: division by zero\nThis is a bug in yunikorn.")
    with pytest.raises(ZeroDivisionError):
        shell.main(["--traceback", "fake"])


def test_ctrl_c_is_quiet(fake: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.main(fake(failing(KeyboardInterrupt()))) == 130
    assert capsys.readouterr().err.strip() == "yunikorn: interrupted"


@pytest.mark.parametrize(("leave", "status"), [(lambda: sys.exit(1), 1), (lambda: 3, 3), (lambda: None, 0)])
def test_exit_status_is_that_of_the_command(
    leave: Callable[[], object], status: int, fake: Callable[..., list[str]]
) -> None:
    assert shell.main(fake(leave)) == status


def test_closed_output_pipe_is_no_error() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    writer = subprocess.Popen(
        [sys.executable, "-m", "yunikorn", "plugins"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    assert writer.stdout is not None
    assert writer.stderr is not None
    writer.stdout.close()
    complaints = writer.stderr.read()
    writer.stderr.close()
    assert (writer.wait(), complaints) == (141, b"")


@pytest.mark.skipif(not (CHECKOUT / "plugins").is_dir(), reason="not a checkout: the package is installed")
def test_checkout_runs_from_any_folder(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(
        [sys.executable, "-m", "yunikorn", "plugins", "--kind", "app-sort"],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "fifo" in done.stdout
