# Types of proto/si_service.proto. Made by `python -m yunikorn_service.wire.compile_protos`.

from collections.abc import Iterable, Mapping
from typing import ClassVar

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.internal.containers import (
    MessageMap,
    RepeatedCompositeFieldContainer,
    RepeatedScalarFieldContainer,
    ScalarMap,
)
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import Message

from yunikorn_service.wire.generated import si_current_pb2 as si_current_pb2
from yunikorn_service.wire.generated import si_v0_11_pb2 as si_v0_11_pb2

DESCRIPTOR: FileDescriptor
