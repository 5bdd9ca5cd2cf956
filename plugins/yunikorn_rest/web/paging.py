"""Parts of long lists for pages with numbers, sorted in slices between decisions."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

import attrs

from yunikorn_rest.endpoints import Call

T = TypeVar("T")

SIZE = 50
"""Number of rows of a page."""
STEP = 250
"""Number of rows that are sorted, or passed over, without a pause."""


@attrs.frozen
class PagePosition:
    """Position of the rows that a page shows."""

    number: int
    """Number of the page, from 1 on."""
    pages: int
    """Number of pages."""
    total: int
    """Number of rows on all pages."""
    size: int = SIZE

    @property
    def first(self) -> int:
        """Number of the first row of the page, from 1 on; 0 without rows."""
        return min(self.total, (self.number - 1) * self.size + 1)

    @property
    def last(self) -> int:
        """Number of the last row of the page."""
        return min(self.total, self.number * self.size)


def wanted_number(call: Call) -> int:
    """Return the number of the page that a request wants; 1 for anything that is no number."""
    text = call.query("page")
    return max(1, int(text)) if text.isascii() and text.isdigit() and len(text) < 9 else 1


def part_of(total: int, number: int, size: int = SIZE) -> PagePosition:
    """Return the part of a list of this length on a page, or on the last page if the list is shorter."""
    pages = max(1, -(-total // size))
    return PagePosition(min(number, pages), pages, total, size)


def sorted_part(
    things: Sequence[T],
    wanted: Callable[[T], bool],
    key: Callable[[T], Any],
    number: int,
    size: int = SIZE,
) -> Generator[None, None, tuple[list[T], PagePosition]]:
    """Return the wanted things of a page in the order of their keys, which must be unique.

    `things` must be a copy, because this pauses. Things are filtered and get their keys once.
    """
    parts: list[list[tuple[Any, T]]] = []
    for start in range(0, len(things), STEP):
        found = [(key(thing), thing) for thing in things[start : start + STEP] if wanted(thing)]
        found.sort(key=_key)
        parts.append(found)
        yield
    part = part_of(sum(map(len, parts)), number, size)
    rows: list[T] = []
    for index, (_, thing) in enumerate(heapq.merge(*parts, key=_key)):
        if index >= part.last:
            break
        if index >= part.first - 1:
            rows.append(thing)
        if index % STEP == STEP - 1:
            yield
    return rows, part


def _key(pair: tuple[Any, object]) -> Any:
    return pair[0]
