"""Keys of nodes, applications and tasks in a scenario: each says once how it is read and how it is written.

A key is read in two ways: from YAML of any form, with all problems reported, and from the JSON values of the
lines that `scenario_writer` writes, where anything unusual raises `Unusual`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from typing import Any

import attrs

from yunikorn.clock import SECOND
from yunikorn.config.yaml_reading import YamlTable
from yunikorn.model.gang import STYLES
from yunikorn.quantities import parse_quantity
from yunikorn.resources import INT32_MAX, INT32_MIN, Resource
from yunikorn_lab.simulation.generator import MANY
from yunikorn_lab.simulation.machines import FASTEST, SLOWEST
from yunikorn_lab.simulation.scenario_values import (
    ALWAYS,
    parse_time,
    read_count,
    read_name,
    read_resources,
    read_runtime,
    read_time,
)
from yunikorn_lab.simulation.workload import FOREVER, PREEMPTED

NOBODY = "nobody"
"""Default user; the core refuses applications without a user."""

MAX_COUNT = MANY
MOST_DEVICES, MOST_CLAIMED = 128, 32
"""Number of devices of a class that a node can have, and a task can claim, as in Kubernetes."""
SHARED = 20_000
"""Maximum number of cached resource amounts that equal tasks share."""


class Unusual(Exception):
    """Content that only the general reader of scenarios handles."""


class Literal(str):
    """A number that is written without quotes."""

    __slots__ = ()


@attrs.frozen
class ValueKind:
    """A kind of values."""

    read: Callable[[YamlTable, str], Any]
    """Reads the value of a key from YAML; reports problems and returns a default instead."""
    convert: Callable[[Any], Any]
    """Converts a JSON value, with numbers as texts; raises `Unusual`, `TypeError` or `ValueError`."""
    write: Callable[[Any], Any]
    """Returns the JSON value; false values are left out."""


@attrs.frozen
class ScenarioKey:
    """A key and the attribute of its value."""

    name: str
    kind: ValueKind
    attribute: str = attrs.Factory(lambda self: self.name, takes_self=True)


def read_keys(table: YamlTable, keys: Iterable[ScenarioKey]) -> dict[str, Any]:
    """Read the values by attribute."""
    return {key.attribute: key.kind.read(table, key.name) for key in keys}


def convert_keys(found: dict[str, Any], keys: Iterable[ScenarioKey]) -> dict[str, Any]:
    """Convert the JSON values by attribute, without missing ones; raises `Unusual` for further keys."""
    values = {key.attribute: key.kind.convert(found.pop(key.name)) for key in keys if key.name in found}
    if found:
        raise Unusual
    return values


def write_keys(of: Any, keys: Iterable[ScenarioKey]) -> dict[str, Any]:
    """Return the JSON values by key."""
    found = {key.name: key.kind.write(getattr(of, key.attribute)) for key in keys}
    return {name: value for name, value in found.items() if value}


# -- kinds ------------------------------------------------------------------------------------------------


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Unusual
    return value


def _name(value: Any) -> str:
    if not value:
        raise Unusual
    return _text(value)


def _read_choice(table: YamlTable, key: str, known: tuple[str, ...]) -> str:
    text = table.text(key)
    if text and text not in known:
        table.problem(key, f"expected {' or '.join(known)}, got '{text}'")
    return text


def _convert_choice(value: Any, known: tuple[str, ...]) -> str:
    if value and value not in known:
        raise Unusual
    return _text(value)


def _choice(known: tuple[str, ...]) -> ValueKind:
    return ValueKind(partial(_read_choice, known=known), partial(_convert_choice, known=known), str)


def _runtime(value: Any) -> int:
    return FOREVER if value == ALWAYS else parse_time(_text(value))


def _number(value: Any, low: int, high: int) -> int:
    if not low <= int(value) <= high:
        raise Unusual
    return int(value)


def _read_priority(table: YamlTable, key: str) -> int | None:
    return table.integer(key, INT32_MIN, INT32_MAX) if key in table else None


def _read_speed(table: YamlTable, key: str) -> float:
    speed = table.number(key) if key in table else 1.0
    if speed is not None and not SLOWEST <= speed <= FASTEST:
        table.problem(key, f"expected a number from {SLOWEST:g} to {FASTEST:g}, such as 1.5")
        return 1.0
    return 1.0 if speed is None else speed


def _convert_speed(value: Any) -> float:
    speed = float(_text(value))
    if not SLOWEST <= speed <= FASTEST:
        raise Unusual
    return speed


@lru_cache(SHARED)
def _resources(pairs: tuple[tuple[str, Any], ...]) -> Resource:
    found = Resource({kind: parse_quantity(kind, _text(amount)) for kind, amount in pairs})
    if not any(found.values()):
        raise Unusual
    return found


def write_time(moment: int) -> Literal:
    """Write a time (ns) in seconds."""
    whole, rest = divmod(moment, SECOND)
    return Literal(f"{whole}.{rest:09}".rstrip("0") if rest else whole)


def write_amounts(resources: Mapping[str, int]) -> dict[str, str]:
    """Write resource amounts with the units of a scenario."""
    return {kind: _write_quantity(kind, value) for kind, value in resources.items()}


def _write_quantity(kind: str, value: int) -> str:
    if kind == "vcore":
        return f"{value}m" if value % 1000 else str(value // 1000)
    if kind == "memory" and value:
        for suffix, size in (("Gi", 2**30), ("Mi", 2**20)):
            if value % size == 0:
                return f"{value // size}{suffix}"
    return str(value)


NAME = ValueKind(read_name, _name, str)
TEXT = ValueKind(YamlTable.text, _text, str)
USER = ValueKind(lambda table, key: table.text(key) or NOBODY, lambda value: _text(value) or NOBODY, str)
TEXTS = ValueKind(
    lambda table, key: tuple(text for text, _ in table.texts(key)),
    lambda value: tuple(map(_text, value)),
    list,
)
PAIRS = ValueKind(YamlTable.pairs, lambda value: {key: _text(text) for key, text in value.items()}, dict)
TIME = ValueKind(
    lambda table, key: read_time(table, key, 0),
    lambda value: parse_time(_text(value)),
    lambda moment: write_time(moment) if moment else "",
)
OPTIONAL_TIME = ValueKind(
    lambda table, key: read_time(table, key, 0) if key in table else None,
    lambda value: parse_time(_text(value)),
    lambda moment: "" if moment is None else write_time(moment),
)
RUNTIME = ValueKind(
    read_runtime, _runtime, lambda moment: ALWAYS if moment == FOREVER else write_time(moment)
)
COUNT = ValueKind(
    lambda table, key: read_count(table, MAX_COUNT),
    lambda value: _number(value, 1, MAX_COUNT),
    lambda count: count if count != 1 else "",
)
AT_LEAST = ValueKind(
    lambda table, key: table.integer(key, 1, MAX_COUNT) or 0,
    lambda value: _number(value, 1, MAX_COUNT),
    lambda count: Literal(count) if count else "",
)
SPEED = ValueKind(_read_speed, _convert_speed, lambda speed: "" if speed == 1.0 else Literal(repr(speed)))
PRIORITY = ValueKind(
    _read_priority,
    lambda value: value if value is None else _number(value, INT32_MIN, INT32_MAX),
    lambda priority: "" if priority is None else Literal(priority),
)


def _counts(most: int) -> ValueKind:
    """Return a kind of numbers by name, each from 1 to `most`."""

    def read(table: YamlTable, key: str) -> dict[str, int]:
        pairs = table.pairs(key)
        wrong = [name for name, text in pairs.items() if not _is_count(text, most)]
        for name in wrong:
            table.problem(key, f"expected a number from 1 to {most} for {name}, got '{pairs[name]}'")
        return {name: int(text) for name, text in pairs.items() if name not in wrong}

    return ValueKind(
        read,
        lambda value: {name: _number(text, 1, most) for name, text in value.items()},
        lambda counts: {name: str(count) for name, count in counts.items()},
    )


def _is_count(text: str, most: int) -> bool:
    return text.isdecimal() and len(text) < 6 and 1 <= int(text) <= most


def _amounts(what: str) -> ValueKind:
    return ValueKind(
        lambda table, key: read_resources(table, what),
        lambda value: _resources(tuple(value.items())),
        write_amounts,
    )


# -- keys -------------------------------------------------------------------------------------------------

NODE = (
    ScenarioKey("resources", _amounts("a node")),
    ScenarioKey("attributes", PAIRS),
    ScenarioKey("partition", TEXT),
    ScenarioKey("speed", SPEED),
    ScenarioKey("devices", _counts(MOST_DEVICES)),
)
"""Keys of a node except its name and count."""
NODE_KEYS = ("name", "count", *(key.name for key in NODE))

TASK = (
    ScenarioKey("count", COUNT),
    ScenarioKey("resources", _amounts("a task")),
    ScenarioKey("runtime", RUNTIME),
    ScenarioKey("priority", PRIORITY),
    ScenarioKey("tags", PAIRS),
    ScenarioKey("timeout", TIME),
    ScenarioKey("startup", OPTIONAL_TIME),
    ScenarioKey("claims", _counts(MOST_CLAIMED)),
    ScenarioKey("atleast", AT_LEAST, "at_least"),
    ScenarioKey("step", AT_LEAST),
    ScenarioKey("delay", TIME),
    ScenarioKey("taskgroup", TEXT, "task_group"),
)
"""Keys of a task group except its name."""
TASK_KEYS = ("name", *(key.name for key in TASK))

APPLICATION = (
    ScenarioKey("id", NAME),
    ScenarioKey("submit", TIME),
    ScenarioKey("user", USER),
    ScenarioKey("groups", TEXTS),
    ScenarioKey("queue", TEXT),
    ScenarioKey("partition", TEXT),
    ScenarioKey("tags", PAIRS),
    ScenarioKey("gang", _choice(STYLES)),
    ScenarioKey("gangtimeout", TIME, "patience"),
    ScenarioKey("timeout", TIME),
    ScenarioKey("preempted", _choice(PREEMPTED)),
    ScenarioKey("recordedwait", OPTIONAL_TIME, "recorded_wait"),
    ScenarioKey("after", TEXTS),
    ScenarioKey("thinktime", TIME, "think"),
)
"""Keys of an application except its tasks."""
APPLICATION_KEYS = (
    "id", "count", "every", "user", "groups", "queue", "tags", "partition", "submit", "tasks", "gang",
    "gangtimeout", "timeout", "preempted", "recordedwait", "after", "thinktime",
)  # fmt: skip
"""All keys of an application, in the order of messages."""
