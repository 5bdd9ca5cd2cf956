"""Text of the .pyi files, with the types of the classes that are made from the .proto files."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

IMPORTS = """
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
"""
SCALARS = {
    FieldDescriptorProto.TYPE_STRING: "str",
    FieldDescriptorProto.TYPE_BOOL: "bool",
    FieldDescriptorProto.TYPE_INT32: "int",
    FieldDescriptorProto.TYPE_INT64: "int",
    FieldDescriptorProto.TYPE_UINT64: "int",
    FieldDescriptorProto.TYPE_ENUM: "int",
}
"""Python types by field type, for the types that the interface uses; any other field type is an error."""


def typing_text(file: FileDescriptorProto) -> str:
    """Return the types of the messages and enums of one file."""
    lines = [IMPORTS]
    for name in file.dependency:
        if not name.startswith("google/"):
            stem = name.removesuffix(".proto")
            lines.append(f"from yunikorn.wire.generated import {stem}_pb2 as {stem}_pb2")
    lines += ["", "DESCRIPTOR: FileDescriptor"]
    names = _Names(file)
    for enum in file.enum_type:
        lines += _enum(enum, "")
    for message in file.message_type:
        lines += ["", *_message(message, names, "")]
    return "\n".join(lines) + "\n"


class _Names:
    """Map from full names of messages to their names in a generated module."""

    def __init__(self, file: FileDescriptorProto) -> None:
        self._package = f".{file.package}."
        self._imported = {
            # Each file has its own package, whose last part occurs in the file's name.
            name.removesuffix(".proto").removeprefix("si_"): name.removesuffix(".proto")
            for name in file.dependency
        }

    def of(self, full: str) -> str:
        if full.startswith(self._package):
            return full.removeprefix(self._package)
        package, _, name = full.rpartition(".")
        return f"{self._imported[package.rpartition('.')[2]]}_pb2.{name}"


def _enum(enum: EnumDescriptorProto, indent: str) -> Iterator[str]:
    yield f"{indent}{enum.name}: {_constant('EnumTypeWrapper', indent)}"
    for value in enum.value:
        yield f"{indent}{value.name}: {_constant('int', indent)}"


def _constant(kind: str, indent: str) -> str:
    return f"ClassVar[{kind}]" if indent else kind


def _message(message: DescriptorProto, names: _Names, indent: str) -> Iterator[str]:
    yield f"{indent}class {message.name}(Message):"
    inner = indent + "    "
    entries = {nested.name: nested for nested in message.nested_type if nested.options.map_entry}
    for nested in message.nested_type:
        if nested.name not in entries:
            yield from _message(nested, names, inner)
    for enum in message.enum_type:
        yield from _enum(enum, inner)
    parameters = []
    for field in message.field:
        entry = entries.get(field.type_name.rpartition(".")[2])
        read, given, writable = _types(field, entry, names)
        if not writable:
            yield f"{inner}@property"
            yield f"{inner}def {field.name}(self) -> {read}: ..."
        else:
            yield f"{inner}{field.name}: {read}"
        parameters.append(f"{field.name}: {given} = ...")
    joined = ", ".join(["self", *(["*"] if parameters else []), *parameters])
    yield f"{inner}def __init__({joined}) -> None: ..."


def _types(
    field: FieldDescriptorProto, entry: DescriptorProto | None, names: _Names
) -> tuple[str, str, bool]:
    """Return the attribute's type, the constructor argument's type, and True if it is assignable."""
    composite = field.type == FieldDescriptorProto.TYPE_MESSAGE
    if entry is not None:
        value = entry.field[1]
        if value.type == FieldDescriptorProto.TYPE_MESSAGE:
            kind = names.of(value.type_name)
            return f"MessageMap[str, {kind}]", f"Mapping[str, {kind}] | None", False
        kind = SCALARS[value.type]
        return f"ScalarMap[str, {kind}]", f"Mapping[str, {kind}] | None", False
    kind = names.of(field.type_name) if composite else SCALARS[field.type]
    if field.label == FieldDescriptorProto.LABEL_REPEATED:
        container = "RepeatedCompositeFieldContainer" if composite else "RepeatedScalarFieldContainer"
        return f"{container}[{kind}]", f"Iterable[{kind}] | None", False
    return kind, f"{kind} | None" if composite else kind, not composite
