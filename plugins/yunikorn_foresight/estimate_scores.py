"""Scores of start estimates on a workload, beside those of simple predictors."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence

import attrs

from yunikorn_foresight.estimate_calibration import MINUTE, Estimated
from yunikorn_lab.reporting.tables import Table

INSIDE = 0.8
"""Share of the waits that an interval should hold."""


@attrs.frozen
class PredictorScore:
    """Closeness of a predictor to waits above a minute."""

    name: str
    within_two: float | None
    """Share of predictions between half and twice the wait; None without waits."""
    bias: float | None
    """Median of prediction divided by wait."""


@attrs.frozen
class EstimateScores:
    """Scores of one workload under one configuration."""

    applications: int
    """Number of applications that started."""
    at_once: int
    """Number of those that waited for less than a minute, of which estimates are known."""
    told_at_once: float | None
    """Share of these whose estimate is below a minute."""
    waits: int
    """Number of estimated waits above a minute."""
    inside: float | None
    """Share of these that the intervals hold."""
    width: float | None
    """Median of upper divided by lower end of an interval, both with ten seconds more."""
    predictors: list[PredictorScore]


def scores_of(found: Sequence[Estimated]) -> EstimateScores:
    """Return the scores of applications that have quantiles."""
    started = [one for one in found if math.isfinite(one.wait) and one.given is not None]
    short = [one for one in started if one.wait < MINUTE]
    long = [one for one in started if one.wait >= MINUTE]
    return EstimateScores(
        len(started),
        len(short),
        _share([one.given is not None and one.given.median < MINUTE for one in short]),
        len(long),
        _share([one.given is not None and one.given.holds(one.wait) for one in long]),
        _middle([(one.given.high + 10) / (one.given.low + 10) for one in long if one.given is not None]),
        [
            _predictor("replays", long, lambda one: one.given.median if one.given else 0.0),
            _predictor("mean of the last ten waits", long, lambda one: one.last_waits),
            _predictor("work ahead divided by the machine", long, lambda one: one.work_ahead),
        ],
    )


def _predictor(name: str, long: Sequence[Estimated], get: Callable[[Estimated], float]) -> PredictorScore:
    ratios = [max(get(one), 1.0) / one.wait for one in long]
    return PredictorScore(name, _share([0.5 <= ratio <= 2 for ratio in ratios]), _middle(ratios))


def _share(flags: Sequence[bool]) -> float | None:
    return sum(flags) / len(flags) if flags else None


def _middle(numbers: Sequence[float]) -> float | None:
    return sorted(numbers)[len(numbers) // 2] if numbers else None


def scores_json(scores: EstimateScores) -> str:
    """Return scores as JSON with a final newline."""
    return json.dumps(attrs.asdict(scores), indent=2) + "\n"


def scores_table(scores: EstimateScores) -> Table:
    """Return scores as a table."""
    rows = [[one.name, _percent(one.within_two), _ratio(one.bias)] for one in scores.predictors]
    width = f"{_ratio(scores.width)} times the lower one"
    note = (
        f"Of {scores.waits:,} estimated waits above a minute. The intervals hold {_percent(scores.inside)},"
        f" and should hold {INSIDE:.0%}; half of their upper ends are above {width}."
        f" Of {scores.at_once:,} applications that started within a minute, {_percent(scores.told_at_once)}"
        " were told so."
    )
    return Table("Start estimates", ["predictor", "within 2x", "bias"], rows, note=note, is_ordered=True)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
