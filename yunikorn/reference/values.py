"""Types of values, each with its description, its JSON Schema and the notation of its defaults.

The schema of a value accepts everything that `yunikorn validate` accepts without a problem or a warning. It
describes the output of a YAML parser, so a text may also be a number or a boolean (see
`docs/decisions/0001`). It may accept more: constraints that need the whole file, such as sums, references to
names, or a number in quotes, are only checked by `yunikorn validate`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from yunikorn.config.durations import spell_duration
from yunikorn.config.names import GROUP, QUEUE, USER
from yunikorn.config.quantities import SUFFIXES
from yunikorn.config.reading import UINT64_MAX
from yunikorn.resources import INT64_MAX

Schema = dict[str, Any]

INT32 = {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}


@attrs.frozen
class Value:
    """Type of a value."""

    words: str
    """Description on the reference page, in Markdown."""
    schema: Mapping[str, Any]
    spell: Callable[[Any], str] = str
    """Conversion of a default to the notation of a configuration."""


def spell_boolean(value: bool) -> str:
    """Return a boolean in YAML notation."""
    return "true" if value else "false"


def pattern(regular: str) -> Schema:
    """Return the schema of a text that matches as a whole."""
    return {"type": "string", "pattern": f"^(?:{regular})$"}


def any_of(*schemas: Mapping[str, Any]) -> Schema:
    """Return the schema of values that match at least one of `schemas`."""
    return {"anyOf": [dict(schema) for schema in schemas]}


def in_any_case(word: str) -> str:
    """Return a regular expression for a word in any case; JSON Schema has no flag for that."""
    return "".join(f"[{letter.upper()}{letter.lower()}]" if letter.isalpha() else letter for letter in word)


def one_of(*words: str, spell: Callable[[Any], str] = str) -> Value:
    """Return the type of a choice between words in any case; editors suggest them as written here."""
    return Value(
        ", ".join(f"`{word}`" for word in words),
        any_of({"enum": list(words)}, pattern("|".join(map(in_any_case, words)))),
        spell,
    )


def listed(entry: Value, words: str) -> Value:
    """Return the type of a list; null entries are valid, since the reader ignores them."""
    return Value(words, {"type": "array", "items": any_of(entry.schema, {"type": "null"})})


def _inside(regular: str) -> str:
    # JSON Schema does not support \Z; `pattern` anchors both ends.
    return regular.removesuffix(r"\Z")


_SCALAR = {"type": ["string", "number", "boolean"]}
_SUFFIXES = "|".join(filter(None, SUFFIXES))
_DURATION = r"\+?(?:0|(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)"
_WORDS_OF_BOOLEANS = [
    case(word) for word in ("yes", "no", "on", "off", "y", "n") for case in (str, str.capitalize, str.upper)
]
_DURATION_SCHEMA = any_of(pattern(_DURATION), {"const": 0})


def _quantity(also: str = "") -> Schema:
    whole = {"type": "integer", "minimum": 0, "maximum": INT64_MAX}
    return any_of(whole, pattern(rf"\s*[0-9]+\s*(?:{_SUFFIXES}{also})?\s*"))


TEXT = Value("text", _SCALAR)
BOOLEAN = Value(
    "[boolean](configuration.md#how-values-are-read)",
    {"enum": [True, False, *dict.fromkeys(_WORDS_OF_BOOLEANS)]},
    spell_boolean,
)
TRUE_OR_FALSE = Value("`true`, `false`", {"type": "boolean"}, spell_boolean)
COUNT = Value("count", {"type": "integer", "minimum": 0, "maximum": UINT64_MAX})
QUANTITIES = Value(
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
DURATION = Value("[duration](configuration.md#durations)", _DURATION_SCHEMA, spell_duration)
DURATION_OR_NEVER = Value(
    "[duration](configuration.md#durations), or `never`",
    any_of({"const": "never"}, _DURATION_SCHEMA),
    spell_duration,
)
QUEUE_NAME = Value(
    "[queue name](configuration.md#names)",
    any_of(pattern(_inside(QUEUE.pattern)), {"type": ["integer", "boolean"]}),
)
ACL = Value(
    "[access control list](configuration.md#access-control-lists)",
    any_of(pattern(r"\s*(?:\S+(?:\s+\S+)?)?\s*"), {"type": ["number", "boolean"]}),
)
LIMITED_USERS = listed(
    Value("", any_of(pattern(rf"\*|{_inside(USER.pattern)}"), {"type": "boolean"})), "list of users"
)
LIMITED_GROUPS = listed(
    Value("", any_of(pattern(rf"\*|{_inside(GROUP.pattern)}"), {"type": "boolean"})), "list of groups"
)
NAMES = listed(TEXT, "list of names")
WEIGHTS = Value(
    "mapping of numbers",
    {"type": "object", "additionalProperties": {"type": "number", "minimum": 0}},
)
PRIORITIES = Value("mapping of whole numbers", {"type": "object", "additionalProperties": INT32})


# -- properties, whose values are text ---------------------------------------------------------------------

SWITCH = one_of("enabled", "disabled", spell=lambda on: "enabled" if on else "disabled")
FENCE = one_of("default", "fence", spell=lambda fence: "fence" if fence else "default")
PREEMPTION = one_of("default", "fence", "disabled")
ACTIVITY = one_of("active", "stopped", spell=lambda stopped: "stopped" if stopped else "active")
INTEGER_TEXT = Value("whole number of 32 bits", any_of(INT32, pattern("[+-]?[0-9]+")))
COUNT_TEXT = Value("count", any_of(COUNT.schema, pattern("[0-9]+")))
DELAY_TEXT = Value(
    "[duration](configuration.md#durations) above 0", pattern(_DURATION.replace("0|", "", 1)), spell_duration
)
