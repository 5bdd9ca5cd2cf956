"""The classes of proto/si_v0_11.proto. Made by `python -m yunikorn_service.wire.compile_protos`."""

from yunikorn_service.wire.generated import si_secret_pb2 as si_secret_pb2
from yunikorn_service.wire.protocol import define

DESCRIPTOR = define("si_v0_11", globals())
