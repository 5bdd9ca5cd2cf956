"""Reading of the JSON texts in tags and attributes; no text raises an exception out of a predicate.

Parsed forms are kept per distinct text. The caches are bounded, and pods of one template share their texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from yunikorn.api import Task
from yunikorn_kubernetes import names

TEXTS = 1024
"""Number of distinct texts whose parsed forms are kept, for each kind of text."""
SECTIONS = (
    names.NODE_SELECTOR,
    names.NODE_AFFINITY,
    names.TOLERATIONS,
    names.HOST_PORTS,
    names.TOPOLOGY_SPREAD,
    names.POD_AFFINITY,
    names.POD_ANTI_AFFINITY,
    names.RESOURCE_CLAIMS,
)
_INVALID = "!"
"""First character of the text of a section that cannot be read; the error text follows. No JSON begins so."""


class UnreadableText(ValueError):
    """A text does not have the expected form."""


def load(text: str) -> Any:
    """Return the value of a JSON text; raises `UnreadableText`."""
    if text.startswith(_INVALID):
        raise UnreadableText(text[1:])
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableText(f"invalid JSON: {error}") from None


@lru_cache(maxsize=TEXTS)
def _sections(text: str) -> Mapping[str, str]:
    """Return the JSON text of each section of the constraints."""
    try:
        table = table_of(load(text), "the constraints")
        return {
            name: json.dumps(value, sort_keys=True, separators=(",", ":")) for name, value in table.items()
        }
    except (UnreadableText, RecursionError) as error:
        return dict.fromkeys(SECTIONS, f"{_INVALID}{error}")


def section(task: Task, name: str) -> str:
    """Return the JSON text of one section of a pod's constraints; empty without it."""
    text = task.tags.get(names.TAG_CONSTRAINTS)
    return _sections(text).get(name, "") if text else ""


def invalid_constraints(what: str, fault: str) -> str:
    """Return the reason for a refusal because a section cannot be read."""
    return f"the pod's {what} cannot be read: {fault} (tag {names.TAG_CONSTRAINTS})"


# -- values of an expected type -------------------------------------------------------------------------


def table_of(value: Any, what: str) -> dict[str, Any]:
    """Return a JSON object; null counts as an empty one. Raises `UnreadableText`."""
    if value is None:
        return {}
    if type(value) is not dict:
        raise UnreadableText(f"{what} is {_shown(value)} instead of an object")
    return value


def entries_of(value: Any, what: str) -> list[Any]:
    """Return a JSON list; null counts as an empty one. Raises `UnreadableText`."""
    if value is None:
        return []
    if type(value) is not list:
        raise UnreadableText(f"{what} is {_shown(value)} instead of a list")
    return value


def tables_of(value: Any, what: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON list. Raises `UnreadableText`."""
    for entry in entries_of(value, what):
        yield table_of(entry, f"an entry of {what}")


def text_of(table: Mapping[str, Any], key: str) -> str:
    """Return a text of an object; empty without it. Raises `UnreadableText`."""
    value = table.get(key)
    if value is None:
        return ""
    if type(value) is not str:
        raise UnreadableText(f"{key} is {_shown(value)} instead of a text")
    return value


def texts_of(value: Any, what: str) -> list[str]:
    """Return a JSON list of texts. Raises `UnreadableText`."""
    found = entries_of(value, what)
    for entry in found:
        if type(entry) is not str:
            raise UnreadableText(f"an entry of {what} is {_shown(entry)} instead of a text")
    return found


def pairs_of(value: Any, what: str) -> list[tuple[str, str]]:
    """Return the entries of an object whose values are texts, by name. Raises `UnreadableText`."""
    table = table_of(value, what)
    return [(key, text_of(table, key)) for key in sorted(table)]


def whole_of(table: Mapping[str, Any], key: str, default: int) -> int:
    """Return a whole number of an object. Raises `UnreadableText`."""
    value = table.get(key)
    if value is None:
        return default
    if type(value) is not int:
        raise UnreadableText(f"{key} is {_shown(value)} instead of a whole number")
    return value


def _shown(value: Any) -> str:
    return repr(value)[:60]
