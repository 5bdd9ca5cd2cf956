"""Server reflection: descriptions of the services for tools without .proto files, such as grpcurl."""

from __future__ import annotations

from typing import Any

import grpc
import grpc.aio
from google.protobuf import descriptor_pb2, text_format
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health, health_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2

from yunikorn_service.wire.generated import (
    callbacks_pb2,
    si_current_pb2,
    si_secret_pb2,
    si_service_pb2,
    si_v0_11_pb2,
)
from yunikorn_service.wire.protocol import CALLBACKS, SCHEDULER

V1 = "grpc.reflection.v1.ServerReflection"
"""Service that current tools query first; its messages are those of v1alpha in another package."""
METHOD = "ServerReflectionInfo"
SERVICES = (SCHEDULER, CALLBACKS, health.SERVICE_NAME, V1, reflection.SERVICE_NAME)


def reflect(server: grpc.aio.Server) -> None:
    """Register both versions of the reflection service at a server."""
    pool = _pool()
    reflection.enable_server_reflection(SERVICES, server, pool=pool)
    # The type stubs of the library lack its asyncio half.
    servicer: Any = reflection.aio.ReflectionServicer(SERVICES, pool=pool)  # type: ignore[attr-defined]
    handler = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(V1, {METHOD: handler}),))


def _pool() -> DescriptorPool:
    # Our files are in a pool of their own, and those of health and reflection in the default pool.
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
    pool.Add(_version_1())
    return pool


def _version_1() -> descriptor_pb2.FileDescriptorProto:
    """Return the file descriptor of reflection v1, which the installed package lacks."""
    file = descriptor_pb2.FileDescriptorProto.FromString(reflection_pb2.DESCRIPTOR.serialized_pb)
    text = text_format.MessageToString(file).replace("v1alpha", "v1")
    return text_format.Parse(text, descriptor_pb2.FileDescriptorProto())
