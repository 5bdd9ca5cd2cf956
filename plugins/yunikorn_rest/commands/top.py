"""`yunikorn top`: queues, nodes and applications of a running scheduler, refreshed on the terminal."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import click
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from yunikorn.clock import SystemClock
from yunikorn.errors import UsageError
from yunikorn_commands.output import echo, has_colours, results
from yunikorn_commands.text_columns import terminal_width
from yunikorn_rest.commands.server_options import address_of, connect, connection_options, partition_option
from yunikorn_rest.commands.terminal import Terminal, is_interactive
from yunikorn_rest.commands.top_feed import Feed
from yunikorn_rest.commands.top_layout import Glyphs
from yunikorn_rest.commands.top_screen import Moment, Screen, ViewChoice
from yunikorn_rest.commands.top_views import VIEWS

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
