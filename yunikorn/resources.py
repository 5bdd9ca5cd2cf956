"""Amounts of resources: sparse maps from a type's name to a 64-bit quantity.

`vcore` counts milli-cores and `memory` bytes by convention; every other type is a plain count. A type
that is missing reads as 0 in sums. In a quota a missing type means *unlimited* and 0 means *none*.
Source: facts §2.

Two forms. `Resource` is the immutable value of messages, configuration and objects. A *tally* is a
plain `dict[str, int]` that the books keep and change in place; it holds no zero entries. Values
saturate at the borders of int64 as in the facts; tallies are exact, so that what was added can be
taken away again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)

Tally = dict[str, int]


def saturate(value: int) -> int:
    """`value`, held within int64."""
    return INT64_MAX if value > INT64_MAX else INT64_MIN if value < INT64_MIN else value


class Resource(dict[str, int]):
    """An immutable amount of resources, such as `Resource(memory=2**30, vcore=500)`.

    Reads like any mapping; `get(name, 0)` is how a missing type is read. Equality is by entries: a
    missing type and one of 0 differ.
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
    """`memory 10, vcore 500`, by name; `nothing` when empty."""
    return ", ".join(f"{name} {value}" for name, value in sorted(amount.items())) or "nothing"


def add(left: Mapping[str, int], right: Mapping[str, int]) -> Resource:
    """Sum over the union of types (facts §2.2)."""
    total = dict(left)
    for name, value in right.items():
        total[name] = saturate(total.get(name, 0) + value)
    return Resource(total)


def subtract(left: Mapping[str, int], right: Mapping[str, int]) -> Resource:
    """Difference over the union of types; may go negative (facts §2.2)."""
    total = dict(left)
    for name, value in right.items():
        total[name] = saturate(total.get(name, 0) - value)
    return Resource(total)


def multiply(amount: Mapping[str, int], factor: int) -> Resource:
    """Every type times `factor`; times 0 is nothing (facts §2.1)."""
    return Resource({name: saturate(value * factor) for name, value in amount.items()} if factor else {})


def smaller_of(left: Mapping[str, int], right: Mapping[str, int]) -> Resource:
    """The smaller of both per type, over the union; a type only one side has is taken from it."""
    total = dict(left)
    for name, value in right.items():
        total[name] = min(total[name], value) if name in total else value
    return Resource(total)


def without_zeros(amount: Mapping[str, int]) -> Resource:
    """The same amount without its zero entries; the very same value if it has none."""
    if 0 not in amount.values() and type(amount) is Resource:
        return amount
    return Resource({name: value for name, value in amount.items() if value})


def sum_of(amounts: Iterable[Mapping[str, int]]) -> Resource:
    """All of them added."""
    total: Tally = {}
    for amount in amounts:
        grow(total, amount)
    return Resource({name: saturate(value) for name, value in total.items()})


def grow(tally: Tally, amount: Mapping[str, int], times: int = 1) -> None:
    """Add `amount`, `times` over, to a tally in place; entries that become 0 go."""
    for name, value in amount.items():
        total = tally.get(name, 0) + value * times
        if total:
            tally[name] = total
        else:
            tally.pop(name, None)


def shrink(tally: Tally, amount: Mapping[str, int], times: int = 1) -> None:
    """Take `amount`, `times` over, out of a tally in place; entries that become 0 go."""
    grow(tally, amount, -times)


def less(whole: Mapping[str, int], part: Mapping[str, int]) -> Tally:
    """What is left of `whole` without `part`, of the types of `whole`; exact, like the books."""
    return {name: amount - part.get(name, 0) for name, amount in whole.items()}


def fits(room: Mapping[str, int], amount: Mapping[str, int]) -> bool:
    """Whether `amount` fits `room`, where a missing type has no room and less than 0 counts as 0 (§2.3)."""
    for name, value in amount.items():
        if value > 0 and value > room.get(name, 0):
            return False
    return True


def fits_quota(quota: Mapping[str, int], amount: Mapping[str, int]) -> bool:
    """Whether `amount` fits `quota`, where a missing type is unlimited (facts §2.3, "MaxUndef")."""
    for name, value in amount.items():
        if value > 0 and name in quota and value > quota[name]:
            return False
    return True


def is_zero(amount: Mapping[str, int]) -> bool:
    """Whether every entry is 0."""
    return not any(amount.values())


def has_negative(amount: Mapping[str, int]) -> bool:
    """Whether any entry is below 0."""
    for value in amount.values():
        if value < 0:
            return True
    return False


def above_zero(amount: Mapping[str, int]) -> bool:
    """Whether no entry is below 0 and at least one above (facts §2.4, "StrictlyGreaterThanZero")."""
    return not has_negative(amount) and any(value > 0 for value in amount.values())


def shares(amount: Mapping[str, int], total: Mapping[str, int]) -> list[float]:
    """Per type of `amount` its part of `total`, ascending; a type that `total` lacks counts raw (§2.5)."""
    return sorted(
        0.0 if not value else value / total[name] if total.get(name) else float(value)
        for name, value in amount.items()
    )
