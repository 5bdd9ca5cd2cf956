"""Separate process of `yunikorn serve`, which can be stopped, killed and restarted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Self

from benchmarks.failure import BenchmarkFailure
from benchmarks.home import HOME

PATIENCE = 60.0
"""Timeout for the end of the process in seconds."""


class ServiceProcess:
    """Service on a free loopback port; a context manager that stops the service at the end."""

    def __init__(self, config: Path, *options: str) -> None:
        self._command = [
            *(sys.executable, "-m", "yunikorn", "serve", "--rest", "off", "--config", str(config)),
            *("--grpc", "127.0.0.1:0", *options),
        ]
        self._process: subprocess.Popen[str] | None = None
        self.address = ""

    def start(self) -> None:
        """Start the service and wait until it listens. Raises `BenchmarkFailure` if the start fails."""
        self._process = subprocess.Popen(self._command, cwd=HOME, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        words = self._process.stdout.readline().replace(",", " ").split()
        self.address = next((word for word in words if word.startswith("127.")), "")
        if not self.address:
            raise BenchmarkFailure(f"the service did not start: {' '.join(words)}")

    @property
    def pid(self) -> int:
        """Process id."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """Kill the service without an orderly shutdown."""
        if self._process is not None:
            self._process.kill()
            self._reap()

    def stop(self) -> int:
        """Stop the service in an orderly way and return its exit status."""
        assert self._process is not None
        self._process.terminate()
        return self._reap()

    def _reap(self) -> int:
        assert self._process is not None
        status = self._process.wait(PATIENCE)
        if self._process.stdout is not None:
            self._process.stdout.close()
        return status

    @property
    def ended(self) -> bool:
        """True if the service has ended by itself."""
        return self._process is not None and self._process.poll() is not None

    def cpu(self) -> float:
        """Return the CPU seconds used so far; 0 if the system does not report them."""
        return cpu_seconds(self.pid)

    def megabytes(self) -> float:
        """Return the resident memory of the service (10**6 bytes); 0 if the system does not report it."""
        return resident_megabytes(self.pid)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.ended:
            self._reap()
        else:
            self.stop()


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds that a process has used; 0 if the system does not report them."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_megabytes(pid: int | str = "self") -> float:
    """Return the resident memory of a process (10**6 bytes); 0 if the system does not report it."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text("utf-8").split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
