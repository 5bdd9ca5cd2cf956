"""Slices of an explanation, during which no plugin may call the scheduler."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

T = TypeVar("T")

EXPLAINING = "is explaining pending requests"


class Working(Protocol):
    """A scheduler with the operation in progress."""

    operation: str


@contextmanager
def explaining(scheduler: Working) -> Iterator[None]:
    """Refuse calls of the scheduler by plugins meanwhile."""
    before, scheduler.operation = scheduler.operation, EXPLAINING
    try:
        yield
    finally:
        scheduler.operation = before


def explained_in_slices(scheduler: Working, slices: Generator[None, None, T]) -> Generator[None, None, T]:
    """Continue `slices` with the calls of plugins refused, and pause where they pause."""
    while True:
        with explaining(scheduler):
            try:
                next(slices)
            except StopIteration as end:
                found: T = end.value
                return found
        yield
