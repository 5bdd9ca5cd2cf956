"""Check of the laws of a total order, which make sorting deterministic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

SHOWN = 5
"""Maximum number of order violations in a message."""


@attrs.frozen
class Keyed:
    """Key with the label of its sample."""

    label: str
    key: Any


def assert_ordered(keyed: Sequence[Keyed], what: str = "the keys") -> None:
    """Raise `AssertionError` with the first violations of a total order."""
    broken = broken_laws(keyed)
    if broken:
        more = [f"and {len(broken) - SHOWN} more"] if len(broken) > SHOWN else []
        first = f"{what} have no total order, so sorting is not deterministic:"
        raise AssertionError("\n".join([first, *broken[:SHOWN], *more]))


def broken_laws(keyed: Sequence[Keyed]) -> list[str]:
    """Return violations of a total order of keys; empty if there are none.

    Each key equals itself (NaN does not, also not as an entry of a tuple), exactly one of smaller, equal and
    greater holds for each pair, and "smaller" is transitive.
    """
    found = []
    for one in keyed:
        if _has_nan(one.key) or not bool(one.key == one.key):
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
                    f"for the keys of {left.label} and {right.label}, {left.key!r} and {right.key!r}, not "
                    "exactly one of smaller, equal and greater is true"
                )
    return found or _intransitive(keyed)


def _has_nan(key: Any) -> bool:
    # A tuple equals itself even with a NaN inside, which differs from the NaN of another key.
    if isinstance(key, tuple | list):
        return any(map(_has_nan, key))
    return isinstance(key, float) and key != key


def _intransitive(keyed: Sequence[Keyed]) -> list[str]:
    for first in keyed:
        for second in keyed:
            if not first.key < second.key:
                continue
            for third in keyed:
                if second.key < third.key and not first.key < third.key:
                    keys = ", ".join(repr(one.key) for one in (first, second, third))
                    return [
                        f"{first.label} precedes {second.label}, {second.label} precedes {third.label}, but "
                        f"{first.label} does not precede {third.label}: the keys are {keys}"
                    ]
    return []
