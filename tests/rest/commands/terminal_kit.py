"""Test kit: a command in a real terminal, whose screen is that of a terminal emulator."""

from __future__ import annotations

import functools
import http.server
import os
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import httpx
import pexpect
import pyte

from tests.rest.commands.operator_kit import Reply

PATIENCE = 60.0
"""Seconds after which a test gives up; reached only if it fails."""


class TerminalSession:
    """A command in a terminal of a size."""

    def __init__(
        self,
        *arguments: str,
        columns: int = 80,
        lines: int = 24,
        environment: Mapping[str, str] | None = None,
        program: Sequence[str] = (sys.executable, "-m", "yunikorn"),
    ) -> None:
        self.screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self.screen)
        paths = os.pathsep.join(filter(None, sys.path))
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("YUNIKORN_", "LC_"))
        }
        self.child: pexpect.spawn[bytes] = pexpect.spawn(
            program[0],
            [*program[1:], *arguments],
            env={
                **kept,
                "PYTHONPATH": paths,
                "TERM": "xterm-256color",
                "LANG": "C.UTF-8",
                **(environment or {}),
            },
            dimensions=(lines, columns),
            timeout=PATIENCE,
        )
        self.before = termios.tcgetattr(self.child.child_fd)
        self.received = b""

    @property
    def lines(self) -> list[str]:
        """Lines of the screen, without blanks at their ends."""
        return [line.rstrip() for line in self.screen.display]

    @property
    def mode(self) -> Any:
        """Settings of the terminal."""
        return termios.tcgetattr(self.child.child_fd)

    def until(self, condition: Callable[[str], object]) -> str:
        """Wait until the screen fulfils a condition; return its text."""
        deadline = time.monotonic() + PATIENCE
        while True:
            text = "\n".join(self.lines)
            if condition(text):
                return text
            if time.monotonic() > deadline:
                raise AssertionError(f"the screen is:\n{text}")
            try:
                self._feed(self.child.read_nonblocking(1 << 16, timeout=PATIENCE))
            except (pexpect.TIMEOUT, pexpect.EOF) as error:
                raise AssertionError(f"the screen is:\n{text}") from error

    def shows(self, *texts: str) -> str:
        """Wait until the screen has some texts; return its text."""
        return self.until(lambda screen: all(text in screen for text in texts))

    def press(self, keys: str) -> None:
        """Send keys."""
        self.child.send(keys)

    def resize(self, columns: int, lines: int) -> None:
        """Change the size of the terminal."""
        self.screen.resize(lines, columns)
        self.child.setwinsize(lines, columns)

    def ended(self) -> tuple[int | None, int | None]:
        """Wait for the end of the command; return its exit status, and the signal that ended it."""
        while True:
            try:
                self._feed(self.child.read_nonblocking(1 << 16, timeout=PATIENCE))
            except pexpect.EOF:
                break
        self.child.wait()
        return self.child.exitstatus, self.child.signalstatus

    def close(self) -> None:
        """End the command, whatever it does."""
        self.child.close(force=True)

    def _feed(self, data: bytes) -> None:
        self.received += data
        self._stream.feed(data)


class RestContext:
    """A server of HTTP that answers by a function, and can be stopped and started again at its port."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.asked: list[str] = []
        """Paths with queries of all requests."""
        self.port = 0
        self._server: http.server.ThreadingHTTPServer | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Listen, at the former port if there was one."""
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """Answers by the function of the site; one request at a time."""

            def _answer(self) -> None:
                length = int(self.headers.get("Content-Length", "0"))
                body = self.rfile.read(length)
                request = httpx.Request(
                    self.command, f"http://localhost{self.path}", headers=dict(self.headers), content=body
                )
                with site._lock:
                    site.asked.append(self.path)
                    found = site.reply(request)
                self.send_response(found.status_code)
                for name, value in found.headers.items():
                    if name not in ("content-length", "transfer-encoding", "connection"):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(found.content)))
                self.end_headers()
                self.wfile.write(found.content)

            do_GET = do_POST = do_PUT = _answer

            def log_message(self, format: str, *args: object) -> None:
                """Print nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        serve = functools.partial(self._server.serve_forever, poll_interval=0.01)
        threading.Thread(target=serve, daemon=True).start()

    def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


@contextmanager
def site(reply: Reply) -> Iterator[RestContext]:
    """Run a server of HTTP."""
    found = RestContext(reply)
    found.start()
    try:
        yield found
    finally:
        found.stop()
