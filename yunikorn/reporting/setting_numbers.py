"""Numbers that values of `--set` denote: plain ones, percentages, durations and amounts of resource types."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import attrs

from yunikorn.clock import SECOND
from yunikorn.config.durations import parse_duration
from yunikorn.errors import YunikornError
from yunikorn.quantities import parse_quantity

NUMBER, PERCENTAGE, DURATION, AMOUNT = "number", "percentage", "duration", "amount"
"""Kinds of values."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,18}(?:\.[0-9]{0,18})?|\.[0-9]{1,18})\Z")
_TYPE = re.compile(r"\.(?:guaranteed|max|maxresources)\.(?P<type>.+)\Z")


@attrs.frozen
class NumericValues:
    """Values of one path that are numbers of one kind."""

    kind: str
    numbers: Mapping[str, float]
    """Numbers by value as written; durations in seconds, amounts in the base unit of their type."""
    resource_type: str = ""
    """Type of amounts."""


def find_numbers(path: str, values: Sequence[str]) -> NumericValues:
    """Return the values that are numbers, of the kind that most of them have.

    The end of the path decides between amounts and durations, because `500m` is half a core as an amount
    and 500 minutes as a duration.
    """
    match = _TYPE.search(path)
    if match is not None:
        name = match["type"]
        found = _numbers(values, lambda value: float(parse_quantity(name, _unquoted(value))))
        return NumericValues(AMOUNT, found, name)
    kinds = [
        NumericValues(NUMBER, _numbers(values, _plain)),
        NumericValues(PERCENTAGE, _numbers(values, _percentage)),
        NumericValues(DURATION, _numbers(values, lambda value: parse_duration(_unquoted(value)) / SECOND)),
    ]
    return max(kinds, key=lambda one: len(one.numbers))


def _numbers(values: Sequence[str], read: Callable[[str], float]) -> dict[str, float]:
    found = {}
    for value in values:
        try:
            found[value] = read(value)
        except (ValueError, YunikornError):
            continue
    return found


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def _plain(value: str) -> float:
    if not _NUMBER.match(_unquoted(value)):
        raise ValueError(value)
    return float(_unquoted(value))


def _percentage(value: str) -> float:
    text = _unquoted(value)
    if not text.endswith("%"):
        raise ValueError(value)
    return _plain(text[:-1].strip())
