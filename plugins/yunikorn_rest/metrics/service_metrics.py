"""Metrics of a running service: reads figures, and makes their text outside of the core's thread."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from typing import Protocol

from yunikorn.interface.scheduler import Scheduler
from yunikorn_rest.metrics.core_figures import CoreFigures, read_figures
from yunikorn_rest.metrics.exposition import MetricsText, ServiceFigures
from yunikorn_rest.metrics.families import Family
from yunikorn_service.background import begin_shared
from yunikorn_service.buffered_sinks import SinkLoad
from yunikorn_service.method_meters import MethodUse
from yunikorn_service.plugin_statistics import PluginStatistics

Read = Callable[[Callable[[Scheduler], Generator[None, None, CoreFigures]]], Awaitable[CoreFigures]]
"""Carries out a reading of the core in slices, such as `AsyncScheduler.read`."""


class MeasuredInbox(Protocol):
    """Inbox of a core; both numbers may be read from any thread."""

    @property
    def inbox_depth(self) -> int:
        """Number of entries in the inbox."""
        ...

    @property
    def inbox_capacity(self) -> int:
        """Number of entries in the inbox at which senders have to wait."""
        ...


class ServiceMetrics:
    """Metrics of one service; used in one event loop.

    Scrapes that arrive during a scrape get the same text, so that many scrapers cost no more than one.
    """

    def __init__(
        self,
        read: Read,
        inbox: MeasuredInbox,
        plugin_time: Mapping[tuple[str, str], float] | None = None,
        statistics: PluginStatistics | None = None,
        sinks: Iterable[SinkLoad] = (),
    ) -> None:
        """Create metrics; `read` reads the core, whose counts are zero without measurements.

        `plugin_time` has seconds by plugin and operation, and changes in the event loop.
        """
        self._read = read
        self._inbox = inbox
        self._plugin_time = {} if plugin_time is None else plugin_time
        self._statistics = statistics
        self._sinks = sinks
        self.parts: list[Callable[[], Mapping[Family, float]]] = []
        """Functions that return figures of parts of the service; each part adds its own."""
        self._text = MetricsText()
        self._answered: Counter[str] = Counter()
        self._scraping = 0
        self._current: asyncio.Task[bytes] | None = None

    async def scrape(self) -> bytes:
        """Return the text of all metrics. Raises the error of reading the core, such as `CoreStopped`."""
        if self._current is None:
            self._current = begin_shared(self._scrape())
            self._current.add_done_callback(self._scraped)
        self._scraping += 1
        try:
            # A scraper that hangs up must not end the scrape of the others.
            return await asyncio.shield(self._current)
        finally:
            self._scraping -= 1

    def uses(self) -> tuple[MethodUse, ...]:
        """Return the use of methods of plugins; empty if it is not counted."""
        return tuple(self._statistics or ())

    @property
    def plugin_time(self) -> Mapping[tuple[str, str], float]:
        """Time of the core's thread in plugins, in seconds, by plugin and operation."""
        return dict(self._plugin_time)

    def answered(self, code: int) -> None:
        """Count an answer with this HTTP status code."""
        self._answered[str(code)] += 1

    def _scraped(self, _: asyncio.Task[bytes]) -> None:
        self._current = None

    async def _scrape(self) -> bytes:
        core = await self._read(read_figures)
        service = ServiceFigures(
            self._inbox.inbox_depth,
            self._inbox.inbox_capacity,
            dict(self._plugin_time),
            self.uses(),
            tuple(self._sinks),
            dict(self._answered),
            self._scraping,
            {family: value for part in self.parts for family, value in part().items()},
        )
        return await asyncio.to_thread(self._text.of, core, service)
