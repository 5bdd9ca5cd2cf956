"""Scores that are mapped by the lowest and highest score of the present nodes.

See `docs/decisions/archive/0201`.

The range is that of the nodes in one order. When an end of the range moves, the positions of all nodes
change; they are computed from scores that were kept, without a call of a policy. To bound the cost, this
waits until enough scores have changed since the last time. Until then, a score outside counts as the nearer
end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from yunikorn.containment import contained
from yunikorn.scheduling.node_policies import LAST, float_of, share, squashed

if TYPE_CHECKING:
    from yunikorn.model.node import Node
    from yunikorn.scheduling.node_policies import MemberClass, Range, WeightedScores

PAID = 32
"""Number of nodes whose positions may be computed for each score that has changed."""

_Scores = tuple[float, ...]


class NormalisedScores:
    """Several node sort policies as one, for one order of nodes."""

    __slots__ = ("_changes", "_is_stale", "_known", "_ranges", "_uses_known", "_weighted", "_weights")

    def __init__(self, weighted: WeightedScores) -> None:
        self._weighted = weighted
        self._weights = [weight for _, _, weight, _, _, member in weighted.terms if member.normalised]
        self._ranges: list[Range] = [(0.0, 0.0)] * len(self._weights)
        """Range of each normalised policy, when the ranges were taken."""
        self._known: dict[str, tuple[float, _Scores]] = {}
        """By node id: the weighted sum of scores with a fixed range, and those of normalised policies."""
        self._changes = 0
        """Number of scores that have changed since the ranges were taken."""
        self._is_stale = False
        """True if one of them was or is at an end of its range, or beyond."""
        self._uses_known = False

    @property
    def refresh_every(self) -> float | None:
        """Seconds after which all scores are recomputed; None for never."""
        return self._weighted.refresh_every

    def score(self, node: Node, views: Sequence[MemberClass] | None = None) -> float:
        """Return the weighted mean of the scores of a node; infinity if a policy fails."""
        found = self._known.get(node.id) if self._uses_known else self._compute(node, views)
        if found is None:
            return LAST
        total, scores = found
        for weight, score, (low, high) in zip(self._weights, scores, self._ranges, strict=True):
            total += weight * (share(score, low, high - low) if high > low else float(score > high))
        return total

    def _compute(self, node: Node, views: Sequence[MemberClass] | None) -> tuple[float, _Scores] | None:
        """Call the policies, and keep their scores; return None if one fails, which is reported."""
        total, scores = 0.0, []
        for at, (call, by_ask_class, weight, low, width, member) in enumerate(self._weighted.terms):
            try:
                score = call(node, views[at]) if by_ask_class and views is not None else call(node)
                if member.normalised:
                    scores.append(float_of(score))
                else:
                    total += weight * (share(score, low, width) if width else squashed(score))
            except contained() as error:
                self._weighted.failed(member, error, node)
                self.forget(node.id)
                return None
        before, found = self._known.get(node.id), (total, tuple(scores))
        self._known[node.id] = found
        if before is None:
            self._count(found[1])
        elif before[1] != found[1]:
            self._count(found[1], before[1])
        return found

    def forget(self, node_id: str) -> None:
        """Forget a node that has left the order."""
        before = self._known.pop(node_id, None)
        if before is not None:
            self._count(before[1])

    def _count(self, *changed: _Scores) -> None:
        """Count a change of a node; `changed` are its scores before and after."""
        self._changes += 1
        self._is_stale = self._is_stale or any(
            not low < score < high
            for scores in changed
            for score, (low, high) in zip(scores, self._ranges, strict=True)
        )

    def take_ranges(self) -> bool:
        """Take the ranges of the present nodes if that is due; return True if one has changed."""
        if not self._is_stale or self._changes * PAID < len(self._known):
            return False
        self._changes, self._is_stale = 0, False
        before = self._ranges
        columns = zip(*(scores for _, scores in self._known.values()), strict=True)
        self._ranges = [_range_of(column) for column in columns] or before
        return self._ranges != before

    def use_known(self, *, known: bool) -> None:
        """Compute scores from those that are kept, or by calls of the policies."""
        self._uses_known = known


def _range_of(scores: _Scores) -> Range:
    """Return the lowest and highest finite score."""
    finite = [score for score in scores if -LAST < score < LAST]
    return (min(finite), max(finite)) if finite else (0.0, 0.0)
