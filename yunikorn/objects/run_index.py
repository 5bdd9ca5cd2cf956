"""Applications by the keys of what they run, for an RM that releases allocations by key alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from yunikorn.objects.allocation import Allocation
    from yunikorn.objects.application import Application

NAMED = 5
"""Applications that an answer names; the number of the others is told."""


class RunIndex:
    """Finds the applications that run allocations of a key.

    Nearly all keys have one allocation: for these the application itself is kept, otherwise how many of the
    allocations each application has.
    """

    def __init__(self, running: Iterable[Allocation]) -> None:
        self._by_key: dict[str, Application | dict[Application, int]] = {}
        for allocation in running:
            self.add(allocation)

    def add(self, allocation: Allocation) -> None:
        """An allocation is entered into the books."""
        key, app = allocation.key, allocation.app
        known = self._by_key.get(key)
        if known is None:
            self._by_key[key] = app
        elif isinstance(known, dict):
            known[app] = known.get(app, 0) + 1
        else:
            self._by_key[key] = counts = {known: 1}
            counts[app] = counts.get(app, 0) + 1

    def remove(self, allocation: Allocation) -> None:
        """Undo `add`."""
        key, app = allocation.key, allocation.app
        known = self._by_key[key]
        if isinstance(known, dict):
            known[app] -= 1
            if not known[app]:
                del known[app]
            if known:
                return
        del self._by_key[key]

    def find(self, key: str) -> list[Application]:
        """The applications that run something of this key; those that began to first come first."""
        known = self._by_key.get(key)
        if known is None:
            return []
        return list(known) if isinstance(known, dict) else [known]


def runs_elsewhere(key: str, apps: list[Application]) -> str:
    """The answer to a release by key alone where applications run allocations of this key."""
    names = [app.id for app in apps[:NAMED]]
    if len(apps) > NAMED:
        names.append(f"{len(apps) - NAMED} more")
    shown = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    where = f"application{'s' if len(apps) > 1 else ''} {shown}"
    return f"allocation key '{key}' runs in {where}, which a release has to name: nothing was released"
