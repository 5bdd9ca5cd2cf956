"""Texts of start estimates, for tables, pages, conditions of pods and explanations."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from yunikorn.clock import SECOND
from yunikorn.config.durations import spell_duration

if TYPE_CHECKING:
    from yunikorn_foresight.interval_calibration import Quantiles
    from yunikorn_foresight.start_estimates import StartEstimate

DATED = 10**9 * SECOND
"""Time (ns) from which clocks show dates: simulations begin at 0."""


class EstimateTexts:
    """Texts of times after the moment of estimates: of the day in UTC, with the date if it is another day."""

    def __init__(self, moment: int, horizon: float) -> None:
        """Count from `moment` (ns); `horizon` (s) is the time beyond which nothing is known."""
        self._moment, self._horizon = moment, horizon

    def sentence(self, estimate: StartEstimate) -> str:
        """Return the whole estimate in words, without the name of the application."""
        first = estimate.first
        if first.high <= 0:
            placed = self.text(estimate.whole.median)
            return "starts now" if first.high == 0 else f"runs; its last task starts {_at(placed)}"
        if first.low >= self._horizon:
            return f"starts {self.text(first.low)}"
        latest = ""
        if estimate.latest is not None and estimate.latest > 0:
            latest = f", at the latest {self.text(estimate.latest)} if everything runs to its limit"
        if first.high >= self._horizon:
            return f"starts after {self.text(max(first.low, 0.0))} (90 %){latest}"
        return f"starts between {self.text(max(first.low, 0.0))} and {self.text(first.high)} (80 %){latest}"

    def interval(self, quantiles: Quantiles) -> str:
        """Return the text of an interval."""
        if quantiles.high <= 0:
            return self.text(quantiles.high)
        if quantiles.low >= self._horizon:
            return self.text(quantiles.low)
        return f"{self.text(max(quantiles.low, 0.0))} to {self.text(quantiles.high)}"

    def text(self, time: float) -> str:
        """Return the text of a time (s) from the moment on."""
        if time >= self._horizon:
            return f"later than in {spell_duration(round(self._horizon) * SECOND)}"
        if time <= 0:
            return "now" if time == 0 else "runs"
        if self._moment < DATED:
            return f"in {spell_duration(round(time) * SECOND)}"
        at = datetime.fromtimestamp(self._moment // SECOND + round(time), UTC)
        today = datetime.fromtimestamp(self._moment // SECOND, UTC)
        return at.strftime("%H:%M" if at.date() == today.date() else "%Y-%m-%d %H:%M")


def _at(text: str) -> str:
    return text if text.startswith(("in ", "later", "now", "runs")) else f"at {text}"
