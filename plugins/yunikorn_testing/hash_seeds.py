"""Comparison of a test's answers under two hash seeds.

`PYTHONHASHSEED` applies to a whole process, so two processes are started. Each runs pytest once for all such
tests, with the settings, fixtures and plugins of the current run, and writes the answers of each test to a
file. If a process fails, the tests of each file get two processes of their own. The workers of pytest-xdist
share the answers. The seeds are constant, so that the result is reproducible.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

try:
    import fcntl
except ImportError:  # Windows: workers find the answers each for itself
    fcntl = None  # type: ignore[assignment]

SEEDS = (1, 2)
FOLDER = "YUNIKORN_TESTING_HASH_SEED_FOLDER"
"""Environment variable with the folder into which a process writes its answers."""
MOST = 5
"""Maximum number of differences in a message."""
HANGS = 600
"""Timeout of a process in seconds."""
NOT_HANDED_ON = ("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_CURRENT_TEST")

NOT_NEEDED = ("hypothesispytest", "schemathesis")
"""Plugins of pytest for other kinds of tests, whose import takes longer than the tests of a file."""

Answers = dict[str, dict[str, str]]
"""Answers by test and question."""
_FOUND: pytest.StashKey[dict[Path | None, tuple[Answers, ...]]] = pytest.StashKey()
"""Answers with each seed, by file; under None those of all files, which are empty if a process failed."""


def different_answers(request: pytest.FixtureRequest, ask: Callable[[], Mapping[str, str]]) -> list[str]:
    """Return the differences between answers in two processes with different hash seeds.

    The calling test also runs in those processes, where `ask` is called. Raises `AssertionError` with the
    output of a process that did not run the test.
    """
    test = _name(request.node)
    folder = os.environ.get(FOLDER)
    if folder is not None:
        _write_down(Path(folder), test, ask())
        return []
    one, other = (answers.get(test, {}) for answers in _find(request))
    if not one or not other:
        raise AssertionError(
            f"{test} returned no answers in a separate process; run this test alone to see the error"
        )
    differing = [
        f"{question} is {one[question]} with hash seed {SEEDS[0]}, {other.get(question)} with {SEEDS[1]}"
        for question in one
        if one[question] != other.get(question)
    ]
    more = [f"and {len(differing) - MOST} more"] if len(differing) > MOST else []
    return differing[:MOST] + more


def _name(node: pytest.Item) -> str:
    return f"{node.path}::{node.nodeid.partition('::')[2]}"


def _write_down(folder: Path, test: str, answers: Mapping[str, str]) -> None:
    number = len(list(folder.iterdir()))
    (folder / f"{number}.json").write_text(json.dumps([test, dict(answers)]), "utf-8")


def _find(request: pytest.FixtureRequest) -> tuple[Answers, ...]:
    """Return the answers with each seed of all such tests, or if a process fails, of those in this file."""
    known = request.config.stash.setdefault(_FOUND, {})
    same = [item for item in request.session.items if _function(item) == _function(request.node)]
    here = [_name(item) for item in same if item.path == request.path]
    if None not in known:
        known[None] = ()
        if len(same) > len(here):
            known[None] = _run_shared(request, [_name(item) for item in same])
    if known[None]:
        return known[None]
    if request.path not in known:
        known[request.path] = _run_both(request.config, here)
    return known[request.path]


def _run_shared(request: pytest.FixtureRequest, tests: list[str]) -> tuple[Answers, ...]:
    """Return the answers of tests in several files, or nothing if a process fails.

    The first worker of pytest-xdist finds them, and others wait for its file.
    """
    if not hasattr(request.config, "workerinput") or fcntl is None:
        return _run_or_nothing(request.config, tests)
    digest = hashlib.sha256("\n".join(tests).encode()).hexdigest()[:16]
    folder: Path = request.getfixturevalue("tmp_path_factory").getbasetemp().parent
    with (folder / f"hash-seeds-{digest}.json").open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        text = file.read()
        if not text:
            text = json.dumps(_run_or_nothing(request.config, tests))
            file.write(text)
            file.flush()
    return tuple(json.loads(text))


def _run_or_nothing(config: pytest.Config, tests: list[str]) -> tuple[Answers, ...]:
    try:
        return _run_both(config, tests)
    except AssertionError:
        return ()


def _run_both(config: pytest.Config, tests: list[str]) -> tuple[Answers, ...]:
    """Return the answers of tests from two concurrent processes, with a seed each."""
    with tempfile.TemporaryDirectory() as parent:
        folders = [Path(parent, str(seed)) for seed in SEEDS]
        running = [_start(config, tests, seed, folder) for seed, folder in zip(SEEDS, folders, strict=True)]
        written = [process.communicate(timeout=HANGS)[0] for process in running]
        found = tuple(_read(folder) for folder in folders)
    for process, text, answers in zip(running, written, found, strict=True):
        if process.returncode not in (0, 1) or not answers:
            raise AssertionError(f"pytest failed in a separate process:\n{text.strip()[-3_000:]}")
    return found


def _function(item: pytest.Item) -> str:
    return getattr(item, "originalname", item.name)


def _start(config: pytest.Config, tests: list[str], seed: int, folder: Path) -> subprocess.Popen[str]:
    folder.mkdir()
    environment = {name: text for name, text in os.environ.items() if name not in NOT_HANDED_ON}
    environment |= {"PYTHONHASHSEED": str(seed), FOLDER: str(folder)}
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", *_settings(config), *tests],
        cwd=config.invocation_params.dir,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )


def _settings(config: pytest.Config) -> list[str]:
    """Return the pytest options of this run that affect test results, without those for output."""
    option: Any = config.option
    plugins = [name for name in option.plugins or () if name != "no:terminal"]
    return [
        f"--rootdir={config.rootpath}",
        *(["-c", str(config.inipath)] if config.inipath else []),
        f"--import-mode={option.importmode}",
        *(f"--override-ini={text}" for text in option.override_ini or ()),
        "--override-ini=addopts=",
        *(part for name in plugins for part in ("-p", name)),
        *(part for name in NOT_NEEDED for part in ("-p", f"no:{name}")),
        *("-p", "no:cacheprovider", "-q"),
    ]


def _read(folder: Path) -> Answers:
    return dict(json.loads(path.read_text("utf-8")) for path in sorted(folder.iterdir()))
