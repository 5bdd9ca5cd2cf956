"""The classes of proto/si_secret.proto. Made by `python -m yunikorn_service.wire.compile_protos`."""

from yunikorn_service.wire.protocol import define

DESCRIPTOR = define("si_secret", globals())
