"""What a key may hold: in words, as JSON Schema, and how a default of that type is written.

The schema of a value takes what `yunikorn validate` takes without a problem or a warning, as a YAML parser
hands it over: what stands there as text may come as a number or a boolean (decision 1). It may take more:
what only the whole file can tell, such as sums, names that must exist, or a number in quotes, is left to
`yunikorn validate`.
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
    """A type of value."""

    words: str
    """As the reference calls it, in Markdown."""
    schema: Mapping[str, Any]
    spell: Callable[[Any], str] = str
    """How a default is written in a configuration."""


def spell_boolean(value: bool) -> str:
    """True and false as YAML has them."""
    return "true" if value else "false"


def pattern(regular: str) -> Schema:
    """A text that matches as a whole."""
    return {"type": "string", "pattern": f"^(?:{regular})$"}


def any_of(*schemas: Mapping[str, Any]) -> Schema:
    """One of several schemas."""
    return {"anyOf": [dict(schema) for schema in schemas]}


def in_any_case(word: str) -> str:
    """A regular expression for a word in any case; JSON Schema has no flag for that."""
    return "".join(f"[{letter.upper()}{letter.lower()}]" if letter.isalpha() else letter for letter in word)


def one_of(*words: str, spell: Callable[[Any], str] = str) -> Value:
    """One of some words, in any case; editors offer them as they are written here."""
    return Value(
        ", ".join(f"`{word}`" for word in words),
        any_of({"enum": list(words)}, pattern("|".join(map(in_any_case, words)))),
        spell,
    )


def listed(entry: Value, words: str) -> Value:
    """A list; entries that are nothing are left out."""
    return Value(words, {"type": "array", "items": any_of(entry.schema, {"type": "null"})})


def _inside(regular: str) -> str:
    # JSON Schema has no \Z, and `pattern` anchors both ends.
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
            "vcore": {"description": "Cores: 2, or 500m for half of one.", **_quantity("|m")},
            "memory": {"description": "Bytes, perhaps with a suffix: 16Gi.", **_quantity()},
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


# -- properties, which are text ----------------------------------------------------------------------------

SWITCH = one_of("enabled", "disabled", spell=lambda on: "enabled" if on else "disabled")
FENCE = one_of("default", "fence", spell=lambda fence: "fence" if fence else "default")
PREEMPTION = one_of("default", "fence", "disabled")
ACTIVITY = one_of("active", "stopped", spell=lambda stopped: "stopped" if stopped else "active")
INTEGER_TEXT = Value("whole number of 32 bits", any_of(INT32, pattern("[+-]?[0-9]+")))
COUNT_TEXT = Value("count", any_of(COUNT.schema, pattern("[0-9]+")))
DELAY_TEXT = Value(
    "[duration](configuration.md#durations) above 0", pattern(_DURATION.replace("0|", "", 1)), spell_duration
)
