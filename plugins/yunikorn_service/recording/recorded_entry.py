"""One line of a recording, checked and converted to typed data.

A line with a call has its commands (`recorded_commands`); there is one class per other kind of content.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from yunikorn.config.durations import parse_duration
from yunikorn.errors import Problem
from yunikorn.interface.commands import WITH_CALLBACK, Command, Update
from yunikorn.interface.messages import UpdateRequest
from yunikorn.model.context import Timeouts
from yunikorn.text import suggest
from yunikorn_service.recording.recorded_callback import RecordedCallback, offered
from yunikorn_service.recording.recorded_commands import FORMS, read_methods
from yunikorn_service.recording.recorded_values import (
    Reading,
    Report,
    read_date,
    read_span,
    read_text,
    structured,
)
from yunikorn_service.wire import current, v0_11
from yunikorn_service.wire.codec import Decoder
from yunikorn_service.wire.json_form import from_json

VERSION = 1
"""Version of the recording format."""


@attrs.frozen
class Beginning:
    """Start of a core: its time, timeouts and policy groups."""

    version: int = VERSION
    start: str = "1970-01-01T00:00:00Z"
    yunikorn: str = ""
    """Version of the program that made the recording."""
    groups: list[str] | None = None
    """Policy groups that have a configuration; None if the core has no policy groups."""
    allow_rm_config: bool = True
    periods: dict[str, str | None] = attrs.Factory(dict)
    """Timeouts that differ from the defaults, as durations; None for no timeout."""
    workers: bool = False
    """True if workers called policies that may block; their answers are lines of their own."""


@attrs.frozen
class Part:
    """Start of a further file in the recording of a core."""

    number: int
    """Number of the file; the file with the core's start has number 1."""
    start: str
    """Start time of the core, as in its `Beginning`."""
    version: int = VERSION


@attrs.frozen
class GroupConfiguration:
    """Configuration of a policy group from this line on."""

    group: str = ""
    text: str | None = None
    hex: str | None = None
    """Configuration in hexadecimal, if it is not UTF-8 text."""
    error: str | None = None
    """Reason why the configuration could not be read."""


@attrs.frozen
class RecordedAnswer:
    """Answer of an RM to a question of the core, or the exception raised instead."""

    method: str
    allocation: str = ""
    application: str = ""
    nodes: list[str] = attrs.Factory(list)
    allocate: bool = True
    refused: dict[str, str] = attrs.Factory(dict)
    """Nodes that must not take the request, with reasons."""
    success: bool = True
    reason: str = ""
    """Reason why a configuration was not saved."""
    raised: str | None = None
    """`TYPE: TEXT` of the raised exception."""
    useless: str | None = None
    """`repr` of an invalid answer."""


@attrs.define
class RecordedEntry:
    """Entry of a recording, with its position in the file and in time."""

    number: int
    """Line number in the file, from 1."""
    kind: str
    content: Any = None
    """Response, class of this module, text or number, depending on the kind; None for commands."""
    commands: list[Command[Any]] = attrs.Factory(list)
    """Commands of a call, in the order in which the core applies them; none for other lines."""
    rm_id: str = ""
    at: int = 0
    """Nanoseconds since the start of the recorded core."""
    within: bool = False
    """True if a callback made this call while it processed the response on the previous line."""
    file: str = ""
    """File name, if the recording has several files."""

    @property
    def place(self) -> str:
        """Position for use in messages."""
        return f"{self.file}: line {self.number}" if self.file else f"line {self.number}"


def read_line(document: object, number: int, report: Report) -> RecordedEntry | None:
    """Convert the JSON object of a line; returns None for a line that cannot be played.

    The time of the entry is -1 if the line has no `at`. Problems are reported with their path in the line.
    """
    if not isinstance(document, Mapping):
        report(Problem("", 'a line must be an object, such as {"schedule": 10}'))
        return None
    kinds = [key for key in document if key in KINDS]
    known = [*KINDS, *AROUND]
    unknown = [str(key) for key in document if key not in known]
    for key in unknown:
        report(Problem(key, f"unknown key{suggest(key, known)}; known: {', '.join(known)}"))
    if unknown and not kinds:
        return None
    if len(kinds) != 1:
        what = " and ".join(kinds) if kinds else "none"
        report(Problem("", f"a line must contain exactly one entry, got {what}; known: {', '.join(KINDS)}"))
        return None
    (kind,) = kinds
    found = KINDS[kind](document[kind], kind, report)
    line = RecordedEntry(number, kind)
    if isinstance(found, Command):
        line.commands = [found]
    elif isinstance(found, list):
        line.commands = found
    else:
        line.content = found
    _read_around(line, document, report)
    return line


def _read_around(line: RecordedEntry, document: Mapping[str, object], report: Report) -> None:
    line.at = read_span(document["at"], "at", report) if "at" in document else -1
    if "rm" in document:
        line.rm_id = read_text(document["rm"], "rm", report)
    if "callback" in document:
        methods = read_methods(document["callback"], "callback", report)
        if line.kind == "register":
            _complete_callback(line, methods=methods)
        else:
            text = "only allowed with register; reconnect and use_callback contain theirs"
            report(Problem("callback", text))
    if "predicates_in_force" in document:
        names = _names(document["predicates_in_force"], "predicates_in_force", report)
        if line.kind in ("register", "reconnect", "use_callback"):
            _complete_callback(line, predicates_in_force=names)
        else:
            text = "only allowed with register, reconnect and use_callback"
            report(Problem("predicates_in_force", text))
    if "within" in document:
        line.within = document["within"] is True
        if not isinstance(document["within"], bool):
            report(Problem("within", "expected true or false"))


def _complete_callback(line: RecordedEntry, **offers: tuple[str, ...]) -> None:
    """Add to a command what its callback offers, as other keys of the line say."""
    (command,) = line.commands
    assert isinstance(command, WITH_CALLBACK)
    callback: RecordedCallback = attrs.evolve(offered(command.callback), **offers)
    line.commands = [attrs.evolve(command, callback=callback)]


AROUND = ("at", "rm", "callback", "predicates_in_force", "within")
"""Keys that may accompany the key of the kind."""


# -- contents ---------------------------------------------------------------------------------------------


def _names(value: object, path: str, report: Report) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(name, str) and name for name in value):
        return tuple(value)
    report(Problem(path, "expected a list of names of predicates"))
    return ()


def _beginning(value: object, path: str, report: Report) -> Beginning | None:
    begins: Beginning | None = structured(Beginning)(value, path, report)
    if begins is None:
        return None
    _check_origin(begins, path, report)
    known = attrs.fields_dict(Timeouts)
    for name, text in begins.periods.items():
        inner = f"{path}.periods.{name}"
        if name not in known:
            report(Problem(inner, f"unknown period{suggest(name, known)}; known: {', '.join(known)}"))
        elif text is None:
            if known[name].type not in ("int | None", int | None):
                report(Problem(inner, "expected a duration"))
        else:
            try:
                parse_duration(text)
            except ValueError as error:
                report(Problem(inner, str(error)))
    return begins


def _part(value: object, path: str, report: Report) -> Part | None:
    part: Part | None = structured(Part)(value, path, report)
    if part is not None:
        _check_origin(part, path, report)
    return part


def _check_origin(found: Beginning | Part, path: str, report: Report) -> None:
    if found.version != VERSION:
        report(Problem(f"{path}.version", f"is {found.version}; this version reads {VERSION} only"))
    try:
        read_date(found.start)
    except ValueError as error:
        report(Problem(f"{path}.start", str(error)))


def _configuration(value: object, path: str, report: Report) -> GroupConfiguration | None:
    found: GroupConfiguration | None = structured(GroupConfiguration)(value, path, report)
    if found is not None and found.hex is not None:
        try:
            bytes.fromhex(found.hex)
        except ValueError:
            report(Problem(f"{path}.hex", "expected bytes as hexadecimal digits"))
    return found


def _updates(codec: Decoder[list[UpdateRequest], Any]) -> Reading:
    """Return the reader of a message of the newer layout, which may stand for several updates."""

    def read(value: object, path: str, report: Report) -> list[Update]:
        return [Update(request) for request in codec.from_wire(from_json(value, codec.wire, path, report))]

    return read


def _response(value: object, path: str, report: Report) -> object:
    codec = v0_11.UPDATE_RESPONSE
    return codec.from_wire(from_json(value, codec.wire, path, report))


KINDS: dict[str, Reading] = {
    "recording": _beginning,
    "part": _part,
    "configuration": _configuration,
    **{form.key: form.read for form in FORMS},
    "update_allocation": _updates(current.ALLOCATION_REQUEST),
    "update_application": _updates(current.APPLICATION_REQUEST),
    "update_node": _updates(current.NODE_REQUEST),
    "advance": read_span,
    "answer": structured(RecordedAnswer),
    "response": _response,
    "gap": read_text,
}
"""Reader by kind of entry: of a command, of several updates, or of another content."""

OF_NONE = {
    *("recording", "part", "configuration", "advance", "gap"),
    *(form.key for form in FORMS if not hasattr(form.command, "rm_id")),
}
"""Kinds that belong to no RM; every other kind belongs to one RM."""
