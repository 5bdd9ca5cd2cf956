"""Commands in the lines of a recording: the key of each, and how its content is written and read.

The fields of a command are the content under its key, except for the id of the resource manager, which is a
key of the line. See "The format" in `docs/replay.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from yunikorn.errors import Problem
from yunikorn.framework.options import UNKNOWN_KEY
from yunikorn.framework.policy_calls import PolicyAnswer
from yunikorn.interface import commands, operator_commands
from yunikorn.interface.callback import OPTIONAL
from yunikorn.interface.commands import WITH_CALLBACK, Command, SessionCommand
from yunikorn.text import suggest
from yunikorn_service.recording.recorded_callback import RecordedCallback, offered
from yunikorn_service.recording.recorded_values import (
    Reading,
    Report,
    read_text,
    read_text_or_null,
    read_true,
    structured,
)
from yunikorn_service.wire import callbacks, v0_11
from yunikorn_service.wire.codec import Codec
from yunikorn_service.wire.json_form import from_json, to_json

Content = dict[str, Any]


@attrs.frozen
class CommandForm:
    """Form of the commands of one class in a line."""

    command: type[Command[Any]]
    key: str
    write: Callable[[Any], object]
    """Returns the content of a command, for JSON."""
    read: Reading
    """Returns the command of a content, without the id of its resource manager; None after a problem."""


# -- forms that follow from the fields -----------------------------------------------------------------------


def _given_elsewhere(command: type[Command[Any]]) -> Content:
    """Return substitutes for the fields of a command that are not part of its content."""
    substitutes = {"rm_id": "", "plugin": None, "callback": RecordedCallback()}
    return {name: substitutes[name] for name in attrs.fields_dict(command) if name in substitutes}


def _flag(command: type[Command[Any]], key: str) -> CommandForm:
    """Return the form of a command without content."""

    def read(value: object, path: str, report: Report) -> Command[Any]:
        read_true(value, path, report)
        return command(**_given_elsewhere(command))

    return CommandForm(command, key, lambda _: True, read)


def _value(
    command: type[Command[Any]],
    key: str,
    field: str,
    read_value: Reading,
    write_value: Callable[[Any], object] = lambda value: value,
) -> CommandForm:
    """Return the form of a command whose content is the value of one field."""

    def read(value: object, path: str, report: Report) -> Command[Any]:
        return command(**{**_given_elsewhere(command), field: read_value(value, path, report)})

    return CommandForm(command, key, lambda one: write_value(getattr(one, field)), read)


def _message(command: type[Command[Any]], key: str, codec: Codec[Any, Any]) -> CommandForm:
    """Return the form of a command whose content is its request, in protobuf's JSON form."""

    def read(value: object, path: str, report: Report) -> object:
        return codec.from_wire(from_json(value, codec.wire, path, report))

    return _value(command, key, "request", read, lambda request: to_json(codec.to_wire(request)))


def _is_written(field: attrs.Attribute[Any], value: object) -> bool:
    """Return True for a field of the content, unless it is a flag with its default."""
    return field.name != "rm_id" and not (isinstance(value, bool) and value == field.default)


def _object(command: type[Command[Any]], key: str) -> CommandForm:
    """Return the form of a command whose content is an object with its fields; a flag is written if set."""
    read_fields = structured(command)

    def write(one: Command[Any]) -> Content:
        return attrs.asdict(one, filter=_is_written)

    def read(value: object, path: str, report: Report) -> Command[Any] | None:
        if isinstance(value, dict):
            if "rm_id" in value:
                report(Problem(f"{path}.rm_id", UNKNOWN_KEY))
            value = {**value, **_given_elsewhere(command)}
        found: Command[Any] | None = read_fields(value, path, report)
        return found

    return CommandForm(command, key, write, read)


# -- values of their own -------------------------------------------------------------------------------------


def read_methods(value: object, path: str, report: Report) -> tuple[str, ...]:
    """Return a list of optional methods of a callback, in a fixed order."""
    if not isinstance(value, list):
        report(Problem(path, f"expected a list of methods; known: {', '.join(OPTIONAL)}"))
        return ()
    for index, name in enumerate(value):
        if name not in OPTIONAL:
            hint = suggest(str(name), OPTIONAL)
            report(Problem(f"{path}[{index}]", f"unknown method{hint}; known: {', '.join(OPTIONAL)}"))
    return tuple(name for name in OPTIONAL if name in value)


def _read_most(value: object, path: str, report: Report) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    report(Problem(path, "expected the maximum number of decisions: a whole number, or null for all"))
    return None


def _read_callback(value: object, path: str, report: Report) -> RecordedCallback:
    return RecordedCallback(read_methods(value, path, report))


def _write_callback(callback: object) -> list[str]:
    return list(offered(callback).methods)


def _write_text(text: str | bytes | None) -> str | None:
    return text.decode(errors="replace") if isinstance(text, bytes) else text


def _write_policy_answer(command: commands.TakePolicyAnswer) -> Content:
    given = attrs.asdict(command.answer, filter=lambda field, value: value != field.default)
    return {"number": command.number, **given}


_read_number, _read_answer = structured(int), structured(PolicyAnswer)


def _read_policy_answer(value: object, path: str, report: Report) -> commands.TakePolicyAnswer | None:
    number: object = 0
    if isinstance(value, dict):
        number = value.get("number", 0)
        value = {key: given for key, given in value.items() if key != "number"}
    answer = _read_answer(value, path, report)
    whole = _read_number(number, f"{path}.number", report)
    return None if answer is None or whole is None else commands.TakePolicyAnswer(whole, answer)


# -- the table -----------------------------------------------------------------------------------------------

FORMS = (
    _message(commands.RegisterResourceManager, "register", v0_11.REGISTER_REQUEST),
    _message(commands.Update, "update", v0_11.UPDATE_REQUEST),
    _value(commands.Schedule, "schedule", "max_decisions", _read_most),
    _value(commands.ReloadConfiguration, "reload", "text", read_text_or_null, _write_text),
    _object(commands.CreditUsage, "credit_usage"),
    _message(commands.UpdateConfiguration, "update_configuration", callbacks.CONFIGURATION),
    _object(operator_commands.FailApplication, "fail_application"),
    _value(commands.Pause, "pause", "reason", read_text),
    _value(commands.Reconnect, "reconnect", "callback", _read_callback, _write_callback),
    _value(commands.UseCallback, "use_callback", "callback", _read_callback, _write_callback),
    _value(commands.Resync, "resync", "reason", read_text),
    _flag(commands.Stop, "stop"),
    _object(operator_commands.StopQueue, "stop_queue"),
    _object(operator_commands.StartQueue, "start_queue"),
    _object(operator_commands.StopPartition, "stop_partition"),
    _object(operator_commands.StartPartition, "start_partition"),
    _object(operator_commands.DrainNode, "drain_node"),
    _object(operator_commands.UndrainNode, "undrain_node"),
    _value(commands.RegisterPlugin, "register_plugin", "name", read_text),
    _value(commands.UnregisterPlugin, "unregister_plugin", "name", read_text),
    _flag(commands.FireTimers, "fire_timers"),
    _object(commands.Wake, "wake"),
    CommandForm(commands.TakePolicyAnswer, "policy_answer", _write_policy_answer, _read_policy_answer),
    _flag(commands.Close, "close"),
)
"""Forms of all commands."""

_BY_COMMAND = {form.command: form for form in FORMS}


def write_command(command: Command[Any]) -> Content:
    """Return the line of a command; raises an error of `UNSAYABLE` if no message can represent it."""
    form = _BY_COMMAND[type(command)]
    content: Content = {"rm": command.rm_id} if hasattr(command, "rm_id") else {}
    content[form.key] = form.write(command)
    if isinstance(command, WITH_CALLBACK):
        callback = offered(command.callback)
        if callback.methods and isinstance(command, commands.RegisterResourceManager):
            content["callback"] = list(callback.methods)
        if callback.predicates_in_force:
            content["predicates_in_force"] = list(callback.predicates_in_force)
    return content


def addressed(command: Command[Any], rm_id: str) -> Command[Any]:
    """Return a command that was read, with the id of its resource manager."""
    if isinstance(command, (commands.RegisterResourceManager, commands.Update)):
        command.request.rm_id = rm_id
        return command
    return attrs.evolve(command, rm_id=rm_id) if isinstance(command, SessionCommand) else command
