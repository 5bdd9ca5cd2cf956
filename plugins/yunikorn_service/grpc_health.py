"""Health checks for load balancers (grpc.health.v1), for the server and for each service."""

from __future__ import annotations

from typing import Any

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2

from yunikorn_service.open_streams import with_message
from yunikorn_service.service_settings import Patience
from yunikorn_service.wire.protocol import CALLBACKS, SCHEDULER

CHECK, WATCH = "Check", "Watch"
"""Methods of the health service; each call has a single request message."""
OVERALL = ""
SERVICES = (OVERALL, SCHEDULER, CALLBACKS)


class Health:
    """Health of the service; not green until set."""

    def __init__(self) -> None:
        # The type stubs of the library lack its asyncio half.
        self._servicer: Any = health.aio.HealthServicer()  # type: ignore[attr-defined]
        self.is_green = False

    def serve(self, server: grpc.aio.Server, patience: Patience) -> None:
        """Register the health service at a server."""
        parts: dict[str, Any] = {
            "request_deserializer": health_pb2.HealthCheckRequest.FromString,
            "response_serializer": health_pb2.HealthCheckResponse.SerializeToString,
        }
        check = with_message(self._servicer.Check, CHECK, patience)
        watch = with_message(self._servicer.Watch, WATCH, patience)
        handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
            CHECK: grpc.stream_unary_rpc_method_handler(check, **parts),
            WATCH: grpc.stream_stream_rpc_method_handler(watch, **parts),
        }
        handler = grpc.method_handlers_generic_handler(health.SERVICE_NAME, handlers)
        server.add_generic_rpc_handlers((handler,))

    async def set(self, green: bool) -> None:
        """Report SERVING if `green`, otherwise NOT_SERVING, from now on."""
        self.is_green = green
        status = health_pb2.HealthCheckResponse
        for service in SERVICES:
            await self._servicer.set(service, status.SERVING if green else status.NOT_SERVING)
