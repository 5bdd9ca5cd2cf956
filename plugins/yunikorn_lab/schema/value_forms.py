"""Descriptions of the kinds of values in queues.yaml: words, JSON Schema, and notation of defaults.

The schema of a kind accepts everything that `yunikorn validate` accepts without a problem or a warning. It
describes the output of a YAML parser, so a text may also be a number or a boolean (see
`docs/decisions/archive/0001`). It may accept more: constraints that need the whole file, such as sums,
references to names, or a number in quotes, are only checked by `yunikorn validate`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

import attrs

from yunikorn.config import values
from yunikorn.config.acl import GROUP, QUEUE, USER
from yunikorn.config.durations import spell_duration
from yunikorn.config.values import INT32, NEVER, Value
from yunikorn.config.yaml_reading import UINT64_MAX
from yunikorn.framework.kinds import DOOR, RESERVATION, RESOLVER
from yunikorn.quantities import SUFFIXES
from yunikorn.resources import INT64_MAX

Schema = dict[str, Any]


@attrs.frozen(eq=False)
class ValueForm:
    """Description of a kind of value."""

    words: str
    """Description on the reference page, in Markdown."""
    schema: Mapping[str, Any] = attrs.field(factory=dict)
    spell: Callable[[Any], str] = str
    """Conversion of a default to the notation of a configuration."""


def pattern(regular: str) -> Schema:
    """Return the schema of a text that matches as a whole."""
    # JSON Schema does not support \Z; the marks around the expression anchor both ends.
    whole = regular.removesuffix(r"\Z")
    return {"type": "string", "pattern": f"^(?:{whole})$"}


def any_of(*schemas: Mapping[str, Any]) -> Schema:
    """Return the schema of values that match at least one of `schemas`."""
    return {"anyOf": [dict(schema) for schema in schemas]}


def in_any_case(word: str) -> str:
    """Return a regular expression for a word in any case; JSON Schema has no flag for that."""
    return "".join(f"[{letter.upper()}{letter.lower()}]" if letter.isalpha() else letter for letter in word)


def _whole(low: int, high: int) -> Schema:
    return {"type": "integer", "minimum": low, "maximum": high}


def _quantity(also: str = "") -> Schema:
    suffixes = "|".join(filter(None, SUFFIXES))
    return any_of(_whole(0, INT64_MAX), pattern(rf"\s*[0-9]+\s*(?:{suffixes}{also})?\s*"))


def _listed(entry: Mapping[str, Any]) -> Schema:
    # Null entries are valid, because the reader ignores them.
    return {"type": "array", "items": any_of(entry, {"type": "null"})}


def _boolean(value: object) -> str:
    return str(value).lower()


_DURATION = r"\+?(?:0|(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)"
_DURATION_SCHEMA = any_of(pattern(_DURATION), {"const": 0})
_DURATION_WORDS = "[duration](configuration.md#durations)"
_WORDS_OF_BOOLEANS = [
    case(word) for word in ("yes", "no", "on", "off", "y", "n") for case in (str, str.capitalize, str.upper)
]
_TEXT: Schema = {"type": ["string", "number", "boolean"]}
_COUNT = _whole(0, UINT64_MAX)
_QUANTITIES = ValueForm(
    "[quantities](configuration.md#quantities)",
    {
        "type": "object",
        "properties": {
            "vcore": {"description": "Cores, such as 2, or 500m for half a core.", **_quantity("|m")},
            "memory": {"description": "Bytes, with an optional suffix, such as 16Gi.", **_quantity()},
        },
        "additionalProperties": _quantity(),
    },
)

_FORMS: dict[Value, ValueForm] = {
    values.TEXT: ValueForm("text", _TEXT),
    values.BOOLEAN: ValueForm(
        "[boolean](configuration.md#how-values-are-read)",
        {"enum": [True, False, *dict.fromkeys(_WORDS_OF_BOOLEANS)]},
        _boolean,
    ),
    values.TRUE_OR_FALSE: ValueForm("`true`, `false`", {"type": "boolean"}, _boolean),
    values.COUNT: ValueForm("count", _COUNT),
    values.QUANTITIES: _QUANTITIES,
    values.SPARSE_QUANTITIES: _QUANTITIES,
    values.DURATION: ValueForm(_DURATION_WORDS, _DURATION_SCHEMA, spell_duration),
    values.DURATION_OR_NEVER: ValueForm(
        f"{_DURATION_WORDS}, or `never`", any_of({"const": NEVER}, _DURATION_SCHEMA), spell_duration
    ),
    values.QUEUE_NAME: ValueForm(
        "[queue name](configuration.md#names)",
        any_of(pattern(QUEUE.pattern), {"type": ["integer", "boolean"]}),
    ),
    values.ACL: ValueForm(
        "[access control list](configuration.md#access-control-lists)",
        any_of(pattern(r"\s*(?:\S+(?:\s+\S+)?)?\s*"), {"type": ["number", "boolean"]}),
    ),
    values.NAMES: ValueForm("list of names", _listed(_TEXT)),
    values.LIMITED_USERS: ValueForm(
        "list of users", _listed(any_of(pattern(rf"\*|{USER.pattern}"), {"type": "boolean"}))
    ),
    values.LIMITED_GROUPS: ValueForm(
        "list of groups", _listed(any_of(pattern(rf"\*|{GROUP.pattern}"), {"type": "boolean"}))
    ),
    values.WEIGHTS: ValueForm(
        "mapping of numbers", {"type": "object", "additionalProperties": {"type": "number", "minimum": 0}}
    ),
    values.WEIGHT: ValueForm(
        "number", {"type": "number", "exclusiveMinimum": 0, "maximum": 1e9}, "{:g}".format
    ),
    values.RANGE: ValueForm(
        "two numbers", {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
    ),
    values.PRIORITIES: ValueForm(
        "mapping of whole numbers", {"type": "object", "additionalProperties": _whole(*INT32)}
    ),
    values.INTEGER_TEXT: ValueForm("whole number of 32 bits", any_of(_whole(*INT32), pattern("[+-]?[0-9]+"))),
    values.COUNT_TEXT: ValueForm("count", any_of(_COUNT, pattern("[0-9]+"))),
    values.DELAY_TEXT: ValueForm(
        f"{_DURATION_WORDS} above 0", pattern(_DURATION.replace("0|", "", 1)), spell_duration
    ),
}
"""Descriptions of the kinds that are one object each."""
TEXT, BOOLEAN = _FORMS[values.TEXT], _FORMS[values.BOOLEAN]


def form_of(value: Value) -> ValueForm:
    """Return the description of a kind of value. Raises KeyError if it has none."""
    if value.choices:
        return _choice(value.choices)
    if value.plugins in (DOOR, RESERVATION, RESOLVER):
        return ValueForm("mapping")
    if value.many:
        return ValueForm("list")
    if value.section:
        return ValueForm("mapping")
    if value.options:
        return ValueForm("text or mapping", spell=attrgetter("name"))
    return ValueForm("text") if value.plugins else _FORMS[value]


def _choice(meanings: Mapping[str, object]) -> ValueForm:
    """Return the description of a word in any case; editors suggest the words as written here."""
    words = {meaning: word for word, meaning in meanings.items()}
    return ValueForm(
        ", ".join(f"`{word}`" for word in meanings),
        any_of({"enum": list(meanings)}, pattern("|".join(map(in_any_case, meanings)))),
        words.__getitem__,
    )
