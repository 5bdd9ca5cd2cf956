"""Values in a scenario: times, amounts and counts, given plainly or drawn from a `distribution`.

Errors are collected, and a default replaces the value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import TypeVar

import attrs

from yunikorn.clock import MILLISECOND, SECOND
from yunikorn.config.document import Mapping, Scalar, show
from yunikorn.config.durations import parse_duration
from yunikorn.config.yaml_reading import YamlTable, read_integer, read_number
from yunikorn.errors import QuantityError
from yunikorn.quantities import parse_quantity
from yunikorn.resources import INT64_MAX, NOTHING, Resource
from yunikorn.text import suggest
from yunikorn_lab.simulation.distributions import (
    DISTRIBUTIONS,
    PLAIN,
    Constant,
    Distribution,
    DrawnAmounts,
    WeightedChoice,
    zipf_weights,
)
from yunikorn_lab.simulation.machines import numbered
from yunikorn_lab.simulation.workload import FOREVER

ALWAYS = "forever"
"""Notation for the run time of tasks that do not end by themselves."""

_SECONDS = re.compile(r"([0-9]+)(?:\.([0-9]*))?\Z")
_DAYS = re.compile(r"(?:([0-9]+(?:\.[0-9]+)?)d)?((?:\s*[0-9][0-9.]*[a-z\u00b5\u03bc]+)*)\Z")


def missing(table: YamlTable, key: str, what: str = "") -> None:
    """Report that a required key is missing; `what` describes its value."""
    table.problem(key, f"required, but missing{what and ': '}{what}")


def unknown(table: YamlTable, key: str, name: str, known: Collection[str]) -> None:
    """Report that the value of a key is missing, or is not one of the `known` names."""
    if key in table:
        table.problem(key, f"unknown {key} '{name}'{suggest(name, known)}; known: {', '.join(known)}")
    else:
        missing(table, key, f"one of {', '.join(known)}")


def parse_time(text: str) -> int:
    """Convert plain seconds (`90`, `0.5`) or a duration (`1h30m`, `1d 2h`) to nanoseconds.

    Days and spaces between the parts are read because reports print them. Raises `ValueError`.
    """
    if match := _SECONDS.match(text):
        moment = int(match[1][:20]) * SECOND + int((match[2] or "")[:9].ljust(9, "0"))
        if moment > INT64_MAX:
            raise ValueError(f"the time {text[:40]} is too long; the maximum is about 292 years")
        return moment
    try:
        moment = _parse_parts(text)
    except ValueError as error:
        if "too long" in str(error):
            raise
        raise ValueError(
            f"expected seconds or a duration such as 90, 30s, 1h30m or 1d, got {text!r}"
        ) from error
    if moment < 0:
        raise ValueError(f"a time cannot be below 0, got {text!r}")
    return moment


def _parse_parts(text: str) -> int:
    written = _DAYS.match(text)
    if written is None:
        return parse_duration(text)
    days, rest = written.groups()
    parts = rest.split()
    if not (days or parts) or not all(part[0].isdigit() and part[-1].isalpha() for part in parts):
        raise ValueError(f"not a duration: {text!r}")
    hours = parse_duration(f"{days}h") * 24 if days else 0
    moment = hours + (parse_duration("".join(parts)) if parts else 0)
    if moment > INT64_MAX:
        raise ValueError(f"the time {text[:40]} is too long; the maximum is about 292 years")
    return moment


def read_time(table: YamlTable, key: str, default: int | None = None) -> int:
    """Read the time (ns) at `key`; a missing time without `default` is reported as a problem."""
    node = table.get(key)
    if node is None:
        if default is None:
            missing(table, key, "seconds or a duration such as 30s")
        return default or 0
    try:
        if not isinstance(node, Scalar):
            raise ValueError(f"expected seconds or a duration, got {show(node)}")
        return parse_time(node.text)
    except ValueError as error:
        table.problem(key, str(error))
        return default or 0


def read_runtime(table: YamlTable, key: str) -> int:
    """Read the required time (ns) at `key`; `forever` becomes `FOREVER`."""
    node = table.get(key)
    if isinstance(node, Scalar) and node.text == ALWAYS:
        return FOREVER
    return read_time(table, key)


def read_resources(table: YamlTable, what: str) -> Resource:
    """Read the amounts at `resources`, at least one of them above 0; `what` names the owner in messages."""
    amounts = table.table("resources")
    if amounts is None:
        if table.get("resources") is None:
            missing(table, "resources", f"{what} needs resources")
        return NOTHING
    found: dict[str, int] = {}
    wrong = len(table.findings.problems)
    for name, text in amounts.each_text():
        try:
            found[name] = parse_quantity(name, text)
        except QuantityError as error:
            amounts.problem(name, str(error))
    if not any(found.values()) and len(table.findings.problems) == wrong:
        table.problem("resources", f"{what} needs at least one resource above 0")
    return Resource(found)


def read_count(table: YamlTable, most: int) -> int:
    """Read the number at `count`; 1 if the key is missing."""
    if table.get("count") is None:
        return 1
    return table.integer("count", 1, most) or 1


def read_name(table: YamlTable, key: str) -> str:
    """Read the text at `key`, which must not be missing or empty."""
    wrong = len(table.findings.problems)
    text = table.text(key)
    if not text and len(table.findings.problems) == wrong:
        missing(table, key)
    return text


T = TypeVar("T")

CHOICE, ZIPF = "choice", "zipf"
CHOICES = (CHOICE, ZIPF)
NAMES = (*DISTRIBUTIONS, *CHOICES)
LIMITS = ("min", "max", "step")
MANY_NAMES = 1_000_000
LONGEST = INT64_MAX // 4
"""Longest time that can be drawn (ns)."""
MAX_TASKS = 10_000_000
_MAY_BE_ZERO = frozenset({"value", "low", "sigma"})


@attrs.frozen
class QuantityUnit:
    """Notation and limits of a drawn quantity."""

    parse: Callable[[str], float]
    """Parses a text; raises `ValueError` or `QuantityError`."""
    step: int
    low: int
    high: int


def _parse_count(text: str) -> float:
    value = read_number(Scalar(0, 0, text, True))
    if value < 0:
        raise ValueError(f"expected a number of at least 0, got '{text}'")
    return value


TIME = QuantityUnit(parse_time, MILLISECOND, 0, LONGEST)
COUNT = QuantityUnit(_parse_count, 1, 1, MAX_TASKS)


def quantity(name: str) -> QuantityUnit:
    """Return the unit of a resource type."""
    step = {"vcore": 100, "memory": 2**20}.get(name, 1)
    return QuantityUnit(lambda text: parse_quantity(name, text), step, 0, INT64_MAX)


# -- amounts ------------------------------------------------------------------------------------------


def read_amounts(table: YamlTable, key: str, unit: QuantityUnit) -> DrawnAmounts:
    """Read the required amounts at `key`; reports problems and returns the amount 1 instead of bad values."""
    node = table.get(key)
    instead = DrawnAmounts(Constant(1), 1, unit.low, unit.high)
    if isinstance(node, Scalar):
        if unit is TIME and node.text == ALWAYS:
            return DrawnAmounts(Constant(FOREVER), 1, FOREVER, FOREVER)
        value = _parse(table, key, unit.parse)
        return instead if value is None else DrawnAmounts(Constant(value), 1, unit.low, unit.high)
    if node is None:
        missing(table, key, "a value or a distribution")
        return instead
    inner = table.table(key)
    if inner is None:
        return instead
    found = _read_distribution(inner, unit)
    return instead if found is None else _read_limits(inner, unit, found)


def read_startup(table: YamlTable) -> DrawnAmounts:
    """Read the times at `startup`, which must end."""
    found = read_amounts(table, "startup", TIME)
    if found.low == FOREVER:
        table.problem("startup", "expected a time or a distribution; a start-up cannot last forever")
        return DrawnAmounts(Constant(0), 1, 0, 0)
    return found


def _read_distribution(table: YamlTable, unit: QuantityUnit) -> Distribution | None:
    name = table.text("distribution")
    if name in CHOICES:
        return _read_choice(table, name, lambda text: round(unit.parse(text)), LIMITS)
    if name not in DISTRIBUTIONS:
        unknown(table, "distribution", name, NAMES)
        return None
    kind = DISTRIBUTIONS[name]
    options = [field.name for field in attrs.fields(kind)]
    table.only(("distribution", *options, *LIMITS))
    read = {option: _read_option(table, option, unit) for option in options}
    values = {option: value for option, value in read.items() if value is not None}
    if len(values) < len(read):
        return None
    if "high" in values and values["low"] > values["high"]:
        table.problem("high", "expected a value of at least low")
        return None
    found: Distribution = kind(**values)
    return found


def _read_option(table: YamlTable, option: str, unit: QuantityUnit) -> float | None:
    if option not in table:
        missing(table, option)
        return None
    value = table.number(option) if option in PLAIN else _parse(table, option, unit.parse)
    if value is not None and (value < 0 or (not value and option not in _MAY_BE_ZERO)):
        table.problem(option, f"expected more than 0, got {value:g}")
        return None
    return value


def _read_limits(table: YamlTable, unit: QuantityUnit, found: Distribution) -> DrawnAmounts:
    chosen = isinstance(found, WeightedChoice)
    usual = 1 if chosen else unit.step
    step = round(_parse(table, "step", unit.parse) or usual) if "step" in table else usual
    usual_low = 0 if chosen or unit is TIME else step
    low = round(_parse(table, "min", unit.parse) or 0) if "min" in table else usual_low
    high = round(_parse(table, "max", unit.parse) or 0) if "max" in table else unit.high
    if low > high:
        table.problem("max", "expected a value of at least min")
    return DrawnAmounts(found, max(step, 1), max(low, unit.low), high)


def _parse(table: YamlTable, key: str, parse: Callable[[str], T]) -> T | None:
    node = table.node.entries[key]
    try:
        if not isinstance(node, Scalar):
            raise ValueError(f"expected a plain value, got {show(node)}")
        return parse(node.text)
    except (ValueError, QuantityError) as error:
        table.problem(key, str(error))
        return None


# -- choices ------------------------------------------------------------------------------------------


def _read_choice(
    table: YamlTable, name: str, parse: Callable[[str], T], more: tuple[str, ...] = ()
) -> WeightedChoice[T] | None:
    table.only(("distribution", "values", *(("exponent",) if name == ZIPF else ()), *more))
    if name == CHOICE and isinstance(table.get("values"), Mapping):
        weights = table.table("values")
        assert weights is not None
        values = [_value(table, text, parse) for text in weights.node.entries]
        return _choice(table, values, [_read_weight(weights, text) for text in weights.node.entries])
    values = [_value(table, text, parse) for text, _ in table.texts("values")]
    if name == CHOICE:
        return _choice(table, values, [1.0] * len(values))
    exponent = table.number("exponent") if "exponent" in table else 1.0
    if exponent is None or exponent < 0 or exponent > 20:
        table.problem("exponent", "expected a number from 0 to 20")
        return None
    return _choice(table, values, zipf_weights(len(values), exponent))


def _value(table: YamlTable, text: str, parse: Callable[[str], T]) -> T | None:
    try:
        return parse(text)
    except (ValueError, QuantityError) as error:
        table.problem("values", str(error))
        return None


def _choice(table: YamlTable, values: list[T | None], weights: list[float]) -> WeightedChoice[T] | None:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    if not known or not sum(weights):
        what = "expected a list of values, or a mapping of values to their weights, at least one above 0"
        table.problem("values", what)
        return None
    return WeightedChoice(known, weights)


def _read_weight(table: YamlTable, key: str) -> float:
    weight = table.number(key)
    if weight is not None and weight < 0:
        table.problem(key, "expected a weight of at least 0")
    return max(weight or 0.0, 0.0)


def _choice_at(table: YamlTable, key: str, of: str) -> tuple[YamlTable, str] | None:
    """Return the mapping at `key` and the name of its choice; reports any other distribution."""
    inner = table.table(key)
    assert inner is not None
    name = inner.text("distribution")
    if name in CHOICES:
        return inner, name
    unknown(inner, "distribution", f"{name} of {of}" if name in DISTRIBUTIONS else name, CHOICES)
    return None


def read_names(table: YamlTable, key: str) -> str | WeightedChoice[str]:
    """Read a text at `key`, or a choice of texts: `values`, or `count` numbered `names`."""
    if not isinstance(table.get(key), Mapping):
        return table.text(key)
    found = _choice_at(table, key, "names")
    if found is None:
        return ""
    inner, name = found
    if "names" not in inner:
        return _read_choice(inner, name, str) or ""
    inner.only(("distribution", "names", "count", "exponent"))
    count = inner.integer("count", 1, MANY_NAMES) or 1
    exponent = inner.number("exponent") if "exponent" in inner else 1.0
    weights = zipf_weights(count, min(max(exponent or 0.0, 0.0), 20.0)) if name == ZIPF else [1.0] * count
    return WeightedChoice(numbered(inner.text("names"), count), weights)


def read_priorities(table: YamlTable, key: str, low: int, high: int) -> WeightedChoice[int] | None:
    """Read a whole number at `key`, or a choice of whole numbers; None if the key is missing."""
    if not isinstance(table.get(key), Mapping):
        value = table.integer(key, low, high) if key in table else None
        return None if value is None else WeightedChoice([value], [1.0])

    def parse(text: str) -> int:
        value = read_integer(Scalar(0, 0, text, True))
        if not low <= value <= high:
            raise ValueError(f"expected a whole number from {low} to {high}, got '{text}'")
        return value

    found = _choice_at(table, key, "priorities")
    return None if found is None else _read_choice(*found, parse)


# -- sizes --------------------------------------------------------------------------------------------


def read_sizes(table: YamlTable) -> dict[str, DrawnAmounts] | WeightedChoice[Resource]:
    """Read the amounts of a task: `resources` drawn per type, or a choice of `sizes` with `weight`."""
    if "sizes" in table:
        if "resources" in table:
            table.problem("sizes", "a task cannot have both resources and sizes")
        return _read_sizes(table)
    amounts = table.table("resources")
    if amounts is None:
        if "resources" not in table:
            missing(table, "resources", "a task needs resources, or a choice of sizes")
        return {}
    if not amounts.node.entries:
        table.problem("resources", "a task needs at least one resource above 0")
    return {name: read_amounts(amounts, name, quantity(name)) for name in amounts.node.entries}


def _read_sizes(table: YamlTable) -> WeightedChoice[Resource]:
    sizes, weights = [], []
    for inner in table.tables("sizes"):
        inner.only(("weight", "resources"))
        sizes.append(read_resources(inner, "a size"))
        weights.append(_read_weight(inner, "weight") if "weight" in inner else 1.0)
    if not sum(weights):
        table.problem("sizes", "expected a list of sizes, at least one with a weight")
        return WeightedChoice([Resource()], [1.0])
    return WeightedChoice(sizes, weights)
