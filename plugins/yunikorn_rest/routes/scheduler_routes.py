"""Routes of the scheduler as a whole: health, history, and probes of Kubernetes."""

from __future__ import annotations

import asyncio
from collections.abc import Generator

from yunikorn.interface.scheduler import Scheduler
from yunikorn_rest import shapes
from yunikorn_rest.answers import TEXT, Answer, RequestRefused
from yunikorn_rest.endpoints import Call, Route
from yunikorn_rest.health_check import check
from yunikorn_rest.route_access import RouteAccess

READY = 5.0
"""Seconds in which a core that is ready answers."""


@Route("/ws/v1/scheduler/healthcheck", shapes.Health)
async def health(call: Call) -> Answer:
    """Health check; the status is 200 even if a check fails."""
    return await call.json(await latest_health(call))


async def latest_health(call: Call) -> shapes.Health:
    """Return the latest health check, at most half a minute old."""
    board = call.context.health
    async with call.context.checking:
        return board.latest or board.post(await call.read(check))


def app_history(call: Call) -> list[shapes.AppHistory]:
    """Return the history of running applications."""
    return [
        shapes.AppHistory(timestamp=one.time, total_applications=str(one.applications))
        for one in call.context.history.samples
    ]


def container_history(call: Call) -> list[shapes.ContainerHistory]:
    """Return the history of allocations."""
    return [
        shapes.ContainerHistory(timestamp=one.time, total_containers=str(one.containers))
        for one in call.context.history.samples
    ]


@Route("/ws/v1/history/apps", list[shapes.AppHistory])
async def applications(call: Call) -> Answer:
    """Number of running applications, once a minute for a day, oldest first."""
    return await call.json(app_history(call))


@Route("/ws/v1/history/containers", list[shapes.ContainerHistory])
async def containers(call: Call) -> Answer:
    """Number of allocations, once a minute for a day, oldest first."""
    return await call.json(container_history(call))


def _nothing(_: Scheduler) -> Generator[None, None, None]:
    """Read nothing: the core is ready when it has done so."""
    yield


@Route("/livez", content_type="text/plain", errors=(503,), access=RouteAccess.OPEN, is_unlimited=True)
async def live(call: Call) -> Answer:
    """Liveness probe.

    It fails after the core has stopped, when only a restart helps.
    """
    if not call.context.core_alive():
        raise RequestRefused(503, "the core has stopped")
    return _plain("ok\n")


@Route("/readyz", content_type="text/plain", errors=(503,), access=RouteAccess.OPEN, is_unlimited=True)
async def ready(call: Call) -> Answer:
    """Readiness probe: the core makes progress.

    The rest of the service has to be ready, too.
    """
    if reason := call.context.unready():
        raise RequestRefused(503, reason)
    try:
        async with asyncio.timeout(READY):
            await call.context.core.read(_nothing)
    except TimeoutError:
        raise RequestRefused(503, f"the core has not answered for {READY:g} s") from None
    return _plain("ok\n")


def _plain(text: str) -> Answer:
    return Answer(pieces=(text.encode(),), content_type=TEXT, headers={"cache-control": "no-store"})


ENDPOINTS = (health, applications, containers, live, ready)
