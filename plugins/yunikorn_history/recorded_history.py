"""The history that a service records: its options, its state, and where other doors read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs


@attrs.frozen
class HistoryStatus:
    """State of the recording, for health checks and metrics."""

    backlog: int = 0
    """Number of events and rows that are not in the database yet."""
    lost: int = 0
    """Number of events and rows that were lost since the start, because the backlog was full."""
    committed: int = 0
    """Time of the latest commit (ms since 1970); 0 before the first one."""
    problem: str = ""
    """Reason for which nothing can be written now; empty without one."""


@attrs.frozen
class RecordedHistory:
    """The history that a service records, for other doors of the service that read it."""

    target: str
    """Absolute path of the SQLite file, or URL of the database, for readers."""
    status: Callable[[], HistoryStatus]
    """Returns the state of the recording; may be called in any thread."""
    audited: Callable[[int, Mapping[str, Any]], None] = lambda time, entry: None
    """Takes an entry of the audit log, of a time (ns); called in the event loop."""


@attrs.frozen
class HistorySettings:
    """Options of the recording."""

    target: str
    """Absolute path of the SQLite file, or URL of the database."""
    keep: float | None = None
    """Age of the oldest rows that are kept (s); None for the default."""
    size: int | None = None
    """Largest size of the database (bytes); None without a limit."""
    tags: frozenset[str] = frozenset()
    """Tags of applications that are kept."""
