"""Threads of plugins that never end keep no command from ending, and are named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.core.kit import document, partition, queue
from tests.service.kit import PATIENCE

PLUGIN = """
import threading
from concurrent.futures import ThreadPoolExecutor
from yunikorn.api import AppSortPolicy, hookimpl

def never_ends():
    threading.Event().wait()

POOL = ThreadPoolExecutor(1)
POOL.submit(int).result()
START

class Mine(AppSortPolicy):
    name = "mine"

    def key(self, app):
        return app.submitted

@hookimpl
def yunikorn_app_sort_policies():
    return [Mine]
"""
CONFIG = document(
    partition(queue("a", properties={"application.sort.policy": "mine"})), plugins={"load": ["./mine.py"]}
)
WORK = """
nodes: [{name: m, resources: {vcore: 1}}]
applications: [{id: one, queue: root.a, tasks: [{resources: {vcore: 1}, runtime: 30s}]}]
"""
SIMULATE = "simulate --config queues.yaml --workload work.yaml --json"
COMPARE = "compare --config queues.yaml --config other.yaml --workload work.yaml --jobs 2 --json"
VALIDATE = "validate queues.yaml --load-plugins ."


def run(folder: Path, call: str, start: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, with a plugin that executes `start` when it is loaded."""
    (folder / "mine.py").write_text(PLUGIN.replace("START", start))
    for name in ("queues.yaml", "other.yaml"):
        (folder / name).write_text(CONFIG)
    (folder / "work.yaml").write_text(WORK)
    places = os.pathsep.join(filter(None, sys.path))
    return subprocess.run(
        [sys.executable, "-m", "yunikorn", *call.split()],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": places, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.parametrize("call", [SIMULATE, COMPARE, VALIDATE])
def test_a_thread_that_never_ends_is_named(tmp_path: Path, call: str) -> None:
    done = run(tmp_path, call, "threading.Thread(target=never_ends).start()")
    assert done.returncode == 0, done.stderr
    assert "a thread that was started by a plugin and has not ended: " in done.stderr
    assert "mine.py, line 7" in done.stderr
    assert done.stdout


def test_idle_threads_of_a_pool_are_no_finding(tmp_path: Path) -> None:
    done = run(tmp_path, SIMULATE, "")
    assert (done.returncode, "warning" in done.stderr) == (0, False), done.stderr
