"""Amounts of resources: sparse mappings from the name of a resource type to a 64-bit quantity.

By convention `vcore` is in milli-vcores and `memory` in bytes; every other type is a plain count. In sums a
missing type counts as 0. In a quota a missing type is *unlimited*, and 0 allows *none*.

There are two representations. `Resource` is the immutable value in messages, configuration and objects. A
*tally* is a plain `dict[str, int]` that the accounting updates in place; it contains no zero entries.
`Resource` values saturate at the limits of int64, as in YuniKorn. Tallies are exact, so that subtracting an
amount always reverts its addition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
"""Bounds of amounts and times."""
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
"""Bounds of numbers of requests and of priorities, whose lowest value means that no request waits."""

Tally = dict[str, int]


def saturate(value: int) -> int:
    """Return `value` limited to the range of int64."""
    return INT64_MAX if value > INT64_MAX else INT64_MIN if value < INT64_MIN else value


class Resource(dict[str, int]):
    """Immutable amount of resources, such as `Resource(memory=2**30, vcore=500)`.

    It is read like any mapping; use `get(name, 0)` for a type that may be missing. Equality compares the
    entries: a missing type and an entry of 0 are different.
    """

    __slots__ = ("_hash",)
    _hash: int

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("a Resource does not change; make a new one")

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = __ior__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        try:
            return self._hash
        except AttributeError:
            object.__setattr__(self, "_hash", hash(frozenset(self.items())))
            return self._hash

    def __repr__(self) -> str:
        return f"Resource({', '.join(f'{name}={amount}' for name, amount in sorted(self.items()))})"

    def __str__(self) -> str:
        return describe(self)

    def __reduce__(self) -> tuple[type[Resource], tuple[dict[str, int]]]:
        return (Resource, (dict(self),))


NOTHING = Resource()


def describe(amount: Mapping[str, int]) -> str:
    """Return text such as `memory 10, vcore 500`, sorted by name; `nothing` if empty."""
    return ", ".join(f"{name} {value}" for name, value in sorted(amount.items())) or "nothing"


def add(left: Mapping[str, int], right: Mapping[str, int]) -> Resource:
    """Return the sum over the union of types."""
    total = dict(left)
    for name, value in right.items():
        total[name] = saturate(total.get(name, 0) + value)
    return Resource(total)


def subtract(left: Mapping[str, int], right: Mapping[str, int]) -> Resource:
    """Return the difference over the union of types; entries may be negative."""
    total = dict(left)
    for name, value in right.items():
        total[name] = saturate(total.get(name, 0) - value)
    return Resource(total)


def multiply(amount: Mapping[str, int], factor: int) -> Resource:
    """Return every entry times `factor`; a factor of 0 gives an empty amount."""
    return Resource({name: saturate(value * factor) for name, value in amount.items()} if factor else {})


def smaller_of(left: Mapping[str, int], right: Mapping[str, int]) -> Resource:
    """Return the minimum per type over the union; a type that only one side has is taken from there."""
    total = dict(left)
    for name, value in right.items():
        total[name] = min(total[name], value) if name in total else value
    return Resource(total)


def without_zeros(amount: Mapping[str, int]) -> Resource:
    """Return the amount without zero entries; the same object if there are none."""
    if 0 not in amount.values() and type(amount) is Resource:
        return amount
    return Resource({name: value for name, value in amount.items() if value})


def sum_of(amounts: Iterable[Mapping[str, int]]) -> Resource:
    """Return the sum of all amounts."""
    total: Tally = {}
    for amount in amounts:
        grow(total, amount)
    return Resource({name: saturate(value) for name, value in total.items()})


def grow(tally: Tally, amount: Mapping[str, int], times: int = 1) -> None:
    """Add `amount` times `times` to a tally in place; entries that become 0 are removed."""
    for name, value in amount.items():
        total = tally.get(name, 0) + value * times
        if total:
            tally[name] = total
        else:
            tally.pop(name, None)


def shrink(tally: Tally, amount: Mapping[str, int], times: int = 1) -> None:
    """Subtract `amount` times `times` from a tally in place; entries that become 0 are removed."""
    grow(tally, amount, -times)


def less(whole: Mapping[str, int], part: Mapping[str, int]) -> Tally:
    """Return `whole` minus `part`, for the types of `whole` only; not saturated."""
    return {name: amount - part.get(name, 0) for name, amount in whole.items()}


def fits(room: Mapping[str, int], amount: Mapping[str, int]) -> bool:
    """Return True if `amount` fits into `room`; a missing type and a negative entry count as 0."""
    for name, value in amount.items():
        if value > 0 and value > room.get(name, 0):
            return False
    return True


def fits_quota(quota: Mapping[str, int], amount: Mapping[str, int]) -> bool:
    """Return True if `amount` fits into `quota`; a missing type is unlimited."""
    for name, value in amount.items():
        if value > 0 and name in quota and value > quota[name]:
            return False
    return True


def is_zero(amount: Mapping[str, int]) -> bool:
    """Return True if every entry is 0."""
    return not any(amount.values())


def has_negative(amount: Mapping[str, int]) -> bool:
    """Return True if any entry is below 0."""
    for value in amount.values():
        if value < 0:
            return True
    return False


def above_zero(amount: Mapping[str, int]) -> bool:
    """Return True if no entry is below 0 and at least one is above."""
    return not has_negative(amount) and any(value > 0 for value in amount.values())


def shares(amount: Mapping[str, int], total: Mapping[str, int]) -> list[float]:
    """Return the entries of `amount` as fractions of `total`, ascending.

    An entry whose type is missing in `total` is returned as it is.
    """
    return sorted(
        0.0 if not value else value / total[name] if total.get(name) else float(value)
        for name, value in amount.items()
    )
