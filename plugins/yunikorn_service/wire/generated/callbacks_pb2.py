"""The classes of proto/callbacks.proto. Made by `python -m yunikorn_service.wire.compile_protos`."""

from yunikorn_service.wire.generated import si_v0_11_pb2 as si_v0_11_pb2
from yunikorn_service.wire.protocol import define

DESCRIPTOR = define("callbacks", globals())
