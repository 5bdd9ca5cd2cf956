"""Page of the cluster at a glance."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Generator, Mapping, Sequence

import attrs

from yunikorn.clock import SECOND
from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.application import Application
from yunikorn.quantities import ordered
from yunikorn.scheduling.partition_scheduler import PartitionScheduler
from yunikorn.states import ACCEPTED, FINAL_STATES, NEW, RUNNING
from yunikorn_rest import shapes
from yunikorn_rest.application_reader import read_summary
from yunikorn_rest.endpoints import Call
from yunikorn_rest.explain_shapes import WaitExplanation
from yunikorn_rest.partition_reader import read_partition
from yunikorn_rest.queue_reader import read_queue
from yunikorn_rest.routes.explanation_routes import read_explanation
from yunikorn_rest.routes.plugin_route import installed_plugins
from yunikorn_rest.routes.scheduler_routes import latest_health
from yunikorn_rest.web.amount_bars import AmountBar, bar
from yunikorn_rest.web.chart_board import ChartBoard
from yunikorn_rest.web.event_list_page import EventRow, latest_rows
from yunikorn_rest.web.frame import PageFrame, read_frame
from yunikorn_rest.web.page_server import PageContent
from yunikorn_rest.web.plugin_list_page import fault_rows
from yunikorn_service.background import begin_shared

MOST_WAITING = 3
"""Number of applications per partition that are explained."""
EXPLAINED = 4
"""Number of partitions whose waiting applications are explained."""
STEP = 500
"""Number of applications that are compared without a pause."""
EVENTS = 10
FRESH = 5 * SECOND
"""Time for which explanations are shown (ns)."""
PATIENCE = 0.3
"""Seconds for which a page waits for explanations or for the health check."""
SHARE = 20
"""Explanations are made again only after so many times the time that they take."""
POINTS = 240
"""Largest number of points of a curve."""


@attrs.frozen(kw_only=True)
class WaitingRow:
    """An application that waits for much, and the reason."""

    application: shapes.Application
    share: float
    """Largest share of the cluster that it waits for, in percent."""
    explanation: WaitExplanation
    key: str
    """Partition in addresses."""


@attrs.frozen(kw_only=True)
class PartitionView:
    """A partition at a glance."""

    frame: PageFrame
    shape: shapes.Partition
    root: shapes.Queue
    bars: Sequence[AmountBar]
    running: int
    """Number of applications with running tasks."""
    finishing: int
    """Number of applications that have started and have no task at present, or are failing."""
    starting: int
    """Number of applications that wait to start."""
    ended: int


class WaitingBoard:
    """Latest explanations of what waits most; they are expensive and change slowly."""

    def __init__(self, stopwatch: Callable[[], int]) -> None:
        self._stopwatch = stopwatch
        self._until = stopwatch()
        self._latest: Sequence[WaitingRow] | None = None
        self._making: asyncio.Task[None] | None = None

    async def latest(self, call: Call) -> Sequence[WaitingRow] | None:
        """Return the explanations, made again if they are out of date; None while there are none yet."""
        if self._stopwatch() >= self._until and (self._making is None or self._making.done()):
            self._making = begin_shared(self._make(call))
        if self._making is not None:
            await asyncio.wait({self._making}, timeout=PATIENCE)
            if self._making.done():
                self._making.result()
        return self._latest

    async def _make(self, call: Call) -> None:
        begun = self._stopwatch()
        self._latest = await call.read(read_waiting)
        self._until = begun + max(FRESH, SHARE * (self._stopwatch() - begun))


def read_waiting(scheduler: Scheduler) -> Generator[None, None, list[WaitingRow]]:
    """Explain the applications that wait for the largest shares of their partitions."""
    frame, _ = read_frame(scheduler)
    found: list[WaitingRow] = []
    for name, (_, at) in zip(frame.partitions[:EXPLAINED], scheduler.all_partitions(), strict=False):
        size = dict(at.partition.cluster.total)
        for share, app in (yield from _waiting_most(at, size)):
            if at.partition.applications.get(app.id) is not app:
                continue
            explanation = yield from read_explanation(scheduler, at, app, 1)
            found.append(
                WaitingRow(
                    application=read_summary(app, at.name),
                    share=100 * share,
                    explanation=explanation,
                    key=name.key,
                )
            )
    return found


def _waiting_most(
    at: PartitionScheduler, size: Mapping[str, int]
) -> Generator[None, None, list[tuple[float, Application]]]:
    """Return the applications that wait for the largest shares of a cluster, largest first."""
    most: list[tuple[float, int, Application]] = []
    for index, app in enumerate(list(at.partition.applications.values())):
        if pending := app.pending:
            share = max(amount / max(1, size.get(name, 0)) for name, amount in pending.items())
            if share > 0:
                most.append((share, -app.arrival, app))
        if index % STEP == STEP - 1:
            most = heapq.nlargest(MOST_WAITING, most)
            yield
    return [(share, app) for share, _, app in heapq.nlargest(MOST_WAITING, most)]


def read_views(
    scheduler: Scheduler, key: str
) -> Generator[None, None, tuple[PageFrame, list[PartitionView]]]:
    """Read all partitions at a glance, or of the one that is chosen."""
    frame, _ = read_frame(scheduler, key)
    found = []
    for name, (rm_id, at) in zip(frame.partitions, scheduler.all_partitions(), strict=False):
        shape = yield from read_partition(rm_id, at)
        root = yield from read_queue(at.partition.queues.root)
        found.append(_view_of(frame.at(name.key), shape, root))
    return frame, found


def _view_of(frame: PageFrame, shape: shapes.Partition, root: shapes.Queue) -> PartitionView:
    size, used = shape.capacity.capacity, shape.capacity.used_capacity
    states = shape.applications
    starting = states.get(NEW, 0) + states.get(ACCEPTED, 0)
    ended = sum(number for state, number in states.items() if state in FINAL_STATES)
    running = states.get(RUNNING, 0)
    return PartitionView(
        frame=frame,
        shape=shape,
        root=root,
        bars=[
            bar(name, used.get(name, 0), size[name], waiting=root.pending_resource.get(name, 0))
            for name in ordered(size)
            if size[name] or used.get(name)
        ],
        running=running,
        finishing=states.get("total", 0) - starting - running - ended,
        starting=starting,
        ended=ended,
    )


def curve_of(values: Sequence[int]) -> str:
    """Return the points of a curve in a box of 100 by 30, for an SVG polyline; empty for less than two."""
    step = max(1, -(-len(values) // POINTS))
    shown = values[::-1][::step][::-1]
    if len(shown) < 2:
        return ""
    most = max(1, *shown)
    width = len(shown) - 1
    return " ".join(
        f"{100 * index / width:.1f},{29 - 28 * value / most:.1f}" for index, value in enumerate(shown)
    )


class Overview:
    """Page `/`."""

    def __init__(self, stopwatch: Callable[[], int], charts: ChartBoard | None) -> None:
        self._board = WaitingBoard(stopwatch)
        self._charts = charts
        self._checking: asyncio.Task[shapes.Health] | None = None
        self._checked: shapes.Health | None = None

    async def _health(self, call: Call) -> shapes.Health | None:
        """Return the latest health check; None if the first one takes longer than a page may."""
        if self._checking is None or self._checking.done():
            self._checking = begin_shared(latest_health(call))
        await asyncio.wait({self._checking}, timeout=PATIENCE)
        if self._checking.done():
            self._checked = self._checking.result()
        return self._checked

    async def view(self, call: Call) -> PageContent:
        """Return the page."""
        key = call.query("partition")
        frame, partitions = await call.read(lambda core: read_views(core, key))
        waiting = await self._board.latest(call)
        health = await self._health(call)
        faults = fault_rows(await installed_plugins(call))
        events: Sequence[EventRow] = await latest_rows(call, EVENTS)
        samples = call.context.history.samples
        charts = self._charts and await self._charts.section(call, frame, "partition", "")
        return PageContent(
            template="overview.html",
            title="Cluster",
            section="/",
            frame=frame,
            content={
                "partitions": partitions,
                "charts": charts,
                "waiting": waiting,
                "health": health,
                "failed": [one for one in health.health_checks if not one.succeeded] if health else [],
                "faults": faults,
                "events": events,
                "samples": samples,
                "app_curve": curve_of([one.applications for one in samples]),
                "task_curve": curve_of([one.containers for one in samples]),
            },
        )
