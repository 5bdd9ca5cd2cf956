"""Log levels of a running service, by area."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from yunikorn.errors import UsageError
from yunikorn.text import suggest

ROOT = "yunikorn"
LEVELS = ("debug", "info", "warning", "error", "critical")
AUDIT = "audit"
INHERITED = "inherited"
"""Word for the level of `yunikorn`, which areas without a level of their own have."""


class LogLevels:
    """Levels of the logger `yunikorn` and of its areas."""

    def __init__(self, areas: Sequence[str]) -> None:
        self._names = (ROOT, *areas)

    def read(self) -> dict[str, str]:
        """Return the level in force of each logger; areas have short names."""
        return {name: logging.getLevelName(_logger(name).getEffectiveLevel()).lower() for name in self._names}

    def check(self, levels: Mapping[object, object]) -> dict[str, str]:
        """Return levels by short name; raises `UsageError` with all problems."""
        problems, found = [], {}
        for given, level in levels.items():
            name = str(given).removeprefix(f"{ROOT}.").lower()
            if name not in self._names:
                known = ", ".join(self._names)
                problems.append(
                    f"no logger is called '{str(given)[:100]}'{suggest(name, self._names)}; known: {known}"
                )
                continue
            wanted = level.lower() if isinstance(level, str) else ""
            if wanted not in (*LEVELS, *([] if name == ROOT else [INHERITED])):
                more = "" if name == ROOT else f", {INHERITED}"
                problems.append(f"{name}: expected a level; known: {', '.join(LEVELS)}{more}")
            elif name == AUDIT and wanted not in ("debug", "info"):
                problems.append(f"{name}: changes must stay in the log; known: debug, info")
            else:
                found[name] = wanted
        if problems:
            raise UsageError("; ".join(problems))
        return found

    def set(self, levels: Mapping[str, str]) -> None:
        """Set levels that were checked."""
        for name, level in levels.items():
            _logger(name).setLevel(logging.NOTSET if level == INHERITED else level.upper())


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(ROOT if name == ROOT else f"{ROOT}.{name}")
