"""All endpoints of the REST interface."""

from __future__ import annotations

from yunikorn.rest.endpoints import Endpoint
from yunikorn.rest.routes import applications, metrics, nodes, partitions

ENDPOINTS: tuple[Endpoint, ...] = (
    *partitions.ENDPOINTS,
    *applications.ENDPOINTS,
    *nodes.ENDPOINTS,
    *metrics.ENDPOINTS,
)
