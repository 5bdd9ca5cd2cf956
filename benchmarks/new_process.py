"""Execution of each case in a new process, so that memory and caches of one case do not affect the next."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping

from benchmarks.cases import Case
from benchmarks.failure import BenchmarkFailure
from benchmarks.home import HOME, program
from benchmarks.measurement import Measurement


def run_in_new_process(case: Case, options: Mapping[str, object], limit: float | None = None) -> Measurement:
    """Run `case` in a new process; `options` replace those of its workload.

    Raises `BenchmarkFailure` if the case fails, or takes longer than `limit` seconds.
    """
    arguments = ["--here", "--json", "--case", case.title]
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        arguments += [option] if value is True else [option, str(value)]
    try:
        done = subprocess.run(
            [sys.executable, *program(), *arguments],
            cwd=HOME,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        raise BenchmarkFailure(f"{case.title} was given up after {limit:g} seconds") from None
    if done.returncode:
        # The process has already printed its error in this format; its last line is only a count.
        said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise BenchmarkFailure(said[0].removeprefix(f"{case.title} failed: ").removeprefix("Error: "))
    return Measurement.from_json(done.stdout)
