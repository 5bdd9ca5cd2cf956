"""Entries of an application's state log.

The class is separate from `application`, which may be compiled (docs/performance.md): compiled modules can
annotate attrs classes only with names that are imported at run time.
"""

from __future__ import annotations

import attrs


@attrs.define(slots=True)
class StateLogEntry:
    """A state, the time of its entry (ns), and the reason."""

    state: str
    time: int
    reason: str
