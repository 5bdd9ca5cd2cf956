"""`yunikorn top` in a real terminal: keys, sizes, signals, and a server that goes away."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.rest.commands.operator_kit import small_cluster, through
from tests.rest.commands.terminal_kit import RestContext, TerminalSession, site

Start = Callable[..., TerminalSession]


@pytest.fixture
def server() -> Iterator[RestContext]:
    """Serve a small cluster."""
    with site(through(small_cluster())) as found:
        yield found


@pytest.fixture
def start(server: RestContext) -> Iterator[Start]:
    """Return a function that starts `yunikorn top`."""
    sessions: list[TerminalSession] = []

    def call(*arguments: str, **options: object) -> TerminalSession:
        address = f"http://127.0.0.1:{server.port}"
        session = TerminalSession("top", "--server", address, *arguments, **options)  # type: ignore[arg-type]
        sessions.append(session)
        return session

    yield call
    for session in sessions:
        session.close()


def is_restored(session: TerminalSession) -> bool:
    """Return True if a session has left the alternate screen, and the terminal has its former settings."""
    left = session.received.rfind(b"\x1b[?1049l") > session.received.rfind(b"\x1b[?1049h") >= 0
    cursor = session.received.rfind(b"\x1b[?25h") > session.received.rfind(b"\x1b[?25l")
    return left and cursor and session.mode == session.before


def test_keys_sizes_and_a_server_that_goes_away(start: Start, server: RestContext) -> None:
    top = start("--interval", "0.5")
    text = top.shows("[queues]", "1-4 of 4", "q quit")
    assert "    c" in text
    assert "GUARANTEED" not in text
    assert top.mode != top.before
    top.press("n")
    top.shows("[nodes]", "n0", "n2", "4/4")
    top.press("\t")
    top.shows("[apps]", "wait", "by waiting")
    top.press("s")
    top.shows("by use")
    top.press("/RUN")
    top.shows("/RUN_", "1-1 of 1  (2 in all)")
    top.press("\x1b")
    top.shows("1-2 of 2")
    top.press("?")
    top.shows("Keys of yunikorn top", "q, Ctrl-C")
    top.press("x")
    top.shows("[apps]")
    top.resize(200, 30)
    top.until(lambda screen: "PENDING" in screen and len(screen.splitlines()) == 30)
    top.resize(40, 6)
    top.until(
        lambda screen: (
            "PENDING" not in screen and "wait" in screen and max(map(len, screen.splitlines())) <= 40
        )
    )
    top.resize(12, 2)
    top.until(lambda screen: max(map(len, screen.splitlines())) <= 12)
    top.resize(80, 24)
    server.stop()
    top.shows("no answer for ", "trying again", " cannot be ", "wait")
    server.start()
    top.until(lambda screen: "no answer" not in screen and "q quit" in screen)
    top.press("q")
    assert top.ended() == (0, None)
    assert is_restored(top)


@pytest.mark.parametrize("how", ["ctrl-c", "terminate"])
def test_the_terminal_is_restored(start: Start, how: str) -> None:
    top = start("nodes")
    top.shows("[nodes]", "n0")
    if how == "ctrl-c":
        top.press("\x03")
        assert top.ended() == (0, None)
    else:
        top.child.kill(signal.SIGTERM)
        assert top.ended() == (None, signal.SIGTERM)
    assert is_restored(top)
    assert b"Traceback" not in top.received


@pytest.fixture
def shell(server: RestContext, tmp_path: Path) -> Iterator[TerminalSession]:
    """Start bash, which knows the command `yunikorn` and its completion."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    program = tmp_path / "yunikorn"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m yunikorn "$@"\n')
    program.chmod(0o755)
    environment = {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "YUNIKORN_SERVER": f"http://127.0.0.1:{server.port}",
        "PS1": "ready> ",
    }
    session = TerminalSession(columns=100, environment=environment, program=(bash, "--norc", "-i"))
    session.shows("ready>")
    yield session
    session.close()


def test_a_shell_suspends_and_continues_the_screen(shell: TerminalSession) -> None:
    shell.press("yunikorn top\r")
    shell.shows("[queues]", "1-4 of 4")
    shell.press("\x1a")
    shell.shows("Stopped")
    shell.press("stty -a | tr ';' '\\n' | grep -c -- '-icanon' | sed s/^/raw:/\r")
    shell.shows("raw:0")
    shell.press("fg\r")
    shell.until(lambda screen: "1-4 of 4" in screen and "raw:0" not in screen)
    shell.press("n")
    shell.shows("[nodes]", "n2")
    shell.press("q")
    shell.press("echo status:$?\r")
    shell.shows("status:0")
    assert shell.received.count(b"\x1b[?1049h") == shell.received.count(b"\x1b[?1049l") == 2


def test_a_shell_completes_names(shell: TerminalSession) -> None:
    shell.press('eval "$(_YUNIKORN_COMPLETE=bash_source yunikorn)"; echo loaded:$?\r')
    shell.shows("loaded:0")
    shell.press("yunikorn explain w\t")
    shell.shows("explain wait")
    shell.press("\x15yunikorn drain n\t\t")
    shell.shows("n0  n1  n2")
    shell.press("\x15yunikorn stop root.b.\t")
    shell.shows("stop root.b.c")


def test_hostile_names_in_a_terminal_of_ascii(start: Start, server: RestContext) -> None:
    name = "\x1b]0;x\x07[bold]<b>\u202eé"

    def reply(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/partitions"):
            return httpx.Response(200, json=[{"name": "default", "totalNodes": 1}])
        node = {
            "nodeID": name,
            "schedulable": False,
            "capacity": {"vcore": 4000},
            "allocated": {"vcore": 2000},
        }
        return httpx.Response(200, json=[node])

    server.reply = reply
    top = start("nodes", columns=120, environment={"LC_ALL": "C", "NO_COLOR": "1"})
    text = top.shows("Draining", "2/4")
    assert "\\x1b]0;x\\x07[bold]<b>\\u202e?" in text
    assert "######......" in text
    assert text.isascii()
    assert b"\x1b[33m" not in top.received
    top.press("q")
    assert top.ended() == (0, None)
    assert is_restored(top)
