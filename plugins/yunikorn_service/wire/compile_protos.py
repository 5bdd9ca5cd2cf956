"""`python -m yunikorn_service.wire.compile_protos`: write or check `generated/`.

The folder is made from the .proto files, which protoc (of the package grpcio-tools) reads. The output is made
here: protoc's descriptors, small modules that any version of the protobuf library can import (see
`protocol.py`), and their types. The text therefore does not depend on the version of protoc.

Exit status: 0 when `generated/` is current or was written, 1 when `--check` finds outdated files, 2 when the
files cannot be compiled.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)

from yunikorn_service.wire.protocol import GENERATED as GENERATED

PROTOS = Path(__file__).parent / "proto"
COMMAND = "python -m yunikorn_service.wire.compile_protos"


class CannotCompile(Exception):
    """Error of protoc, which is not installed, or rejects the files (and has printed the reason)."""


def compiled(folder: Path) -> FileDescriptorSet:
    """Return the descriptors of all .proto files in a folder; raise `CannotCompile`."""
    try:
        from grpc_tools import protoc
    except ImportError as error:
        raise CannotCompile("protoc is missing: pip install 'yunikorn[test]', or grpcio-tools") from error
    files = sorted(path.name for path in folder.glob("*.proto"))
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "set"
        own = Path(protoc.__file__).parent / "_proto"  # google/protobuf/descriptor.proto
        if protoc.main(["protoc", f"-I{folder}", f"-I{own}", f"--descriptor_set_out={out}", *files]):
            raise CannotCompile(f"the files of {folder} cannot be compiled")
        return FileDescriptorSet.FromString(out.read_bytes())


def contents(files: FileDescriptorSet) -> dict[str, bytes]:
    """Return the content of each file in `generated/`, by the file's name."""
    made = {}
    for file in files.file:
        stem = file.name.removesuffix(".proto")
        about = f"of proto/{file.name}. Made by `{COMMAND}`."
        imports = [*_imports(file), "from yunikorn_service.wire.protocol import define"]
        module = [
            f'"""The classes {about}"""',
            "",
            *imports,
            "",
            f'DESCRIPTOR = define("{stem}", globals())',
            "",
        ]
        made[f"{stem}.binpb"] = file.SerializeToString(deterministic=True)
        made[f"{stem}_pb2.py"] = "\n".join(module).encode()
        made[f"{stem}_pb2.pyi"] = f"# Types {about}\n{typing_text(file)}".encode()
    return made


def stale(wanted: dict[str, bytes], folder: Path) -> list[str]:
    """Return the files in a folder that are missing, different or no longer wanted."""
    paths = (*folder.glob("*_pb2.py*"), *folder.glob("*.binpb"))
    found = {path.name: path.read_bytes() for path in paths}
    return sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))


def write(wanted: dict[str, bytes], folder: Path) -> None:
    """Update a folder so that its content is exactly these files."""
    for name in stale(wanted, folder):
        if name in wanted:
            (folder / name).write_bytes(wanted[name])
        else:
            (folder / name).unlink()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(prog=COMMAND, description="Make generated/ from the .proto files.")
    parser.add_argument("--check", action="store_true", help="only check whether generated/ is current")
    options = parser.parse_args(arguments)
    try:
        wanted = contents(compiled(PROTOS))
    except CannotCompile as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    old = stale(wanted, GENERATED)
    if not options.check:
        write(wanted, GENERATED)
        print(f"{len(old)} of {len(wanted)} files written" if old else "everything is current")
        return 0
    for name in old:
        print(f"generated/{name} does not match the .proto files: run {COMMAND}", file=sys.stderr)
    return 1 if old else 0


# -- types ------------------------------------------------------------------------------------------------
#
# The stubs of `protoc --pyi_out` are not used. They refuse plain numbers for enums, while both layouts carry
# unknown numbers; mypy --strict refuses their generic types without parameters; and their text depends on the
# version of protoc, so `--check` would report files of another version as outdated.

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
    lines = [IMPORTS, *_imports(file), "", "DESCRIPTOR: FileDescriptor"]
    for enum in file.enum_type:
        lines += _enum(enum, "")
    for message in file.message_type:
        lines += ["", *_message(message, file, "")]
    return "\n".join(lines) + "\n"


def _imports(file: FileDescriptorProto) -> list[str]:
    return [f"from yunikorn_service.wire.generated import {stem}_pb2 as {stem}_pb2" for stem in _stems(file)]


def _stems(file: FileDescriptorProto) -> list[str]:
    return [name.removesuffix(".proto") for name in file.dependency if not name.startswith("google/")]


def _name(full: str, file: FileDescriptorProto) -> str:
    """Return the name of a message in the generated module of a file."""
    own = f".{file.package}."
    if full.startswith(own):
        return full.removeprefix(own)
    # Each file has its own package, whose last part occurs in the file's name.
    *_, package, name = full.split(".")
    (stem,) = (stem for stem in _stems(file) if stem.removeprefix("si_") == package)
    return f"{stem}_pb2.{name}"


def _enum(enum: EnumDescriptorProto, indent: str) -> Iterator[str]:
    yield f"{indent}{enum.name}: {_constant('EnumTypeWrapper', indent)}"
    for value in enum.value:
        yield f"{indent}{value.name}: {_constant('int', indent)}"


def _constant(kind: str, indent: str) -> str:
    return f"ClassVar[{kind}]" if indent else kind


def _message(message: DescriptorProto, file: FileDescriptorProto, indent: str) -> Iterator[str]:
    yield f"{indent}class {message.name}(Message):"
    inner = indent + "    "
    entries = {nested.name: nested for nested in message.nested_type if nested.options.map_entry}
    for nested in message.nested_type:
        if nested.name not in entries:
            yield from _message(nested, file, inner)
    for enum in message.enum_type:
        yield from _enum(enum, inner)
    parameters = []
    for field in message.field:
        entry = entries.get(field.type_name.rpartition(".")[2])
        read, given, writable = _types(field, entry, file)
        if not writable:
            yield f"{inner}@property"
            yield f"{inner}def {field.name}(self) -> {read}: ..."
        else:
            yield f"{inner}{field.name}: {read}"
        parameters.append(f"{field.name}: {given} = ...")
    joined = ", ".join(["self", *(["*"] if parameters else []), *parameters])
    yield f"{inner}def __init__({joined}) -> None: ..."


def _types(
    field: FieldDescriptorProto, entry: DescriptorProto | None, file: FileDescriptorProto
) -> tuple[str, str, bool]:
    """Return the attribute's type, the constructor argument's type, and True if it is assignable."""
    composite = field.type == FieldDescriptorProto.TYPE_MESSAGE
    if entry is not None:
        value = entry.field[1]
        if value.type == FieldDescriptorProto.TYPE_MESSAGE:
            kind = _name(value.type_name, file)
            return f"MessageMap[str, {kind}]", f"Mapping[str, {kind}] | None", False
        kind = SCALARS[value.type]
        return f"ScalarMap[str, {kind}]", f"Mapping[str, {kind}] | None", False
    kind = _name(field.type_name, file) if composite else SCALARS[field.type]
    if field.label == FieldDescriptorProto.LABEL_REPEATED:
        container = "RepeatedCompositeFieldContainer" if composite else "RepeatedScalarFieldContainer"
        return f"{container}[{kind}]", f"Iterable[{kind}] | None", False
    return kind, f"{kind} | None" if composite else kind, not composite


if __name__ == "__main__":
    sys.exit(main())
