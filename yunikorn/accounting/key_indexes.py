"""Indexes of allocations and asks by key, created on first use."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from yunikorn.model.allocation import Allocation
    from yunikorn.model.application import Application


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
        """Return the applications that have allocations with this key, in the order of their arrival.

        The order of allocations in the index depends on when the index was made.
        """
        known = self._by_key.get(key)
        if known is None:
            return []
        return sorted(known, key=attrgetter("arrival")) if isinstance(known, dict) else [known]


def key_used_elsewhere(key: str, apps: list[Application]) -> str:
    """Return the answer to a release by key alone if applications have allocations with this key."""
    names = [app.id for app in apps[:NAMED]]
    if len(apps) > NAMED:
        names.append(f"{len(apps) - NAMED} more")
    shown = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    where = f"application{'s' if len(apps) > 1 else ''} {shown}"
    problem = f"allocation key '{key}' is used by {where}"
    return f"{problem}; the release must name the application: nothing was released"


class AskIndex:
    """Finds the application that has an ask with a given key; of several, the one submitted first.

    The entry of a removed ask is dropped when its key is looked up, and all such entries are dropped when the
    number of entries has doubled. Removing an ask therefore costs nothing here.
    """

    def __init__(self, applications: Mapping[str, Application]) -> None:
        self._applications = applications
        self._by_key: dict[str, list[tuple[int, int, Application]]] = {}
        self._numbers = itertools.count()
        self._entries = self._roomy = 0
        self._fill()

    def _fill(self) -> None:
        self._by_key, self._entries, self._roomy = {}, 0, 0
        for app in self._applications.values():
            for key in app.asks:
                self._enter(app, key)
        self._roomy = max(64, 2 * self._entries)

    def _enter(self, app: Application, key: str) -> None:
        heapq.heappush(self._by_key.setdefault(key, []), (app.arrival, next(self._numbers), app))
        self._entries += 1

    def add(self, app: Application, key: str) -> None:
        """Add an ask of an application."""
        if self._entries < self._roomy:
            self._enter(app, key)
        else:
            self._fill()

    def find(self, key: str) -> Application | None:
        """Return the first application that has an ask with this key."""
        entries = self._by_key.get(key, [])
        while entries:
            app = entries[0][2]
            if key in app.asks and self._applications.get(app.id) is app:
                return app
            heapq.heappop(entries)
            self._entries -= 1
        self._by_key.pop(key, None)
        return None

    def find_all(self, key: str) -> list[Application]:
        """Return all applications that have an ask with this key, in the order of `find`."""
        if self.find(key) is None:
            return []
        apps = dict.fromkeys(app for _, _, app in sorted(self._by_key[key], key=_rank))
        return [app for app in apps if key in app.asks and self._applications.get(app.id) is app]


def _rank(entry: tuple[int, int, Application]) -> tuple[int, int]:
    return entry[:2]
