"""Values in a scenario: times, amounts and counts. Errors are collected, and a default replaces the value."""

from __future__ import annotations

import re

from yunikorn.clock import SECOND
from yunikorn.config.document import Scalar, show
from yunikorn.config.durations import parse_duration
from yunikorn.config.quantities import parse_quantity
from yunikorn.config.reading import Table
from yunikorn.errors import QuantityError
from yunikorn.resources import INT64_MAX, NOTHING, Resource
from yunikorn.simulation.workload import FOREVER

ALWAYS = "forever"
"""Notation for the run time of tasks that do not end by themselves."""

_SECONDS = re.compile(r"([0-9]+)(?:\.([0-9]*))?\Z")


def parse_time(text: str) -> int:
    """Convert plain seconds (`90`, `0.5`) or a duration (`1h30m`) to nanoseconds; raises `ValueError`."""
    if match := _SECONDS.match(text):
        moment = int(match[1][:20]) * SECOND + int((match[2] or "")[:9].ljust(9, "0"))
        if moment > INT64_MAX:
            raise ValueError(f"the time {text[:40]} is too long; the maximum is about 292 years")
        return moment
    try:
        moment = parse_duration(text)
    except ValueError as error:
        if "too long" in str(error):
            raise
        raise ValueError(f"expected seconds or a duration such as 90, 30s or 1h30m, got {text!r}") from error
    if moment < 0:
        raise ValueError(f"a time cannot be below 0, got {text!r}")
    return moment


def read_time(table: Table, key: str, default: int | None = None) -> int:
    """Read the time (ns) at `key`; a missing time without `default` is reported as a problem."""
    node = table.get(key)
    if node is None:
        if default is None:
            table.findings.problem(
                table.spot(key), "required, but missing: seconds or a duration such as 30s"
            )
        return default or 0
    try:
        if not isinstance(node, Scalar):
            raise ValueError(f"expected seconds or a duration, got {show(node)}")
        return parse_time(node.text)
    except ValueError as error:
        table.findings.problem(table.spot(key), str(error))
        return default or 0


def read_runtime(table: Table) -> int:
    """Read the required time (ns) at `runtime`; `forever` becomes `FOREVER`."""
    node = table.get("runtime")
    if isinstance(node, Scalar) and node.text == ALWAYS:
        return FOREVER
    return read_time(table, "runtime")


def read_resources(table: Table, what: str) -> Resource:
    """Read the amounts at `resources`, at least one of them above 0; `what` names the owner in messages."""
    amounts = table.table("resources")
    if amounts is None:
        if table.get("resources") is None:
            table.findings.problem(table.spot("resources"), f"required, but missing: {what} needs resources")
        return NOTHING
    found: dict[str, int] = {}
    wrong = len(table.findings.problems)
    for name, text in amounts.each_text():
        try:
            found[name] = parse_quantity(name, text)
        except QuantityError as error:
            table.findings.problem(amounts.spot(name), str(error))
    if not any(found.values()) and len(table.findings.problems) == wrong:
        table.findings.problem(table.spot("resources"), f"{what} needs at least one resource above 0")
    return Resource(found)


def read_count(table: Table, most: int) -> int:
    """Read the number at `count`; 1 if the key is missing."""
    if table.get("count") is None:
        return 1
    return table.integer("count", 1, most) or 1


def read_name(table: Table, key: str) -> str:
    """Read the text at `key`, which must not be missing or empty."""
    wrong = len(table.findings.problems)
    text = table.text(key)
    if not text and len(table.findings.problems) == wrong:
        table.findings.problem(table.spot(key), "required, but missing")
    return text
