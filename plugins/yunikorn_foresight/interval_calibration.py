"""Quantiles of waits from replays, adjusted by how well earlier ones have held.

Replays know the order of decisions, and not how badly run times are estimated on a cluster. So each estimate
is scored when the truth is known: the distance of the wait from the median of the replays, on a logarithmic
scale, relative to their spread. The quantiles of the latest scores say where the quantiles of the next
estimate are. The share of waits outside the intervals corrects what that leaves: the level is lowered a bit
after each wait inside, and raised by four times as much after each one outside.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

import attrs

SMALL = 10.0
"""Seconds that are added to waits, so that small ones are not taken for very different."""
LEAST_SPREAD = 0.25
"""Smallest spread on the logarithmic scale: replays that agree may be wrong together."""
RECENT = 200
"""Number of scores that count."""
PRIOR = (-2.5, -1.6, -1.0, -0.6, -0.3, 0.0, 0.3, 0.6, 1.0, 1.6, 2.5)
"""Scores before any is known: intervals are wider than those of the replays."""
OUTSIDE = 0.2
"""Share of the waits that are to be outside of the intervals."""
STEP = 0.01
"""Change of the level after a wait outside, per share."""


@attrs.frozen
class Quantiles:
    """Times (s) below which one in ten, half, and nine in ten are; infinite beyond the horizon."""

    low: float
    median: float
    high: float

    def holds(self, time: float) -> bool:
        """Return True if a time is inside the interval."""
        return self.low <= time <= self.high


@attrs.frozen
class Ensemble:
    """Median and spreads of replays on a logarithmic scale."""

    middle: float
    below: float
    above: float

    @classmethod
    def of(cls, waits: Sequence[float]) -> Ensemble:
        """Return that of the waits (s) in replays; infinite ones count as longer than the others."""
        logs = sorted(_log(one) for one in waits)
        middle = _quantile(logs, 0.5)
        if math.isinf(middle):
            return cls(middle, LEAST_SPREAD, LEAST_SPREAD)
        finite = [one for one in logs if not math.isinf(one)]
        high = min(_quantile(logs, 0.9), finite[-1] + 1.0)
        return cls(
            middle,
            max(middle - _quantile(logs, 0.1), LEAST_SPREAD),
            max(high - middle, LEAST_SPREAD),
        )

    def score(self, wait: float) -> float:
        """Return how far a wait is from the median, in spreads."""
        distance = _log(wait) - self.middle
        return distance / (self.above if distance > 0 else self.below)

    def at(self, score: float) -> float:
        """Return the wait (s) with a score."""
        found = self.middle + score * (self.above if score > 0 else self.below)
        return math.inf if math.isinf(found) else max(math.exp(found) - SMALL, 0.0)


def _log(wait: float) -> float:
    return math.inf if math.isinf(wait) else math.log(max(wait, 0.0) + SMALL)


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Return a quantile between neighbours."""
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    if math.isinf(ordered[above]):
        return ordered[above] if place > below else ordered[below]
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


class IntervalCalibration:
    """The latest scores, and the level that follows from the waits outside of intervals."""

    def __init__(self) -> None:
        self._scores: deque[float] = deque(PRIOR, RECENT)
        self._level = OUTSIDE

    def quantiles(self, ensemble: Ensemble) -> Quantiles:
        """Return the quantiles of a wait (s), adjusted by the scores so far."""
        ordered = sorted(self._scores)
        outside = min(max(self._level, 0.02), 0.6) / 2
        return Quantiles(*(ensemble.at(_quantile(ordered, share)) for share in (outside, 0.5, 1 - outside)))

    def score(self, ensemble: Ensemble, given: Quantiles, wait: float) -> None:
        """Learn from a wait (s) that is known now, and for which these quantiles were given."""
        score = ensemble.score(wait)
        if not math.isfinite(score):
            return
        self._scores.append(score)
        missed = not given.holds(wait)
        self._level += STEP * (OUTSIDE - missed)
        self._level = min(max(self._level, 0.02), 0.6)

    # -- over a restart -----------------------------------------------------------------------------

    def saved(self) -> dict[str, object]:
        """Return what was learned, as JSON takes it."""
        return {"scores": list(self._scores), "level": self._level}

    def restored(self, state: dict[str, object]) -> None:
        """Continue with what another one has saved."""
        scores, level = state["scores"], state["level"]
        assert isinstance(scores, list)
        assert isinstance(level, float)
        self._scores, self._level = deque(scores, RECENT), level
