"""Python that starts by a fork of a process with all modules loaded, in place of `python`.

    python -I -S tests/fork_client.py FOLDER INTERPRETER ARGUMENT ...

Modules and files run so; anything else runs in a process of its own, and so does all where FOLDER has no
socket of the name. It imports next to nothing, because a test may start it a hundred times.
"""

from __future__ import annotations

import array
import marshal
import os
import signal
import socket
import sys

CHOICE = "YUNIKORN_TEST_FORKS"
"""Environment variable that names the socket, in place of the hash seed."""


def main(folder: str, interpreter: str, *arguments: str) -> None:
    """Run a command, and end as it ends."""
    is_known = bool(arguments) and (arguments[0] == "-m" or not arguments[0].startswith("-"))
    name = os.environ.get(CHOICE) or os.environ.get("PYTHONHASHSEED", "random")
    if name == "pip" and arguments[:2] != ("-m", "pip"):
        name = "build"
    address = os.path.join(folder, name)
    if not is_known or not os.path.exists(address):
        os.execv(sys.executable, [sys.executable, *arguments])
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(address)
    request = marshal.dumps(([interpreter, *arguments], os.getcwd(), dict(os.environ)))
    connection.sendmsg([request], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
    pid = int(connection.recv(64))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda sent, _: os.kill(pid, sent))
    status = int(connection.recv(64))
    if os.WIFSIGNALED(status):
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.WEXITSTATUS(status))


if __name__ == "__main__":
    main(*sys.argv[1:])
