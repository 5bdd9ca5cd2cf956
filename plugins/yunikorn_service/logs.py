"""Structured logs: one line per entry, as text or as JSON, with a level per area."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Protocol, TextIO

from yunikorn.errors import UsageError, printable
from yunikorn.text import suggest
from yunikorn_service.log_levels import AUDIT, LEVELS, ROOT

AREAS = (
    *("core", "sessions", "config", "plugins", "grpc", "rest", "audit", "service", "history", "kubernetes"),
    "demo",
)
"""Names of the areas; each area is the logger `yunikorn.AREA`."""
OF_CORE = ("core", "sessions", "config", "plugins", "rest", "service")
"""Areas that belong to the core in the names of YuniKorn, such as `core.rest`."""
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
        for area, level in {AUDIT: "info", **levels}.items():
            if area:
                _area(area).setLevel(level.upper())
        yield
    finally:
        root.removeHandler(handler)
        for logger, old in before.items():
            logger.setLevel(old)


class NamedLevels(Protocol):
    """Levels of logs by the names that YuniKorn uses."""

    @property
    def root(self) -> str:
        """Level of all areas without their own."""
        ...

    @property
    def areas(self) -> Mapping[str, str]:
        """Levels by area, such as `core.config` or `shim`."""
        ...


class AreaLevels:
    """Levels of logs that a configuration names by areas of YuniKorn, or by ours.

    `shim` is our area `kubernetes`, and `core` all areas in `OF_CORE`, of which `core.rest` names one. Other
    names are those of loggers, such as `shim.tasks`. A longer name takes precedence. Changes by operators
    stay in the log.
    """

    def __init__(self) -> None:
        self._named: set[str] = set()
        """Loggers below the areas whose levels were set."""

    def use(self, levels: NamedLevels) -> None:
        """Set these levels, and forget those that were set before."""
        found = dict.fromkeys(AREAS, levels.root) | {AUDIT: "info"}
        for name in sorted(levels.areas, key=lambda name: name.count(".")):
            found |= dict.fromkeys(_loggers_of(name), levels.areas[name])
        if found[AUDIT] not in ("debug", "info"):
            found[AUDIT] = "info"
        logging.getLogger(ROOT).setLevel(levels.root.upper())
        for name in self._named - found.keys():
            _area(name).setLevel(logging.NOTSET)
        for name, level in found.items():
            _area(name).setLevel(level.upper())
        self._named = {name for name in found if name not in AREAS}


def _loggers_of(name: str) -> list[str]:
    """Return our loggers for an area of YuniKorn."""
    first, _, rest = name.partition(".")
    if first == "shim":
        return [f"kubernetes.{rest}" if rest else "kubernetes"]
    if first == "core":
        return [*OF_CORE] if not rest else [rest] if rest in OF_CORE else [name]
    return [name]


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
