"""Groups of run times: by user, queue, template of the application and size, from fine to coarse.

Run times are kept in histograms whose buckets are an eighth of a power of two wide, so that a quantile is
right to about 6 %. Memory depends on the number of groups, not on that of the tasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import attrs

GROUPS = ("user", "queue", "template", "resource")
"""Properties of tasks by which run times are grouped."""
USER, QUEUE, TEMPLATE, RESOURCE = GROUPS
LADDER = (
    *((USER, TEMPLATE, RESOURCE), (USER, TEMPLATE), (TEMPLATE, RESOURCE)),
    *((TEMPLATE,), (USER, QUEUE), (QUEUE,), ()),
)
"""Groups from which an estimate is made: the first one with enough tasks."""
FEWEST = 20
"""Number of tasks from which on a group is enough for an estimate."""
MOST_GROUPS = 100_000
"""Number of groups of one kind that are kept; tasks of later ones count in the coarser groups only."""
FINE = 8
"""Number of buckets in each power of two."""


def bucket_of(time: int) -> int:
    """Return the number of the bucket of a run time (ms)."""
    shift = max(time.bit_length() - FINE.bit_length(), 0)
    return FINE * shift + (time >> shift)


def lowest_of(bucket: int) -> int:
    """Return the smallest run time (ms) of a bucket."""
    shift = max(bucket // FINE - 1, 0)
    return (bucket - FINE * shift) << shift


def quantile(buckets: Mapping[int, int], share: float) -> int:
    """Return the run time (ms) that this share of the tasks did not exceed, by proportion in its bucket."""
    left = share * sum(buckets.values())
    for bucket, count in sorted(buckets.items()):
        if left <= count:
            low, high = lowest_of(bucket), lowest_of(bucket + 1) - 1
            return low + round((high - low) * left / count)
        left -= count
    return 0


@attrs.frozen
class RunTimeEstimate:
    """Run times of the tasks that are most like another one."""

    by: tuple[str, ...]
    """Properties that these tasks have in common with the other one."""
    tasks: int
    quantiles: tuple[int, ...]
    """Run times (ms)."""


class RunTimes:
    """Run times of ended tasks, by one or several kinds of groups."""

    def __init__(self, kinds: Sequence[tuple[str, ...]] = LADDER, recent: int = 0) -> None:
        """Group by these kinds, from fine to coarse.

        If `recent` is not 0, the tasks of a group count half whenever there are twice as many.
        """
        self._recent = recent
        self.groups: dict[tuple[str, ...], dict[tuple[str, ...], Counter[int]]] = {kind: {} for kind in kinds}
        """Numbers of tasks by bucket, by the names of each group."""
        self._places = {kind: [GROUPS.index(subject) for subject in kind] for kind in kinds}

    def add(self, names: Sequence[str], bucket: int, tasks: int = 1) -> None:
        """Add tasks with these names, in the order of `GROUPS`."""
        for kind, found in self.groups.items():
            key = tuple([names[place] for place in self._places[kind]])
            group = found.get(key)
            if group is None:
                if len(found) >= MOST_GROUPS:
                    continue
                group = found[key] = Counter()
            group[bucket] += tasks
            self._age(group)

    def _age(self, group: Counter[int]) -> None:
        """Let the tasks of a group count half while there are too many."""
        while self._recent and group.total() > 2 * self._recent:
            for each, count in list(group.items()):
                group[each] = count - count // 2
                if count == 1:
                    del group[each]

    def put(self, kind: tuple[str, ...], names: tuple[str, ...], buckets: Mapping[int, int]) -> None:
        """Set the histogram of a group; kinds that are not used, and groups beyond the most, are ignored."""
        found = self.groups.get(kind, {})
        if kind in self.groups and (names in found or len(found) < MOST_GROUPS):
            found[names] = Counter(buckets)
            self._age(found[names])

    def estimate(
        self, names: Mapping[str, str], shares: Sequence[float], *, fewest: int = FEWEST, age: int = 0
    ) -> RunTimeEstimate | None:
        """Return quantiles of the run times of a task with these names; None if nothing is known.

        The group is the first one with `fewest` tasks, or the largest one. Only tasks count that ran longer
        than `age` (ms).
        """
        above = bucket_of(age) if age else -1
        best: tuple[tuple[str, ...], int, Counter[int]] | None = None
        for kind, found in self.groups.items():
            group = found.get(tuple([names.get(subject, "") for subject in kind]), Counter())
            if above >= 0:
                group = Counter({each: count for each, count in group.items() if each > above})
            tasks = group.total()
            if tasks > (0 if best is None else best[1]):
                best = kind, tasks, group
            if tasks >= fewest:
                break
        if best is None:
            return None
        kind, tasks, group = best
        return RunTimeEstimate(kind, tasks, tuple(quantile(group, share) for share in shares))
