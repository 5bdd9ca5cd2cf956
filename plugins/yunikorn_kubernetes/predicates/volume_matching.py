"""Assignment of free volumes to claims such that no two claims get one volume.

A maximum bipartite matching with augmenting paths. Whether further claims fit does not depend on which
maximum matching is kept (the sets of claims that can all be served form a matroid), so the answers do not
depend on the order in which claims came.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence

Names = tuple[str, ...]
"""Names of volumes that suit a claim, the preferred ones first."""
_HYPOTHETICAL = object()


class VolumeMatching:
    """Claims, the volumes that suit each, and a maximum matching between them."""

    def __init__(self) -> None:
        self._suitable: dict[Hashable, Names] = {}
        self._matched: dict[Hashable, str] = {}
        """Volume of each claim that has one."""
        self._holders: dict[str, Hashable] = {}
        """Claim of each volume that is taken."""
        self._unmatched: dict[Hashable, None] = {}
        """Claims for which no volume is left."""
        self._exhausted: set[str] = set()
        """Taken volumes that cannot be made free by moving claims to other volumes, as far as known."""

    def __len__(self) -> int:
        return len(self._suitable)

    def __contains__(self, claim: Hashable) -> bool:
        return claim in self._suitable

    @property
    def assignment(self) -> Mapping[Hashable, str]:
        """Volume of each claim that has one."""
        return self._matched

    def add(self, claim: Hashable, suitable: Iterable[str]) -> None:
        """Add a claim; without a volume if none is left. Raises `ValueError` if it was added before."""
        if claim in self._suitable:
            raise ValueError(f"{claim} is in the matching already")
        self._suitable[claim] = names = tuple(suitable)
        if not self._assign(claim, names):
            self._unmatched[claim] = None

    def remove(self, claim: Hashable) -> None:
        """Remove a claim; its volume goes to a claim without one, if that suits. Raises `KeyError`."""
        del self._suitable[claim]
        self._unmatched.pop(claim, None)
        volume = self._matched.pop(claim, None)
        if volume is None:
            return
        del self._holders[volume]
        self._exhausted.clear()
        for other in self._unmatched:
            if self._assign(other, self._suitable[other]):
                # At most one claim can get a volume by the return of one.
                del self._unmatched[other]
                return

    def fit(self, demands: Sequence[Names]) -> bool:
        """Return True if further claims, given by the volumes that suit them, would all get one."""
        if len(demands) == 1:
            return self._path(demands[0], self._exhausted) is not None
        before = dict(self._suitable), dict(self._matched), dict(self._holders)
        try:
            for number, names in enumerate(demands):
                claim = (_HYPOTHETICAL, number)
                self._suitable[claim] = names
                if not self._assign(claim, names, set()):
                    return False
            return True
        finally:
            self._suitable, self._matched, self._holders = before

    def _assign(self, claim: Hashable, names: Names, exhausted: set[str] | None = None) -> bool:
        """Give a claim a volume, moving other claims to other volumes where necessary."""
        path = self._path(names, self._exhausted if exhausted is None else exhausted)
        if path is None:
            return False
        # From the end: each claim on the path leaves its volume to the one before.
        for index in range(len(path) - 1, -1, -1):
            holder = claim if index == 0 else self._holders[path[index - 1]]
            self._matched[holder] = path[index]
            self._holders[path[index]] = holder
        return True

    def _path(self, names: Names, exhausted: set[str]) -> list[str] | None:
        """Return volumes, the last one free, of which each holder can move to the next; None if impossible.

        The search visits preferred volumes first and stops at the first free one.
        """
        came_from: dict[str, str | None] = {}
        queue: deque[str] = deque()
        for name in names:
            if name not in self._holders:
                return [name]
            if name not in exhausted and name not in came_from:
                came_from[name] = None
                queue.append(name)
        while queue:
            taken = queue.popleft()
            for name in self._suitable[self._holders[taken]]:
                if name in came_from or name in exhausted:
                    continue
                came_from[name] = taken
                if name not in self._holders:
                    return _traced(came_from, name)
                queue.append(name)
        exhausted.update(came_from)
        return None


def _traced(came_from: Mapping[str, str | None], last: str) -> list[str]:
    """Return the path that ends at `last`."""
    path = [last]
    while (before := came_from[path[-1]]) is not None:
        path.append(before)
    path.reverse()
    return path


def assigned(demands: Sequence[Names]) -> list[str | None]:
    """Return a volume for each claim in order, None where none is left; each volume at most once.

    The claims are served in the given order as long as all others can be served, too; each gets the first
    name in its list that is still free, unless another claim needs that volume.
    """
    matching = VolumeMatching()
    for number, names in enumerate(demands):
        matching.add(number, names)
    return [matching.assignment.get(number) for number in range(len(demands))]
