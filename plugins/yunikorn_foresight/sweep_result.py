"""Result of a sweep: figures of each point over its runs, differences, ranks, and the Pareto front."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from yunikorn_foresight.sweep_points import SweepPoint
from yunikorn_lab.reporting.metrics import Dispersion, difference, dispersion
from yunikorn_lab.reporting.provenance import Provenance
from yunikorn_lab.reporting.report_assertions import ReportFigure

FORMAT = 1
"""Version of the JSON document."""
Draw = tuple[int, int | None]
"""Number of a workload, and the seed."""
Figures = Mapping[str, float | None]


@attrs.frozen
class Objective:
    """A figure to make small or large."""

    figure: ReportFigure
    is_maximised: bool = False

    @property
    def name(self) -> str:
        """Name of the figure."""
        return self.figure.text

    def cost(self, value: float | None) -> float:
        """Return a number that is smaller for better values; a missing value is worse than all."""
        if value is None:
            return math.inf
        return -value if self.is_maximised else value


@attrs.frozen
class SweptPoint:
    """A point with the figures of its runs."""

    point: SweepPoint
    runs: Mapping[Draw, Figures]
    """Figures by draw, in the order of the draws."""
    is_dropped: bool = False
    """True if a search by halving has given it fewer draws than others."""

    def mean(self, name: str) -> Dispersion | None:
        """Return mean and confidence interval of a figure over the runs; None if a run has no value.

        With several workloads it is the mean of all runs. A wait that never ends has an infinite mean.
        """
        values = [figures.get(name) for figures in self.runs.values()]
        known = [value for value in values if value is not None]
        if len(known) < len(values) or not known:
            return None
        if math.inf in known:
            return Dispersion(math.inf, None, len(known))
        return dispersion(known)

    def against(self, other: SweptPoint, name: str) -> Dispersion | None:
        """Return the difference to another point in the draws of both, pair by pair; None without pairs."""
        both = [draw for draw in self.runs if draw in other.runs]
        one = [_finite(other.runs[draw].get(name)) for draw in both]
        return difference(one, [_finite(self.runs[draw].get(name)) for draw in both])


def _finite(value: float | None) -> float | None:
    return None if value is None or math.isinf(value) else value


@attrs.frozen
class SweepResult:
    """All points of a sweep, the unchanged configuration first."""

    search: str
    objectives: Sequence[Objective]
    workloads: Sequence[str]
    """Names of the workloads."""
    seeds: Sequence[int]
    points: Sequence[SweptPoint]
    provenance: Provenance
    unfinished: int = 0
    """Number of runs that were not finished."""

    @property
    def ranked(self) -> list[SweptPoint]:
        """Points with the largest number of runs, from the best to the worst by the first objective."""
        most = max((len(one.runs) for one in self.points), default=0)
        whole = [one for one in self.points if one.runs and len(one.runs) == most]
        return sorted(whole, key=lambda one: (costs(one, self.objectives), one.point.number))

    @property
    def front(self) -> list[SweptPoint]:
        """Points that no other one beats or equals in all objectives, in the order of the first objective."""
        return pareto_front(self.ranked, self.objectives)

    def to_json(self) -> str:
        """Return the result as JSON; times are seconds, a wait that never ends is `never`."""
        front = {one.point.number for one in self.front}
        entry = {
            "format": FORMAT,
            "search": self.search,
            "objectives": [
                {"figure": one.name, "direction": "maximise" if one.is_maximised else "minimise"}
                for one in self.objectives
            ],
            "workloads": list(self.workloads),
            "seeds": list(self.seeds),
            "unfinished": self.unfinished,
            "points": [self._entry(one, one.point.number in front) for one in self.points],
            "provenance": attrs.asdict(self.provenance),
        }
        return json.dumps(entry, indent=2) + "\n"

    def _entry(self, one: SweptPoint, on_front: bool) -> dict[str, Any]:
        names = dict.fromkeys(name for figures in one.runs.values() for name in figures)
        return {
            "point": one.point.number,
            "settings": {setting.label: setting.value for setting in one.point.settings},
            "runs": len(one.runs),
            "on_front": on_front,
            "dropped": one.is_dropped,
            "figures": {name: _described(one.mean(name)) for name in names},
        }


def _described(found: Dispersion | None) -> dict[str, Any] | None:
    if found is None:
        return None
    mean = "never" if math.isinf(found.mean) else found.mean
    return {"mean": mean, "confidence_half": found.half}


def costs(one: SweptPoint, objectives: Sequence[Objective]) -> tuple[float, ...]:
    """Return the costs of a point in the order of the objectives."""
    means = [one.mean(objective.name) for objective in objectives]
    return tuple(
        objective.cost(None if mean is None else mean.mean)
        for objective, mean in zip(objectives, means, strict=True)
    )


def pareto_front(points: Iterable[SweptPoint], objectives: Sequence[Objective]) -> list[SweptPoint]:
    """Return the points that no other one beats or equals in all objectives.

    `points` are sorted by their costs. Of points with equal means, the first one is on the front.
    """
    front: list[tuple[tuple[float, ...], SweptPoint]] = []
    for one in points:
        cost = costs(one, objectives)
        is_beaten = any(all(a <= b for a, b in zip(best, cost, strict=True)) for best, _ in front)
        if not is_beaten and not any(map(math.isinf, cost)):
            front.append((cost, one))
    return [one for _, one in front]
