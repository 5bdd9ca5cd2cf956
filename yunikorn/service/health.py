"""Health as load balancers ask for it (grpc.health.v1), of the whole and of each service."""

from __future__ import annotations

from typing import Any

import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from yunikorn.interface.wire.methods import CALLBACKS, SCHEDULER

OVERALL = ""
SERVICES = (OVERALL, SCHEDULER, CALLBACKS)


class Health:
    """Whether the service can do its work; starts red."""

    def __init__(self) -> None:
        # The types of the library do not know its asyncio half.
        self._servicer: Any = health.aio.HealthServicer()  # type: ignore[attr-defined]
        self.is_green = False

    def serve(self, server: grpc.aio.Server) -> None:
        """Have a server answer for it."""
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)

    async def set(self, green: bool) -> None:
        """From now on answer SERVING, or NOT_SERVING."""
        self.is_green = green
        status = health_pb2.HealthCheckResponse
        for service in SERVICES:
            await self._servicer.set(service, status.SERVING if green else status.NOT_SERVING)
