"""Columns of the records of a history: their names, and their cells for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from yunikorn.errors import printable
from yunikorn.quantities import ordered
from yunikorn.text import suggest
from yunikorn_commands.text_columns import TextColumn
from yunikorn_history.history_kinds import HistoryKind
from yunikorn_history.time_words import time_in_zone
from yunikorn_rest.commands.answer_fields import NONE, amount_text, in_short
from yunikorn_service.fields import ShapeField, members_of

Record = Mapping[str, Any]
"""JSON object of a record."""
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
SERVICE = {"service", "lostService", "placeholderService", "placeholder", "lost"}
"""Fields with amounts times milliseconds."""
TITLES = {
    "applicationID": "application",
    "allocationKey": "task",
    "nodeID": "node",
    "longestWait": "waited for",
    "preemptedBy": "preempted by",
    "policyGroup": "policy group",
    "rmID": "resource manager",
    "service": "resource hours",
    "lostService": "lost hours",
    "placeholderService": "placeholder hours",
    "placeholder": "placeholder hours",
    "lost": "lost hours",
    "idle": "idle hours",
}
"""Titles of fields that are not their names."""
DEFAULTS = {
    "apps": "applicationID queue user state submitted waited ran tasks preempted? service? reason?",
    "tasks": "allocationKey applicationID queue user nodeID placed ran exit resource? preemptedBy? message?",
    "queues": "time name used pending running waiting started preempted guaranteed? max? partition? rmID?",
    "users": "time name used running waiting started partition? rmID?",
    "nodes": "nodeID joined left capacity partition? rmID? attributes?",
    "node-series": "time name used capacity drained partition? rmID?",
    "partition": "time partition? used pending capacity nodes running waiting started preempted idle? rmID?",
    "usage": "time queue user service started ended preempted groups? lost? placeholder?",
    "configs": "id time source by policyGroup? rmID? checksum?",
    "audit": "time operator role what target outcome reason? address?",
    "faults": "plugin latest count message first?",
    "runtimes": "user? queue? template? resource? tasks p50 p90 p95 p99",
    "runs": "id started seen ended version host",
    "gaps": "since until lost",
}
"""Columns of the table of each kind; those with a question mark are left out where there is no room."""
DURATIONS = {"p50", "p90", "p95", "p99"}
"""Fields with durations (ms)."""
SPANS = {"apps": {"waited": ("submitted", "started"), "ran": ("started", "ended")}}
SPANS["tasks"] = {"waited": ("requested", "placed"), "ran": ("placed", "ended")}
"""Columns with the time between two others, which are no fields."""


@attrs.frozen
class RecordColumn:
    """A column of the records of one kind."""

    name: str
    field: ShapeField | None = None
    """Field of the record; None for the time between two fields."""
    span: tuple[str, str] = ("", "")
    optional: bool = False

    @property
    def kind(self) -> Any:
        """Type of the values."""
        return int if self.field is None else self.field.type

    @property
    def is_time(self) -> bool:
        """True for a column of times (ms since 1970)."""
        return self.field is not None and self.field.description.endswith("(ms since 1970)")

    @property
    def is_service(self) -> bool:
        """True for a column of amounts times milliseconds."""
        return self.name in SERVICE and self.kind == Mapping[str, int]

    @property
    def is_number(self) -> bool:
        """True for a column that is aligned at the right."""
        return self.kind in (int, float) and not self.is_time

    def value(self, record: Record) -> Any:
        """Return the exact value, in milliseconds if it is a time; None if it is absent."""
        if self.field is not None:
            return record.get(self.name)
        begin, end = (record.get(name) for name in self.span)
        return None if begin is None or end is None else max(0, end - begin)

    def text(self, record: Record) -> str:
        """Return the exact value as a text; empty if it is absent."""
        value = self.value(record)
        if value is None or isinstance(value, str):
            return value or ""
        if self.is_time:
            return time_in_zone(value)
        plain = isinstance(value, (int, float)) and not isinstance(value, bool)
        return str(value) if plain else json.dumps(value, ensure_ascii=False)

    def cell(self, record: Record) -> str:
        """Return the value for people."""
        value = self.value(record)
        if value is None or value in ("", {}, []):
            return "0" if self.is_number and self.field is not None else NONE
        if self.is_time:
            return time_in_zone(value)
        if self.field is None or self.name in DURATIONS:
            return span_text(value)
        return printable(_words(self, value))

    def title(self) -> TextColumn:
        """Return the column of a table."""
        named = (
            self.name if self.name in SERVICE and not self.is_service else TITLES.get(self.name, self.name)
        )
        return TextColumn(named, right=self.is_number, whole=self.is_time, optional=self.optional)


def _words(column: RecordColumn, value: Any) -> str:
    if column.is_service:
        return _in_hours(value)
    if column.name == "idle":
        return "; ".join(f"{cause}: {_in_hours(amounts)}" for cause, amounts in value.items())
    if isinstance(value, dict):
        if all(isinstance(one, (int, float)) for one in value.values()):
            return ", ".join(f"{name} {amount_text(name, round(value[name]))}" for name in ordered(value))
        return ", ".join(f"{name}={one}" for name, one in value.items())
    if isinstance(value, list):
        return ", ".join(one if isinstance(one, str) else json.dumps(one) for one in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _in_hours(service: Mapping[str, int]) -> str:
    return in_short({name: amount // HOUR for name, amount in service.items()})


def span_text(milliseconds: int) -> str:
    """Return a duration as `5.2s`, `12m30s`, `3h20m` or `4d5h`."""
    if milliseconds < MINUTE:
        return f"{milliseconds / 1000:.3g}s"
    if milliseconds < HOUR:
        return f"{milliseconds // MINUTE}m{milliseconds // 1000 % 60}s"
    if milliseconds < DAY:
        return f"{milliseconds // HOUR}h{milliseconds // MINUTE % 60}m"
    return f"{milliseconds // DAY}d{milliseconds // HOUR % 24}h"


def columns_of(name: str, kind: HistoryKind) -> dict[str, RecordColumn]:
    """Return all columns of a kind."""
    found = {one.name: RecordColumn(one.name, one) for one in members_of(kind.shape)}
    return found | {one: RecordColumn(one, span=span) for one, span in SPANS.get(name, {}).items()}


def default_columns(name: str, kind: HistoryKind) -> list[RecordColumn]:
    """Return the columns of the table of a kind."""
    known = columns_of(name, kind)
    return [
        attrs.evolve(known[one.rstrip("?")], optional=one.endswith("?")) for one in DEFAULTS[name].split()
    ]


def chosen_columns(name: str, kind: HistoryKind, text: str) -> tuple[list[RecordColumn], list[str]]:
    """Return the columns that a text names, and all problems of the text."""
    known = columns_of(name, kind)
    by_name = {one.lower(): column for one, column in known.items()}
    by_name |= {title.lower(): known[one] for one, title in TITLES.items() if one in known}
    found, problems = [], []
    for part in filter(None, map(str.strip, text.split(","))):
        column = by_name.get(part.lower())
        if column is not None:
            found.append(column)
        else:
            near = suggest(part, known)
            problems.append(f"--columns: {part!r} is unknown{near}; known: {', '.join(known)}")
    return found, problems


def table_of(
    columns: Sequence[RecordColumn], records: Sequence[Record]
) -> tuple[list[TextColumn], list[list[str]]]:
    """Return the table of records."""
    return [one.title() for one in columns], [[one.cell(record) for one in columns] for record in records]
