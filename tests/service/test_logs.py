"""Logs: levels by area, one line per entry, and no control characters."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Mapping

import attrs
import pytest

from yunikorn.errors import UsageError
from yunikorn_service.logs import AreaLevels, logging_to, parse_levels


def logged(levels: tuple[str, ...], format_: str = "text") -> str:
    """Return the log lines of some entries."""
    stream = io.StringIO()
    with logging_to(stream, parse_levels(levels), format_):
        logging.getLogger("yunikorn.core").debug("a detail")
        logging.getLogger("yunikorn.grpc").info("rm %s came", "one\x1b[2J")
        logging.getLogger("yunikorn.grpc").debug("two\nlines")
        logging.getLogger("elsewhere").warning("a warning")
    return stream.getvalue()


def test_log_lines_are_text() -> None:
    first, last = logged(()).splitlines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO     grpc: rm one\\x1b\[2J came", first)
    assert last.endswith(" WARNING  elsewhere: a warning")


def test_log_levels_are_set_by_area() -> None:
    assert "two\n    lines" in logged(("grpc=DEBUG",))
    assert "a detail" not in logged(("grpc=debug",))
    assert "a detail" in logged(("debug", "grpc=error"))
    assert "came" not in logged(("debug", "grpc=error"))


def test_log_lines_are_json() -> None:
    entries = [json.loads(line) for line in logged(("grpc=debug",), "json").splitlines()]
    assert [(entry["level"], entry["area"], entry["message"]) for entry in entries] == [
        ("info", "grpc", "rm one\x1b[2J came"),
        ("debug", "grpc", "two\nlines"),
        ("warning", "elsewhere", "a warning"),
    ]


def test_traceback_is_logged() -> None:
    for format_ in ("text", "json"):
        stream = io.StringIO()
        with logging_to(stream, parse_levels(()), format_):
            try:
                raise LookupError("no such node")
            except LookupError:
                logging.getLogger("yunikorn.core").exception("it failed")
        assert "Traceback (most recent call last)" in stream.getvalue()
        assert "LookupError: no such node" in stream.getvalue()


def test_logging_is_restored_afterwards() -> None:
    before = logging.getLogger("yunikorn.core").level, list(logging.getLogger().handlers)
    logged(("core=debug",))
    assert (logging.getLogger("yunikorn.core").level, list(logging.getLogger().handlers)) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("grcp=debug", "no area is called 'grcp', did you mean 'grpc'?; known: core, "),
        ("loud", "no level is called 'loud'"),
        ("core=", "no level is called ''"),
        ("=debug", "no area is called ''"),
    ],
)
def test_unknown_settings_are_reported(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        parse_levels([text])


@attrs.frozen
class Levels:
    """Levels as a ConfigMap names them."""

    root: str = "info"
    areas: Mapping[str, str] = attrs.field(factory=dict)


def test_levels_by_names_of_yunikorn_and_by_ours() -> None:
    def level(name: str) -> str:
        return logging.getLevelName(logging.getLogger(f"yunikorn.{name}").getEffectiveLevel()).lower()

    used = AreaLevels()
    with logging_to(io.StringIO(), parse_levels(())):
        used.use(Levels("error", {"core": "debug", "core.rest": "warning", "shim.tasks": "debug"}))
        assert [level(name) for name in ("core", "sessions", "rest", "service", "grpc")] == [
            "debug",
            "debug",
            "warning",
            "debug",
            "error",
        ]
        assert [level(name) for name in ("kubernetes", "kubernetes.tasks", "kubernetes.config")] == [
            "error",
            "debug",
            "error",
        ]
        used.use(Levels(areas={"shim": "debug", "audit": "error", "core.queue": "debug"}))
        assert [level(name) for name in ("kubernetes.tasks", "core", "core.queue", "sessions")] == [
            "debug",
            "info",
            "debug",
            "info",
        ]
        # Changes by operators stay in the log.
        assert level("audit") == "info"
        used.use(Levels("warning"))
        assert [level(name) for name in ("kubernetes.tasks", "core.queue", "audit")] == [
            "warning",
            "warning",
            "info",
        ]
