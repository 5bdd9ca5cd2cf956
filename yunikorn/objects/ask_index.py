"""Index of applications by ask key, for RMs that release asks without naming the application."""

from __future__ import annotations

import heapq
import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from yunikorn.objects.application import Application


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
