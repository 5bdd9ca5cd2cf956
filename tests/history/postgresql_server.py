"""A real PostgreSQL server for tests, in a folder of its own and reached by a socket."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

import psycopg

FOLDERS = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin")
"""Places of the programs beside the search path: those of Debian, Red Hat, and a build."""
ACCOUNT = "postgres"
"""User of the server where the tests run as root, whom the server refuses."""


def program(name: str) -> str | None:
    """Return the path of a program of PostgreSQL; None if it is not installed."""
    for pattern in FOLDERS:
        for folder in sorted(Path("/").glob(pattern[1:]), reverse=True):
            if (folder / name).exists():
                return str(folder / name)
    return shutil.which(name)


class PostgresServer:
    """Server that starts, stops and dies as a test wants; `close` removes all it had."""

    def __init__(self) -> None:
        # The path of a socket has at most 107 characters, which folders of tests exceed.
        self.folder = Path(tempfile.mkdtemp(prefix="yunikorn-pg-"))
        self._user: str | None = None
        if os.geteuid() == 0:
            self._user = ACCOUNT
            os.chown(self.folder, pwd.getpwnam(ACCOUNT).pw_uid, -1)
        self._data = self.folder / "data"
        self._databases = 0
        arguments = (
            "--username=postgres",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            "--no-sync",
        )
        self._run("initdb", f"--pgdata={self._data}", *arguments)

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        # Tests do not wait for the disk, and kill the server, but not the machine.
        options = f"-c listen_addresses='' -c unix_socket_directories={self.folder} -c fsync=off"
        log = self.folder / "log"
        self._run("pg_ctl", "start", "-w", f"--pgdata={self._data}", f"--log={log}", "-o", options)

    def stop(self, mode: str = "fast") -> None:
        """Stop the server, which ends all connections."""
        self._run("pg_ctl", "stop", "-w", f"--pgdata={self._data}", f"--mode={mode}")

    def kill(self) -> None:
        """Kill the server, as a crash does, and wait until it has ended."""
        pid = int((self._data / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)
        # Until the process is reaped, a new server takes it for one that runs.
        with contextlib.suppress(ProcessLookupError):
            for _ in range(600):
                os.kill(pid, 0)
                threading.Event().wait(0.05)
        # The processes of connections end when they notice; a new server waits for them.
        self._run("pg_ctl", "stop", "-w", f"--pgdata={self._data}", check=False)

    def new_database(self, encoding: str = "UTF8") -> str:
        """Create a database, and return its location."""
        self._databases += 1
        name = f"test{self._databases}"
        locale = "" if encoding == "UTF8" else "LC_COLLATE 'C' LC_CTYPE 'C'"
        self.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' {locale}")
        return self.location(name)

    def location(self, database: str) -> str:
        """Return the location of a database."""
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Execute a statement, and return its rows."""
        with psycopg.connect(self.location(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        """End the server, and remove its folder."""
        self._run("pg_ctl", "stop", "-w", f"--pgdata={self._data}", "--mode=immediate", check=False)
        shutil.rmtree(self.folder)

    def _run(self, name: str, *arguments: str, check: bool = True) -> None:
        command: Sequence[str] = (program(name) or name, *arguments)
        done = subprocess.run(
            command,
            user=self._user,
            cwd=self.folder,
            stdout=subprocess.PIPE if name == "initdb" else subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if check and done.returncode:
            log = self.folder / "log"
            raise RuntimeError(f"{command}: {done.stdout or (log.read_text() if log.exists() else '')}")
