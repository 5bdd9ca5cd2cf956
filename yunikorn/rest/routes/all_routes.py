"""All endpoints of the REST interface."""

from __future__ import annotations

from yunikorn.rest.answers import Answer
from yunikorn.rest.endpoints import Call, Endpoint, Route
from yunikorn.rest.openapi import document
from yunikorn.rest.routes import (
    applications,
    configuration,
    decisions,
    dump,
    events,
    explanations,
    metrics,
    nodes,
    partitions,
    plugins,
    profiling,
    scheduler,
    settings,
    steering,
    usage,
)


@Route("/ws/v1/openapi.json", dict[str, object])
async def openapi(call: Call) -> Answer:
    """This document."""
    return await call.json(document(ENDPOINTS))


ENDPOINTS: tuple[Endpoint, ...] = (
    *partitions.ENDPOINTS,
    *usage.ENDPOINTS,
    *applications.ENDPOINTS,
    *explanations.ENDPOINTS,
    *decisions.ENDPOINTS,
    *nodes.ENDPOINTS,
    *metrics.ENDPOINTS,
    *events.ENDPOINTS,
    *configuration.ENDPOINTS,
    *scheduler.ENDPOINTS,
    *plugins.ENDPOINTS,
    *dump.ENDPOINTS,
    *profiling.ENDPOINTS,
    *steering.ENDPOINTS,
    *settings.ENDPOINTS,
    openapi,
)
