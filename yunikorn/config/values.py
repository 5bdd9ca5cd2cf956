"""Kinds of values of keys and properties: how each is read.

How the reference page and the JSON Schema describe them is in `yunikorn_lab/schema/value_forms.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import attrs

from yunikorn.config.acl import NOBODY, Acl, illegal_names
from yunikorn.config.amounts import Amount, read_amount
from yunikorn.config.document import quote
from yunikorn.config.durations import parse_duration
from yunikorn.config.yaml_reading import UINT64_MAX, Spot, YamlTable, read_number
from yunikorn.framework.kinds import PluginKind
from yunikorn.resources import INT32_MAX, INT32_MIN

NEVER = "never"
INT32 = (INT32_MIN, INT32_MAX)
_WHOLE = re.compile(r"([+-]?)(?=[0-9])0*([0-9]*)\Z")


@attrs.frozen(eq=False)
class Value:
    """Kind of value."""

    read: Callable[[YamlTable, str], Any] | None = None
    """Reader of a key that is present; None if the class that has the key reads it with other facts."""
    parse: Callable[[str], Any] = str
    """Reader of a queue property, which is a text. Raises `ValueError`."""
    absent: Callable[[YamlTable, str], Any] | None = None
    """Result for a missing key, if it is not the default of the key."""
    build: Callable[[Any], Any] | None = None
    """Conversion from the read value, which has positions, to the checked value."""
    section: str = ""
    """Name of the section that describes the value, or each entry of a list."""
    many: bool = False
    """True if the value is a list of sections or plugins."""
    plugins: PluginKind | None = None
    """Kind of plugin that the value names or lists."""
    options: bool = False
    """True if the single plugin may also be a mapping with its name and options."""
    choices: Mapping[str, object] = attrs.field(factory=dict)
    """Words that the value may be, with their meanings; empty for any other kind."""


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
    return {name: given.integer(name, *INT32) or 0 for name in given.node.entries}


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

TEXT = Value(YamlTable.text)
BOOLEAN = Value(YamlTable.boolean)
TRUE_OR_FALSE = Value(partial(YamlTable.boolean, strict=True))
COUNT = Value(YamlTable.count)
QUANTITIES = Value(read_amount, absent=Amount, build=Amount.setting)
SPARSE_QUANTITIES = attrs.evolve(QUANTITIES, read=partial(read_amount, skip_empty=True))
"""Quantities of a template, where an entry may be empty."""
DURATION = Value(_read_duration, partial(_parse_delay, least=0))
DURATION_OR_NEVER = Value(partial(_read_duration, or_never=True))
QUEUE_NAME = Value(YamlTable.text)
ACL = Value(_read_acl)
NAMES, LIMITED_USERS, LIMITED_GROUPS = (Value(YamlTable.texts, build=_texts) for _ in range(3))
WEIGHTS = Value(_read_weights)
WEIGHT = Value(_read_weight)
RANGE = Value(_read_range)
PRIORITIES = Value(_read_priorities)


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
    return Value(read, build=build, section=section)


def rows(section: str, build: Callable[[Any], Any] | None = all_built) -> Value:
    """Return the kind of a list of mappings that a section describes."""
    return Value(section=section, many=True, build=build)


def plugin(kind: PluginKind) -> Value:
    """Return the kind of a value that names a plugin."""
    return Value(YamlTable.text, plugins=kind)


def plugin_ref(kind: PluginKind) -> Value:
    """Return the kind of a plugin, a name or a mapping with a name."""
    return Value(plugins=kind, options=True)


def plugins(kind: PluginKind) -> Value:
    """Return the kind of a list of plugins, each a name or a mapping with a name."""
    return Value(plugins=kind, many=True)


# -- kinds of values of properties, which are texts ---------------------------------------------------


def choice(meanings: Mapping[str, object], empty: object = attrs.NOTHING) -> Value:
    """Return the kind of a word in any case.

    An empty text means `empty`, if that is given.
    """

    def parse(text: str) -> object:
        if not text and empty is not attrs.NOTHING:
            return empty
        try:
            return meanings[text.lower()]
        except KeyError:
            raise ValueError(f"expected {' or '.join(meanings)}, got {text!r}") from None

    return Value(parse=parse, choices=meanings)


SWITCH = choice({"enabled": True, "disabled": False})
FENCE = choice({"default": False, "fence": True}, empty=False)
PREEMPTION = choice({"default": "default", "fence": "fence", "disabled": "disabled"}, empty="default")
ACTIVITY = choice({"active": False, "stopped": True})
INTEGER_TEXT = Value(parse=_parse_whole(*INT32))
COUNT_TEXT = Value(parse=_parse_whole(0, UINT64_MAX))
DELAY_TEXT = Value(parse=_parse_delay)
