"""Progress of a simulation: shown on a terminal only, and not too often."""

from __future__ import annotations

import io

from rich.console import Console

from yunikorn.clock import SECOND, ManualClock
from yunikorn_lab.commands.run_options import SELDOM, RateMeter, progress_bar
from yunikorn_lab.simulation.engine import Progress

HOUR = 3600 * SECOND


def test_line_shows_simulated_time_and_decision_rate() -> None:
    clock = ManualClock()
    meter = RateMeter(clock)
    clock.advance(2)
    progress = Progress(
        moment=51 * HOUR + 300 * SECOND, applications=10, submitted=6, ended=4, decisions=5000
    )
    assert meter.line(progress) == "day 2, 03:05  2,500 decisions/s"


def shown(held: bool) -> str:
    """Return the terminal output after some steps."""
    terminal = io.StringIO()
    console = Console(file=terminal, force_terminal=True, width=120, color_system=None)
    clock = ManualClock()
    with progress_bar(console, clock, held=held) as watch:
        clock.advance(1)
        for step in range(SELDOM + 1):
            assert watch(Progress(step * HOUR, 200, submitted=2 * step, ended=step, decisions=7 * step))
    return terminal.getvalue()


def test_bar_counts_finished_applications() -> None:
    text = shown(held=False)
    assert f" {SELDOM}/200 applications, remaining" in text
    assert "day 2, 16:00  448 decisions/s" in text


def test_bar_counts_submitted_applications_if_tasks_are_held() -> None:
    assert f"{2 * SELDOM}/200 applications" in shown(held=True)


def test_without_a_terminal_nothing_is_shown() -> None:
    with progress_bar(None, ManualClock()) as watch:
        assert watch(Progress(0, 1, 1, 0, 0))
