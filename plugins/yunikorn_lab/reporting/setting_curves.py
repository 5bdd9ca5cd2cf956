"""Curves of a comparison: the main figures over the values of a setting, if these are numbers.

A curve has the variants that differ in this setting alone. The band of a figure is the range of its values
over the seeds. Numbers are plain ones, percentages, durations and amounts of resource types.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from yunikorn.clock import SECOND
from yunikorn.config.durations import parse_duration
from yunikorn.errors import YunikornError
from yunikorn.quantities import parse_quantity
from yunikorn_lab.reporting.csv_files import Columns
from yunikorn_lab.reporting.figures import measures
from yunikorn_lab.reporting.metrics import dispersion
from yunikorn_lab.reporting.tables import Format, Table
from yunikorn_lab.reporting.variants import Variant, short_path
from yunikorn_lab.simulation.statistics import DIGITS

FEWEST = 3
"""Minimum number of different values of a curve."""
QUEUES = 6
"""Maximum number of leaf queues with figures of their own."""
BESIDE = 5
"""Maximum number of figures per table."""

TOTALS, APPLICATIONS = "totals", "applications"
WAIT = "wait, first task, mean"
WAITS = (WAIT, "wait, first task, 95 %")
COUNTS = ("applications finished", "tasks preempted")
USE = "use of "


@attrs.frozen
class Band:
    """A figure at one value of the setting, over all seeds."""

    mean: float
    low: float
    high: float
    half: float | None
    """Half the width of the 95 % confidence interval of the mean; None for one run."""
    runs: int


@attrs.frozen
class CurveFigure:
    """A figure over the values of a setting; a band is None if the runs have no such figure."""

    section: str
    name: str
    format: Format = attrs.field(eq=False)
    bands: list[Band | None]

    @property
    def label(self) -> str:
        """Heading of a column."""
        return self.name if self.section in (TOTALS, APPLICATIONS) else f"{self.section}: {self.name}"


@attrs.frozen
class SettingCurve:
    """Figures over the values of one setting, in ascending order, with all else equal."""

    setting: str
    """Path of the setting, as written."""
    rest: str
    """Configuration and other settings of its variants, as far as other variants differ in them."""
    numeric: NumericValues
    values: list[str]
    words: list[str]
    """Values that are no numbers, which only the table of all variants has."""
    figures: list[CurveFigure]

    @property
    def title(self) -> str:
        """Setting and what distinguishes this curve from others."""
        return f"{self.setting}, with {self.rest}" if self.rest else self.setting

    @property
    def numbers(self) -> list[float]:
        """Numbers of the values."""
        return [self.numeric.numbers[value] for value in self.values]


def find_curves(variants: Sequence[Variant]) -> list[SettingCurve]:
    """Return a curve for each setting with at least three numbers, and each combination of the rest."""
    paths = dict.fromkeys(setting.path for variant in variants for setting in variant.settings)
    return [curve for path in paths for curve in _curves(path, variants)]


def _curves(path: str, variants: Sequence[Variant]) -> Iterator[SettingCurve]:
    groups: dict[tuple[str, ...], dict[str, Variant]] = {}
    for variant in variants:
        chosen = {setting.path: setting for setting in variant.settings}
        if path in chosen:
            rest = (variant.file, *(str(one) for key, one in chosen.items() if key != path))
            groups.setdefault(rest, {})[chosen[path].value] = variant
    for rest, by_value in groups.items():
        numeric = find_numbers(path, list(by_value))
        if len(set(numeric.numbers.values())) < FEWEST:
            continue
        values = sorted(numeric.numbers, key=lambda value: numeric.numbers[value])
        yield SettingCurve(
            setting=path,
            rest=" ".join(_varying(rest, list(groups))),
            numeric=numeric,
            values=values,
            words=[value for value in by_value if value not in numeric.numbers],
            figures=_figures([by_value[value] for value in values]),
        )


def _varying(rest: tuple[str, ...], groups: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the parts of `rest` that other groups do not have."""
    return [part for part in rest if part and not all(part in group for group in groups)]


def _figures(variants: Sequence[Variant]) -> list[CurveFigure]:
    found: dict[tuple[str, str], list[list[float]]] = {}
    formats: dict[tuple[str, str], Format] = {}
    queues = {queue.name for variant in variants for one in variant.results for queue in one.figures.queues}
    for number, variant in enumerate(variants):
        for result in variant.results:
            for measure in measures(result):
                key = (measure.section, measure.name)
                if measure.value is None or not _is_main(key, len(queues)):
                    continue
                formats.setdefault(key, measure.format)
                found.setdefault(key, [[] for _ in variants])[number].append(measure.value)
    return [
        CurveFigure(*key, formats[key], [_band(values) for values in found[key]])
        for key in sorted(found, key=_place)
    ]


def _is_main(key: tuple[str, str], queues: int) -> bool:
    section, name = key
    if section == APPLICATIONS:
        return name in WAITS
    if section == TOTALS:
        return name in COUNTS or name.startswith(USE)
    return name == WAIT and queues <= QUEUES


def _place(key: tuple[str, str]) -> int:
    """Return the place of a figure: waits, those of queues, use, counts."""
    section, name = key
    if section == APPLICATIONS:
        return 0
    if section != TOTALS:
        return 1
    return 2 if name.startswith(USE) else 3


def _band(values: Sequence[float]) -> Band | None:
    found = dispersion(values)
    if found is None:
        return None
    low, high = (round(value, DIGITS) for value in (min(values), max(values)))
    return Band(found.mean, low, high, found.half, found.runs)


# -- output -----------------------------------------------------------------------------------------------


def curve_tables(curve: SettingCurve) -> Iterator[Table]:
    """Yield the tables of a curve, with a row for each value; many figures are split into several tables."""
    for start in range(0, len(curve.figures), BESIDE):
        figures = curve.figures[start : start + BESIDE]
        rows = [
            [value, *(_text(figure, number) for figure in figures)]
            for number, value in enumerate(curve.values)
        ]
        columns = [short_path(curve.setting), *(figure.label for figure in figures)]
        yield Table(f"Curve of {curve.title}", columns, rows, curve_note(curve), is_ordered=True)


def curve_note(curve: SettingCurve) -> str:
    """Return how to read the numbers of a curve."""
    runs = max((band.runs for figure in curve.figures for band in figure.bands if band), default=0)
    parts = [f"mean, and (lowest to highest) of {runs} seeds"] if runs > 1 else []
    if curve.words:
        parts.append(
            f"without {', '.join(word or 'the empty value' for word in curve.words)}, which is no number"
        )
    return "; ".join(parts)


def _text(figure: CurveFigure, number: int) -> str:
    band = figure.bands[number]
    if band is None or math.isclose(band.low, band.high):
        return figure.format(None if band is None else band.mean)
    return f"{figure.format(band.mean)} ({figure.format(band.low)} to {figure.format(band.high)})"


def curve_json(curve: SettingCurve) -> dict[str, object]:
    """Return a curve for JSON."""
    return {
        "setting": curve.setting,
        "rest": curve.rest,
        "kind": curve.numeric.kind,
        "values": curve.values,
        "numbers": curve.numbers,
        "figures": [
            {
                "section": figure.section,
                "name": figure.name,
                "bands": [None if band is None else attrs.asdict(band) for band in figure.bands],
            }
            for figure in curve.figures
        ],
    }


CURVE_COLUMNS: Columns[tuple[SettingCurve, CurveFigure, int, Band]] = {
    "setting": lambda row: row[0].setting,
    "rest": lambda row: row[0].rest,
    "value": lambda row: row[0].values[row[2]],
    "number": lambda row: row[0].numbers[row[2]],
    "section": lambda row: row[1].section,
    "figure": lambda row: row[1].name,
    "mean": lambda row: row[3].mean,
    "lowest": lambda row: row[3].low,
    "highest": lambda row: row[3].high,
    "half_width_of_95_percent_interval": lambda row: row[3].half,
    "runs": lambda row: row[3].runs,
}
"""Columns of curve.csv, with a row for each value of each figure."""


def curve_rows(
    curves: Sequence[SettingCurve],
) -> Iterator[tuple[SettingCurve, CurveFigure, int, Band]]:
    """Yield the rows of curve.csv."""
    for curve in curves:
        for figure in curve.figures:
            for number, band in enumerate(figure.bands):
                if band is not None:
                    yield curve, figure, number, band


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
