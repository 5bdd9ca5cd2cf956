"""Our protobuf messages, in a pool of their own.

In protobuf's common pool names and extension numbers are unique per process. Whoever uses our client beside
classes made from a published si.proto would have both there, and the extension 1059 twice. In a pool of our
own nothing of ours meets anything of others.

The classes are made from descriptors when they are imported, by the public ways of the library. Code as
protoc writes it would run with two major versions of the library only.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

POOL = descriptor_pool.DescriptorPool()
"""All our files, services included; what server reflection shows."""
POOL.AddSerializedFile(descriptor_pb2.DESCRIPTOR.serialized_pb)


def define(serialized: bytes, namespace: dict[str, Any]) -> FileDescriptor:
    """Put a file into the pool, and its messages, enums and their values into a module's namespace."""
    name = descriptor_pb2.FileDescriptorProto.FromString(serialized).name
    POOL.AddSerializedFile(serialized)
    file = POOL.FindFileByName(name)
    for message in file.message_types_by_name.values():
        made = message_factory.GetMessageClass(message)
        # What prints or pickles the class finds it where it is imported from.
        made.__module__ = namespace["__name__"]
        namespace[message.name] = made
    for enum in file.enum_types_by_name.values():
        namespace[enum.name] = EnumTypeWrapper(enum)
        namespace.update({value.name: value.number for value in enum.values})
    return file
