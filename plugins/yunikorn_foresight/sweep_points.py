"""Points of a sweep: configurations with one value for each swept setting, from lists or ranges of values."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence

import attrs

from yunikorn.errors import UsageError
from yunikorn.framework.registry import Registry
from yunikorn_lab.reporting.variants import VariantSetting, changed, parse_settings, short_settings
from yunikorn_lab.simulation.rng import Rng, streams

GRID, RANDOM, HALVING = "grid", "random", "halving"
SEARCHES = (GRID, RANDOM, HALVING)
MOST_POINTS = 10_000
"""Maximum number of points of a sweep."""
UNCHANGED = "unchanged"
"""Name of the point without settings, which is always the first one."""
_TRIES = 50
"""Number of draws in a row that are no new point, after which a random search has fewer points."""
_NUMBER = r"(-?[0-9]{1,15}(?:\.[0-9]{1,9})?)([A-Za-z]{0,2}|%)"
_RANGE = re.compile(rf"(log\()?{_NUMBER}\.\.{_NUMBER}(\))?\Z")


@attrs.frozen
class ValueRange:
    """Numbers between two ends, whole ones if both ends are whole, with a common unit such as `Gi`."""

    low: float
    high: float
    unit: str
    digits: int
    """Number of decimals of a value."""
    is_logarithmic: bool
    """True if factors are drawn evenly, and not differences."""

    def at(self, share: float) -> str:
        """Return the value at a share of the range, from 0 to 1."""
        if self.is_logarithmic:
            value = self.low * math.exp(share * math.log(self.high / self.low))
        else:
            value = self.low + share * (self.high - self.low)
        return f"{value:.{self.digits}f}{self.unit}"


@attrs.frozen
class SweptSetting:
    """A path of the configuration, and the values that it takes."""

    path: str
    values: tuple[str, ...]
    range: ValueRange | None = None

    def draw(self, rng: Rng) -> VariantSetting:
        """Return the setting with a drawn value."""
        if self.range is not None:
            return VariantSetting(self.path, self.range.at(rng()))
        return VariantSetting(self.path, self.values[int(rng() * len(self.values))])


@attrs.frozen
class SweepPoint:
    """A configuration of a sweep."""

    number: int
    """Number in the order of the search; 0 for the unchanged configuration."""
    settings: tuple[VariantSetting, ...]
    config: str = attrs.field(repr=False)
    """Text of queues.yaml."""

    @property
    def name(self) -> str:
        """Settings as text, without the beginnings of their paths."""
        return " ".join(short_settings(self.settings)) or UNCHANGED


def parse_swept(texts: Sequence[str], search: str) -> list[SweptSetting]:
    """Parse `PATH=VALUE[,VALUE...]` and `PATH=LOW..HIGH`; raises `UsageError` that lists all problems."""
    problems: list[str] = []
    listed: list[list[VariantSetting]] = []
    try:
        listed = parse_settings(texts)
    except UsageError as error:
        problems += str(error).splitlines()
    found = []
    for settings in listed:
        path, values = settings[0].path, tuple(one.value for one in settings)
        try:
            span = _range_of(values)
        except ValueError as error:
            problems.append(f"--set {path}={','.join(values)}: {error}")
            continue
        if span is not None and search == GRID:
            problems.append(
                f"--set {path}={values[0]}: a grid needs values, such as {span.at(0)},{span.at(1)}: list "
                f"them, or draw from the range with --search {RANDOM} or {HALVING}"
            )
        found.append(SweptSetting(path, values, span))
    if not texts:
        problems.append("there is nothing to sweep: give --set PATH=VALUE,VALUE")
    if problems:
        raise UsageError("\n".join(problems))
    return found


def _range_of(values: Sequence[str]) -> ValueRange | None:
    """Return the range that values name; None for values. Raises `ValueError`."""
    if not any(_RANGE.match(value) for value in values):
        return None
    if len(values) > 1:
        raise ValueError("expected values or one range LOW..HIGH, got both")
    match = _RANGE.match(values[0])
    assert match is not None
    opening, low, unit, high, other, closing = match.groups()
    if bool(opening) != bool(closing):
        raise ValueError("expected LOW..HIGH or log(LOW..HIGH)")
    unit = unit or other
    if other and unit != other:
        raise ValueError(f"both ends of a range need the same unit, got {unit} and {other}")
    if float(low) >= float(high):
        raise ValueError(f"{low} is not below {high}")
    if opening and float(low) <= 0:
        raise ValueError("a logarithmic range begins above 0")
    digits = max(len(text.partition(".")[2]) for text in (low, high))
    return ValueRange(float(low), float(high), unit, digits, bool(opening))


def make_points(
    text: str,
    swept: Sequence[SweptSetting],
    search: str,
    count: int | None,
    seed: int,
    registry: Registry,
) -> list[SweepPoint]:
    """Return the unchanged configuration and the points of a search; raises `UsageError` with all problems.

    `count` is the number of points to draw; without it there is a grid of all values, also for `HALVING`.
    """
    combinations = list(_grid(swept)) if count is None else _drawn(swept, count, seed)
    problems: list[str] = []
    points = [SweepPoint(0, (), text)]
    for number, settings in enumerate(combinations, 1):
        points.append(SweepPoint(number, settings, changed(text, settings, registry, problems)))
    if problems:
        raise UsageError("\n".join(dict.fromkeys(problems)))
    return points


def _grid(swept: Sequence[SweptSetting]) -> Iterator[tuple[VariantSetting, ...]]:
    ranges = [one.path for one in swept if one.range is not None]
    if ranges:
        raise UsageError(f"--set {', '.join(ranges)}: give the number of points to draw with --points")
    size = math.prod(len(one.values) for one in swept)
    if size > MOST_POINTS:
        raise UsageError(
            f"a grid of {size:,} points is too large, the maximum is {MOST_POINTS:,}: give fewer values, or "
            f"draw some with --search {RANDOM} --points N"
        )
    return itertools.product(*([VariantSetting(one.path, value) for value in one.values] for one in swept))


def _drawn(swept: Sequence[SweptSetting], count: int, seed: int) -> list[tuple[VariantSetting, ...]]:
    """Return different points; fewer than `count` where the values do not have as many."""
    stream = streams(seed)
    rngs = [stream(f"sweep {one.path}") for one in swept]
    found: dict[tuple[VariantSetting, ...], None] = {}
    missed = 0
    while len(found) < count and missed < _TRIES:
        point = tuple(one.draw(rng) for one, rng in zip(swept, rngs, strict=True))
        missed = missed + 1 if point in found else 0
        found[point] = None
    return list(found)
