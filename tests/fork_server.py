"""Program that has loaded modules, and forks a process for each command: a start without imports.

    python tests/fork_server.py DESCRIPTOR MODULE ...

The descriptor is that of a socket that listens; each connection is a command of `fork_client.py`. A command
is killed when its connection ends, and the program ends with its standard input.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import marshal
import os
import runpy
import selectors
import signal
import socket
import sys

LARGEST = 1 << 20
"""Size of a request in bytes at most."""
Request = tuple[list[str], str, dict[str, str]]
"""Arguments, of which the first is the interpreter, folder and environment of a command."""


class Server:
    """Forks the commands of a listening socket."""

    def __init__(self, listener: socket.socket) -> None:
        """Create it without commands."""
        self._listener = listener
        self._commands: dict[int, socket.socket] = {}
        """Connections of running commands by process id."""
        self._ended, self._wakes = socket.socketpair()
        self._wakes.setblocking(False)

    def serve(self) -> Request:
        """Serve until standard input ends; return in the process of each command, with its request."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wakes.fileno())
        self._selector = selectors.DefaultSelector()
        for source in (self._listener, self._ended, sys.stdin):
            self._selector.register(source, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select():
                if key.data is not None:
                    self._selector.unregister(key.fileobj)
                    os.kill(key.data, signal.SIGKILL)
                elif key.fileobj is self._listener:
                    if request := self._fork():
                        return request
                elif key.fileobj is self._ended:
                    self._ended.recv(LARGEST)
                    self._answer()
                else:
                    os._exit(0)

    def _fork(self) -> Request | None:
        connection = self._listener.accept()[0]
        text, files, _, _ = socket.recv_fds(connection, LARGEST, 3)
        if not text:
            connection.close()
            return None
        pid = os.fork()
        if pid == 0:
            self._leave(connection)
            for number, file in enumerate(files):
                os.dup2(file, number)
                os.close(file)
            found: Request = marshal.loads(text)
            return found
        for file in files:
            os.close(file)
        connection.send(str(pid).encode())
        self._commands[pid] = connection
        self._selector.register(connection, selectors.EVENT_READ, pid)
        return None

    def _leave(self, connection: socket.socket) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._selector.close()
        for one in (self._listener, self._ended, self._wakes, connection, *self._commands.values()):
            one.close()

    def _answer(self) -> None:
        """Send the status of each command that has ended, as `waitpid` reports it."""
        for pid, connection in list(self._commands.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if not ended:
                continue
            with contextlib.suppress(KeyError):  # it was killed
                self._selector.unregister(connection)
            with contextlib.suppress(OSError):  # the client has ended
                connection.send(str(status).encode())
            connection.close()
            del self._commands[pid]


def main() -> None:
    """Load modules, and serve; in the process of a command, run it."""
    for name in sys.argv[2:]:
        importlib.import_module(name)
    own = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    elsewhere = [folder for folder in sys.path[1:] if folder not in own]
    gc.collect()
    gc.freeze()
    request = Server(socket.socket(fileno=int(sys.argv[1]))).serve()
    (sys.executable, first, *arguments), folder, environment = request
    # Those of the server belong to other files.
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.dont_write_bytecode = bool(environment.get("PYTHONDONTWRITEBYTECODE"))
    is_module = first == "-m"
    start = folder if is_module else os.path.dirname(os.path.abspath(first))
    sys.path[:] = [start, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep)), *elsewhere]
    importlib.invalidate_caches()
    if is_module:
        sys.argv = arguments
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [first, *arguments]
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    main()
