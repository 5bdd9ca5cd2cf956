"""History in a database, for the routes that read it, by queries in other threads."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from yunikorn_rest.answers import RequestRefused
from yunikorn_service.background import begin_shared

if TYPE_CHECKING:
    from yunikorn_history.queries import HistoryQueries

_log = logging.getLogger("yunikorn.rest")

T = TypeVar("T")

QUERIES = 2
"""Maximum number of queries at the same time; others wait."""
PATIENCE = 5.0
"""Seconds after which a query is ended."""
WAITING = 20.0
"""Seconds that a query waits for its turn."""
UNREADABLE = "the history cannot be read now; the log of the scheduler has the reason"
BUSY = "there are too many queries of the history"


class KeptHistory:
    """History of a service. A database that is away is opened by the next query."""

    def __init__(self, location: str, now: Callable[[], int]) -> None:
        """Use the history at a path or URL; `now` returns the time (ns since 1970)."""
        self.now = now
        self._location = location
        self._turns = asyncio.Semaphore(QUERIES)
        self._opening = threading.Lock()
        self._queries: HistoryQueries | None = None
        self._logged = ""
        """Latest failure, which is logged once; empty after a query that succeeded."""

    async def read(self, work: Callable[[HistoryQueries], T]) -> T:
        """Return the result of some queries; raises `RequestRefused` if they fail or take too long.

        Nothing stops a thread, so the query of a client that has gone still keeps its place.
        """
        from yunikorn_history.database import HistoryError
        from yunikorn_history.fetched_rows import HistoryTooSlow

        try:
            async with asyncio.timeout(WAITING):
                await self._turns.acquire()
        except TimeoutError:
            raise RequestRefused(503, BUSY, {"retry-after": "5"}) from None
        working = begin_shared(asyncio.to_thread(lambda: work(self._opened())))
        working.add_done_callback(lambda _: self._turns.release())
        try:
            found = await asyncio.shield(working)
        except HistoryTooSlow as error:
            raise RequestRefused(503, str(error)) from error
        except HistoryError as error:
            if str(error) != self._logged:
                self._logged = str(error)
                _log.error("%s", error)
            raise RequestRefused(503, UNREADABLE) from error
        self._logged = ""
        return found

    def _opened(self) -> HistoryQueries:
        """Return the open history; raises `HistoryError`."""
        from yunikorn_history.queries import HistoryQueries

        with self._opening:
            if self._queries is None:
                self._queries = HistoryQueries.open(self._location, PATIENCE)
            return self._queries

    def close(self) -> None:
        """Close the database."""
        if self._queries is not None:
            self._queries.close()
