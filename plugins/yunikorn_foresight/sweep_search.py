"""Searches: every point with every draw, or successive halving, where only the better points get more draws.

Successive halving: Jamieson and Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter
Optimization", AISTATS 2016. The budget of a point is the number of its draws: all points get the same first
draws, the better part of them as many again times `factor`, until all draws are used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from yunikorn_foresight.sweep_points import HALVING, SweepPoint
from yunikorn_foresight.sweep_result import Draw, Figures, Objective, SweptPoint, costs

FACTOR = 3
"""Factor by which the number of points falls, and that of their draws grows, from round to round."""
Evaluate = Callable[[Sequence[SweepPoint], Sequence[Draw]], Mapping[tuple[int, Draw], Figures]]
"""Function that returns the finished runs of points with draws; those of earlier calls cost nothing."""


def search_points(
    kind: str,
    points: Sequence[SweepPoint],
    draws: Sequence[Draw],
    objectives: Sequence[Objective],
    evaluate: Evaluate,
) -> list[SweptPoint]:
    """Return all points with the runs that the search gave them.

    The first point is that to compare with, which gets all draws. An interrupted search has fewer runs.
    """
    if kind != HALVING:
        return _gathered(points, draws, evaluate(points, draws))
    found: dict[tuple[int, Draw], Figures] = {}
    kept = list(points)
    for count in rounds(len(points), len(draws)):
        some = draws[:count]
        found.update(evaluate(kept, some))
        if count < len(draws):
            swept = _gathered(kept[1:], some, found)
            swept.sort(key=lambda one: (costs(one, objectives), one.point.number))
            best = {one.point.number for one in swept[: math.ceil(len(swept) / FACTOR)]}
            kept = [points[0], *(one for one in points[1:] if one.number in best)]
    last = {one.number for one in kept}
    return _gathered(points, draws, found, last)


def rounds(points: int, draws: int) -> list[int]:
    """Return the number of draws of each round: as many rounds as leave at least one point and one draw."""
    found = [draws]
    while found[0] // FACTOR >= 1 and FACTOR ** len(found) < points:
        found.insert(0, found[0] // FACTOR)
    return found


def _gathered(
    points: Sequence[SweepPoint],
    draws: Sequence[Draw],
    runs: Mapping[tuple[int, Draw], Figures],
    last: set[int] | None = None,
) -> list[SweptPoint]:
    return [
        SweptPoint(
            one,
            {draw: runs[one.number, draw] for draw in draws if (one.number, draw) in runs},
            is_dropped=last is not None and one.number not in last,
        )
        for one in points
    ]
