"""Subscriptions of event sinks: the types, details and reasons of the events that a sink wants.

A sink declares them by `wants` (`yunikorn.api.EventSink`). The union of all open sinks tells the event
recorder which events to make; each sink receives only its own selection (`docs/decisions/archive/0081`).
"""

from __future__ import annotations

from collections.abc import Iterable
from inspect import getattr_static
from typing import Any

import attrs

from yunikorn.containment import entries_of, safe_repr, text_or_none
from yunikorn.errors import OptionError
from yunikorn.event_types import DETAILS_OF_TYPE, EventType
from yunikorn.text import suggest


@attrs.frozen
class Wanted:
    """Selection of events."""

    everything: bool
    """True for all events; then the other fields are empty."""
    types: frozenset[str] = frozenset()
    """Types of which every event is wanted."""
    parts: frozenset[tuple[str, str]] = frozenset()
    """Further events, each as a type with a detail or a reason."""

    def __bool__(self) -> bool:
        return self.everything or bool(self.types) or bool(self.parts)

    def takes(self, kind: str, detail: str, reason: str = "") -> bool:
        """Return True for events of this type, with this detail and this reason."""
        return (
            self.everything
            or kind in self.types
            or (kind, detail) in self.parts
            or (bool(reason) and (kind, reason) in self.parts)
        )

    def takes_any(self, kind: str, details: Iterable[str]) -> bool:
        """Return True if events of this type with one of these details or reasons are wanted."""
        return self.everything or kind in self.types or any((kind, one) in self.parts for one in details)


EVERYTHING = Wanted(True)
NOTHING_WANTED = Wanted(False)


def union_of(several: Iterable[Wanted]) -> Wanted:
    """Return the selection of the events that are in any of these selections."""
    types: set[str] = set()
    parts: set[tuple[str, str]] = set()
    for one in several:
        if one.everything:
            return EVERYTHING
        types |= one.types
        parts |= one.parts
    return Wanted(False, frozenset(types), frozenset(part for part in parts if part[0] not in types))


def read_wants(said: object) -> Wanted:
    """Return the selection that a value of `wants` describes. Raises `OptionError` with all its problems."""
    if said is None:
        return EVERYTHING
    if not isinstance(said, (list, tuple, set, frozenset)):
        shown = safe_repr(said)
        raise OptionError(
            [("", f"wants must be None or a collection such as ('APP', 'NODE:NODE_ALLOC'), it is {shown}")]
        )
    types: set[str] = set()
    parts: set[tuple[str, str]] = set()
    problems: list[tuple[str, str]] = []
    for given in entries_of(said):
        one = text_or_none(given)
        if one is None:
            problems.append(("", f"wants contains {safe_repr(given)}, which is not a text"))
            continue
        kind, colon, detail = one.partition(":")
        problem = _problem_of(one, kind, detail if colon else None)
        if problem:
            problems.append(("", problem))
        elif colon:
            parts.add((kind, detail))
        else:
            types.add(kind)
    if problems:
        raise OptionError(problems)
    return union_of([Wanted(False, frozenset(types), frozenset(parts))])


def _problem_of(text: str, kind: str, detail: str | None) -> str:
    if kind not in EventType.__members__:
        known = ", ".join(EventType)
        return f"wants '{text}': no event type is called '{kind}'{suggest(kind, EventType)}; known: {known}"
    known_details = DETAILS_OF_TYPE[EventType[kind]]
    if detail is None or detail in known_details:
        return ""
    elsewhere = [str(other) for other, details in DETAILS_OF_TYPE.items() if detail in details]
    hint = f"; write '{elsewhere[0]}:{detail}'" if elsewhere else suggest(detail, known_details)
    return f"wants '{text}': events of type {kind} have no detail or reason '{detail}'{hint}"


def declared_wants(cls: type[Any]) -> Wanted | None:
    """Return the selection that a class attribute `wants` declares; None if each object decides.

    Raises `OptionError` as `read_wants`.
    """
    said = getattr_static(cls, "wants", None)
    if hasattr(type(said), "__get__"):  # a property, or an option of the class
        return None
    return read_wants(said)
