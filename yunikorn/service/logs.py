"""Structured logs: one line per entry, as text or as JSON, with a level per area."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TextIO

from yunikorn.errors import UsageError, printable
from yunikorn.text import suggest

ROOT = "yunikorn"
AREAS = ("core", "sessions", "config", "plugins", "grpc", "rest", "audit", "service", "demo")
"""Names of the areas; each area is the logger `yunikorn.AREA`."""
LEVELS = ("debug", "info", "warning", "error", "critical")
FORMATS = ("text", "json")
MARKS = ("plugin", "operation", "times", "statistics")
"""Additional fields of JSON entries about plugin failures and statistics."""


def parse_levels(texts: Iterable[str]) -> dict[str, str]:
    """Parse `LEVEL` (all areas, key "") and `AREA=LEVEL` into levels by area; raises `UsageError`."""
    levels = {"": "info"}
    for text in texts:
        area, equals, level = text.rpartition("=")
        area, level = area.strip().lower(), level.strip().lower()
        if equals and area not in AREAS:
            raise UsageError(
                f"--log {text}: no area is called '{area}'{suggest(area, AREAS)}; known: {', '.join(AREAS)}"
            )
        if level not in LEVELS:
            hint = suggest(level, LEVELS)
            raise UsageError(f"--log {text}: no level is called '{level}'{hint}; known: {', '.join(LEVELS)}")
        levels[area] = level
    return levels


@contextlib.contextmanager
def logging_to(stream: TextIO | None, levels: dict[str, str], format_: str = "text") -> Iterator[None]:
    """Log to a stream (standard error if None) while the context is active."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLogFormat() if format_ == "json" else TextLogFormat())
    root, ours = logging.getLogger(), logging.getLogger(ROOT)
    before = {logger: logger.level for logger in (ours, *(_area(area) for area in AREAS))}
    root.addHandler(handler)
    try:
        ours.setLevel(levels[""].upper())
        # Changes by operators are in the log unless the level of their area itself is raised.
        for area, level in {"audit": "info", **levels}.items():
            if area:
                _area(area).setLevel(level.upper())
        yield
    finally:
        root.removeHandler(handler)
        for logger, old in before.items():
            logger.setLevel(old)


def _area(name: str) -> logging.Logger:
    return logging.getLogger(f"{ROOT}.{name}")


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class TextLogFormat(logging.Formatter):
    """Formatter for `TIME LEVEL AREA: MESSAGE`; further lines of a message are indented."""

    def format(self, record: logging.LogRecord) -> str:
        """Format one entry."""
        message = record.getMessage()
        if record.exc_info:
            message += "\n" + self.formatException(record.exc_info)
        area = record.name.removeprefix(f"{ROOT}.")
        lines = [printable(line) for line in message.splitlines()] or [""]
        head = f"{_time(record)} {record.levelname:<8} {area}: {lines[0]}"
        return "\n".join([head, *(f"    {line}" for line in lines[1:])])


class JsonLogFormat(logging.Formatter):
    """Formatter for one JSON object per entry."""

    def format(self, record: logging.LogRecord) -> str:
        """Format one entry."""
        entry = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "area": record.name.removeprefix(f"{ROOT}."),
            "message": record.getMessage(),
        }
        entry |= {mark: getattr(record, mark) for mark in MARKS if hasattr(record, mark)}
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False)
