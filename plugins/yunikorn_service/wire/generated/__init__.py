"""The classes of the .proto files, made by `python -m yunikorn_service.wire.compile_protos`; nothing else is edited here.

All are imported at once, so that the pool is complete, services included, whichever of them is asked for.
"""

from yunikorn_service.wire.generated import callbacks_pb2 as callbacks_pb2
from yunikorn_service.wire.generated import si_current_pb2 as si_current_pb2
from yunikorn_service.wire.generated import si_secret_pb2 as si_secret_pb2
from yunikorn_service.wire.generated import si_service_pb2 as si_service_pb2
from yunikorn_service.wire.generated import si_v0_11_pb2 as si_v0_11_pb2
