"""Page with the list of applications.

Rows of applications in lists.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any

import attrs

from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.application import Application
from yunikorn.states import APPLICATION, FINAL_STATES
from yunikorn_rest import shapes
from yunikorn_rest.application_reader import read_summary
from yunikorn_rest.endpoints import Call
from yunikorn_rest.partition_reader import active_applications_of
from yunikorn_rest.web.frame import PageFrame, read_frame_at
from yunikorn_rest.web.page_server import PageContent
from yunikorn_rest.web.paging import PagePosition, sorted_part, wanted_number

STEP = 500
"""Number of requests that are counted without a pause."""
ROWS = 10
"""Number of applications that are read without a pause."""


@attrs.frozen(kw_only=True)
class AppRow:
    """An application in a list."""

    application: shapes.Application
    running: int
    """Number of allocations."""
    waiting: int
    """Number of allocations that it waits for."""


def count_waiting(app: Application) -> Generator[None, None, int]:
    """Count the pending allocations of an application."""
    total = 0
    for index, ask in enumerate(list(app.asks.values())):
        total += ask.pending
        if index % STEP == STEP - 1:
            yield
    return total


def read_rows(
    chosen: Iterable[Application], is_known: Callable[[Application], bool], partition: str
) -> Generator[None, None, list[AppRow]]:
    """Read rows of applications; those that are no longer known are left out."""
    found: list[AppRow] = []
    for app in chosen:
        if not is_known(app):
            continue
        running, shape = len(app.allocations), read_summary(app, partition)
        waiting = yield from count_waiting(app)
        found.append(AppRow(application=shape, running=running, waiting=waiting))
        if len(found) % ROWS == 0:
            yield
    return found


ACTIVE, WAITING, ENDED, ALL = "active", "waiting", "ended", "all"
GROUPS = {ACTIVE: "active", WAITING: "with waiting tasks", ENDED: "ended", ALL: "all"}
"""Choices of states that have several, in words."""
ORDERS = {"newest": "newest first", "oldest": "oldest first", "waiting": "most waiting", "id": "by id"}
"""Orders, in words."""


@attrs.frozen
class ApplicationFilter:
    """Applications that a page shows, and their order."""

    state: str
    user: str
    queue: str
    text: str
    order: str

    @classmethod
    def of(cls, call: Call) -> ApplicationFilter:
        """Return the filter of a request; unknown states and orders are the default."""
        states = {one.lower() for one in APPLICATION.states}
        state, order = call.query("state").lower(), call.query("order")
        return cls(
            state if state in states or state in GROUPS else ACTIVE,
            call.query("user").strip(),
            call.query("queue").strip(),
            call.query("q").strip(),
            order if order in ORDERS else "newest",
        )

    @property
    def query(self) -> dict[str, str]:
        """Parameters of an address with the filter."""
        return {
            "state": self.state if self.state != ACTIVE else "",
            "user": self.user,
            "queue": self.queue,
            "q": self.text,
            "order": self.order if self.order != "newest" else "",
        }

    def matches(self, app: Application) -> bool:
        """Return True for an application that the page shows."""
        path = app.queue.path if app.queue is not None else app.queue_name
        return (
            self._has_state(app)
            and self.user in ("", app.user)
            and (not self.queue or f"{path}.".startswith(f"{self.queue.lower()}."))
            and (not self.text or self.text.lower() in app.id.lower())
        )

    def _has_state(self, app: Application) -> bool:
        match self.state:
            case "all":
                return True
            case "active":
                return app.state not in FINAL_STATES
            case "ended":
                return app.state in FINAL_STATES
            case "waiting":
                return any(app.pending.values())
            case state:
                return app.state.lower() == state

    def key(self, size: Mapping[str, int]) -> Callable[[Application], Any]:
        """Return the function that orders the applications of a cluster of this size."""
        match self.order:
            case "id":
                return lambda app: app.id
            case "oldest":
                return lambda app: (app.submitted, app.id)
            case "waiting":
                return lambda app: (-_share(app, size), app.id)
        return lambda app: (-app.submitted, app.id)


def _share(app: Application, size: Mapping[str, int]) -> float:
    return max((amount / max(1, size.get(name, 0)) for name, amount in app.pending.items()), default=0)


Found = tuple[PageFrame, list[AppRow], PagePosition]


async def view(call: Call) -> PageContent:
    """Return the page."""
    wanted, number = ApplicationFilter.of(call), wanted_number(call)
    key = call.query("partition")

    def read(scheduler: Scheduler) -> Generator[None, None, Found]:
        frame, at = read_frame_at(scheduler, key)
        partition = at.partition
        everything = wanted.state not in (ACTIVE, WAITING)
        known = [*active_applications_of(at), *(partition.ended.values() if everything else ())]
        order = wanted.key(dict(partition.cluster.total))
        chosen, part = yield from sorted_part(known, wanted.matches, order, number)

        def is_known(app: Application) -> bool:
            found = (partition.applications.get(app.id), partition.ended.get(app.id))
            return app in found or app.id in at.submitted

        return frame, (yield from read_rows(chosen, is_known, at.name)), part

    frame, rows, part = await call.read(read)
    return PageContent(
        template="applications.html",
        title="Applications",
        section="/applications",
        frame=frame,
        content={
            "rows": rows,
            "part": part,
            "filter": wanted,
            "groups": GROUPS,
            "states": APPLICATION.states,
            "orders": ORDERS,
        },
    )
