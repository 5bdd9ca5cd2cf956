"""Cold start: duration of command-line calls in new processes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.failure import BenchmarkFailure
from benchmarks.home import HOME
from benchmarks.quantiles import quantile
from benchmarks.workload import Workload


def seconds(workload: Workload) -> dict[str, float]:
    """Measure the median seconds of `yunikorn --help`, and of `validate` on the workload's configuration."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "queues.yaml"
        file.write_text(workload.configuration(), encoding="utf-8")
        calls = {"help_s": ["--help"], "validate_s": ["validate", str(file)]}
        return {
            name: quantile([_run(arguments) for _ in range(workload.samples)], 0.5)
            for name, arguments in calls.items()
        }


def _run(arguments: list[str]) -> float:
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "yunikorn", *arguments],
        cwd=HOME,
        capture_output=True,
        text=True,
        check=False,
    )
    took = time.perf_counter() - start
    if done.returncode:
        raise BenchmarkFailure(f"yunikorn {' '.join(arguments)} ended with {done.returncode}: {done.stderr}")
    return took
