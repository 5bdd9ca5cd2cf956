"""Figures of `yunikorn top`: requests to the server in a thread, of bounded cost.

A long list is read page by page, a few pages in each refresh, so that ten thousand nodes are asked for once
in a while and not at every refresh. Pages that have not changed are not sent again (`If-None-Match`). The
thread pauses at least three times as long as its requests took.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager

import attrs
import click

from yunikorn.errors import UsageError, printable
from yunikorn_rest.commands.answer_fields import records, text
from yunikorn_rest.commands.rest_client import NotFound, Record, RestConnection, UnknownCredentials
from yunikorn_rest.commands.server_options import below_partition
from yunikorn_rest.commands.top_views import QUEUES, TopView, queue_records

PAGE, SMALLEST_PAGE, LARGEST_PAGE = 50, 5, 500
"""Number of objects in a request: at first, and its bounds. An application may have 10,000 tasks, or none."""
FAST, SLOW = 0.05, 0.3
"""Seconds: a page that took less is followed by a larger one, and a slower one is divided later."""
SHARE, LATER_SHARE = 4, 8
"""A refresh of a list ends after this part of the interval, and is continued in the next one.

The first sweep may take more, because its figures are missing.
"""
UNKNOWN_PAUSE = 30.0
"""Seconds between requests of a client that the server does not know; the server counts such attempts."""

OpenServer = Callable[[], AbstractContextManager[RestConnection]]


@attrs.frozen
class Snapshot:
    """Figures to show; never changes."""

    view: str
    partition: Record
    """Object of the partition."""
    found: Sequence[Record]
    """Objects of the view."""
    complete: bool
    """False while the list is read for the first time."""
    answered: float
    """Time of the latest answer, as of `time.monotonic`."""
    problem: str = ""
    """Reason why the server did not answer the latest request; empty if it did."""


@attrs.frozen
class _Page:
    found: tuple[Record, ...]
    etag: str
    following: str
    limit: int
    """Number of objects to ask for in the next sweep."""


class PagedList:
    """A list of the server, read page by page over several refreshes."""

    def __init__(self, view: TopView, partition: str) -> None:
        self._view = view
        self._path = below_partition(partition, view.path)
        self._pages: dict[str, _Page] = {}
        """Pages by the token that leads to them; those of the latest sweep."""
        self._sweep: dict[str, _Page] = {}
        """Pages of the sweep in progress."""
        self._token = ""
        self._size = PAGE
        """Number of objects of the next page that is read for the first time."""
        self.complete = False

    def read(self, server: RestConnection) -> bool:
        """Read the next page; returns True if it is the last one. Raises `UsageError`."""
        known = self._pages.get(self._token)
        limit = known.limit if known is not None else self._size
        query: dict[str, str | int] = {"limit": limit}
        if self._token:
            query["continue"] = self._token
        started = time.monotonic()
        part = server.part(self._path, known.etag if known is not None else "", **query)
        if part is None:
            if known is None:
                raise UsageError("the server sent no answer")
            page = known
        else:
            found = queue_records(part.value) if self._view is QUEUES else self._kept(part.value)
            page = _Page(tuple(found), part.etag, part.following, limit)
        page = self._resized(page, time.monotonic() - started)
        self._sweep[self._token] = page
        self._token = page.following
        if self._token and self._token not in self._sweep:
            return False
        self._pages, self._sweep, self._token = self._sweep, {}, ""
        self.complete = True
        return True

    def _resized(self, page: _Page, took: float) -> _Page:
        """Adapt the size of pages to the time (s) that one took."""
        if took > SLOW and page.limit > SMALLEST_PAGE:
            self._size = max(page.limit // 2, SMALLEST_PAGE)
            return attrs.evolve(page, etag="", limit=self._size)  # the smaller page is another answer
        if took < FAST and page.limit == self._size:
            self._size = min(2 * self._size, LARGEST_PAGE)
        return page

    def _kept(self, value: object) -> Iterator[Record]:
        if not isinstance(value, list):
            raise UsageError("the server is not a YuniKorn: the answer is not a list")
        for one in records(value):
            yield self._view.keep(one)

    def restart(self) -> None:
        """Begin again with the first page, after an error."""
        self._sweep, self._token = {}, ""

    def records(self) -> list[Record]:
        """Return the objects: those of the sweep in progress, and behind them those of the sweep before."""
        new = [one for page in self._sweep.values() for one in page.found]
        old = [one for page in self._pages.values() for one in page.found]
        if not new:
            return old
        last = text(new[-1], self._view.field)
        return new + [one for one in old if text(one, self._view.field) > last]


class Feed:
    """Snapshots of the view that is wanted, from a thread of its own."""

    def __init__(
        self, connection: OpenServer, partition: str, interval: float, views: Iterable[TopView]
    ) -> None:
        self._open = connection
        self._partition = partition
        self.interval = interval
        """Seconds between refreshes."""
        self._views = {view.title: view for view in views}
        self._lists = {view.title: PagedList(view, partition) for view in self._views.values()}
        self._wanted = next(iter(self._views))
        self._changed = threading.Condition()
        self._hurried = self._stopped = False
        self.least_pause = 0.0
        """Seconds before the next request at least, because of the latest answer."""
        self._notify: Callable[[], object] = lambda: None
        self._record: Record = {}
        self.snapshot: Snapshot | None = None
        """Latest figures; None before the first answer."""
        self.failure: BaseException | None = None
        """Bug that has ended the thread."""

    # -- refreshes -------------------------------------------------------------------------------------

    def refresh(self, server: RestConnection, *, whole: bool = False) -> None:
        """Ask the server; with `whole` until the list is complete. Raises `UsageError` or `NotFound`."""
        wanted = self._wanted
        at = self._lists[wanted]
        started, share = time.monotonic(), LATER_SHARE if at.complete else SHARE
        self._record = self._found_partition(server)
        while not at.read(server):
            if not whole and (time.monotonic() - started) * share >= self.interval:
                break
            if not whole and self._hurried:
                break
        self.snapshot = Snapshot(wanted, self._record, at.records(), at.complete, time.monotonic())

    def _found_partition(self, server: RestConnection) -> Record:
        for one in records(server.value("partitions")):
            name = text(one, "name")
            if self._partition in (name, f"[{text(one, 'clusterId')}]{name}"):
                return one
        raise NotFound(server.no_partition())

    def attempt(self, server: RestConnection) -> None:
        """Refresh, and publish a failure of the server beside the figures that are known."""
        self.least_pause = 0.0
        try:
            self.refresh(server)
        except (UsageError, click.ClickException) as error:
            self._lists[self._wanted].restart()
            if isinstance(error, UnknownCredentials):
                self.least_pause = UNKNOWN_PAUSE
            problem = error.message if isinstance(error, click.ClickException) else str(error)
            at, before = self._lists[self._wanted], self.snapshot
            answered = before.answered if before is not None else time.monotonic()
            self.snapshot = Snapshot(
                self._wanted, self._record, at.records(), at.complete, answered, printable(problem)
            )

    # -- the thread ------------------------------------------------------------------------------------

    def start(self, notify: Callable[[], object]) -> None:
        """Refresh in a thread, which calls `notify` after each refresh."""
        self._notify = notify
        threading.Thread(target=self._run, name="top", daemon=True).start()

    def want(self, view: str) -> None:
        """Show another view, without a pause."""
        with self._changed:
            self._wanted = view
            self._hurried = True
            self._changed.notify_all()

    def hurry(self) -> None:
        """Refresh without a pause."""
        self.want(self._wanted)

    def stop(self) -> None:
        """End the thread after its current request."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _run(self) -> None:
        try:
            with self._open() as server:
                while not self._stopped:
                    self._hurried = False
                    started = time.monotonic()
                    self.attempt(server)
                    self._notify()
                    self._pause(time.monotonic() - started)
        except Exception as error:  # shown by the thread that draws
            self.failure = error
            self._notify()

    def _pause(self, took: float) -> None:
        seconds = max(self.interval - took, (SHARE - 1) * took, self.least_pause)
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or self._hurried, seconds)
