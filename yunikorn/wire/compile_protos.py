"""`python -m yunikorn.wire.compile_protos`: write or check `generated/`.

The folder is made from the .proto files, which protoc (of the package grpcio-tools) reads. The output is made
here from protoc's descriptors: small modules that any version of the protobuf library can import (see
`descriptor_pool.py`), and their types. The text therefore does not depend on the version of protoc.

Exit status: 0 when `generated/` is current or was written, 1 when `--check` finds outdated files, 2 when the
files cannot be compiled.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from yunikorn.wire.typing_text import typing_text

HERE = Path(__file__).parent
PROTOS = HERE / "proto"
GENERATED = HERE / "generated"
COMMAND = "python -m yunikorn.wire.compile_protos"


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


def texts(files: FileDescriptorSet) -> dict[str, str]:
    """Return the text of each file in `generated/`, by the file's name."""
    made = {}
    for file in files.file:
        stem = file.name.removesuffix(".proto")
        imports = [name.removesuffix(".proto") for name in file.dependency if not name.startswith("google/")]
        serialized = file.SerializeToString(deterministic=True)
        lines = [serialized[start : start + 72] for start in range(0, len(serialized), 72)]
        made[f"{stem}_pb2.py"] = "\n".join(
            [
                f'"""The classes of proto/{file.name}. Made by `{COMMAND}`."""',
                "",
                *(f"from yunikorn.wire.generated import {one}_pb2 as {one}_pb2" for one in imports),
                "from yunikorn.wire.descriptor_pool import define",
                "",
                "DESCRIPTOR = define(",
                *(f"    {line!r}" for line in lines),
                "    , globals())",
                "",
            ]
        )
        made[f"{stem}_pb2.pyi"] = f"# Types of proto/{file.name}. Made by `{COMMAND}`.\n" + typing_text(file)
    return made


def stale(wanted: dict[str, str], folder: Path) -> list[str]:
    """Return the files in a folder that are missing, different or no longer wanted."""
    found = {path.name: path.read_text("utf-8") for path in folder.glob("*_pb2.py*")}
    return sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))


def write(wanted: dict[str, str], folder: Path) -> None:
    """Update a folder so that its content is exactly these files."""
    for name in stale(wanted, folder):
        if name in wanted:
            (folder / name).write_text(wanted[name], "utf-8")
        else:
            (folder / name).unlink()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(prog=COMMAND, description="Make generated/ from the .proto files.")
    parser.add_argument("--check", action="store_true", help="only check whether generated/ is current")
    options = parser.parse_args(arguments)
    try:
        wanted = texts(compiled(PROTOS))
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


if __name__ == "__main__":
    sys.exit(main())
