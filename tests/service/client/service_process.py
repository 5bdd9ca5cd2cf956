"""Test kit: `yunikorn serve` in a process of its own, which a test can stop, kill and restart."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Self

from tests.service.kit import CONFIG

CHECKOUT = Path(__file__).parents[3]


class Service:
    """A scheduler at a socket in `folder`; use it with `with`."""

    def __init__(self, folder: Path, *options: str, config: str = CONFIG) -> None:
        self.address = f"unix:{folder}/socket"
        self._folder = folder
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        (folder / "queues.yaml").write_text(config, "utf-8")

    def start(self) -> None:
        """Start the service; return when it listens."""
        path = os.pathsep.join(filter(None, sys.path))
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "yunikorn", "serve", "--rest", "off"),
                    *("--config", str(self._folder / "queues.yaml")),
                    *("--grpc", self.address),
                    *self._options,
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "PYTHONPATH": path},
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert self.address.encode() in line, (line, self.log)

    @property
    def log(self) -> str:
        """Standard error of all its processes so far."""
        return (self._folder / "log").read_text("utf-8")

    @property
    def pid(self) -> int:
        """Id of the current process."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """Kill the process."""
        assert self._process is not None
        self._process.kill()
        self._reap()

    def stop(self) -> int:
        """Stop the process in order; return its exit status."""
        assert self._process is not None
        self._process.terminate()
        return self._reap()

    def _reap(self) -> int:
        assert self._process is not None
        status = self._process.wait(60)
        if self._process.stdout is not None:
            self._process.stdout.close()
        return status

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self.stop()
        elif self._process is not None:
            self._reap()
