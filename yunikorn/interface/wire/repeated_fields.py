"""Lists of entries: translated one by one, so that what cannot be translated is named by its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from yunikorn.interface.wire.malformed import REFUSED, MalformedMessage, blame

Entry = TypeVar("Entry")
Wire = TypeVar("Wire")
Added_co = TypeVar("Added_co", covariant=True)


class _Growing(Protocol[Added_co]):
    def add(self) -> Added_co: ...


def fill_all(
    path: str, entries: Iterable[Entry], fill: Callable[[Entry, Wire], None], into: _Growing[Wire]
) -> None:
    """Write all entries; raises `MalformedMessage` with the field of the first that cannot be written."""
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
    """Write what stands alone; raises `MalformedMessage` as `fill_all` does."""
    try:
        fill(entry, into)
    except REFUSED as error:
        blame(path, entry, lambda one: fill(one, into), error)
