"""Figures of parts of the service beside the core, for metrics."""

from __future__ import annotations

import attrs


@attrs.frozen
class EventFigures:
    """Figures of the event store and of the streams that read it."""

    received: int = 0
    stored: int = 0
    capacity: int = 0
    decisions: int = 0
    streams: int = 0
    refused_streams: int = 0
    missed: int = 0
    """Events that streams missed."""


@attrs.frozen
class RecordingFigures:
    """Figures of the recording of a history."""

    backlog: int
    lost: int
    committed: float
    """Unix time of the latest commit (s)."""
    is_away: bool


@attrs.frozen
class WorkerFigures:
    """Figures of the threads that call policies."""

    calls: int = 0
    """Calls in progress."""
    stuck: int = 0
    """Calls that were given up and have not returned."""
    given_up: int = 0
