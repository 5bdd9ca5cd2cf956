"""What keys have to obey so that sorting by them has one result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs


@attrs.frozen
class Keyed:
    """A key, and whose it is."""

    label: str
    key: Any


def broken_laws(keyed: Sequence[Keyed]) -> list[str]:
    """What is wrong with keys that are to have a total order; empty when they have one.

    Each equals itself (NaN does not), of two exactly one is smaller or both are equal, and what is smaller
    than something small is smaller, too.
    """
    found = []
    for one in keyed:
        if not bool(one.key == one.key):
            found.append(f"the key of {one.label}, {one.key!r}, does not equal itself")
    if found:
        return found
    for left in keyed:
        for right in keyed:
            try:
                relations = [left.key < right.key, bool(left.key == right.key), right.key < left.key]
            except Exception as error:
                found.append(
                    f"the keys of {left.label} and {right.label}, {left.key!r} and {right.key!r}, do not "
                    f"compare: {type(error).__name__}: {error}"
                )
                continue
            if sum(map(bool, relations)) != 1:
                found.append(
                    f"of the keys of {left.label} and {right.label}, {left.key!r} and {right.key!r}, not "
                    "exactly one holds: smaller, equal, greater"
                )
    return found or _intransitive(keyed)


def _intransitive(keyed: Sequence[Keyed]) -> list[str]:
    for first in keyed:
        for second in keyed:
            if not first.key < second.key:
                continue
            for third in keyed:
                if second.key < third.key and not first.key < third.key:
                    keys = ", ".join(repr(one.key) for one in (first, second, third))
                    return [
                        f"{first.label} goes before {second.label}, that before {third.label}, but "
                        f"{first.label} not before {third.label}: their keys are {keys}"
                    ]
    return []
