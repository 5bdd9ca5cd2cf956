"""Commands that start by a fork of a process with all modules loaded, in a fraction of the time.

A start of `yunikorn` spends half a second with imports, and pytest as much.
"""

from __future__ import annotations

import atexit
import os
import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
PYTEST = ("yunikorn.cli.main", "yunikorn.api", "pytest")
LOADED: dict[str, tuple[str, ...]] = {
    "random": (
        *PYTEST,
        *("yunikorn_commands.command_group", "yunikorn_lab.commands.simulate"),
        *("yunikorn_lab.commands.compare", "yunikorn_lab.commands.size", "yunikorn_lab.commands.validate"),
        *(
            "yunikorn_lab.reporting.page",
            "yunikorn_lab.reporting.all_plots",
            "yunikorn_lab.reporting.workers",
        ),
    ),
    "1": PYTEST,
    "2": PYTEST,
    "pip": ("pip._internal.cli.main", "pip._internal.commands.install"),
    "build": ("setuptools.build_meta",),
}
"""Modules of each process. The first three are chosen by PYTHONHASHSEED, where 1 and 2 are the seeds that
contracts of plugins compare, and the last two by `fork_client.CHOICE`: pip, and what it starts to build a
package, because pip and setuptools each have a `distutils` of their own."""


class Forks:
    """A process that forks commands; `close` ends it, and them."""

    def __init__(self, address: Path, modules: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start the process, which listens at a path."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(str(address))
            listener.listen(64)
            self._process = subprocess.Popen(
                [sys.executable, str(HERE / "fork_server.py"), str(listener.fileno()), *modules],
                pass_fds=[listener.fileno()],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                env=dict(environment),
                start_new_session=True,
            )

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


@cache
def _shared() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="yunikorn-forks-")
    atexit.register(folder.cleanup)
    path = os.pathsep.join(str(Path(part).resolve()) for part in sys.path if part)
    for name, modules in LOADED.items():
        seed = name if name.isdigit() else "random"
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": seed}
        atexit.register(Forks(Path(folder.name, name), modules, environment).close)
    return Path(folder.name)


def write_python(program: Path, words: str = '"$@"') -> None:
    """Write a program of the shell that runs Python, forked where it can be, with these words after it."""
    program.write_text(f"#!/bin/sh\nexec {_python(str(program.parent / 'python'))} {words}\n", "utf-8")
    program.chmod(0o755)


def _python(interpreter: str) -> str:
    """Return the shell's words for Python that is forked where it can be, with this `sys.executable`."""
    if sys.platform != "linux":
        return shlex.quote(sys.executable)
    return shlex.join([sys.executable, "-I", "-S", str(HERE / "fork_client.py"), str(_shared()), interpreter])
