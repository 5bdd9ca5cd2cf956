"""Messages that came too late, or never had anything to do with us: counted, answered, harmless."""

from __future__ import annotations

import attrs


@attrs.define
class UnknownReleases:
    """How many came so far."""

    releases: int = 0
    """Releases of allocations and asks that are not known, or not any more."""
    confirmations: int = 0
    """Confirmations of the end of allocations that had ended already."""

    def count(self, *, confirmed: bool) -> None:
        """Count one message."""
        if confirmed:
            self.confirmations += 1
        else:
            self.releases += 1


@attrs.frozen(slots=True)
class UnknownRelease:
    """One such release or confirmation, to be answered."""

    application_id: str
    uuid: str
    key: str
    message: str


def unknown(app_id: str, uuid: str, key: str) -> str:
    """The text of the answer: an ask and its allocation have one key, and one answer."""
    if uuid:
        what = f"allocation '{uuid}'"
    elif key:
        what = f"allocation key '{key}'"
    else:
        what = f"application '{app_id}'"
    return f"{what} is not known, or not any more: nothing was released"
