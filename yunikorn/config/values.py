"""Kinds of values: how each is read, and how the reference page and the JSON Schema describe it.

The schema of a kind accepts everything that `yunikorn validate` accepts without a problem or a warning. It
describes the output of a YAML parser, so a text may also be a number or a boolean (see
`docs/decisions/archive/0001`). It may accept more: constraints that need the whole file, such as sums,
references to names, or a number in quotes, are only checked by `yunikorn validate`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from operator import attrgetter
from typing import Any

import attrs

from yunikorn.config.acl import GROUP, NOBODY, QUEUE, USER, Acl, illegal_names
from yunikorn.config.amounts import Amount, read_amount
from yunikorn.config.document import quote
from yunikorn.config.durations import parse_duration, spell_duration
from yunikorn.config.yaml_reading import UINT64_MAX, Spot, YamlTable, read_number
from yunikorn.framework.kinds import PluginKind
from yunikorn.quantities import SUFFIXES
from yunikorn.resources import INT32_MAX, INT32_MIN, INT64_MAX

Schema = dict[str, Any]

NEVER = "never"
_INT32 = (INT32_MIN, INT32_MAX)
_WHOLE = re.compile(r"([+-]?)(?=[0-9])0*([0-9]*)\Z")


@attrs.frozen(eq=False)
class Value:
    """Kind of value."""

    words: str
    """Description on the reference page, in Markdown."""
    schema: Mapping[str, Any] = attrs.field(factory=dict)
    read: Callable[[YamlTable, str], Any] | None = None
    """Reader of a key that is present; None if the class that has the key reads it with other facts."""
    parse: Callable[[str], Any] = str
    """Reader of a queue property, which is a text. Raises `ValueError`."""
    absent: Callable[[YamlTable, str], Any] | None = None
    """Result for a missing key, if it is not the default of the key."""
    build: Callable[[Any], Any] | None = None
    """Conversion from the read value, which has positions, to the checked value."""
    spell: Callable[[Any], str] = str
    """Conversion of a default to the notation of a configuration."""
    section: str = ""
    """Name of the section that describes the value, or each entry of a list."""
    many: bool = False
    """True if the value is a list of sections or plugins."""
    plugins: PluginKind | None = None
    """Kind of plugin that the value names or lists."""
    options: bool = False
    """True if the single plugin may also be a mapping with its name and options."""


# -- schemas ------------------------------------------------------------------------------------------


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


_DURATION = r"\+?(?:0|(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)"
_DURATION_SCHEMA = any_of(pattern(_DURATION), {"const": 0})
_WORDS_OF_BOOLEANS = [
    case(word) for word in ("yes", "no", "on", "off", "y", "n") for case in (str, str.capitalize, str.upper)
]


# -- readers ------------------------------------------------------------------------------------------


def _read_acl(table: YamlTable, key: str) -> Acl:
    text = table.text(key)
    try:
        acl = Acl.parse(text)
    except ValueError as error:
        table.problem(key, f"{error}: write 'user1,user2 group1,group2'")
        return NOBODY
    for name in illegal_names(text, acl):
        table.findings.warning(table.spot(key), f"{quote(name)} is not a valid name and gives no one access")
    if text.strip() not in ("", "*") and len(text.split(" ")) > 2:
        table.findings.note(table.spot(key), "YuniKorn 1.9 fails at start on an ACL with extra spaces")
    return acl


def _read_duration(table: YamlTable, key: str, *, or_never: bool = False) -> int | None:
    text = table.text(key)
    if or_never and text == NEVER:
        return None
    try:
        duration = parse_duration(text)
        if duration < 0:
            raise ValueError(f"a delay is 0 or more, got {text}")
    except ValueError as error:
        also = f", or {NEVER}" if or_never else ""
        table.problem(key, f"{error}{also}")
        return None
    return duration


def _read_weights(table: YamlTable, key: str) -> dict[str, str]:
    weights: dict[str, str] = {}
    given = table.table(key)
    if given is None:
        return weights
    for name in given.node.entries:
        weight = given.number(name)
        if weight is not None and weight < 0:
            given.problem(name, f"a weight cannot be below 0, got {weight:g}")
        elif weight is not None:
            weights[name] = repr(weight)
    return weights


def _read_weight(table: YamlTable, key: str) -> float:
    weight = table.number(key)
    if weight is not None and not 0 < weight <= 1e9:
        table.problem(key, f"a weight is above 0 and at most 1e9, got {weight:g}")
    return weight or 1.0


def _read_range(table: YamlTable, key: str) -> tuple[float, float] | None:
    spots = table.items(key)
    if spots is None:
        return None
    try:
        numbers = [read_number(spot.node) for spot in spots]
        if len(numbers) != 2 or not 0 < numbers[1] - numbers[0] < float("inf"):
            raise ValueError(f"expected two numbers, the lower first, got {numbers}")
    except ValueError as error:
        table.problem(key, f"{error}: write [LOWEST, HIGHEST]")
        return None
    return numbers[0], numbers[1]


def _read_priorities(table: YamlTable, key: str) -> dict[str, int]:
    given = table.table(key)
    if given is None:
        return {}
    for name in given.node.entries:
        if name not in given:
            given.problem(name, "the class has no priority: expected a whole number")
    return {name: given.integer(name, *_INT32) or 0 for name in given.node.entries}


def _parse_whole(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        match = _WHOLE.match(text)
        if match and (low < 0 or not match[1]):
            number = int(match[1] + (match[2][:25] or "0"))
            if low <= number <= high:
                return number
        raise ValueError(f"expected a whole number from {low} to {high}, got {text!r}")

    return parse


def _parse_delay(text: str, *, least: int = 1) -> int:
    delay = parse_duration(text)
    if delay < least:
        raise ValueError(f"expected a duration above 0, got {text!r}")
    return delay


def _texts(found: list[tuple[str, Spot]]) -> tuple[str, ...]:
    return tuple(text for text, _ in found)


# -- kinds of values of keys --------------------------------------------------------------------------

TEXT = Value("text", {"type": ["string", "number", "boolean"]}, YamlTable.text)
BOOLEAN = Value(
    "[boolean](configuration.md#how-values-are-read)",
    {"enum": [True, False, *dict.fromkeys(_WORDS_OF_BOOLEANS)]},
    YamlTable.boolean,
    spell=lambda value: str(value).lower(),
)
TRUE_OR_FALSE = Value(
    "`true`, `false`", {"type": "boolean"}, partial(YamlTable.boolean, strict=True), spell=BOOLEAN.spell
)
COUNT = Value("count", _whole(0, UINT64_MAX), YamlTable.count)
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
    read_amount,
    absent=Amount,
    build=Amount.setting,
)
SPARSE_QUANTITIES = attrs.evolve(QUANTITIES, read=partial(read_amount, skip_empty=True))
"""Quantities of a template, where an entry may be empty."""
DURATION = Value(
    "[duration](configuration.md#durations)",
    _DURATION_SCHEMA,
    _read_duration,
    partial(_parse_delay, least=0),
    spell=spell_duration,
)
DURATION_OR_NEVER = Value(
    f"{DURATION.words}, or `never`",
    any_of({"const": NEVER}, _DURATION_SCHEMA),
    partial(_read_duration, or_never=True),
    spell=spell_duration,
)
QUEUE_NAME = Value(
    "[queue name](configuration.md#names)",
    any_of(pattern(QUEUE.pattern), {"type": ["integer", "boolean"]}),
    YamlTable.text,
)
ACL = Value(
    "[access control list](configuration.md#access-control-lists)",
    any_of(pattern(r"\s*(?:\S+(?:\s+\S+)?)?\s*"), {"type": ["number", "boolean"]}),
    _read_acl,
)
NAMES = Value("list of names", _listed(TEXT.schema), YamlTable.texts, build=_texts)
LIMITED_USERS, LIMITED_GROUPS = (
    Value(
        f"list of {who}",
        _listed(any_of(pattern(rf"\*|{form.pattern}"), {"type": "boolean"})),
        YamlTable.texts,
        build=_texts,
    )
    for who, form in (("users", USER), ("groups", GROUP))
)
WEIGHTS = Value(
    "mapping of numbers",
    {"type": "object", "additionalProperties": {"type": "number", "minimum": 0}},
    _read_weights,
)
WEIGHT = Value(
    "number", {"type": "number", "exclusiveMinimum": 0, "maximum": 1e9}, _read_weight, spell="{:g}".format
)
RANGE = Value(
    "two numbers",
    {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
    _read_range,
)
PRIORITIES = Value(
    "mapping of whole numbers",
    {"type": "object", "additionalProperties": _whole(*_INT32)},
    _read_priorities,
)


def built(draft: Any) -> Any:
    """Return the checked object of a draft, or None if there is no draft."""
    return draft.build() if draft else None


def all_built(drafts: Iterable[Any]) -> tuple[Any, ...]:
    """Return the checked objects of drafts."""
    return tuple([draft.build() for draft in drafts])


def mapping(
    section: str,
    read: Callable[[YamlTable, str], Any] | None = None,
    build: Callable[[Any], Any] | None = None,
) -> Value:
    """Return the kind of a mapping that a section describes."""
    return Value("mapping", read=read, build=build, section=section)


def rows(section: str, build: Callable[[Any], Any] | None = all_built) -> Value:
    """Return the kind of a list of mappings that a section describes."""
    return Value("list", section=section, many=True, build=build)


def plugin(kind: PluginKind) -> Value:
    """Return the kind of a value that names a plugin."""
    return Value("text", read=YamlTable.text, plugins=kind)


def plugin_ref(kind: PluginKind) -> Value:
    """Return the kind of a plugin, a name or a mapping with a name; a reference spells its name."""
    return Value("text or mapping", plugins=kind, options=True, spell=attrgetter("name"))


def plugins(kind: PluginKind) -> Value:
    """Return the kind of a list of plugins, each a name or a mapping with a name."""
    return Value("list", plugins=kind, many=True)


# -- kinds of values of properties, which are texts ---------------------------------------------------


def choice(meanings: Mapping[str, object], empty: object = attrs.NOTHING) -> Value:
    """Return the kind of a word in any case; editors suggest the words as written here.

    An empty text means `empty`, if that is given.
    """

    def parse(text: str) -> object:
        if not text and empty is not attrs.NOTHING:
            return empty
        try:
            return meanings[text.lower()]
        except KeyError:
            raise ValueError(f"expected {' or '.join(meanings)}, got {text!r}") from None

    words = {meaning: word for word, meaning in meanings.items()}
    return Value(
        ", ".join(f"`{word}`" for word in meanings),
        any_of({"enum": list(meanings)}, pattern("|".join(map(in_any_case, meanings)))),
        parse=parse,
        spell=words.__getitem__,
    )


SWITCH = choice({"enabled": True, "disabled": False})
FENCE = choice({"default": False, "fence": True}, empty=False)
PREEMPTION = choice({"default": "default", "fence": "fence", "disabled": "disabled"}, empty="default")
ACTIVITY = choice({"active": False, "stopped": True})
INTEGER_TEXT = Value(
    "whole number of 32 bits",
    any_of(_whole(*_INT32), pattern("[+-]?[0-9]+")),
    parse=_parse_whole(*_INT32),
)
COUNT_TEXT = Value("count", any_of(COUNT.schema, pattern("[0-9]+")), parse=_parse_whole(0, UINT64_MAX))
DELAY_TEXT = Value(
    f"{DURATION.words} above 0",
    pattern(_DURATION.replace("0|", "", 1)),
    parse=_parse_delay,
    spell=spell_duration,
)
