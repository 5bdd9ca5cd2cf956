"""Failures that plugins report themselves by `context.report`, from any thread, until the core records them.

Reports are bounded, so that a plugin that reports without end neither fills the memory nor the log: by the
number of kinds per plugin, and by the number of texts that are kept until the core takes the reports. What is
suppressed is counted (`docs/decisions/0082`).
"""

from __future__ import annotations

import threading

import attrs

from yunikorn.containment import LONGEST_NAME, cut, describe_error, safe_text
from yunikorn.errors import CallbackError

MOST_KINDS = 20
"""Largest number of kinds of failures, by operation, that one plugin may report."""
OVERFLOW = f"reporting more than {MOST_KINDS} kinds of failures"
"""Operation under which the reports of further kinds are counted."""
MOST_TEXTS = 10
"""Largest number of different texts of one kind that are logged one by one."""


@attrs.define
class Reports:
    """Reports of one kind since the last `take`."""

    plugin: str
    operation: str
    times: int = 0
    """Number of the reports."""
    causes: list[CallbackError | str] = attrs.field(factory=list)
    """Causes of the reports in order, without repetitions; no more than `MOST_TEXTS`."""


class PluginReports:
    """Reports that the core has not recorded yet; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.pending: dict[tuple[str, str], Reports] = {}
        """Reports by plugin and operation; empty most of the time."""
        self._kinds: dict[str, set[str]] = {}
        """Operations that each plugin has reported."""

    def add(self, plugin: str, operation: str, cause: BaseException | str) -> None:
        """Add a report of a plugin."""
        # The texts are read here, in the thread of the plugin, so that nothing of the plugin is kept.
        kind = cut(safe_text(operation), LONGEST_NAME)
        known: CallbackError | str
        if issubclass(type(cause), CallbackError):
            known = cause  # type: ignore[assignment]
        elif issubclass(type(cause), BaseException):
            known = describe_error(cause)  # type: ignore[arg-type]
        else:
            known = safe_text(cause)
        with self._lock:
            kinds = self._kinds.setdefault(plugin, set())
            if kind not in kinds and len(kinds) >= MOST_KINDS:
                known, kind = f"{kind}: {known}", OVERFLOW
            else:
                kinds.add(kind)
            reports = self.pending.setdefault((plugin, kind), Reports(plugin, kind))
            reports.times += 1
            if len(reports.causes) < MOST_TEXTS and known not in reports.causes[-1:]:
                reports.causes.append(known)

    def take(self) -> list[Reports]:
        """Return the reports since the last call, in the order of their first occurrence."""
        with self._lock:
            taken, self.pending = list(self.pending.values()), {}
        return taken
