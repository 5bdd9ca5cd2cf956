"""All published fields are in our declarations, with number and type; our own fields use other numbers."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)
from grpc_tools import protoc

from yunikorn_service.wire import protocol
from yunikorn_service.wire.generated import callbacks_pb2, si_current_pb2, si_v0_11_pb2
from yunikorn_service.wire.protocol import POOL

PUBLISHED = Path(__file__).parent / "published"
OURS = {"si_v0_11.proto": si_v0_11_pb2.DESCRIPTOR, "si_current.proto": si_current_pb2.DESCRIPTOR}
NEWER = {
    # Fields of the newer layout with these very numbers.
    ("RegisterResourceManagerRequest", "buildInfo"),
    ("RegisterResourceManagerRequest", "config"),
    ("RegisterResourceManagerRequest", "extraConfig"),
    ("Allocation", "originator"),
    ("Allocation", "preemptionPolicy"),
    ("AllocationRelease", "allocationKey"),
}
Place = tuple[str, str]
AskClass = tuple[int, str, bool]


@cache
def published(name: str) -> FileDescriptorProto:
    """Return the descriptor of a published file, as protoc generates it."""
    own = Path(protoc.__file__).parent / "_proto"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "set"
        assert protoc.main(["protoc", f"-I{PUBLISHED}", f"-I{own}", f"--descriptor_set_out={out}", name]) == 0
        (file,) = FileDescriptorSet.FromString(out.read_bytes()).file
    return file


def ours(name: str) -> FileDescriptorProto:
    """Return the descriptor of our file for the same layout."""
    file = FileDescriptorProto()
    OURS[name].CopyToProto(file)
    return file


def messages(file: FileDescriptorProto) -> dict[str, DescriptorProto]:
    """Return the messages of a file, including the entries of maps, as `Resource.ResourcesEntry`."""
    found = {message.name: message for message in file.message_type}
    for message in file.message_type:
        found.update({f"{message.name}.{inner.name}": inner for inner in message.nested_type})
    return found


def fields(file: FileDescriptorProto) -> dict[Place, AskClass]:
    """Return number, type and repeated flag of every field of every message."""
    return {
        (name, field.name): (
            field.number,
            field.type_name.removeprefix(f".{file.package}.") or FieldDescriptorProto.Type.Name(field.type),
            field.label == FieldDescriptorProto.LABEL_REPEATED,
        )
        for name, message in messages(file).items()
        for field in message.field
    }


def enums(file: FileDescriptorProto) -> dict[Place, int]:
    """Return the numbers of all values of all enums, including nested ones."""

    def found() -> Iterator[tuple[str, EnumDescriptorProto]]:
        yield from ((enum.name, enum) for enum in file.enum_type)
        for name, message in messages(file).items():
            yield from ((f"{name}.{enum.name}", enum) for enum in message.enum_type)

    return {(name, value.name): value.number for name, enum in found() for value in enum.value}


def called(file: FileDescriptorProto) -> set[str]:
    """Return the request and response messages of the service, with all messages they contain."""
    by_name = messages(file)
    waiting = [
        name.removeprefix(f".{file.package}.")
        for service in file.service
        for method in service.method
        for name in (method.input_type, method.output_type)
    ]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in by_name and name not in found:
            found.add(name)
            waiting += [field.type_name.removeprefix(f".{file.package}.") for field in by_name[name].field]
    return found


@pytest.mark.parametrize("name", OURS)
def test_every_published_field_has_its_number_and_type(name: str) -> None:
    there, here = fields(published(name)), fields(ours(name))
    wanted = there if name == "si_v0_11.proto" else {}
    used = called(published(name))
    wanted = wanted or {place: ask_class for place, ask_class in there.items() if place[0] in used}
    assert len(wanted) > 50
    assert {place: here.get(place) for place in wanted} == wanted


@pytest.mark.parametrize("name", OURS)
def test_every_published_value_of_an_enum_has_its_number(name: str) -> None:
    there, here = enums(published(name)), enums(ours(name))
    known = {enum for enum, _ in here}
    wanted = {place: number for place, number in there.items() if place[0] in known}
    assert {place: here.get(place) for place in wanted} == wanted
    missing = {enum for enum, _ in there} - known
    assert missing == (set() if name == "si_v0_11.proto" else missing - {"TerminationType"})


@pytest.mark.parametrize("name", OURS)
def test_our_fields_use_distinct_numbers(name: str) -> None:
    there, here = fields(published(name)), fields(ours(name))
    known = set(messages(published(name)))
    added = {
        place: ask_class[0]
        for place, ask_class in here.items()
        if place not in there and place[0] in known and place not in NEWER
    }
    assert all(number >= 1000 for number in added.values()), added
    values = {place: number for place, number in enums(ours(name)).items() if place[0] in enum_names(name)}
    added = {place: number for place, number in values.items() if place not in enums(published(name))}
    if name == "si_current.proto":
        assert added.pop(EXPECTED) == 5
    assert all(number >= 1000 for number in added.values())


EXPECTED = ("TerminationType", "SCHEDULING_FAILED_ON_RM")
"""Value that the next published file has, with the number that follows the last.

See docs/decisions/archive/0120.
"""


def enum_names(name: str) -> set[str]:
    """Return the enums of a published file."""
    return {enum for enum, _ in enums(published(name))}


def test_newer_fields_in_the_old_layout_are_those_of_the_newer_one() -> None:
    current, old = fields(published("si_current.proto")), fields(ours("si_v0_11.proto"))
    assert {place: old[place] for place in NEWER} == {place: current[place] for place in NEWER}


def test_the_option_for_secrets_is_declared_once() -> None:
    extensions = [
        extension
        for file in ("si_secret.proto", "si_v0_11.proto", "si_current.proto", "callbacks.proto")
        for extension in POOL.FindFileByName(file).extensions_by_name.values()
    ]
    assert [(one.full_name, one.number) for one in extensions] == [("yunikorn.wire.si_secret", 1059)]


def test_the_service_has_the_published_methods_of_both_layouts() -> None:
    service = POOL.FindServiceByName(protocol.SCHEDULER)
    found = {
        method.name: (method.client_streaming, method.server_streaming, method.input_type.name)
        for method in service.methods
    }
    wanted = {
        method.name: (
            method.client_streaming,
            method.server_streaming,
            method.input_type.rpartition(".")[2],
        )
        for name in OURS
        for method in published(name).service[0].method
    }
    assert found == wanted
    assert set(found) == {
        protocol.REGISTER,
        protocol.UPDATE,
        protocol.UPDATE_ALLOCATION,
        protocol.UPDATE_APPLICATION,
        protocol.UPDATE_NODE,
    }


def test_callback_service_has_the_name_of_its_file() -> None:
    (service,) = callbacks_pb2.DESCRIPTOR.services_by_name.values()
    assert (service.full_name, [method.name for method in service.methods]) == (
        protocol.CALLBACKS,
        [protocol.CONNECT],
    )
    assert protocol.path(protocol.CALLBACKS, protocol.CONNECT) == "/yunikorn.shim.v1.Callbacks/Connect"
