"""The command `yunikorn`: runs a sub-command, and reports every failure in one line.

Exit status: that of the sub-command; 2 when the call or its input cannot be used, 130 after Ctrl-C (128
plus its number after another signal), 141 after a broken pipe, 70 for a bug of ours.

The command line sets Python's garbage collector for a process that only schedules. The objects of a scheduler
are long-lived: requests and allocations stay until they end, and then reference counting frees most of them,
without the collector. With Python's defaults, the collector scans the young objects after every 700 new ones,
and finds almost nothing. Less frequent collections find reference cycles later, but still find them. Only the
command line changes these settings, because a library must not change those of its process.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import sys
from collections.abc import Iterator, Sequence
from traceback import format_exception
from typing import TYPE_CHECKING, Any

import click

from yunikorn import __version__
from yunikorn.containment import describe_error, safe_text
from yunikorn.errors import YunikornError, printable
from yunikorn.framework.defaults import import_default
from yunikorn.text import suggest
from yunikorn_commands.default_commands import DEFAULT_COMMANDS, DEFAULT_SECTIONS, DefaultCommand
from yunikorn_commands.interrupts import Interruption, interrupts_known
from yunikorn_commands.offered_commands import (
    CALLED,
    help_line,
    offered_command,
    offered_commands,
    unusable_plugins,
)
from yunikorn_commands.once import refuse_repeated
from yunikorn_commands.output import is_wrapped, with_results_only
from yunikorn_commands.plugin_threads import end_in_time

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

YOUNG = 10_000
"""Allocations minus deallocations between two collections of the young generation."""
MIDDLE = 50
"""Collections of the young generation between two collections of the middle generation."""
OLD = 2
"""Collections of the middle generation between two full collections: one per million surviving objects."""


def settle_collector() -> None:
    """Configure the collector of this process; call once, after imports, whose objects are permanent."""
    gc.enable()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)


UNUSABLE = 2
BUG = 70
INTERRUPTED = 130
BROKEN_PIPE = 141
SIGNALLED = 128
"""Exit status after a signal, to which its number is added."""

VARIABLE, OFF = "YUNIKORN_PLUGINS", "off"
"""Variable of the installed plugins in use; `yunikorn.framework.installed`, which is imported when needed."""
COMPLETION = "_YUNIKORN_COMPLETE"
"""Variable by which a shell requests a completion, or the script that installs it."""
OWN_PROCESS = object()
"""Context object for commands whose process is the command line, not a program that calls `main`."""


class CommandError(click.ClickException):
    """An error of ours on the command line: `Error: TEXT`, exit status 2."""

    exit_code = UNUSABLE


class FailedCommand(Exception):
    """Bug in a command of another package; the cause is the error, and the text names the command."""


class ReaderLeft(Exception):
    """Error for a reader that has closed the pipe (`yunikorn ... | head`)."""


class LazyGroup(click.Group):
    """Group whose commands are imported when called; those of other packages come after the default ones."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names, in the order of `--help`."""
        return [*DEFAULT_COMMANDS, *(name for name, _ in offered_commands(ctx))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command of that name; None if there is none."""
        if ctx.obj is OWN_PROCESS:
            # Nothing that an import makes is garbage, and looking for some takes a tenth of its time.
            gc.disable()
        found = DEFAULT_COMMANDS.get(cmd_name)
        command = self._offered(ctx, cmd_name) if found is None else self._default(found)
        if ctx.obj is OWN_PROCESS:
            settle_collector()
        return command

    def _default(self, found: DefaultCommand) -> click.Command:
        command = getattr(import_default(found.place), found.attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{found.attribute} of {found.place} is not a click command")
        if command.callback is not None and not is_wrapped(command.callback):
            command.callback = with_results_only(command.callback)
            refuse_repeated(command)
        return command

    def _offered(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return a command of a package, as its author has made it: its prints are its results."""
        if not self._is_known(name, [known for known, _ in offered_commands(ctx)]):
            return None
        try:
            return offered_command(ctx, name)
        except click.ClickException:
            if ctx.resilient_parsing:  # a completion
                return None
            raise

    @staticmethod
    def _is_known(name: str, known: Sequence[str]) -> bool:
        return name.partition("@")[0] in {one.partition("@")[0] for one in known}

    def _lines(self, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
        """Return all commands with their help lines, by section, without importing the default commands."""
        sections = {
            title: [(name, found.line) for name, found in commands.items()]
            for title, commands in DEFAULT_SECTIONS.items()
        }
        for name, offer in offered_commands(ctx):
            section = printable(safe_text(offer.cls.section))
            sections.setdefault(section, []).append((name, help_line(offer)))
        return sections

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with their help lines by section, and the plugins that cannot be used."""
        sections, remarks = self._lines(ctx), unusable_plugins(ctx)
        widest = max(len(name) for commands in sections.values() for name, _ in commands)
        for title, commands in sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), line) for name, line in commands])
        for text in remarks:
            formatter.write_paragraph()
            formatter.write_text(text)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return completions of a name, with help lines, without importing the default commands."""
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=line)
            for commands in self._lines(ctx).values()
            for name, line in commands
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error of ours becomes a message."""
        try:
            return super().invoke(ctx)
        except YunikornError as error:
            raise CommandError(str(error)) from error
        except BrokenPipeError as error:
            raise ReaderLeft from error  # click would exit with 1, which commands use for "invalid"
        except (click.ClickException, click.exceptions.Exit, click.Abort, OSError):
            raise
        except Exception as error:
            if CALLED not in ctx.meta:
                raise
            raise FailedCommand(f"command {ctx.meta[CALLED]}") from error

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that `args` call; raises `click.UsageError` with a suggestion."""
        if args and not args[0].startswith("-") and args[0] not in DEFAULT_COMMANDS:
            known = self.list_commands(ctx)
            if not self._is_known(args[0], known):
                text = f"no command is called '{args[0]}'{suggest(args[0], known)}; known: {', '.join(known)}"
                ctx.fail("; ".join([text, *unusable_plugins(ctx)]))
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Each command has its own --help.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda ctx, _, wanted: _show_version(ctx) if wanted else None,
    help="Show the version and exit.",
)
@click.option("--traceback", is_flag=True, help="Show the Python traceback of a bug.")
@click.option(
    "--no-plugins", is_flag=True, help="Use the default plugins only, as with YUNIKORN_PLUGINS=off."
)
def group(traceback: bool, no_plugins: bool) -> None:
    """YuniKorn for Python: a resource scheduler in which every policy is a plugin."""
    if no_plugins:
        os.environ[VARIABLE] = OFF


def _show_version(ctx: click.Context) -> None:
    # The kind of build needs an import that other commands do not need.
    from yunikorn_commands.build import kind_of_build

    click.echo(f"yunikorn {__version__} ({kind_of_build()})")
    ctx.exit()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line with `arguments` (of the process if None); returns the exit status."""
    owner = OWN_PROCESS if arguments is None else None
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    with _streams_open() as lost:
        status = _main(arguments, owner)
        if lost.has_text and not status:
            what = "the result is lost: redirect it to a file or /dev/null"
            click.echo(f"Error: standard output is closed and {what}", err=True)
            status = UNUSABLE
    if owner is not None:
        end_in_time(status)
    return status


class _Nowhere(io.TextIOBase):
    """Output of a process without standard output, which remembers that there was some."""

    has_text = False

    def write(self, text: str) -> int:
        """Drop a text."""
        self.has_text = self.has_text or bool(text)
        return len(text)


def _main(arguments: list[str], owner: object) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        with interrupts_known(), _environment_restored():
            status = _run(arguments, owner)
        sys.stdout.flush()
    except (BrokenPipeError, ReaderLeft):
        _abandon_stdout()
        return BROKEN_PIPE
    except OSError as error:
        _abandon_stdout()
        click.echo(f"Error: standard output: {describe(error)}", err=True)
        return UNUSABLE
    return status


@contextlib.contextmanager
def _streams_open() -> Iterator[_Nowhere]:
    """Open output streams that this process was started without (`>&-`): what is written there is dropped.

    The value is what receives standard output if that is closed.

    The descriptors are occupied as well. Otherwise, the next file that is opened would get the number of
    standard output, and then everything that libraries print.
    """
    missing = [name for name in ("stdin", "stdout", "stderr") if getattr(sys, name) is None]
    lost = _Nowhere()
    if not missing:
        yield lost
        return
    opened = [os.open(os.devnull, os.O_RDWR)]
    while opened[-1] <= 2:
        opened.append(os.open(os.devnull, os.O_RDWR))
    os.close(opened.pop())
    with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.ExitStack() as stack:
        if "stdout" in missing:
            stack.enter_context(contextlib.redirect_stdout(lost))
        if "stderr" in missing:
            stack.enter_context(contextlib.redirect_stderr(nowhere))
        yield lost


def _run(arguments: list[str], owner: object) -> int:
    try:
        status = group.main(arguments, prog_name="yunikorn", standalone_mode=False, obj=owner)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort as abort:
        click.echo("yunikorn: interrupted", err=True)
        cause = abort.__cause__
        return SIGNALLED + cause.number if isinstance(cause, Interruption) else INTERRUPTED
    except SystemExit as stop:
        # No command calls sys.exit(): this is a plugin or a library, and an exit status of 0 would hide it.
        if COMPLETION in os.environ:
            return stop.code if type(stop.code) is int else BUG  # click ends a completion in this way
        if "--traceback" in arguments:
            click.echo("".join(format_exception(stop)), err=True, nl=False)
        click.echo(f"Error: sys.exit() was called by a plugin or a library: {safe_text(stop)}", err=True)
        return stop.code if type(stop.code) is int and stop.code != 0 else BUG
    except (BrokenPipeError, ReaderLeft):
        raise
    except OSError as error:
        click.echo(f"Error: {describe(error)}", err=True)
        return UNUSABLE
    except Exception as error:
        if "--traceback" in arguments:
            raise
        bug, where = error, "yunikorn"
        if isinstance(error, FailedCommand) and isinstance(error.__cause__, Exception):
            bug, where = error.__cause__, str(error)
        click.echo(f"Error: {describe_error(bug)}", err=True)
        click.echo(
            f"This is a bug in {where}. `yunikorn --traceback COMMAND ...` shows the traceback.", err=True
        )
        return BUG
    return status if isinstance(status, int) else 0


@contextlib.contextmanager
def _environment_restored() -> Iterator[None]:
    """Restore `YUNIKORN_PLUGINS`, which `--no-plugins` sets for this process and its workers."""
    before = os.environ.get(VARIABLE)
    try:
        yield
    finally:
        if before is not None:
            os.environ[VARIABLE] = before
        else:
            os.environ.pop(VARIABLE, None)


def describe(error: OSError) -> str:
    """Return a failure of the operating system in one line: `FILE: No such file or directory`."""
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason


def _abandon_stdout() -> None:
    # Buffered output would cause another error when the interpreter flushes at exit.
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
