"""All endpoints of the REST interface."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from yunikorn_rest.answers import Answer
from yunikorn_rest.encoding import json_pieces
from yunikorn_rest.endpoints import Call, Endpoint, Route
from yunikorn_rest.openapi import document
from yunikorn_rest.routes import (
    application_routes,
    configuration_routes,
    decision_route,
    dump_routes,
    event_routes,
    explanation_routes,
    history_routes,
    metrics_route,
    node_routes,
    operator_routes,
    partition_routes,
    plugin_route,
    profiling_routes,
    scheduler_routes,
    setting_routes,
    snapshot_route,
    topology_route,
    usage_routes,
)


@Route("/ws/v1/openapi.json", dict[str, object])
async def openapi(call: Call) -> Answer:
    """This document."""
    return Answer(pieces=await call.apart(_text), conditional=True)


@cache
def _text() -> Sequence[bytes]:
    return ("".join(json_pieces(document(ENDPOINTS))).encode(), b"\n")


ENDPOINTS: tuple[Endpoint, ...] = (
    *partition_routes.ENDPOINTS,
    *usage_routes.ENDPOINTS,
    *application_routes.ENDPOINTS,
    *explanation_routes.ENDPOINTS,
    *decision_route.ENDPOINTS,
    *node_routes.ENDPOINTS,
    *topology_route.ENDPOINTS,
    *metrics_route.ENDPOINTS,
    *event_routes.ENDPOINTS,
    *configuration_routes.ENDPOINTS,
    *scheduler_routes.ENDPOINTS,
    *history_routes.ENDPOINTS,
    *plugin_route.ENDPOINTS,
    *dump_routes.ENDPOINTS,
    *snapshot_route.ENDPOINTS,
    *profiling_routes.ENDPOINTS,
    *operator_routes.ENDPOINTS,
    *setting_routes.ENDPOINTS,
    openapi,
)
