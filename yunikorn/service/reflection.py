"""Server reflection: what the server offers, for tools such as grpcurl that have no .proto files."""

from __future__ import annotations

import grpc.aio
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health, health_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2

from yunikorn.interface.wire.generated import (
    callbacks_pb2,
    si_current_pb2,
    si_secret_pb2,
    si_service_pb2,
    si_v0_11_pb2,
)
from yunikorn.interface.wire.methods import CALLBACKS, SCHEDULER

SERVICES = (SCHEDULER, CALLBACKS, health.SERVICE_NAME, reflection.SERVICE_NAME)


def reflect(server: grpc.aio.Server) -> None:
    """Have a server describe its services."""
    reflection.enable_server_reflection(SERVICES, server, pool=_pool())


def _pool() -> DescriptorPool:
    # Our files have a pool of their own, and those of health and reflection are in the common one.
    pool = DescriptorPool()
    for module in (
        descriptor_pb2,
        si_secret_pb2,
        si_v0_11_pb2,
        si_current_pb2,
        si_service_pb2,
        callbacks_pb2,
        health_pb2,
        reflection_pb2,
    ):
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    return pool
