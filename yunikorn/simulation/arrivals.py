"""Sequences of applications that are generated on demand instead of being held in memory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import overload

from yunikorn.simulation.workload import WorkloadApplication


class Arrivals(Sequence[WorkloadApplication]):
    """A sequence that is iterated from its beginning and yields equal applications in every iteration.

    Access by index iterates over all earlier applications.
    """

    @abstractmethod
    def __iter__(self) -> Iterator[WorkloadApplication]:
        """Yield the applications from the first to the last, in order of submission."""

    @overload
    def __getitem__(self, index: int) -> WorkloadApplication: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[WorkloadApplication]: ...

    def __getitem__(self, index: int | slice) -> WorkloadApplication | Sequence[WorkloadApplication]:
        if isinstance(index, slice):
            return list(self)[index]
        place = index + len(self) if index < 0 else index
        for application in islice(self, max(place, 0), None) if place >= 0 else ():
            return application
        raise IndexError(f"there are {len(self)} applications, and none at {index}")


class Changed(Arrivals):
    """The applications of another sequence, each passed through a function."""

    def __init__(
        self,
        inner: Sequence[WorkloadApplication],
        change: Callable[[WorkloadApplication], WorkloadApplication],
    ) -> None:
        self._inner = inner
        self._change = change

    def __len__(self) -> int:
        return len(self._inner)

    def __iter__(self) -> Iterator[WorkloadApplication]:
        return map(self._change, self._inner)
