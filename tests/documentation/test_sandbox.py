"""The sandbox of the documentation interrupts a command once, and only the intended command."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.documentation import sandbox as sandboxes
from tests.documentation.sandbox import Sandbox

COUNTER = """\
import signal

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
print("ready", flush=True)
signal.sigwait([signal.SIGINT])
print("ready to end", flush=True)
print("again" if signal.sigtimedwait([signal.SIGINT], 0.2) else "once", flush=True)
"""
"""Prints how often it was interrupted, and prints the text once more on each interrupt."""

LISTENER = """\
import signal

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
print("hit" if signal.sigtimedwait([signal.SIGINT], 0.2) else "left alone", flush=True)
"""


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    """Return a sandbox with both programs."""
    made = Sandbox(tmp_path)
    made.write("counter.py", COUNTER)
    made.write("listener.py", LISTENER)
    return made


def test_command_that_repeats_the_text_is_interrupted_once(sandbox: Sandbox) -> None:
    output = sandbox.run("python counter.py", until="ready")
    assert output.text.splitlines() == ["ready", "ready to end", "once"]
    assert output.status == 0


def test_the_next_command_is_not_interrupted(sandbox: Sandbox) -> None:
    output = sandbox.run("python counter.py\npython listener.py\n", until="ready")
    assert output.text.splitlines()[-2:] == ["once", "left alone"]


@pytest.mark.slow  # waits for a clock
def test_every_command_that_prints_the_text_is_interrupted(sandbox: Sandbox) -> None:
    output = sandbox.run("python counter.py\npython listener.py\npython \\\n  counter.py\n", until="ready")
    assert output.text.splitlines().count("once") == 2
    assert output.text.splitlines().count("left alone") == 1


def test_failed_command_is_the_last(sandbox: Sandbox) -> None:
    output = sandbox.run("python counter.py\nfalse\npython counter.py\n", until="ready")
    assert output.text.splitlines().count("once") == 1
    assert output.status == 1


def test_a_suite_that_ignores_interrupts_still_interrupts(sandbox: Sandbox) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        output = sandbox.run("echo ready; exec sleep 1000", until="ready")
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert output.status == 128 + signal.SIGINT


def test_a_command_that_hangs_is_ended_and_reported(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandboxes, "HUNG", 0.2)
    with pytest.raises(AssertionError, match="sleep 1000 did not end"):
        sandbox.run("sleep 1000")
