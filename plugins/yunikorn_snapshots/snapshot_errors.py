"""Errors of snapshots."""

from __future__ import annotations

from yunikorn.errors import YunikornError

MARK = b"YUNIKORN-SNAPSHOT "
"""First bytes of every snapshot."""


class SnapshotError(YunikornError):
    """A snapshot that cannot be written or read; the message says why, and what to do."""


class SnapshotNotYet(SnapshotError):
    """A snapshot that cannot be taken at this moment; a later attempt may succeed."""
