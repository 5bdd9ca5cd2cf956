"""The default event sinks."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from yunikorn.api import Context, Event
from yunikorn.errors import OptionError
from yunikorn.framework.kinds import EVENT_SINK
from yunikorn.framework.registry import Registry
from yunikorn.resources import Resource

NEW = Event("APP", "app-1", change="ADD", detail="APP_NEW", timestamp=1)
ALLOC = Event("APP", "app-1", "ask-7", "", "ADD", "APP_ALLOC", Resource(vcore=500, memory=10), 2)
NODE = Event("NODE", "node-ü", "", "Node added to the scheduler", "ADD", timestamp=3)
CONTEXT = Context("", lambda: 0)


def test_jsonl_appends_one_object_per_line_and_flushes(registry: Registry, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"earlier": true}\n')
    sink = registry.make(EVENT_SINK, "jsonl", {"path": str(path)})
    sink.opened(CONTEXT)
    sink.send([NEW, ALLOC])
    lines = path.read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[0]) == {"earlier": True}
    assert json.loads(lines[1]) == {
        "timestampNano": 1,
        "type": "APP",
        "objectID": "app-1",
        "referenceID": "",
        "eventChangeType": "ADD",
        "eventChangeDetail": "APP_NEW",
        "message": "",
    }
    assert list(json.loads(lines[2])["resource"].items()) == [("memory", 10), ("vcore", 500)]
    sink.send([NODE])
    sink.closed()
    sink.closed()
    assert json.loads(path.read_text(encoding="utf-8").splitlines()[3])["objectID"] == "node-ü"


def test_jsonl_fails_to_open_an_invalid_path(registry: Registry, tmp_path: Path) -> None:
    sink = registry.make(EVENT_SINK, "jsonl", {"path": str(tmp_path / "no" / "events.jsonl")})
    with pytest.raises(FileNotFoundError):
        sink.opened(CONTEXT)
    sink.closed()


def test_creating_a_jsonl_sink_opens_no_file(registry: Registry, tmp_path: Path) -> None:
    registry.make(EVENT_SINK, "jsonl", {"path": str(tmp_path / "events.jsonl")})
    assert not list(tmp_path.iterdir())


def test_jsonl_needs_a_path(registry: Registry) -> None:
    with pytest.raises(OptionError, match="required"):
        registry.make(EVENT_SINK, "jsonl", {})


def test_log_writes_one_line_per_event(registry: Registry, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    registry.make(EVENT_SINK, "log", {}).send([NEW, ALLOC, NODE])
    assert caplog.record_tuples == [
        ("yunikorn.events", logging.INFO, "APP app-1 ADD APP_NEW"),
        ("yunikorn.events", logging.INFO, "APP app-1 ADD APP_ALLOC ask-7 (memory 10, vcore 500)"),
        ("yunikorn.events", logging.INFO, "NODE node-ü ADD: Node added to the scheduler"),
    ]


def test_log_level_and_logger_are_options(registry: Registry, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    registry.make(EVENT_SINK, "log", {"level": "debug"}).send([NEW])
    assert not caplog.records
    registry.make(EVENT_SINK, "log", {"level": "warning", "logger": "mine"}).send([NEW])
    assert caplog.record_tuples == [("mine", logging.WARNING, "APP app-1 ADD APP_NEW")]


def test_log_rejects_an_invalid_level(registry: Registry) -> None:
    with pytest.raises(OptionError, match="level must be one of DEBUG, INFO, WARNING, ERROR, got 'loud'"):
        registry.make(EVENT_SINK, "log", {"level": "loud"})
