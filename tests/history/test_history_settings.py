"""The history in a configuration: its check, options that win over it, and changes of it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from yunikorn.clock import ManualClock
from yunikorn.config.load import check_config
from yunikorn.errors import UsageError
from yunikorn.framework.registry import Registry
from yunikorn_history.history_door import HistoryDoor
from yunikorn_service.config_files import ConfigFiles
from yunikorn_service.service_door import CoreParts
from yunikorn_service.service_settings import ServerSettings

REGISTRY = Registry.load(third_party=False)
QUEUES = "partitions: [{name: default, queues: [{name: root}]}]\n"


def opened(configured: HistoryDoor | None = None, file: str = "", **options: str | None) -> str:
    """Return the place of the history that a service with these options would record; empty for none."""
    values: dict[str, Any] = dict.fromkeys(("history", "history_keep", "history_size", "history_tags"))
    door = HistoryDoor.of_flags(values | options, ServerSettings())
    assert door is not None
    parts = CoreParts(ManualClock(), {} if configured is None else {"history": configured}, file)
    door.prepare(parts)
    return "" if parts.history is None else str(parts.history.target)


def test_a_configuration_is_checked_in_one_pass() -> None:
    text = "history: {path: postgresql://db/x, keep: 90x, size: 3, kep: 1}\n" + QUEUES
    found = check_config(text, REGISTRY)
    assert sorted(problem.path for problem in found.problems) == [
        *("history.keep", "history.kep", "history.path", "history.size")
    ]
    types = "history: {tags: a, url: [x], keep: 90x, size: 3}\n" + QUEUES
    assert sorted(problem.path for problem in check_config(types, REGISTRY).problems) == [
        *("history.keep", "history.size", "history.tags", "history.url")
    ]
    (problem,) = check_config("history: {path: false}\n" + QUEUES, REGISTRY).problems
    assert "got 'false': write off for no history, ./false for a file" in problem.message
    secret = "history: {url: 'postgresql://ann:secret@host/db', keep: 90x}\n" + QUEUES
    of_url, of_keep = check_config(secret, REGISTRY).problems
    assert (of_url.path, of_keep.path) == ("history.url", "history.keep")
    assert "postgresql://host/db: remove the password" in of_url.message
    both = check_config("history: {path: h.db, url: postgresql://db/x, keep: 90x}\n" + QUEUES, REGISTRY)
    assert [problem.message.partition(": ")[2] for problem in both.problems] == [
        "a history is in a file or in a database: leave path or url out",
        "expected an age such as 90d or 12h, or never, got '90x'",
    ]


def test_options_win_over_the_configuration(tmp_path: Path) -> None:
    mine, other = str(tmp_path / "mine.db"), str(tmp_path / "other.db")
    of_file = HistoryDoor(path=mine, keep="90d")
    assert opened() == opened(of_file, history="off") == ""
    assert opened(of_file) == opened(of_file, history_keep="never") == mine
    assert opened(of_file, history=other) == other
    assert opened(of_file, history="postgresql://db/x") == "postgresql://db/x"
    # The file of a volume is for a service without a history of its own.
    assert opened(file=other) == other
    assert opened(of_file, file=other) == mine
    keep = HistoryDoor(keep="90d")
    assert opened(keep, history=other) == opened(keep, file=other) == other
    assert opened(keep, history="off") == ""
    with pytest.raises(UsageError, match="history of the configuration names no database: write path: FILE"):
        opened(keep)
    off = HistoryDoor(path="off")
    assert opened(off) == opened(off, file=other) == ""
    assert opened(off, history=other) == other
    with pytest.raises(UsageError, match="--history-keep needs --history"):
        opened(history_keep="90d")
    with pytest.raises(UsageError) as caught:
        opened(history=" ", history_keep="x", history_size="15Mi")
    assert "--history-size: has to be at least 16Mi, not 15Mi" in str(caught.value)
    assert [line.partition(":")[0] for line in str(caught.value).splitlines()] == [
        "--history",
        "--history-keep",
        "--history-size",
    ]


def test_files_of_a_service_have_one_history_that_a_reload_does_not_change(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name, history in (("a", "history: {path: a.db}\n"), ("b", "")):
        (tmp_path / f"{name}.yaml").write_text(history + QUEUES)
    files = ConfigFiles([str(tmp_path)])
    files.read(REGISTRY)
    assert files.history is not None
    assert files.history.options == {"path": "a.db"}
    (tmp_path / "b.yaml").write_text("history: {path: b.db}\n" + QUEUES)
    with pytest.raises(UsageError, match=r"b\.yaml: history: a service has one, and .*a\.yaml has another"):
        files.read(REGISTRY)
    (tmp_path / "a.yaml").write_text(QUEUES)
    with caplog.at_level(logging.WARNING, "yunikorn.config"):
        files.read(REGISTRY)
    assert "needs a restart" in caplog.text
    assert files.history.options == {"path": "a.db"}
