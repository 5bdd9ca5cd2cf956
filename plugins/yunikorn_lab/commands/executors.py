"""Executors of commands with several runs: their number, their end, and the progress on a terminal."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor
from pathlib import Path

import click

from yunikorn.errors import UsageError
from yunikorn_commands.output import has_colours
from yunikorn_lab.reporting.workers import HereAndNow, WorkerPool

jobs_option = click.option(
    "--jobs",
    type=click.IntRange(1, 1024),
    help="Number of parallel runs; the number of cores by default.",
)


def executor_for(jobs: int | None, runs: int) -> WorkerPool | HereAndNow:
    """Return an executor of `runs` runs, at most `jobs` or the number of cores at a time."""
    wanted = min(jobs or _cores(), runs)
    return HereAndNow() if wanted == 1 else WorkerPool(wanted)


@contextlib.contextmanager
def working(executor: Executor, out: Path | None) -> Iterator[None]:
    """End the workers with the context, at once after an error; a killed worker is an error of the call."""
    try:
        with executor:
            yield
    except BrokenExecutor as error:
        what_to_do = "if memory was short, use --jobs 1"
        if out is not None:
            what_to_do += f"; the same call takes over the finished runs in {out}"
        raise UsageError(f"a worker process was killed during a run: {what_to_do}") from error


def _cores() -> int:
    """Return the number of cores that this process may use, or of all cores where that is not available."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextlib.contextmanager
def progress_of_runs(what: str = "playing") -> Iterator[Callable[[int, int], None] | None]:
    """Yield a function that shows the number of finished runs, or None if standard error is no terminal."""
    if not (sys.stderr.isatty() and has_colours(sys.stderr)):
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status(what) as status:
        yield lambda done, all_: status.update(f"{done} of {all_} runs are done")
