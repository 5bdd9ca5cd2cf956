"""`yunikorn top`: queues, nodes and applications of a running scheduler, refreshed on the terminal.

A terminal that a command draws on and reads keys from, and that is as before when the command ends.
"""

from __future__ import annotations

import codecs
import contextlib
import functools
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import click
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from yunikorn.clock import SystemClock
from yunikorn.errors import UsageError
from yunikorn_commands.interrupts import Interrupts
from yunikorn_commands.output import echo, has_colours, results
from yunikorn_commands.text_columns import terminal_width
from yunikorn_rest.commands.server_options import address_of, connect, connection_options, partition_option
from yunikorn_rest.commands.top_feed import Feed
from yunikorn_rest.commands.top_layout import Glyphs
from yunikorn_rest.commands.top_screen import Moment, Screen, ViewChoice
from yunikorn_rest.commands.top_views import VIEWS

ESCAPE_DELAY = 0.05
"""Seconds after which an escape character is the key of that name, and not the beginning of a sequence."""
SEQUENCES = {
    "[A": "up",
    "[B": "down",
    "[C": "right",
    "[D": "left",
    "OA": "up",
    "OB": "down",
    "OC": "right",
    "OD": "left",
    "[H": "home",
    "[F": "end",
    "OH": "home",
    "OF": "end",
    "[1~": "home",
    "[4~": "end",
    "[7~": "home",
    "[8~": "end",
    "[5~": "page-up",
    "[6~": "page-down",
    "[Z": "back-tab",
}
"""Keys by the characters behind the escape character."""
CONTROLS = {
    "\t": "tab",
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\b": "backspace",
    "\x02": "page-up",
    "\x06": "page-down",
    "\x0c": "redraw",
    "\x15": "erase",
}
"""Keys by control characters."""
LONGEST_SEQUENCE = 12


class KeyReader:
    """Keys from the bytes that a terminal sends."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    @property
    def is_waiting(self) -> bool:
        """True in the middle of a sequence."""
        return bool(self._rest)

    def keys(self, data: bytes, *, final: bool = False) -> list[str]:
        """Return the keys of some bytes: characters, and names of other keys.

        With `final`, an incomplete sequence is complete.
        """
        text, found = self._rest + self._decoder.decode(data), []
        self._rest = ""
        while text:
            if text[0] != "\x1b":
                found.append(CONTROLS.get(text[0], text[0]))
                text = text[1:]
                continue
            length = _sequence_length(text)
            if length == 0 and not final:
                self._rest = text
                break
            if length > 1:
                found.append(SEQUENCES.get(text[1:length], "unknown"))
            else:
                found.append("escape")
            text = text[max(length, 1) :]
        return found


def _sequence_length(text: str) -> int:
    """Return the length of the sequence at the beginning; 0 if incomplete, 1 for the escape key alone."""
    if len(text) == 1:
        return 0
    if text[1] == "O":
        return 3 if len(text) > 2 else 0
    if text[1] != "[":
        return 1
    for at in range(2, min(len(text), LONGEST_SEQUENCE)):
        if "@" <= text[at] <= "~":
            return at + 1
    return 0 if len(text) < LONGEST_SEQUENCE else LONGEST_SEQUENCE


def is_interactive(output: Any) -> bool:
    """Return True if keys can be read, and `output` is a terminal that can be redrawn."""
    if sys.platform == "win32" or os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        return False
    try:
        return bool(sys.stdin.isatty() and output.isatty())
    except ValueError:  # closed
        return False


class Terminal:
    """Keys, the size, and signals of the terminal of this process."""

    def __init__(self, output: int) -> None:
        self._output = output
        self._input = sys.stdin.fileno()
        self._reader = KeyReader()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._open = threading.RLock()
        """Held while the pipe is used, since its numbers are those of other files once it is closed."""
        self.ended_by = 0
        """Signal that wants the process to end; 0 if none has arrived."""
        self.is_suspended = False
        """True if the process is to be suspended (Ctrl-Z)."""

    def wake(self) -> None:
        """End a `wait` in progress; for any thread, and for signal handlers."""
        with self._open, contextlib.suppress(BlockingIOError):  # a full pipe wakes as well
            if self._wake_write >= 0:
                os.write(self._wake_write, b"\0")

    def size(self) -> tuple[int, int]:
        """Return the number of columns and of lines."""
        try:
            found = os.get_terminal_size(self._output)
        except OSError:
            return 80, 24
        return found.columns or 80, found.lines or 24

    def wait(self, seconds: float) -> list[str]:
        """Return the keys that were pressed; empty after some time, or after `wake`.

        Raises `EOFError` if the terminal is gone.
        """
        timeout = ESCAPE_DELAY if self._reader.is_waiting else seconds
        ready, _, _ = select.select([self._input, self._wake_read], [], [], timeout)
        if self._wake_read in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_read, 4096)
        if self._input not in ready:
            return [] if ready else self._reader.keys(b"", final=True)
        try:
            data = os.read(self._input, 4096)
        except OSError as error:
            raise EOFError from error
        if not data:
            raise EOFError
        return self._reader.keys(data)

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Read single keys, without an echo, until the end of the context; raises `UsageError`."""
        termios = _termios()
        try:
            before = termios.tcgetattr(self._input)
        except termios.error as error:
            raise UsageError("standard input is no terminal: --once prints the state once") from error
        mode = [*before[:6], list(before[6])]
        mode[3] &= ~(termios.ICANON | termios.ECHO)
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
        termios.tcsetattr(self._input, termios.TCSADRAIN, mode)
        try:
            yield
        finally:
            with contextlib.suppress(termios.error):  # the terminal is gone
                termios.tcsetattr(self._input, termios.TCSADRAIN, before)

    @contextlib.contextmanager
    def signals(self) -> Iterator[None]:
        """Note signals instead of ending at once, so that the terminal can be restored before the end."""

        def end(number: int, frame: FrameType | None) -> None:
            self.ended_by = number
            self.wake()

        def suspend(number: int, frame: FrameType | None) -> None:
            self.is_suspended = True
            self.wake()

        def resized(number: int, frame: FrameType | None) -> None:
            self.wake()

        def interrupted(number: int) -> None:
            self.ended_by = number
            self.wake()

        handlers: dict[int, Callable[[int, FrameType | None], object]] = {
            signal.SIGINT: Interrupts(interrupted),
            signal.SIGTERM: end,
            signal.SIGHUP: end,
            signal.SIGTSTP: suspend,
            signal.SIGWINCH: resized,
        }
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def suspend(self) -> None:
        """Suspend this process until it is continued, as Ctrl-Z does."""
        self.is_suspended = False
        handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, handler)

    def close(self) -> None:
        """Release the pipe."""
        with self._open:
            os.close(self._wake_read)
            os.close(self._wake_write)
            self._wake_read = self._wake_write = -1


def _termios() -> Any:
    try:
        import termios
    except ModuleNotFoundError as error:
        raise UsageError("this system has no terminals of Unix: --once prints the state once") from error
    return termios


SHORTEST_INTERVAL, LONGEST_INTERVAL = 0.5, 3600.0
STEPS = (0.5, 1, 2, 5, 10, 30, 60)
"""Intervals (s) that the keys + and - lead to."""
TICK = 1.0
"""Seconds after which the screen is drawn again although nothing was answered: ages change."""


@click.command()
@click.argument("view", type=click.Choice(tuple(VIEWS)), default="queues")
@click.option(
    "--interval",
    type=click.FloatRange(SHORTEST_INTERVAL, LONGEST_INTERVAL),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between two refreshes.",
)
@click.option("--once", is_flag=True, help="Print all rows once and end, as for a pipe.")
@partition_option
@connection_options
def command(view: str, interval: float, once: bool, partition: str, **connection: Any) -> None:
    """Show the queues, nodes or apps of a running scheduler, refreshed until q or Ctrl-C.

    Press ? for the keys. A pipe or a file gets all rows once. Exit status: 0, also after q and Ctrl-C; 1 when
    the partition does not exist; 2 when the server does not answer at the start, or for wrong options.
    """
    address = address_of(connection, connection["timeout"])
    views = [VIEWS[view], *(other for other in VIEWS.values() if other.title != view)]
    feed = Feed(functools.partial(connect, connection), partition, interval, views)
    interactive = not once and is_interactive(results())
    with connect(connection) as server:
        feed.refresh(server, whole=not interactive)
    console = _console()
    screen = Screen(address.shown(), partition, Glyphs(ascii_only=_is_ascii(console)))
    choice = ViewChoice(VIEWS[view])
    if interactive:
        _live(feed, screen, choice, console, interval)
        return
    if feed.snapshot is not None:
        moment = Moment(SystemClock().now(), 0, interval)
        # A console of rich ends the process itself when the reader of a pipe has left.
        with console.capture() as captured:
            for line in screen.whole(feed.snapshot, choice, moment, terminal_width()):
                console.print(line, soft_wrap=True)
        echo(captured.get(), nl=False)


def _console() -> Console:
    return Console(
        file=results(),
        highlight=False,
        markup=False,
        emoji=False,
        no_color=None if has_colours(results()) else True,
    )


def _is_ascii(console: Console) -> bool:
    """Return True if the terminal may show nothing but ASCII."""
    return console.options.ascii_only or os.environ.get("LC_ALL") in ("C", "POSIX")


def _live(feed: Feed, screen: Screen, choice: ViewChoice, console: Console, interval: float) -> None:
    """Draw frames until a key or a signal ends that, and leave the terminal as it was."""
    terminal = Terminal(results().fileno())
    try:
        with terminal.signals():
            feed.start(terminal.wake)
            with contextlib.suppress(EOFError, KeyboardInterrupt):
                while _until_suspended(feed, screen, choice, console, terminal):
                    terminal.suspend()
    finally:
        feed.stop()
        terminal.close()
    if feed.failure is not None:
        raise feed.failure
    if terminal.ended_by not in (0, signal.SIGINT):
        os.kill(os.getpid(), terminal.ended_by)


def _until_suspended(
    feed: Feed, screen: Screen, choice: ViewChoice, console: Console, terminal: Terminal
) -> bool:
    """Draw frames; returns True if the process is to be suspended, and False if it is to end."""
    with terminal.taken(), _alternate_screen(console) as live:
        while feed.failure is None:
            snapshot = feed.snapshot
            if snapshot is None:
                raise UsageError("the server has sent no figures")
            width, height = terminal.size()
            console.size = (width, height)
            moment = Moment(SystemClock().now(), time.monotonic() - snapshot.answered, feed.interval)
            lines = screen.frame(snapshot, choice, moment, width, height)
            live.update(Group(*map(_unwrapped, lines)), refresh=True)
            for key in terminal.wait(TICK):
                if not _apply(key, feed, choice):
                    return False
            if terminal.ended_by:
                return False
            if terminal.is_suspended:
                return True
    return False


def _apply(key: str, feed: Feed, choice: ViewChoice) -> bool:
    """Apply a key; returns False if the key ends the program."""
    if not choice.is_typing and not choice.is_help:
        if key in ("+", "-"):
            feed.interval = next_interval(feed.interval, longer=key == "-")
            return True
        if key == "redraw":
            feed.hurry()
            return True
    before = choice.view
    goes_on = choice.press(key)
    if choice.view is not before:
        feed.want(choice.view.title)
    return goes_on


def next_interval(interval: float, *, longer: bool) -> float:
    """Return the next interval of `STEPS` (s); the same one at the end."""
    if longer:
        return next((step for step in STEPS if step > interval), interval)
    return next((step for step in reversed(STEPS) if step < interval), interval)


def _unwrapped(line: Text) -> Text:
    line.no_wrap, line.overflow = True, "crop"
    return line


@contextlib.contextmanager
def _alternate_screen(console: Console) -> Iterator[Live]:
    with Live(
        console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
    ) as live:
        yield live
