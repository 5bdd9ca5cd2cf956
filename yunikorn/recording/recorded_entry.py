"""One line of a recording, checked and converted to typed data.

There is one class per kind of content; messages use the classes of `yunikorn.interface`. Times and durations
are seconds with up to nine decimals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import attrs

from yunikorn.clock import SECOND
from yunikorn.config.durations import parse_duration
from yunikorn.errors import Problem
from yunikorn.framework.options import faults, make_converter
from yunikorn.framework.policy_calls import PolicyAnswer
from yunikorn.interface.callback import OPTIONAL
from yunikorn.interface.messages import UpdateRequest
from yunikorn.model.context import Timeouts
from yunikorn.resources import INT64_MAX
from yunikorn.text import suggest
from yunikorn.wire import callbacks, current, v0_11
from yunikorn.wire.generated import si_current_pb2, si_v0_11_pb2
from yunikorn.wire.json_form import from_json

_DATE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z")


def write_seconds(nanoseconds: int) -> str:
    """Return seconds as an exact JSON number: `0`, `3.2`, `0.000000001`."""
    whole, fraction = divmod(nanoseconds, SECOND)
    return f"{whole}.{fraction:09d}".rstrip("0").rstrip(".")


def read_seconds(value: object) -> int:
    """Return the nanoseconds of a number of seconds or a duration (`"1h30m"`); raises `ValueError`."""
    if isinstance(value, str):
        span = parse_duration(value)
    elif isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        try:
            exact = Decimal(value) * SECOND
            span = int(exact)
        except (InvalidOperation, OverflowError, ValueError) as error:
            raise ValueError(f"{value} is not a time") from error
        if span != exact:
            raise ValueError(f"{value} is finer than nanoseconds")
    else:
        raise ValueError("expected seconds as a number, or a duration such as 30s or 1h30m")
    if not 0 <= span <= INT64_MAX:
        raise ValueError(f"{value} is not a time from 0 to about 292 years")
    return span


def write_date(nanoseconds: int) -> str:
    """Return a time in nanoseconds since 1970 as a date: `2026-11-20T14:16:18.5Z`."""
    whole, fraction = divmod(nanoseconds, SECOND)
    date = datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    digits = f".{fraction:09d}".rstrip("0").rstrip(".")
    return f"{date}{digits}Z"


def read_date(text: str) -> int:
    """Return the nanoseconds since 1970 of a date in the form of `write_date`; raises `ValueError`."""
    match = _DATE.fullmatch(text)
    if match is None:
        raise ValueError(f"expected a date such as 2026-11-20T14:16:18.5Z, got {text!r}")
    whole = datetime.fromisoformat(match[1]).replace(tzinfo=UTC)
    moment = int(whole.timestamp()) * SECOND + int((match[2] or "").ljust(9, "0"))
    if moment < 0:
        raise ValueError(f"{text} is before 1970")
    return moment


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
class FailedApplication:
    """Request of an RM to fail an application."""

    application: str
    partition: str = ""
    reason: str = ""


@attrs.frozen
class QueueSwitch:
    """Stop or start of a queue."""

    queue: str
    partition: str = ""
    lasting: bool = False
    """True if a stop holds when the RM registers again."""


@attrs.frozen
class PartitionSwitch:
    """Stop or start of a partition."""

    partition: str = ""


@attrs.frozen
class NodeSwitch:
    """Drain of a node by an operator, or its end."""

    node: str
    partition: str = ""


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


@attrs.frozen
class RecordedPolicyAnswer(PolicyAnswer):
    """Answer of a policy that a worker called."""

    number: int = 0
    """Number of the call, from 1 in the order of the calls."""

    @property
    def answer(self) -> PolicyAnswer:
        """The answer without the number."""
        return PolicyAnswer(self.groups, self.change, self.reason, self.wait, self.why, self.failed)


Report = Callable[[Problem], None]
Reading = Callable[[object, str, Report], Any]
"""Function that converts the content of an entry at a path, and reports problems."""

_converter = make_converter()


@attrs.define
class RecordedEntry:
    """Entry of a recording, with its position in the file and in time."""

    number: int
    """Line number in the file, from 1."""
    kind: str
    content: Any
    """Message, list of updates, class of `recording_entries`, text or number, depending on the kind."""
    rm_id: str = ""
    at: int = 0
    """Nanoseconds since the start of the recorded core."""
    offered: tuple[str, ...] = ()
    """Optional methods of the callback that is passed with a registration."""
    predicates_in_force: tuple[str, ...] = ()
    """Installed predicates that the callback of a registration or another callback puts in force."""
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
    line = RecordedEntry(number, kind, KINDS[kind](document[kind], kind, report))
    _read_around(line, document, report)
    return line


def _read_around(line: RecordedEntry, document: Mapping[str, object], report: Report) -> None:
    line.at = _span(document["at"], "at", report) if "at" in document else -1
    if "rm" in document:
        line.rm_id = _text(document["rm"], "rm", report)
    if "callback" in document:
        line.offered = _methods(document["callback"], "callback", report)
        if line.kind != "register":
            text = "only allowed with register; reconnect and use_callback contain theirs"
            report(Problem("callback", text))
    if "predicates_in_force" in document:
        line.predicates_in_force = _names(document["predicates_in_force"], "predicates_in_force", report)
        if line.kind not in ("register", "reconnect", "use_callback"):
            text = "only allowed with register, reconnect and use_callback"
            report(Problem("predicates_in_force", text))
    if "within" in document:
        line.within = document["within"] is True
        if not isinstance(document["within"], bool):
            report(Problem("within", "expected true or false"))


AROUND = ("at", "rm", "callback", "predicates_in_force", "within")
"""Keys that may accompany the key of the kind."""


# -- contents ---------------------------------------------------------------------------------------------


def _text(value: object, path: str, report: Report) -> str:
    if isinstance(value, str):
        return value
    report(Problem(path, "expected text"))
    return ""


def _text_or_null(value: object, path: str, report: Report) -> str | None:
    return None if value is None else _text(value, path, report)


def _true(value: object, path: str, report: Report) -> bool:
    if value is not True:
        report(Problem(path, "expected true"))
    return True


def _span(value: object, path: str, report: Report) -> int:
    try:
        return read_seconds(value)
    except ValueError as error:
        report(Problem(path, str(error)))
        return 0


def _count(value: object, path: str, report: Report) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    report(Problem(path, "expected the maximum number of decisions: a whole number, or null for all"))
    return None


def _names(value: object, path: str, report: Report) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(name, str) and name for name in value):
        return tuple(value)
    report(Problem(path, "expected a list of names of predicates"))
    return ()


def _methods(value: object, path: str, report: Report) -> tuple[str, ...]:
    if not isinstance(value, list):
        report(Problem(path, f"expected a list of methods; known: {', '.join(OPTIONAL)}"))
        return ()
    for index, name in enumerate(value):
        if name not in OPTIONAL:
            hint = suggest(str(name), OPTIONAL)
            report(Problem(f"{path}[{index}]", f"unknown method{hint}; known: {', '.join(OPTIONAL)}"))
    return tuple(name for name in OPTIONAL if name in value)


def _structured(kind: type[Any]) -> Reading:
    def read(value: object, path: str, report: Report) -> Any:
        try:
            return _converter.structure(value, kind)
        except Exception as error:
            for place, what in faults(error):
                report(Problem(f"{path}{place}" if place[:1] in ("", ".", "[") else f"{path}.{place}", what))
            return None

    return read


def _beginning(value: object, path: str, report: Report) -> Beginning | None:
    begins: Beginning | None = _structured(Beginning)(value, path, report)
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
    part: Part | None = _structured(Part)(value, path, report)
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
    found: GroupConfiguration | None = _structured(GroupConfiguration)(value, path, report)
    if found is not None and found.hex is not None:
        try:
            bytes.fromhex(found.hex)
        except ValueError:
            report(Problem(f"{path}.hex", "expected bytes as hexadecimal digits"))
    return found


def _message(kind: Any, translate: Callable[[Any], Any]) -> Reading:
    def read(value: object, path: str, report: Report) -> Any:
        return translate(from_json(value, kind, path, report))

    return read


def _update(message: si_v0_11_pb2.UpdateRequest) -> list[UpdateRequest]:
    return [v0_11.UPDATE_REQUEST.from_wire(message)]


_old, _new = si_v0_11_pb2, si_current_pb2

KINDS: dict[str, Reading] = {
    "recording": _beginning,
    "part": _part,
    "configuration": _configuration,
    "register": _message(_old.RegisterResourceManagerRequest, v0_11.REGISTER_REQUEST.from_wire),
    "update": _message(_old.UpdateRequest, _update),
    "update_allocation": _message(_new.AllocationRequest, current.ALLOCATION_REQUEST.from_wire),
    "update_application": _message(_new.ApplicationRequest, current.APPLICATION_REQUEST.from_wire),
    "update_node": _message(_new.NodeRequest, current.NODE_REQUEST.from_wire),
    "schedule": _count,
    "advance": _span,
    "reload": _text_or_null,
    "update_configuration": _message(_old.UpdateConfigurationRequest, callbacks.CONFIGURATION.from_wire),
    "fail_application": _structured(FailedApplication),
    "pause": _text,
    "reconnect": _methods,
    "use_callback": _methods,
    "resync": _text,
    "stop": _true,
    "stop_queue": _structured(QueueSwitch),
    "start_queue": _structured(QueueSwitch),
    "stop_partition": _structured(PartitionSwitch),
    "start_partition": _structured(PartitionSwitch),
    "drain_node": _structured(NodeSwitch),
    "undrain_node": _structured(NodeSwitch),
    "register_plugin": _text,
    "unregister_plugin": _text,
    "fire_timers": _true,
    "policy_answer": _structured(RecordedPolicyAnswer),
    "close": _true,
    "answer": _structured(RecordedAnswer),
    "response": _message(_old.UpdateResponse, v0_11.UPDATE_RESPONSE.from_wire),
    "gap": _text,
}
"""Converter of the content by kind of entry."""

UPDATES = ("update", "update_allocation", "update_application", "update_node")
"""Kinds with updates; the content is a list in the order in which the core processes the updates."""
OF_NONE = (
    "recording",
    "part",
    "configuration",
    "schedule",
    "advance",
    "fire_timers",
    "policy_answer",
    "close",
    "gap",
)
"""Kinds that belong to no RM; every other kind belongs to one RM."""
