"""What is kept and told of the states of an application.

In a file of their own because `application` may be compiled (docs/performance.md): there, a class that
attrs makes can only be annotated with what is imported at run time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from yunikorn.objects.application import Application


@attrs.frozen(slots=True)
class StateLogEntry:
    """A state, when it was entered (ns), and why."""

    state: str
    time: int
    reason: str


@attrs.frozen(slots=True)
class StateChange:
    """An application's step from one state to the next."""

    app: Application
    before: str
    reason: str
