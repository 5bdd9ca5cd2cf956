"""Every call that can change a scheduler is a command, and every command is recorded."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yunikorn.clock import ManualClock
from yunikorn.errors import UsageError
from yunikorn.framework.policy_calls import ApplicationChange, PolicyAnswer
from yunikorn.framework.registry import Registry
from yunikorn.interface import commands, operator_commands
from yunikorn.interface.callback import OPTIONAL
from yunikorn.interface.commands import Answer, Command, RegisterResourceManager, SessionCommand, Update
from yunikorn.interface.messages import (
    RegisterResourceManagerRequest,
    UpdateConfigurationRequest,
    UpdateRequest,
    UpdateResponse,
)
from yunikorn.interface.operator_commands import StopQueue
from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.owner_usage import UsageCredit
from yunikorn_service.recording.recorded_callback import RecordedCallback
from yunikorn_service.recording.recorded_commands import FORMS, write_command
from yunikorn_service.recording.recording_reader import parse_recording
from yunikorn_service.recording.recording_writer import RecordingWriter

WITHOUT_EFFECT = {
    "all_partitions",
    "change_settings",
    "check_configuration",
    "configuration",
    "discard_reloads",
    "explain",
    "explaining",
    "first_reasons",
    "load_ahead",
    "next_timer",
    "operation",
    "origin_of",
    "partition",
    "partitions",
    "plugins",
    "prepare_reload",
    "session",
    "session_state",
    "sessions",
}
"""Members that change nothing a decision depends on."""


def concrete(base: type[Command[Any]]) -> Iterator[type[Command[Any]]]:
    """Yield the classes of commands in the project."""
    for cls in base.__subclasses__():
        if cls is not SessionCommand and cls.__module__ in (commands.__name__, operator_commands.__name__):
            yield cls
        yield from concrete(cls)


COMMANDS = sorted(set(concrete(Command)), key=lambda cls: cls.__name__)  # type: ignore[type-abstract]


class Noting(Scheduler):
    """Notes the commands, and applies none."""

    def apply(self, command: Command[Answer]) -> Answer:
        raise Made(command)


class Made(Exception):
    """Notice of a command that a method has made."""

    def __init__(self, command: Command[Any]) -> None:
        self.command = command


def test_every_method_of_a_scheduler_makes_a_command_or_has_no_effect() -> None:
    methods = {name for name in dir(Scheduler) if not name.startswith("_")}
    assert methods == {"apply", *(cls.method() for cls in COMMANDS), *WITHOUT_EFFECT}


@pytest.mark.parametrize("cls", COMMANDS, ids=lambda cls: cls.__name__)
def test_method_makes_the_command_of_its_name(cls: type[Command[Any]]) -> None:
    scheduler = Noting(Registry(), ManualClock())
    method = getattr(scheduler, cls.method())
    given = {name: object() for name in inspect.signature(method).parameters}
    with pytest.raises(Made) as made:
        method(**given)
    assert type(made.value.command) is cls
    fields = attrs.asdict(made.value.command, recurse=False).values()
    assert sorted(map(id, fields)) == sorted(map(id, given.values()))


def test_every_command_has_its_line() -> None:
    assert {form.command for form in FORMS} == set(COMMANDS)
    assert len({form.key for form in FORMS}) == len(FORMS) == len(COMMANDS)


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
CALLBACKS = st.builds(
    RecordedCallback,
    st.sets(st.sampled_from(OPTIONAL)).map(lambda found: tuple(one for one in OPTIONAL if one in found)),
    st.lists(NAMES.filter(bool), max_size=2, unique=True).map(tuple),
)
CHANGES = st.builds(
    ApplicationChange, NAMES, st.dictionaries(NAMES, NAMES, max_size=2), st.none() | st.integers(-9, 9)
)
ANSWERS = st.builds(
    PolicyAnswer,
    groups=st.none() | st.lists(NAMES, max_size=2),
    change=st.none() | CHANGES,
    reason=st.none() | NAMES,
    wait=st.none() | st.integers(1, 10**18),
    why=NAMES,
    failed=st.none() | NAMES,
)
CREDITS = st.builds(
    UsageCredit,
    rm=NAMES,
    partition=NAMES,
    queue=NAMES,
    user=NAMES,
    since=st.integers(0, 10**18),
    until=st.integers(10**18 + 1, 10**19),
    service=st.dictionaries(NAMES, st.integers(0, 10**30), max_size=2),
    groups=st.lists(NAMES, max_size=2).map(tuple),
    tags=st.dictionaries(NAMES, NAMES, max_size=2),
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "rm_id": NAMES.filter(bool),
    "callback": CALLBACKS,
    "plugin": st.none(),
    "max_decisions": st.none() | st.integers(0, 1000),
    "text": st.none() | NAMES,
    "number": st.integers(1, 10**6),
    "answer": ANSWERS,
    "lasting": st.booleans(),
    "credits": st.lists(CREDITS, max_size=2).map(tuple),
    "known": st.integers(0, 10**19),
}
"""Values of fields by name; the other fields are texts."""
REQUESTS: dict[str, st.SearchStrategy[Any]] = {
    "RegisterResourceManager": st.builds(
        RegisterResourceManagerRequest, rm_id=NAMES.filter(bool), version=NAMES, config=NAMES
    ),
    "Update": st.builds(UpdateRequest, rm_id=NAMES.filter(bool)),
    "UpdateConfiguration": st.builds(UpdateConfigurationRequest, configs=NAMES),
}


def drawn(cls: type[Command[Any]]) -> st.SearchStrategy[Command[Any]]:
    """Return a strategy for commands of one class."""
    named = {
        field.name: REQUESTS[cls.__name__] if field.name == "request" else VALUES.get(field.name, NAMES)
        for field in attrs.fields(cls)
    }
    return st.builds(cls, **named)


@pytest.mark.parametrize("cls", COMMANDS, ids=lambda cls: cls.__name__)
@given(data=st.data())
def test_command_is_read_as_it_was_written(cls: type[Command[Any]], data: st.DataObject) -> None:
    command = data.draw(drawn(cls))
    line = json.dumps(write_command(command), ensure_ascii=False).encode()
    (entry,) = parse_recording(line, "file").lines
    assert entry.commands == [command]
    assert entry.rm_id == getattr(command, "rm_id", "")


def test_bytes_are_recorded_as_text() -> None:
    assert write_command(commands.ReloadConfiguration("rm", b"a\xff")) == {"rm": "rm", "reload": "a\ufffd"}


def test_flags_of_a_command_are_written_if_they_are_set() -> None:
    stop = {"queue": "root.a", "partition": "default"}
    assert write_command(StopQueue("rm", "root.a", partition="default")) == {"rm": "rm", "stop_queue": stop}
    assert write_command(StopQueue("rm", "root.a", partition="default", lasting=True)) == {
        "rm": "rm",
        "stop_queue": {**stop, "lasting": True},
    }


def test_content_cannot_name_the_resource_manager() -> None:
    with pytest.raises(Exception, match=re.escape("file: drain_node.rm_id (line 1): unknown key")):
        parse_recording(b'{"rm": "rm", "drain_node": {"node": "n", "rm_id": "other"}}', "file")


def test_commands_that_no_line_can_hold_leave_a_gap(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "file", pytest.fail)
    writer.on_call(0, Update(UpdateRequest("rm", asks=[None])))  # type: ignore[list-item]
    writer.close()
    (line,) = (tmp_path / "file").read_text().splitlines()
    assert json.loads(line)["gap"].startswith("update with a value that no message can represent: ")


def test_recorded_callback_receives_no_response() -> None:
    command = RegisterResourceManager(RegisterResourceManagerRequest("rm"), RecordedCallback())
    with pytest.raises(UsageError, match="give the command another callback"):
        command.callback.recv_update_response(UpdateResponse())
