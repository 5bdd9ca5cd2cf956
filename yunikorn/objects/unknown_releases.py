"""Releases and confirmations for unknown or ended allocations and asks: counted and answered."""

from __future__ import annotations

import attrs


@attrs.define
class UnknownReleases:
    """Number of releases and confirmations without a matching allocation or ask."""

    releases: int = 0
    """Releases of allocations and asks that are unknown or have already ended."""
    confirmations: int = 0
    """Confirmations for allocations that had already ended."""

    def count(self, *, confirmed: bool) -> None:
        """Count one message."""
        if confirmed:
            self.confirmations += 1
        else:
            self.releases += 1


@attrs.frozen(slots=True)
class UnknownRelease:
    """Answer to a release or confirmation."""

    application_id: str
    uuid: str
    key: str
    message: str


def unknown(app_id: str, uuid: str, key: str) -> str:
    """Return the text of the answer; an ask and its allocation share one key, and therefore one text."""
    if uuid:
        what = f"allocation '{uuid}'"
    elif key:
        what = f"allocation key '{key}'"
    else:
        what = f"application '{app_id}'"
    return f"{what} is unknown or no longer exists: nothing was released"
