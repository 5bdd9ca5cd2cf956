"""Messages that came too late, or never had anything to do with us: counted, answered, harmless."""

from __future__ import annotations

import attrs


@attrs.define
class Strays:
    """How many came so far."""

    releases: int = 0
    """Releases of allocations that are not known, or not any more."""
    confirmations: int = 0
    """Confirmations of the end of allocations that had ended already."""


@attrs.frozen(slots=True)
class StrayRelease:
    """One such release or confirmation, to be answered."""

    application_id: str
    uuid: str
    key: str
    message: str
