"""Index of applications by the keys of their allocations, for RMs that release allocations by key alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from yunikorn.objects.allocation import Allocation
    from yunikorn.objects.application import Application

NAMED = 5
"""Maximum number of applications listed in an answer; the answer gives the number of the others."""


class AllocationKeyIndex:
    """Finds the applications that have allocations with a given key.

    Nearly all keys have one allocation. The index stores the application itself for these keys, and a count
    per application for all others.
    """

    def __init__(self, running: Iterable[Allocation]) -> None:
        self._by_key: dict[str, Application | dict[Application, int]] = {}
        for allocation in running:
            self.add(allocation)

    def add(self, allocation: Allocation) -> None:
        """Add an allocation."""
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
        """Remove an allocation."""
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
        """Return the applications that have allocations with this key, in order of their first allocation."""
        known = self._by_key.get(key)
        if known is None:
            return []
        return list(known) if isinstance(known, dict) else [known]


def key_used_elsewhere(key: str, apps: list[Application]) -> str:
    """Return the answer to a release by key alone if applications have allocations with this key."""
    names = [app.id for app in apps[:NAMED]]
    if len(apps) > NAMED:
        names.append(f"{len(apps) - NAMED} more")
    shown = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    where = f"application{'s' if len(apps) > 1 else ''} {shown}"
    problem = f"allocation key '{key}' is used by {where}"
    return f"{problem}; the release must name the application: nothing was released"
