"""Applications whose checks or placement wait for a worker, with the entries of their RM that concern them.

Such an application is neither accepted nor rejected, and not part of the partition. Its asks and releases are
kept, and applied in their order when the application is accepted or rejected (`docs/decisions/archive/0076`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from yunikorn.model.application import Application
    from yunikorn.scheduling.admission.questions import Questions
    from yunikorn.scheduling.application_spec import ApplicationSpec

Entry = Callable[[str], object]
"""Function that applies an entry; called with the reason for the rejection of the application, or ""."""


@attrs.define(eq=False)
class WaitingApplication:
    """An application that is neither accepted nor rejected."""

    app: Application
    spec: ApplicationSpec
    entries: list[Entry] = attrs.field(factory=list)
    keys: set[str] = attrs.field(factory=set)
    """Keys of the asks among the entries."""
    size: int = 0
    """Number of asks and other entries."""

    def apply_entries(self, reason: str) -> None:
        """Apply the entries in their order; `reason` is that of a rejection, or ""."""
        for entry in self.entries:
            entry(reason)


class WaitingApplications:
    """Waiting applications of one partition, by id."""

    def __init__(self) -> None:
        self._waiting: dict[str, WaitingApplication] = {}
        self.questions: Questions[WaitingApplication, Any]
        """Questions about these applications."""

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, app_id: str) -> bool:
        return app_id in self._waiting

    def __iter__(self) -> Iterator[WaitingApplication]:
        return iter(self._waiting.values())

    @property
    def size(self) -> int:
        """Number of asks and other entries that wait."""
        return sum(one.size for one in self)

    def has(self, one: WaitingApplication) -> bool:
        """Return True if an application still waits."""
        return self._waiting.get(one.app.id) is one

    def put(self, one: WaitingApplication) -> None:
        """Add an application."""
        self._waiting[one.app.id] = one

    def get(self, app_id: str) -> WaitingApplication | None:
        """Return a waiting application, or None."""
        return self._waiting.get(app_id)

    def take(self, app_id: str) -> WaitingApplication:
        """Remove and return an application; its checks are not continued."""
        one = self._waiting.pop(app_id)
        self.questions.withdraw(one)
        return one

    def defer(self, app_id: str, entry: Entry, keys: Sequence[str] = ()) -> None:
        """Apply an entry when the checks of its application are complete; `keys` are those of its asks."""
        one = self._waiting[app_id]
        one.entries.append(entry)
        one.size += max(1, len(keys))
        one.keys.update(key for key in keys if type(key) is str)

    def owner_of(self, key: str) -> str:
        """Return the application with a waiting ask of this key, or ""."""
        return next((one.app.id for one in self if key in one.keys), "")

    def awaited(self, app_id: str) -> str:
        """Return the policy whose answer an application waits for."""
        return self.questions.awaited(self._waiting[app_id])

    def why(self, app_id: str) -> str:
        """Return why an application is not accepted yet."""
        return f"application '{app_id}' is not accepted yet: the answer of {self.awaited(app_id)} is awaited"
