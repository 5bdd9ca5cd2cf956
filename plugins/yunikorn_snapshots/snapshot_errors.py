"""Errors of snapshots."""

from __future__ import annotations

from yunikorn.errors import YunikornError


class SnapshotError(YunikornError):
    """A snapshot that cannot be written or read; the message says why, and what to do."""
