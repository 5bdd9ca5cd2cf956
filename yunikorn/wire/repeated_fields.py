"""Encoding of repeated fields, entry by entry, so that errors name the invalid entry."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from yunikorn.wire.malformed import REFUSED, MalformedMessage, blame

Entry = TypeVar("Entry")
Wire = TypeVar("Wire")
Added_co = TypeVar("Added_co", covariant=True)


class _Growing(Protocol[Added_co]):
    def add(self) -> Added_co: ...


def fill_all(
    path: str, entries: Iterable[Entry], fill: Callable[[Entry, Wire], None], into: _Growing[Wire]
) -> None:
    """Encode all entries; raise `MalformedMessage` with the field of the first invalid one."""
    index = 0
    entry = None
    try:
        for index, entry in enumerate(entries):  # noqa: B007
            fill(entry, into.add())
    except MalformedMessage as error:
        raise MalformedMessage(f"{path}[{index}].{error.path}", error.reason) from error
    except REFUSED as error:
        blame(f"{path}[{index}]", entry, lambda one: fill(one, into.add()), error)


def fill_one(path: str, entry: Entry, fill: Callable[[Entry, Wire], None], into: Wire) -> None:
    """Encode a single entry; raise `MalformedMessage` like `fill_all`."""
    try:
        fill(entry, into)
    except REFUSED as error:
        blame(path, entry, lambda one: fill(one, into), error)
