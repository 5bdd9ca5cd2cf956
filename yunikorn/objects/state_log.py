"""What is kept and told of the states that an application was in.

In a file of their own because `application` may be compiled (docs/performance.md): there, a class that
attrs makes can only be annotated with what is imported at run time.
"""

from __future__ import annotations

import attrs


@attrs.define(slots=True)
class StateLogEntry:
    """A state, when it was entered (ns), and why."""

    state: str
    time: int
    reason: str
